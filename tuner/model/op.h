#ifndef AUTOTUNE_MODEL_OP_H
#define AUTOTUNE_MODEL_OP_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autotune/dtype.h"
#include "tuner/model/expression.h"

namespace autotune {

// An op as data, as docs/op-format.md describes it: what the loader makes of one .toml file and what the build
// embeds. Plain aggregates; tuner/model/instance.h gives them a problem and a device.

/// One field of the problem key.
struct Field {
    enum class Kind { dim, choice, flag, text };
    std::string name;
    Kind kind = Kind::dim;
    bool near = false;           ///< a dim that neighbour search may vary
    std::vector<Value> choices;  ///< of a choice
    Expression fallback;         ///< the default: a constant or an expression over earlier fields; may be empty
    std::string about;
    bool key = true;             ///< false: it only fills inputs
    Expression from;             ///< what follows from a scalar: "beta == 0"
    bool from_inputs = false;    ///< set by the input generator
};

struct Constraint {
    std::string claim;
    Expression holds;
};

/// A launch value that is no key.
struct Scalar {
    std::string name;
    DType dtype = DType::f32;
    Value fallback = 0.0;
    std::vector<Value> check;  ///< values a check also tries
};

enum class Role { in, out, inout, scratch };

struct Fill {
    std::string kind = "normal";
    std::vector<std::pair<std::string, Expression>> arguments;  ///< low, high, value, max, of, like, zeros ...
    Expression junk_beyond;
};

struct Tensor {
    std::string name;
    Expression role;   ///< a constant "in", "out", "inout", "scratch", or an expression that chooses
    Expression dtype;  ///< a dtype's name, or the field that holds one
    std::vector<Expression> shape;
    std::vector<Expression> strides;  ///< in elements; a bare unknown name is free, given at launch; empty: contiguous
    Expression when;
    std::vector<std::string> may_alias;
    Fill fill;
    bool key = true;  ///< align and layout are key fields
};

/// An argument of a launch: a tensor or scratch by name, a value, or one of the forms below.
struct ArgumentSpec {
    enum class Kind { expression, tensor_map, reference_value, reference_magnitude };
    Kind kind = Kind::expression;
    Expression expression;  ///< its value: a number, or the name of a tensor, scratch buffer or scalar
    std::string tensor;     ///< tensor_map, reference_value, reference_magnitude
    std::vector<Expression> box;
    int swizzle = 0;
};

struct LaunchSpec {
    std::string entry, source;
    Expression when, repeat;
    std::vector<Expression> grid, block, cluster;
    Expression shared;
    bool cooperative = false;
    std::vector<ArgumentSpec> arguments;
};

struct Reference {
    enum class Kind { none, cpp, kernel, npy };
    Kind kind = Kind::none;
    std::string cpp;     ///< file in the op's folder
    std::string kernel;  ///< a variant of this op
    std::vector<std::pair<std::string, std::string>> npy;  ///< tensor -> file
    std::vector<std::pair<std::string, Expression>> define;
    std::vector<LaunchSpec> launches;  ///< of the fp64 device reference for large problems
};

struct Tolerance {
    std::string tensor;
    Expression terms, accumulate, intermediate, absolute, relative;
    bool exact = false;
};

struct Parameter {
    std::string name;
    std::vector<Value> values;
    Expression fallback;
    std::string about;
};

struct Scratch {
    std::string name;
    Expression dtype;
    std::vector<Expression> shape;
    Expression when;
    bool zeroed = false;
};

struct Symbol {
    std::string name, from;
    bool each_launch = false;
};

/// One [[kernel]].
struct Variant {
    std::string name, source, entry;
    std::vector<std::string> include;
    Expression needs;
    std::vector<std::pair<std::string, Expression>> define;
    bool parameters_as_template = false;
    std::vector<Parameter> parameters;
    std::vector<Constraint> constraints;
    std::vector<Scratch> scratch;
    std::vector<Symbol> symbols;
    std::vector<LaunchSpec> launches;
    std::vector<std::string> options;
    std::string arch;            ///< "sm_90a", or empty: the device's own
    std::optional<int> spill_bytes;
    bool pipelined = false, deterministic = true, idempotent = true;
};

struct Op {
    int format = 1;
    std::string name, summary;
    std::vector<Field> fields;
    std::vector<Constraint> constraints;
    std::vector<Scalar> scalars;
    std::vector<Tensor> tensors;
    std::vector<std::pair<std::string, Expression>> lets;  ///< sorted so that each uses only earlier ones
    Expression flops, bytes;
    Reference reference;
    std::string inputs_cpp;
    std::vector<Tolerance> tolerances;
    std::vector<std::vector<std::pair<std::string, Value>>> check_problems;
    std::vector<Variant> variants;

    /// Every source, header and host file the op names, and the .cuh files beside them: file name -> text.
    std::map<std::string, std::string> files;
    std::string folder;       ///< where it was loaded from; empty for a built-in op
    std::string toml;         ///< the text it was loaded from
    bool builtin = false;

    const Field* field(std::string_view name) const noexcept;
    const Tensor* tensor(std::string_view name) const noexcept;
    const Variant* variant(std::string_view name) const noexcept;
};

}  // namespace autotune
#endif

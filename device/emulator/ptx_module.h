#ifndef AUTOTUNE_DEVICE_EMULATOR_PTX_MODULE_H
#define AUTOTUNE_DEVICE_EMULATOR_PTX_MODULE_H

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/emulator/ptx_type.h"

namespace autotune::emulator {

enum class StateSpace : std::uint8_t { none, reg, global, constant, shared, local, param };

/// One operand as written; names of registers are resolved to their numbers in the function.
struct Operand {
    enum class Kind : std::uint8_t {
        sink,     ///< _
        reg,      ///< `number`
        special,  ///< %tid.x: `name`
        integer,  ///< `value`
        real,     ///< `value`: the bits of a double, or of a float where `single`
        symbol,   ///< a variable, function or label: `name`, plus `value`
        address,  ///< [parts[0] + value], or [value]; of a bulk copy further parts
        vector,   ///< {parts}
        list,     ///< (parts), of a call
        pair,     ///< parts[0]|parts[1]
    };
    Kind kind = Kind::sink;
    bool negated = false;  ///< ! before a predicate
    bool single = false;
    std::uint32_t number = 0;
    std::int64_t value = 0;
    std::string_view name;
    std::vector<Operand> parts;
};

/// Where an instruction comes from.
struct SourceLine {
    std::uint32_t file = 0, line = 0;              ///< of the innermost inlined call
    std::uint32_t outer_file = 0, outer_line = 0;  ///< of the outermost one; equal where nothing was inlined
};

struct Instruction {
    std::string_view opcode;  ///< with all of its modifiers
    std::int32_t guard = -1;  ///< register number of its predicate
    bool guard_negated = false;
    std::uint32_t scope = 0;  ///< for labels
    std::uint32_t location = 0;
    std::uint32_t text_line = 0;  ///< of the PTX
    std::vector<Operand> operands;
};

/// A scalar of an initialiser: a number, or the address of a symbol plus `value`.
struct Initialiser {
    std::string_view symbol;
    bool generic = false;
    std::int64_t value = 0;  ///< the bits where it is a real
};

struct Variable {
    std::string_view name;
    StateSpace space = StateSpace::global;
    PtxType type = PtxType::b8;
    std::uint64_t bytes = 0;
    std::uint32_t align = 1;
    bool external = false;  ///< without a size: dynamic shared memory
    std::vector<Initialiser> values;
};

struct Label {
    std::string_view name;
    std::uint32_t scope = 0, instruction = 0;
};

/// A list of labels, for brx.idx.
struct BranchTargets {
    std::string_view name;
    std::uint32_t scope = 0;
    std::vector<std::string_view> labels;
};

struct Function {
    std::string_view name;
    bool entry = false, defined = false;
    std::vector<Variable> results, parameters;
    std::vector<Variable> variables;  ///< local, shared and param ones of the body; names may repeat in scopes
    std::vector<std::uint32_t> variable_scopes;
    std::vector<PtxType> registers;     ///< types by number
    std::vector<std::uint32_t> scopes;  ///< parent of each scope; 0 is the body
    std::vector<Label> labels;
    std::vector<BranchTargets> targets;
    std::vector<Instruction> instructions;
    std::uint32_t max_threads = 0;
    bool required_threads = false;  ///< `max_threads` came from .reqntid
    std::uint32_t cluster[3] = {0, 0, 0};
};

/// A PTX text taken apart. All names point into `text`.
struct PtxModule {
    std::shared_ptr<const std::string> text;
    int version = 0;                      ///< 90 for 9.0
    int target = 0;                       ///< 80 for sm_80
    std::vector<std::string_view> files;  ///< by the number of .file
    std::vector<SourceLine> locations;    ///< 0: unknown
    std::vector<Variable> variables;
    std::vector<Function> functions;
};

/// Takes a PTX text apart: what NVRTC writes, and what people put into inline assembly. Directives that only guide
/// ptxas or a debugger are skipped. Nothing in a text, however broken, makes it crash or take memory beyond a small
/// multiple of the text.
/// throws  Error{usage} with the line of the text
PtxModule parse_ptx(std::string text);

}  // namespace autotune::emulator
#endif

#ifndef AUTOTUNE_CHAINS_CHAIN_H
#define AUTOTUNE_CHAINS_CHAIN_H

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace autotune {

/// What is done to elements. Steps from `less` to `negated` give a condition, `select` takes one first; all else is of
/// numbers and gives one.
enum class ChainStep {
    number,
    input,
    scalar,
    add,
    subtract,
    multiply,
    divide,
    minus,
    power,
    less,
    less_equal,
    greater,
    greater_equal,
    equal,
    not_equal,
    both,
    either,
    negated,
    select,
    minimum,
    maximum,
    absolute,
    exp,
    log,
    sqrt,
    rsqrt,
    tanh,
    sigmoid,
    relu,
    gelu,
    gelu_tanh,
    silu,
    f32,
    f16,
    bf16,
    dropout
};

struct ChainNode {
    ChainStep step = ChainStep::number;
    double number = 0;      ///< of a number
    std::size_t index = 0;  ///< which input, scalar or dropout; of a power the exponent, 2 to 8
    std::vector<ChainNode> parts{};
};

/// A chain of element-wise steps as a user writes it: `dropout(relu(x + bias), p)`.
///
/// `+ - * /`, `x ** 2` (whole exponents of 2 to 8), comparisons, `and or not`, `c ? a : b`, min(a, b), max(a, b),
/// abs, exp, log, sqrt, rsqrt, tanh, sigmoid, relu, gelu (by erf), gelu_tanh, silu; f32, f16 and bf16 round; a free
/// name is a tensor, `scalar(alpha)` a float that is given at launch; `dropout(x, p)` takes a number, or a name that is
/// such a scalar. `NAME = ` before it names the op; it is `elementwise` without.
struct Chain {
    std::string name;
    std::string text;                          ///< the expression in its one canonical spelling
    std::vector<std::string> inputs, scalars;  ///< each once, in order of appearance
    std::size_t dropouts = 0;
    ChainNode root;

    /// Throws Error{usage} with the column and a caret.
    static Chain parse(std::string_view text);
};

/// A chain's longest text, bytes.
inline constexpr std::size_t longest_chain = 2048;
/// The C++ reference that judges every op made of a chain; it is linked in.
inline constexpr std::string_view chain_reference = "elementwise.cpp";

}  // namespace autotune
#endif

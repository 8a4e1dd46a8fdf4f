#include "tuner/chains/chain_text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

namespace autotune {
namespace {

/// How a step is spelled: between its parts where it binds with a strength, before them as a function where it has 0.
struct Spelling {
    ChainStep step;
    std::string_view text, code;
    int strength = 0;
};

constexpr std::array spellings{
    Spelling{ChainStep::add, " + ", " + ", 5},          Spelling{ChainStep::subtract, " - ", " - ", 5},
    Spelling{ChainStep::multiply, " * ", " * ", 6},     Spelling{ChainStep::divide, " / ", " / ", 6},
    Spelling{ChainStep::less, " < ", " < ", 4},         Spelling{ChainStep::less_equal, " <= ", " <= ", 4},
    Spelling{ChainStep::greater, " > ", " > ", 4},      Spelling{ChainStep::greater_equal, " >= ", " >= ", 4},
    Spelling{ChainStep::equal, " == ", " == ", 4},      Spelling{ChainStep::not_equal, " != ", " != ", 4},
    Spelling{ChainStep::both, " and ", "both", 2},      Spelling{ChainStep::either, " or ", "either", 1},
    Spelling{ChainStep::negated, "not ", "negated", 3}, Spelling{ChainStep::minus, "-", "-", 7},
    Spelling{ChainStep::minimum, "min", "min_of"},      Spelling{ChainStep::maximum, "max", "max_of"},
    Spelling{ChainStep::absolute, "abs", "abs_of"},     Spelling{ChainStep::exp, "exp", "exp_of"},
    Spelling{ChainStep::log, "log", "log_of"},          Spelling{ChainStep::sqrt, "sqrt", "sqrt_of"},
    Spelling{ChainStep::rsqrt, "rsqrt", "rsqrt_of"},    Spelling{ChainStep::tanh, "tanh", "tanh_of"},
    Spelling{ChainStep::sigmoid, "sigmoid", "sigmoid"}, Spelling{ChainStep::relu, "relu", "relu"},
    Spelling{ChainStep::gelu, "gelu", "gelu"},          Spelling{ChainStep::gelu_tanh, "gelu_tanh", "gelu_tanh"},
    Spelling{ChainStep::silu, "silu", "silu"},          Spelling{ChainStep::f32, "f32", "as_f32"},
    Spelling{ChainStep::f16, "f16", "as_f16"},          Spelling{ChainStep::bf16, "bf16", "as_bf16"},
    Spelling{ChainStep::dropout, "dropout", "dropout"}};

const Spelling& spelling_of(ChainStep step) {
    for (const Spelling& row : spellings)
        if (row.step == step) return row;
    return spellings.back();
}

std::string number_text(double number) {
    if (number == std::floor(number) && std::fabs(number) < 1e15) return fmt::format("{:.0f}", number);
    return fmt::format("{}", number);
}

/// As a literal of double.
std::string real_text(double number) {
    const std::string text = fmt::format("{}", number);
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

class TextWriter {
public:
    explicit TextWriter(const Chain& chain) : chain_{chain} {}

    /// In brackets where it binds weaker than `least`.
    std::string of(const ChainNode& node, int least = 0) const {
        const auto [text, strength] = bare(node);
        return strength < least ? fmt::format("({})", text) : text;
    }

private:
    struct Piece {
        std::string text;
        int strength;
    };
    static constexpr int tightest = 9;

    Piece bare(const ChainNode& node) const {
        switch (node.step) {
            case ChainStep::number:
                return {number_text(node.number), tightest};
            case ChainStep::input:
                return {chain_.inputs[node.index], tightest};
            case ChainStep::scalar:
                return {fmt::format("scalar({})", chain_.scalars[node.index]), tightest};
            case ChainStep::power:
                return {fmt::format("{} ** {}", of(node.parts[0], tightest), node.index), 8};
            case ChainStep::select:
                return {fmt::format("{} ? {} : {}", of(node.parts[0], 1), of(node.parts[1]), of(node.parts[2])), 0};
            case ChainStep::dropout: {
                const ChainNode& p = node.parts[1];
                return {fmt::format("dropout({}, {})", of(node.parts[0]),
                                    p.step == ChainStep::scalar ? chain_.scalars[p.index] : of(p)),
                        tightest};
            }
            default:
                break;
        }
        const Spelling& row = spelling_of(node.step);
        if (row.strength == 0)
            return {node.parts.size() == 1 ? fmt::format("{}({})", row.text, of(node.parts[0]))
                                           : fmt::format("{}({}, {})", row.text, of(node.parts[0]), of(node.parts[1])),
                    tightest};
        if (node.parts.size() == 1)
            return {fmt::format("{}{}", row.text, of(node.parts[0], row.strength)), row.strength};
        // Comparisons do not associate; all else does to the left.
        const int left = row.strength == 4 ? 5 : row.strength;
        return {fmt::format("{}{}{}", of(node.parts[0], left), row.text, of(node.parts[1], row.strength + 1)),
                row.strength};
    }

    const Chain& chain_;
};

/// Steps that kernel_templates/activations.cuh has in two forms.
bool is_shorter_when_narrow(ChainStep step) {
    return step == ChainStep::sigmoid || step == ChainStep::silu || step == ChainStep::gelu ||
           step == ChainStep::gelu_tanh;
}

class CodeWriter {
public:
    explicit CodeWriter(const Chain& chain) : chain_{chain} {}

    std::string of(const ChainNode& node) const {
        switch (node.step) {
            case ChainStep::number:
                return fmt::format("constant<F>({})", real_text(node.number));
            case ChainStep::input:
                return "in_" + chain_.inputs[node.index];
            case ChainStep::scalar:
                return "given_" + chain_.scalars[node.index];
            case ChainStep::power:
                return fmt::format("power<{}>({})", node.index, of(node.parts[0]));
            case ChainStep::select:
                return fmt::format("select({}, {}, {})", of(node.parts[0]), of(node.parts[1]), of(node.parts[2]));
            case ChainStep::dropout:
                return fmt::format("dropout({}, {}, bits_{})", of(node.parts[0]), of(node.parts[1]), node.index);
            default:
                break;
        }
        const std::string_view code = spelling_of(node.step).code;
        if (node.parts.size() == 1)
            return fmt::format("{}{}({})", code, is_shorter_when_narrow(node.step) ? "<NARROW>" : "", of(node.parts[0]));
        return code.front() == ' ' ? fmt::format("({}{}{})", of(node.parts[0]), code, of(node.parts[1]))
                                   : fmt::format("{}({}, {})", code, of(node.parts[0]), of(node.parts[1]));
    }

private:
    const Chain& chain_;
};

}  // namespace

std::string text_of(const Chain& chain) { return TextWriter{chain}.of(chain.root); }
std::string code_of(const Chain& chain) { return CodeWriter{chain}.of(chain.root); }

}  // namespace autotune

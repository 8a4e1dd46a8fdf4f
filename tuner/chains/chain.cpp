#include "tuner/chains/chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <variant>

#include "autotune/error.h"
#include "tuner/chains/chain_text.h"
#include "tuner/model/cpp_word.h"
#include "tuner/model/expression.h"
#include "tuner/model/parser.h"

namespace autotune {
namespace {

constexpr std::size_t any_number = 64;

constexpr std::array<FunctionInfo, 19> chain_functions{{{Function::minimum, "min", 2, any_number},
                                                        {Function::maximum, "max", 2, any_number},
                                                        {Function::absolute, "abs", 1, 1},
                                                        {Function::f32, "f32", 1, 1},
                                                        {Function::f16, "f16", 1, 1},
                                                        {Function::bf16, "bf16", 1, 1},
                                                        {Function::exp, "exp", 1, 1},
                                                        {Function::log, "log", 1, 1},
                                                        {Function::sqrt, "sqrt", 1, 1},
                                                        {Function::rsqrt, "rsqrt", 1, 1},
                                                        {Function::tanh, "tanh", 1, 1},
                                                        {Function::sigmoid, "sigmoid", 1, 1},
                                                        {Function::relu, "relu", 1, 1},
                                                        {Function::gelu, "gelu", 1, 1},
                                                        {Function::gelu_tanh, "gelu_tanh", 1, 1},
                                                        {Function::silu, "silu", 1, 1},
                                                        {Function::dropout, "dropout", 2, 2},
                                                        {Function::scalar, "scalar", 1, 1},
                                                        {Function::size_of, "sizeof", 1, 1}}};

ChainStep step_of(Function function) {
    switch (function) {
        case Function::minimum:
            return ChainStep::minimum;
        case Function::maximum:
            return ChainStep::maximum;
        case Function::absolute:
            return ChainStep::absolute;
        case Function::f32:
            return ChainStep::f32;
        case Function::f16:
            return ChainStep::f16;
        case Function::bf16:
            return ChainStep::bf16;
        case Function::exp:
            return ChainStep::exp;
        case Function::log:
            return ChainStep::log;
        case Function::sqrt:
            return ChainStep::sqrt;
        case Function::rsqrt:
            return ChainStep::rsqrt;
        case Function::tanh:
            return ChainStep::tanh;
        case Function::sigmoid:
            return ChainStep::sigmoid;
        case Function::relu:
            return ChainStep::relu;
        case Function::gelu:
            return ChainStep::gelu;
        case Function::gelu_tanh:
            return ChainStep::gelu_tanh;
        case Function::silu:
            return ChainStep::silu;
        default:
            return ChainStep::dropout;
    }
}

ChainStep step_of(Relation relation) {
    switch (relation) {
        case Relation::less:
            return ChainStep::less;
        case Relation::less_equal:
            return ChainStep::less_equal;
        case Relation::greater:
            return ChainStep::greater;
        case Relation::greater_equal:
            return ChainStep::greater_equal;
        case Relation::equal:
            return ChainStep::equal;
        default:
            return ChainStep::not_equal;
    }
}

/// From the tree of any expression to a chain's, with the types checked on the way.
class Reader {
public:
    explicit Reader(Chain& chain) : chain_{chain} {}

    ChainNode number(const ExpressionNode& node) {
        ChainNode read = any(node);
        if (is_condition(read.step)) throw ParseError{"a condition where a number is expected", node.offset};
        return read;
    }

private:
    ChainNode condition(const ExpressionNode& node) {
        ChainNode read = any(node);
        if (!is_condition(read.step))
            throw ParseError{"a number where a condition such as 'x > 0' is expected", node.offset};
        return read;
    }

    std::vector<ChainNode> numbers(const ExpressionNode& node) {
        std::vector<ChainNode> parts;
        for (const auto& child : node.children) parts.push_back(number(*child));
        return parts;
    }

    ChainNode any(const ExpressionNode& node) {
        switch (node.kind) {
            case NodeKind::constant:
                return literal(node);
            case NodeKind::name:
                return {.step = ChainStep::input, .index = place_of(node.name, chain_.inputs, chain_.scalars, node)};
            case NodeKind::negate:
                return {.step = ChainStep::minus, .parts = numbers(node)};
            case NodeKind::add:
                return {.step = ChainStep::add, .parts = numbers(node)};
            case NodeKind::subtract:
                return {.step = ChainStep::subtract, .parts = numbers(node)};
            case NodeKind::multiply:
                return {.step = ChainStep::multiply, .parts = numbers(node)};
            case NodeKind::divide:
                return {.step = ChainStep::divide, .parts = numbers(node)};
            case NodeKind::power:
                return power(node);
            case NodeKind::compare:
                return comparison(node);
            case NodeKind::logical_not:
                return {.step = ChainStep::negated, .parts = {condition(*node.children[0])}};
            case NodeKind::logical_and:
                return logical(ChainStep::both, node);
            case NodeKind::logical_or:
                return logical(ChainStep::either, node);
            case NodeKind::conditional:
                return {.step = ChainStep::select,
                        .parts = {condition(*node.children[0]), number(*node.children[1]), number(*node.children[2])}};
            case NodeKind::call:
                return call(node);
            default:
                throw ParseError{fmt::format("'{}' has no meaning for elements", node.piece), node.offset};
        }
    }

    static ChainNode literal(const ExpressionNode& node) {
        const auto* whole = std::get_if<std::int64_t>(&node.value);
        const auto* real = std::get_if<double>(&node.value);
        if (!whole && !real) throw ParseError{fmt::format("{} is no number", node.piece), node.offset};
        const double value = whole ? static_cast<double>(*whole) : *real;
        if (!(std::fabs(value) <= 3.4028234663852886e38))
            throw ParseError{fmt::format("{} is beyond what a float holds", node.piece), node.offset};
        return {.step = ChainStep::number, .number = value};
    }

    /// Which macros of the kernel are made of.
    static bool same_but_for_case(std::string_view a, std::string_view b) {
        const auto low = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
        return std::ranges::equal(a, b, {}, low, low);
    }

    /// Where the name stands in `names`, put there when it is new.
    static std::size_t place_of(const std::string& name, std::vector<std::string>& names,
                                const std::vector<std::string>& others, const ExpressionNode& node) {
        static constexpr std::string_view taken[] = {"y",    "batch",  "rows", "cols", "dtype", "chain",
                                                     "seed", "offset", "BX",   "BY",   "VEC",   "ITEMS"};
        if (std::ranges::find(taken, name) != std::end(taken))
            throw ParseError{
                fmt::format("'{}' has a meaning of its own in the op that is made: take another name", name),
                node.offset};
        if (std::ranges::find(others, name) != others.end())
            throw ParseError{fmt::format("'{}' is a scalar here and a tensor there", name), node.offset};
        const auto found = std::ranges::find(names, name);
        if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
        const auto alike =
            std::ranges::find_if(names, [&](const std::string& one) { return same_but_for_case(one, name); });
        if (alike != names.end())
            throw ParseError{fmt::format("'{}' and '{}' differ in case alone", *alike, name), node.offset};
        if (names.size() == most_names) throw ParseError{fmt::format("more than {} names", most_names), node.offset};
        names.push_back(name);
        return names.size() - 1;
    }

    ChainNode scalar(const ExpressionNode& node) {
        if (node.kind != NodeKind::name) throw ParseError{"the name of a scalar is expected", node.offset};
        return {.step = ChainStep::scalar, .index = place_of(node.name, chain_.scalars, chain_.inputs, node)};
    }

    ChainNode power(const ExpressionNode& node) {
        const ExpressionNode& exponent = *node.children[1];
        const auto* whole = exponent.kind == NodeKind::constant ? std::get_if<std::int64_t>(&exponent.value) : nullptr;
        if (!whole || *whole < 2 || *whole > 8)
            throw ParseError{"an exponent is a whole number from 2 to 8; sqrt, rsqrt, exp and log are functions",
                             exponent.offset};
        return {
            .step = ChainStep::power, .index = static_cast<std::size_t>(*whole), .parts = {number(*node.children[0])}};
    }

    /// `a < b <= c` is `a < b and b <= c`.
    ChainNode comparison(const ExpressionNode& node) {
        std::optional<ChainNode> all;
        for (std::size_t i = 0; i < node.relations.size(); ++i) {
            if (node.relations[i] == Relation::in || node.relations[i] == Relation::not_in)
                throw ParseError{"'in' has no meaning for elements", node.offset};
            ChainNode one{.step = step_of(node.relations[i]),
                          .parts = {number(*node.children[i]), number(*node.children[i + 1])}};
            all = all ? ChainNode{.step = ChainStep::both, .parts = {std::move(*all), std::move(one)}} : std::move(one);
        }
        return std::move(*all);
    }

    ChainNode logical(ChainStep step, const ExpressionNode& node) {
        ChainNode all = condition(*node.children[0]);
        for (std::size_t i = 1; i < node.children.size(); ++i)
            all = {.step = step, .parts = {std::move(all), condition(*node.children[i])}};
        return all;
    }

    ChainNode call(const ExpressionNode& node) {
        if (node.function == Function::size_of) throw ParseError{"'sizeof' has no meaning for elements", node.offset};
        if (node.function == Function::scalar) return scalar(*node.children[0]);
        if (node.function == Function::dropout) return dropout(node);
        std::vector<ChainNode> parts = numbers(node);
        const ChainStep step = step_of(node.function);
        if (parts.size() == 1) return {.step = step, .parts = std::move(parts)};
        ChainNode all = std::move(parts[0]);
        for (std::size_t i = 1; i < parts.size(); ++i)
            all = {.step = step, .parts = {std::move(all), std::move(parts[i])}};
        return all;
    }

    ChainNode dropout(const ExpressionNode& node) {
        ChainNode x = number(*node.children[0]);
        const ExpressionNode& given = *node.children[1];
        const bool bare = given.kind == NodeKind::name;
        ChainNode p = bare ? scalar(given) : number(given);
        if (p.step != ChainStep::scalar && !(p.step == ChainStep::number && p.number <= 1))
            throw ParseError{"the probability of a dropout is a number from 0 to 1, or the name of a scalar",
                             given.offset};
        if (chain_.dropouts == most_dropouts)
            throw ParseError{fmt::format("more than {} dropouts", most_dropouts), node.offset};
        return {.step = ChainStep::dropout, .index = chain_.dropouts++, .parts = {std::move(x), std::move(p)}};
    }

    static constexpr std::size_t most_names = 16, most_dropouts = 4;
    Chain& chain_;
};

[[noreturn]] void refuse(std::string_view text, const ParseError& error) {
    const std::size_t column = std::min(error.offset(), text.size());
    throw Error{Error::Kind::usage, fmt::format("the chain is none: column {}: {}\n  {}\n  {}^", column + 1,
                                                error.what(), text, std::string(column, ' '))};
}

/// What stands before a single '=': the op's name, and how many bytes that took.
std::pair<std::string, std::size_t> name_before(std::string_view text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals + 1 == text.size() || text[equals + 1] == '=')
        return {"elementwise", 0};
    std::string_view name = text.substr(0, equals);
    while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
    while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
    const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
    if (name.empty() || name.size() > 48 || !std::ranges::all_of(name, plain) || (name[0] >= '0' && name[0] <= '9'))
        return {"elementwise", 0};
    if (is_cpp_word(name))
        refuse(text, ParseError{fmt::format("'{}' is a word of C++, and no name of an op", name), text.find(name)});
    return {std::string{name}, equals + 1};
}

}  // namespace

bool is_condition(ChainStep step) { return step >= ChainStep::less && step <= ChainStep::negated; }

Chain Chain::parse(std::string_view given) {
    if (given.size() > longest_chain)
        throw Error{Error::Kind::usage,
                    fmt::format("the chain has {} bytes, and the most is {}", given.size(), longest_chain)};
    Chain chain;
    const auto [name, taken] = name_before(given);
    // In place of the name, so that columns stay those of what was typed.
    const std::string text = std::string(taken, ' ') + std::string{given.substr(taken)};
    try {
        const auto tree = parse_tree(text, chain_functions);
        chain.name = name;
        chain.root = Reader{chain}.number(*tree->root);
        if (chain.inputs.empty()) throw ParseError{"the chain names no tensor", 0};
    } catch (const ParseError& error) {
        refuse(given, error);
    }
    chain.text = text_of(chain);
    if (chain.text.size() > longest_chain)
        throw Error{Error::Kind::usage, fmt::format("the chain has {} bytes when written out, and the most is {}",
                                                    chain.text.size(), longest_chain)};
    return chain;
}

}  // namespace autotune

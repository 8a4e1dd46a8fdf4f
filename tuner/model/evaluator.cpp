#include "tuner/model/evaluator.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <compare>
#include <limits>

#include "autotune/dtype.h"

namespace autotune {
namespace {

constexpr std::array<FunctionInfo, 14> table{{
    {Function::minimum, "min", 1, 64},
    {Function::maximum, "max", 1, 64},
    {Function::absolute, "abs", 1, 1},
    {Function::ceil_div, "ceil_div", 2, 2},
    {Function::round_up, "round_up", 2, 2},
    {Function::log2, "log2", 1, 1},
    {Function::pow2, "pow2", 1, 1},
    {Function::size_of, "sizeof", 1, 1},
    {Function::i32, "i32", 1, 1},
    {Function::i64, "i64", 1, 1},
    {Function::f32, "f32", 1, 1},
    {Function::align, "align", 1, 1},
    {Function::contiguous, "contiguous", 1, 1},
    {Function::sum, "sum", 1, 1},
}};

using Integer = std::int64_t;
constexpr Integer lowest = std::numeric_limits<Integer>::min();

Cell real_or_fault(double value, const ExpressionNode& where) noexcept {
    return std::isfinite(value) ? Cell::of(value) : Cell::failure(Fault::not_finite, where);
}

Integer floor_quotient(Integer a, Integer b) noexcept { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

Cell integer_power(Integer base, Integer exponent, const ExpressionNode& where) noexcept {
    Integer result = 1;
    for (;;) {
        if ((exponent & 1) && __builtin_mul_overflow(result, base, &result))
            return Cell::failure(Fault::overflow, where);
        exponent >>= 1;
        if (exponent == 0) return Cell::of(result);
        // No square is taken beyond the last bit, so one that overflows was needed.
        if (__builtin_mul_overflow(base, base, &base)) return Cell::failure(Fault::overflow, where);
    }
}

Cell of_integers(NodeKind kind, Integer a, Integer b, const ExpressionNode& where) noexcept {
    Integer result = 0;
    bool overflow = false;
    switch (kind) {
        case NodeKind::add:
            overflow = __builtin_add_overflow(a, b, &result);
            break;
        case NodeKind::subtract:
            overflow = __builtin_sub_overflow(a, b, &result);
            break;
        case NodeKind::multiply:
            overflow = __builtin_mul_overflow(a, b, &result);
            break;
        case NodeKind::power:
            if (b >= 0) return integer_power(a, b, where);
            return real_or_fault(std::pow(static_cast<double>(a), static_cast<double>(b)), where);
        default:
            if (b == 0) return Cell::failure(Fault::division_by_zero, where);
            if (b == -1) {  // the one quotient that can overflow
                if (kind == NodeKind::modulo) return Cell::of(Integer{0});
                if (a == lowest) return Cell::failure(Fault::overflow, where);
                return Cell::of(-a);
            }
            if (kind == NodeKind::floor_divide) return Cell::of(floor_quotient(a, b));
            if (kind == NodeKind::modulo) return Cell::of(a - floor_quotient(a, b) * b);
            // An exact quotient stays an integer, so that "BM / 2" is a block size.
            if (a % b == 0) return Cell::of(a / b);
            return Cell::of(static_cast<double>(a) / static_cast<double>(b));
    }
    return overflow ? Cell::failure(Fault::overflow, where) : Cell::of(result);
}

Cell of_reals(NodeKind kind, double a, double b, const ExpressionNode& where) noexcept {
    switch (kind) {
        case NodeKind::add:
            return real_or_fault(a + b, where);
        case NodeKind::subtract:
            return real_or_fault(a - b, where);
        case NodeKind::multiply:
            return real_or_fault(a * b, where);
        case NodeKind::power:
            return real_or_fault(std::pow(a, b), where);
        default:
            break;
    }
    if (b == 0.0) return Cell::failure(Fault::division_by_zero, where);
    if (kind == NodeKind::divide) return real_or_fault(a / b, where);
    // As Python has it: what is left is exact, and 1.0 % 0.1 is nearly 0.1, since 0.1 is a little more than a tenth.
    double left = std::fmod(a, b);
    if (left != 0 && (left < 0) != (b < 0)) left += b;
    return real_or_fault(kind == NodeKind::modulo ? left : std::nearbyint((a - left) / b), where);
}

/// Exact, since long double holds every 64-bit integer and every double. A scalar may be NaN, which is unordered: were
/// it equal to 0, a gemm with beta = NaN would not read c.
std::partial_ordering compared(const Cell& a, const Cell& b) noexcept {
    if (a.whole() && b.whole()) return a.integer <=> b.integer;
    const long double x = a.whole() ? static_cast<long double>(a.integer) : static_cast<long double>(a.real);
    const long double y = b.whole() ? static_cast<long double>(b.integer) : static_cast<long double>(b.real);
    return x <=> y;
}

Cell log2_of(const Cell& x, const ExpressionNode& where) noexcept {
    if (x.number() <= 0.0) return Cell::failure(Fault::not_positive, where);
    if (x.whole() && std::has_single_bit(static_cast<std::uint64_t>(x.integer)))
        return Cell::of(Integer{std::countr_zero(static_cast<std::uint64_t>(x.integer))});
    return Cell::of(std::log2(x.number()));
}

Cell pow2_of(Integer x, const ExpressionNode& where) noexcept {
    if (x < 1) return Cell::failure(Fault::not_positive, where);
    if (x > Integer{1} << 62) return Cell::failure(Fault::overflow, where);
    return Cell::of(static_cast<Integer>(std::bit_ceil(static_cast<std::uint64_t>(x))));
}

Cell ceil_div(Integer a, Integer b, const ExpressionNode& where) noexcept {
    if (b == 0) return Cell::failure(Fault::division_by_zero, where);
    if (a == lowest && b == -1) return Cell::failure(Fault::overflow, where);
    return Cell::of(a / b + (a % b != 0 && (a < 0) == (b < 0) ? 1 : 0));
}

/// Functions that take integers only.
Cell of_whole(Function function, const Cell& a, const Cell& b, const ExpressionNode& where) noexcept {
    const Cell x = as_integer(a, where), y = as_integer(b, where);
    if (x.failed()) return x;
    if (y.failed()) return y;
    switch (function) {
        case Function::ceil_div:
            return ceil_div(x.integer, y.integer, where);
        case Function::round_up: {
            const Cell times = ceil_div(x.integer, y.integer, where);
            return times.failed() ? times : of_integers(NodeKind::multiply, times.integer, y.integer, where);
        }
        case Function::pow2:
            return pow2_of(x.integer, where);
        case Function::i32:
            if (x.integer != static_cast<std::int32_t>(x.integer)) return Cell::failure(Fault::beyond_32_bits, where);
            return Cell::of(x.integer);
        default:
            return Cell::of(x.integer);
    }
}

std::string_view words(Fault fault) noexcept {
    switch (fault) {
        case Fault::none:
            return "no fault";
        case Fault::unknown_name:
            return "unknown name";
        case Fault::unknown_tensor:
            return "nothing is known here about tensor";
        case Fault::overflow:
            return "64-bit overflow in";
        case Fault::division_by_zero:
            return "division by zero in";
        case Fault::not_finite:
            return "no finite number comes out of";
        case Fault::word_as_number:
            return "a word stands where a number is needed in";
        case Fault::number_as_word:
            return "a word and a number are compared in";
        case Fault::word_order:
            return "words have no order in";
        case Fault::not_whole:
            return "not a whole number where one is needed in";
        case Fault::not_positive:
            return "a positive number is needed in";
        case Fault::not_a_dtype:
            return "not the name of an element type in";
        case Fault::beyond_32_bits:
            return "beyond 32 bits in";
    }
    return "";
}

}  // namespace

std::span<const FunctionInfo> functions() noexcept { return table; }

Cell Cell::of(const Value& value) noexcept {
    if (const auto* flag = std::get_if<bool>(&value)) return of(*flag);
    if (const auto* whole_number = std::get_if<std::int64_t>(&value)) return of(*whole_number);
    if (const auto* number = std::get_if<double>(&value)) return of(*number);
    Cell cell;
    cell.kind = Kind::text;
    cell.text = &std::get<std::string>(value);
    return cell;
}

Value Cell::value() const {
    switch (kind) {
        case Kind::boolean:
            return integer != 0;
        case Kind::integer:
            return integer;
        case Kind::real:
            return real;
        case Kind::text:
            return *text;
        case Kind::failed:
            break;
    }
    return false;
}

std::string explain(const Cell& failed) {
    const ExpressionNode& where = *failed.where;
    const bool named = failed.fault == Fault::unknown_name || failed.fault == Fault::unknown_tensor;
    return fmt::format("{} '{}'", words(failed.fault), named ? std::string_view{where.name} : where.piece);
}

std::string lets_too_deep(std::string_view let) {
    return fmt::format("'{}' stands behind more than {} lets that use each other", let, lets_deep_at_most);
}

Cell as_integer(const Cell& cell, const ExpressionNode& where) noexcept {
    if (cell.failed()) return cell;
    if (cell.whole()) return Cell::of(cell.integer);
    if (!cell.numeric()) return Cell::failure(Fault::word_as_number, where);
    if (cell.real != std::floor(cell.real)) return Cell::failure(Fault::not_whole, where);
    if (!(cell.real >= -0x1p63 && cell.real < 0x1p63)) return Cell::failure(Fault::overflow, where);
    return Cell::of(static_cast<Integer>(cell.real));
}

namespace evaluator {

Cell arithmetic(NodeKind kind, const Cell& a, const Cell& b, const ExpressionNode& where) noexcept {
    if (a.failed()) return a;
    if (b.failed()) return b;
    if (!a.numeric() || !b.numeric()) return Cell::failure(Fault::word_as_number, where);
    if (a.whole() && b.whole()) return of_integers(kind, a.integer, b.integer, where);
    return of_reals(kind, a.number(), b.number(), where);
}

Cell negated(const Cell& a, const ExpressionNode& where) noexcept {
    if (a.kind == Cell::Kind::real) return Cell::of(-a.real);
    return arithmetic(NodeKind::subtract, Cell::of(Integer{0}), a, where);
}

Cell related(Relation relation, const Cell& a, const Cell& b, const ExpressionNode& where) noexcept {
    if (a.failed()) return a;
    if (b.failed()) return b;
    const bool equality = relation == Relation::equal || relation == Relation::not_equal;
    if (a.numeric() != b.numeric()) return Cell::failure(Fault::number_as_word, where);
    if (!a.numeric()) {
        if (!equality) return Cell::failure(Fault::word_order, where);
        return Cell::of((*a.text == *b.text) == (relation == Relation::equal));
    }
    const std::partial_ordering order = compared(a, b);
    switch (relation) {
        case Relation::equal:
            return Cell::of(order == 0);
        case Relation::not_equal:
            return Cell::of(order != 0);
        case Relation::less:
            return Cell::of(order < 0);
        case Relation::less_equal:
            return Cell::of(order <= 0);
        case Relation::greater:
            return Cell::of(order > 0);
        default:
            return Cell::of(order >= 0);
    }
}

Cell called(const ExpressionNode& call, std::span<const Cell> arguments) noexcept {
    const Cell& a = arguments.front();
    const Cell& b = arguments.back();
    if (call.function == Function::size_of) {
        if (a.kind != Cell::Kind::text) return Cell::failure(Fault::not_a_dtype, call);
        const auto dtype = dtype_named(*a.text);
        return dtype ? Cell::of(static_cast<Integer>(autotune::size_of(*dtype)))
                     : Cell::failure(Fault::not_a_dtype, call);
    }
    if (!a.numeric() || !b.numeric()) return Cell::failure(Fault::word_as_number, call);
    switch (call.function) {
        case Function::minimum:
            return compared(b, a) < 0 ? b : a;
        case Function::maximum:
            return compared(b, a) > 0 ? b : a;
        case Function::absolute:
            return a.number() < 0 ? negated(a, call) : a;
        case Function::log2:
            return log2_of(a, call);
        case Function::f32:
            return real_or_fault(static_cast<double>(static_cast<float>(a.number())), call);
        default:
            return of_whole(call.function, a, b, call);
    }
}

}  // namespace evaluator
}  // namespace autotune

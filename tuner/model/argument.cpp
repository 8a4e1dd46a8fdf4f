#include "tuner/model/argument.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tuner/model/evaluator.h"

namespace autotune {
namespace {

struct FloatFormat {
    int exponent_bits, mantissa_bits;
    bool finite_only;  ///< e4m3: no infinity; what is too large saturates
};

/// The bits of a number in a small float format, rounded to nearest even.
std::uint64_t small_float_bits(double value, FloatFormat format) {
    const auto sign = static_cast<std::uint64_t>(std::signbit(value)) << (format.exponent_bits + format.mantissa_bits);
    const std::uint64_t top = ((std::uint64_t{1} << format.exponent_bits) - 1) << format.mantissa_bits;
    const std::uint64_t all = (std::uint64_t{1} << format.mantissa_bits) - 1;
    if (std::isnan(value)) return sign | top | all;
    const std::uint64_t largest = format.finite_only ? top + all - 1 : top;
    if (std::isinf(value)) return sign | largest;
    if (value == 0.0) return sign;
    const int bias = (1 << (format.exponent_bits - 1)) - 1;
    const int exponent = std::max(std::ilogb(value), 1 - bias);  // subnormals share the smallest exponent
    const auto steps =
        static_cast<std::uint64_t>(std::nearbyint(std::ldexp(std::abs(value), format.mantissa_bits - exponent)));
    // A mantissa that rounds up to the next power of two carries into the exponent by itself.
    const std::uint64_t bits = (static_cast<std::uint64_t>(exponent + bias - 1) << format.mantissa_bits) + steps;
    return sign | std::min(bits, largest);
}

template <class T>
ValueArgument copied(T value) {
    ValueArgument out;
    out.size = sizeof value;
    std::memcpy(out.bytes.data(), &value, sizeof value);  // every host and device here is little-endian
    return out;
}

template <class T>
ValueArgument integer(double number, std::int64_t whole) {
    if (number != std::floor(number) || whole < static_cast<std::int64_t>(std::numeric_limits<T>::min()) ||
        whole > static_cast<std::int64_t>(std::numeric_limits<T>::max()))
        throw EvaluationError{fmt::format("{} is no value of an argument of {} bytes", number, sizeof(T))};
    return copied(static_cast<T>(whole));
}

std::optional<ArgumentObjection> node_objection(const Op& op, std::span<const Scratch> scratch,
                                                const ExpressionNode& node) {
    if (node.kind == NodeKind::conditional) {
        if (auto objection = node_objection(op, scratch, *node.children[1])) return objection;
        return node_objection(op, scratch, *node.children[2]);
    }
    if (node.kind == NodeKind::call &&
        (node.function == Function::i32 || node.function == Function::i64 || node.function == Function::f32))
        return std::nullopt;
    if (node.kind == NodeKind::name &&
        (op.tensor(node.name) || std::ranges::find(op.scalars, node.name, &Scalar::name) != op.scalars.end() ||
         std::ranges::find(scratch, node.name, &Scratch::name) != scratch.end()))
        return std::nullopt;
    const std::string piece = node.piece.empty() ? to_text(node.value) : std::string{node.piece};
    return ArgumentObjection{
        .reason =
            fmt::format("the argument '{0}' is a number without a width; write i32({0}), i64({0}) or f32({0})", piece),
        .offset = node.offset,
        .length = piece.size()};
}

}  // namespace

ValueArgument value_argument(const Value& value, DType dtype) {
    const Cell cell = Cell::of(value);
    if (!cell.numeric()) throw EvaluationError{fmt::format("'{}' is a word where a number is needed", to_text(value))};
    const double number = cell.number();
    const std::int64_t whole = cell.whole()                ? cell.integer
                               : std::abs(number) < 0x1p62 ? static_cast<std::int64_t>(number)
                                                           : std::numeric_limits<std::int64_t>::max();
    switch (dtype) {
        case DType::f64:
            return copied(number);
        case DType::f32:
            return copied(static_cast<float>(number));
        case DType::f16:
            return copied(static_cast<std::uint16_t>(small_float_bits(number, {5, 10, false})));
        case DType::bf16:
            return copied(static_cast<std::uint16_t>(small_float_bits(number, {8, 7, false})));
        case DType::f8e4m3:
            return copied(static_cast<std::uint8_t>(small_float_bits(number, {4, 3, true})));
        case DType::f8e5m2:
            return copied(static_cast<std::uint8_t>(small_float_bits(number, {5, 2, false})));
        case DType::i64:
            return integer<std::int64_t>(number, whole);
        case DType::i32:
            return integer<std::int32_t>(number, whole);
        case DType::i16:
            return integer<std::int16_t>(number, whole);
        case DType::i8:
            return integer<std::int8_t>(number, whole);
        case DType::u8:
            return integer<std::uint8_t>(number, whole);
        case DType::u32:
            return integer<std::uint32_t>(number, whole);
        case DType::boolean:
            return copied(static_cast<std::uint8_t>(cell.truth()));
    }
    return {};
}

std::optional<ArgumentObjection> argument_objection(const Op& op, std::span<const Scratch> scratch,
                                                    const Expression& argument) {
    if (argument.empty()) return ArgumentObjection{.reason = "an argument is empty"};
    return node_objection(op, scratch, *argument.node());
}

}  // namespace autotune

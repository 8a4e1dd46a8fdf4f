#include "device/compare.h"

#include <algorithm>

#include "device/support_math.h"

namespace autotune {
namespace {

support::Limits limits_of(const Bound& bound) { return {bound.of_value, bound.of_magnitude, bound.absolute}; }

const unsigned char* raw(std::span<const std::byte> bytes) {
    return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

std::int64_t element_offset(std::uint64_t index, std::span<const std::int64_t> shape,
                            std::span<const std::int64_t> strides) noexcept {
    std::int64_t offset = 0;
    for (std::size_t dimension = shape.size(); dimension-- > 0;) {
        const auto extent = static_cast<std::uint64_t>(shape[dimension]);
        offset += static_cast<std::int64_t>(index % extent) * strides[dimension];
        index /= extent;
    }
    return offset;
}

std::uint64_t element_count(std::span<const std::int64_t> shape) noexcept {
    std::uint64_t count = 1;
    for (const std::int64_t extent : shape) count *= static_cast<std::uint64_t>(std::max<std::int64_t>(extent, 0));
    return count;
}

double element_value(std::span<const std::byte> bytes, DType dtype) noexcept {
    return support::decode(support::load_bits(raw(bytes), static_cast<int>(size_of(dtype))), static_cast<int>(dtype));
}

double allowed_error(double value, double magnitude, const Bound& bound) noexcept {
    return support::judge(value, value, magnitude, limits_of(bound), static_cast<int>(DType::f64)).bound;
}

Comparison compare_on_host(std::span<const std::byte> got, DType dtype, std::span<const std::int64_t> shape,
                           std::span<const std::int64_t> strides, std::span<const double> value,
                           std::span<const double> magnitude, const Bound& bound, std::uint8_t poison) {
    const support::Limits limits = limits_of(bound);
    const auto size = size_of(dtype);
    const int type = static_cast<int>(dtype);
    Comparison result{.elements = element_count(shape)};
    for (std::uint64_t i = 0; i < result.elements; ++i) {
        const auto element = got.subspan(static_cast<std::size_t>(element_offset(i, shape, strides)) * size, size);
        const double have = support::decode(support::load_bits(raw(element), static_cast<int>(size)), type);
        const double terms = magnitude.empty() ? support::magnitude_of(value[i]) : magnitude[i];
        const support::Judgement judged = support::judge(have, value[i], terms, limits, type);
        result.largest_ratio = std::max(result.largest_ratio, judged.ratio);
        if (judged.good) continue;
        if (result.bad++ == 0) {
            result.first_bad = i;
            result.got = have;
            result.want = value[i];
            result.bound = judged.bound;
        }
        if (judged.not_finite) ++result.not_finite;
        if (std::all_of(element.begin(), element.end(), [&](std::byte b) { return b == std::byte{poison}; }))
            ++result.still_poison;
    }
    return result;
}

}  // namespace autotune

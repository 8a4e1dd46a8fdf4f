#include "device/fill.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "device/support_math.h"

namespace autotune {
namespace {

// The two enums are one list; support_math.h cannot include the other.
static_assert(int{support::boolean} == static_cast<int>(DType::boolean) &&
              int{support::f8e5m2} == static_cast<int>(DType::f8e5m2));
static_assert(int{support::zero} == static_cast<int>(FillSpec::Kind::zero) &&
              int{support::sorted} == static_cast<int>(FillSpec::Kind::sorted));

/// The x >= 0 whose upper tail is `probability`, by bisection, in units of 2^-24.
int tail_quantile(double probability) {
    double low = 0, high = 8;
    for (int step = 0; step < 80; ++step) {
        const double middle = (low + high) / 2;
        (0.5 * std::erfc(middle / std::sqrt(2.0)) > probability ? low : high) = middle;
    }
    return static_cast<int>(std::lround(low * 0x1p24));
}

using Table = std::array<int, support::normal_table_size>;

Table make_table() {
    Table table{};
    for (int i = 0; i < support::normal_table_size; ++i) {
        const double position = static_cast<double>(support::normal_table_position(i));
        table[static_cast<std::size_t>(i)] = tail_quantile(std::min(0.5, (position + 0.5) * 0x1p-32));
    }
    return table;
}

template <class Word>
void write_elements(std::span<std::byte> out, std::uint64_t first, const support::Fill& fill) {
    const int* const table = normal_table().data();
    const std::uint64_t count = out.size() / sizeof(Word);
    auto* const bytes = reinterpret_cast<unsigned char*>(out.data());
    std::uint64_t have = ~std::uint64_t{0};
    support::Four bits{}, more{};
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t index = first + i;
        if (index / 4 != have) {
            have = index / 4;
            bits = support::random_bits(fill.seed, fill.stream, have);
            if (fill.type == support::f64)
                more = support::random_bits(fill.seed, fill.stream ^ support::finer_stream, have);
        }
        const double value = support::fill_value(fill, index, bits.lane[index % 4], more.lane[index % 4], table);
        support::store_bits(bytes + i * sizeof(Word), sizeof(Word), support::encode(value, fill.type));
    }
}

}  // namespace

std::span<const int> normal_table() {
    static const Table table = make_table();
    return table;
}

void fill_on_host(std::span<std::byte> out, DType dtype, std::uint64_t first, std::uint64_t elements,
                  const FillSpec& spec) {
    if (spec.kind == FillSpec::Kind::zero) {
        std::fill(out.begin(), out.end(), std::byte{0});
        return;
    }
    const support::Fill fill{.kind = static_cast<int>(spec.kind),
                             .type = static_cast<int>(dtype),
                             .seed = spec.seed,
                             .stream = spec.stream,
                             .low = spec.low,
                             .high = spec.high,
                             .modulus = spec.modulus,
                             .elements = elements};
    switch (size_of(dtype)) {
        case 8:
            return write_elements<std::uint64_t>(out, first, fill);
        case 4:
            return write_elements<std::uint32_t>(out, first, fill);
        case 2:
            return write_elements<std::uint16_t>(out, first, fill);
        default:
            return write_elements<std::uint8_t>(out, first, fill);
    }
}

}  // namespace autotune

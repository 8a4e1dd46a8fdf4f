#include "device/fill.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <set>
#include <vector>

#include "device/compare.h"
#include "device/support_math.h"

namespace autotune {
namespace {

std::vector<double> filled(DType dtype, std::uint64_t elements, const FillSpec& spec) {
    std::vector<std::byte> bytes(elements * size_of(dtype));
    fill_on_host(bytes, dtype, 0, elements, spec);
    std::vector<double> values;
    for (std::uint64_t i = 0; i < elements; ++i)
        values.push_back(element_value(std::span{bytes}.subspan(i * size_of(dtype), size_of(dtype)), dtype));
    return values;
}

TEST(Philox, GivesThePublishedAnswers) {
    using support::Four;
    const auto check = [](Four counter, support::U32 key0, support::U32 key1, std::array<support::U32, 4> want) {
        const Four got = support::philox(counter, key0, key1);
        for (int lane = 0; lane < 4; ++lane) EXPECT_EQ(got.lane[lane], want[static_cast<std::size_t>(lane)]);
    };
    // The known answers that come with the authors' Random123 library.
    check({{0, 0, 0, 0}}, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    check({{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}}, 0xffffffff, 0xffffffff,
          {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    check({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0,
          {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST(Fill, AnyPartOfATensorIsAsInTheWhole) {
    for (const DTypeInfo& row : dtypes)
        for (int kind = 0; kind <= static_cast<int>(FillSpec::Kind::zero); ++kind) {
            const FillSpec spec{
                .kind = static_cast<FillSpec::Kind>(kind), .seed = 5, .stream = 2, .low = 0, .high = 9, .modulus = 7};
            std::vector<std::byte> whole(101 * row.bytes), part(50 * row.bytes);
            fill_on_host(whole, row.dtype, 0, 101, spec);
            fill_on_host(part, row.dtype, 33, 101, spec);
            EXPECT_TRUE(
                std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(33 * row.bytes)))
                << row.name << " kind " << kind;
        }
}

TEST(Fill, NormalHasTheMomentsAndTailsOfANormal) {
    const std::vector<double> x = filled(DType::f32, 1 << 18, {.seed = 1});
    double sum = 0, square = 0, fourth = 0;
    int beyond_two = 0;
    for (const double v : x) {
        sum += v;
        square += v * v;
        fourth += v * v * v * v;
        beyond_two += std::abs(v) > 2;
    }
    const auto n = static_cast<double>(x.size());
    EXPECT_NEAR(sum / n, 0, 0.01);
    EXPECT_NEAR(square / n, 1, 0.015);
    EXPECT_NEAR(fourth / n, 3, 0.1);
    EXPECT_NEAR(beyond_two / n, 0.0455, 0.002);
}

TEST(Fill, NormalFollowsTheDistributionFunctionClosely) {
    std::vector<double> x = filled(DType::f64, 1 << 16, {.seed = 2});
    std::sort(x.begin(), x.end());
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double expected = 0.5 * std::erfc(-x[i] / std::sqrt(2.0));
        worst = std::max(worst, std::abs(expected - (static_cast<double>(i) + 0.5) / static_cast<double>(x.size())));
    }
    EXPECT_LT(worst, 1.63 / 256) << "Kolmogorov-Smirnov at 1 %";
}

TEST(Fill, SeedsAndStreamsDiffer) {
    const auto base = filled(DType::f32, 64, {.seed = 1, .stream = 0});
    EXPECT_NE(base, filled(DType::f32, 64, {.seed = 2, .stream = 0}));
    EXPECT_NE(base, filled(DType::f32, 64, {.seed = 1, .stream = 1}));
    EXPECT_EQ(base, filled(DType::f32, 64, {.seed = 1, .stream = 0}));
}

TEST(Fill, UniformStaysInItsBounds) {
    for (const double v : filled(DType::f32, 4096, {.kind = FillSpec::Kind::uniform, .low = -3, .high = 5})) {
        EXPECT_GE(v, -3);
        EXPECT_LE(v, 5);
    }
}

TEST(Fill, IntegersReachBothEndsInEveryType) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f8e4m3, DType::i64, DType::i32, DType::i8}) {
        std::set<double> seen;
        for (const double v : filled(dtype, 2000, {.kind = FillSpec::Kind::integers, .low = -2, .high = 2}))
            seen.insert(v);
        EXPECT_EQ(seen, (std::set<double>{-2, -1, 0, 1, 2})) << name_of(dtype);
    }
}

TEST(Fill, PermutationIsOneInEachRow) {
    for (const std::uint64_t n : {1, 2, 3, 5, 64, 100, 1000}) {
        const std::vector<double> x =
            filled(DType::i32, 3 * n, {.kind = FillSpec::Kind::permutation, .seed = 4, .modulus = n});
        std::vector<std::vector<double>> rows;
        for (std::uint64_t row = 0; row < 3; ++row) {
            rows.emplace_back(x.begin() + static_cast<std::ptrdiff_t>(row * n),
                              x.begin() + static_cast<std::ptrdiff_t>((row + 1) * n));
            std::vector<double> sorted = rows.back();
            std::sort(sorted.begin(), sorted.end());
            for (std::uint64_t i = 0; i < n; ++i) EXPECT_EQ(sorted[i], static_cast<double>(i));
        }
        if (n >= 64) {
            EXPECT_NE(rows[0], rows[1]);
        }
    }
}

TEST(Fill, SortedAscendsWithinItsBounds) {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32}) {
        const auto x = filled(dtype, 5000, {.kind = FillSpec::Kind::sorted, .low = -10, .high = 90});
        EXPECT_TRUE(std::is_sorted(x.begin(), x.end())) << name_of(dtype);
        EXPECT_GE(x.front(), -10);
        EXPECT_LE(x.back(), 90);
        EXPECT_GT(x.back(), 80);
    }
}

TEST(Fill, LengthsHoldBothExtremes) {
    const auto x = filled(DType::i32, 50, {.kind = FillSpec::Kind::lengths, .low = 0, .high = 4096});
    EXPECT_EQ(x[0], 4096);
    EXPECT_EQ(x[1], 0);
    for (const double v : x) EXPECT_TRUE(v >= 0 && v <= 4096);
}

TEST(Fill, SpecialHoldsZerosSubnormalsAndLargeNumbersButNoNan) {
    for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
        const auto x = filled(dtype, 2000, {.kind = FillSpec::Kind::special, .seed = 8});
        const double least = info(dtype).smallest_subnormal;
        EXPECT_TRUE(std::any_of(x.begin(), x.end(), [](double v) { return v == 0 && std::signbit(v); }))
            << name_of(dtype);
        EXPECT_NE(std::find(x.begin(), x.end(), least), x.end()) << name_of(dtype);
        EXPECT_TRUE(std::all_of(x.begin(), x.end(), [](double v) { return std::isfinite(v); })) << name_of(dtype);
    }
}

TEST(Fill, TensorOfNoElementsIsNoTrouble) {
    fill_on_host({}, DType::f32, 0, 0, {});
    fill_on_host({}, DType::f32, 0, 0, {.kind = FillSpec::Kind::permutation});
}

// Goal: the narrow types are rounded as IEEE 754 says.
// Method: every code decodes and encodes to itself; half-way points go to the even neighbour; f32 agrees with the CPU.
TEST(NarrowTypes, EveryCodeSurvivesARoundTrip) {
    for (const DType dtype : {DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
        const int type = static_cast<int>(dtype);
        const unsigned codes = 1U << (8 * size_of(dtype));
        for (unsigned code = 0; code < codes; ++code) {
            const double value = support::decode(code, type);
            if (std::isnan(value)) {
                EXPECT_TRUE(std::isnan(support::decode(support::encode(value, type), type)));
            } else if (!(dtype == DType::f8e4m3 && std::isinf(value))) {
                EXPECT_EQ(support::encode(value, type), code) << name_of(dtype) << ' ' << value;
            }
        }
    }
}

TEST(NarrowTypes, TiesGoToTheEvenNeighbourAndOthersToTheNearest) {
    for (const DType dtype : {DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
        const int type = static_cast<int>(dtype);
        const unsigned codes = 1U << (8 * size_of(dtype) - 1);
        for (unsigned code = 0; code + 1 < codes; ++code) {
            const double low = support::decode(code, type), high = support::decode(code + 1, type);
            if (!std::isfinite(low) || !std::isfinite(high)) continue;
            const double middle = (low + high) / 2;
            EXPECT_EQ(support::encode(middle, type), code % 2 == 0 ? code : code + 1);
            EXPECT_EQ(support::encode(std::nextafter(middle, 0), type), code);
            EXPECT_EQ(support::encode(std::nextafter(middle, 1e300), type), code + 1);
        }
    }
}

TEST(NarrowTypes, SinglePrecisionAgreesWithTheProcessor) {
    std::uint64_t state = 1;
    for (int i = 0; i < 200000; ++i) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        const double x = support::double_of(state ^ (state >> 29));
        const float cast = static_cast<float>(x);
        if (std::isnan(x)) continue;
        EXPECT_EQ(support::encode(x, static_cast<int>(DType::f32)), __builtin_bit_cast(std::uint32_t, cast)) << x;
    }
}

TEST(NarrowTypes, TooLargeBecomesAnInfinityAndInE4m3TheLargest) {
    EXPECT_EQ(support::encode(65519.0, support::f16), 0x7bffU);
    EXPECT_EQ(support::encode(65520.0, support::f16), 0x7c00U);
    EXPECT_EQ(support::encode(-1e30, support::f16), 0xfc00U);
    EXPECT_EQ(support::decode(support::encode(1000.0, support::f8e4m3), support::f8e4m3), 448.0);
    EXPECT_EQ(support::encode(1e10, support::i8), 127U);
    EXPECT_EQ(support::encode(-1e10, support::u8), 0U);
}

}  // namespace
}  // namespace autotune

#include <autotune/reference.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

extern "C" int autotune_reference_attention(const autotune_call* call);

namespace {

struct Sizes {
    std::int64_t batch = 1, q_heads = 1, kv_heads = 1, seq_q = 1, seq_k = 1, head_dim = 1;
    bool causal = false;
    double scale = 1.0;
};

struct Result {
    std::vector<double> value, magnitude;
};

/// One __half with the value of a small multiple of a power of two.
std::uint16_t half_bits(double x) {
    if (std::isnan(x)) return 0x7e00;
    if (x == 0.0) return 0;
    int power = 0;
    const double fraction = std::frexp(std::abs(x), &power);  // in [0.5, 1)
    const auto mantissa = static_cast<std::uint16_t>((fraction * 2.0 - 1.0) * 1024.0);
    return static_cast<std::uint16_t>((x < 0 ? 0x8000 : 0) | ((power + 14) << 10) | mantissa);
}

/// Runs the reference over contiguous f16 tensors.
Result attention(const Sizes& sizes, const std::vector<double>& q, const std::vector<double>& k,
                 const std::vector<double>& v) {
    const auto halves = [](const std::vector<double>& x) {
        std::vector<std::uint16_t> bits;
        for (const double element : x) bits.push_back(half_bits(element));
        return bits;
    };
    std::vector<std::uint16_t> q_bits = halves(q), k_bits = halves(k), v_bits = halves(v);
    const std::int64_t q_shape[] = {sizes.batch, sizes.q_heads, sizes.seq_q, sizes.head_dim};
    const std::int64_t k_shape[] = {sizes.batch, sizes.kv_heads, sizes.seq_k, sizes.head_dim};
    const auto strides = [](const std::int64_t(&shape)[4]) {
        return std::vector<std::int64_t>{shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1};
    };
    const auto q_strides = strides(q_shape), k_strides = strides(k_shape);
    const auto count = static_cast<std::size_t>(sizes.batch * sizes.q_heads * sizes.seq_q * sizes.head_dim);
    Result result{std::vector<double>(count, NAN), std::vector<double>(count, NAN)};
    const auto tensor = [](const char* name, std::int32_t role, const std::int64_t* shape, const std::int64_t* stride,
                           void* data, double* value, double* magnitude) {
        return autotune_tensor_view{.name = name,
                                    .dtype = AUTOTUNE_F16,
                                    .role = role,
                                    .rank = 4,
                                    .shape = shape,
                                    .strides = stride,
                                    .data = data,
                                    .value = value,
                                    .magnitude = magnitude};
    };
    const autotune_tensor_view tensors[] = {
        tensor("q", AUTOTUNE_IN, q_shape, q_strides.data(), q_bits.data(), nullptr, nullptr),
        tensor("k", AUTOTUNE_IN, k_shape, k_strides.data(), k_bits.data(), nullptr, nullptr),
        tensor("v", AUTOTUNE_IN, k_shape, k_strides.data(), v_bits.data(), nullptr, nullptr),
        tensor("o", AUTOTUNE_OUT, q_shape, q_strides.data(), nullptr, result.value.data(), result.magnitude.data())};
    const auto field = [](const char* name, std::int64_t value) {
        return autotune_field{.name = name, .integer = value, .real = static_cast<double>(value), .text = nullptr};
    };
    const autotune_field fields[] = {
        field("batch", sizes.batch),
        field("q_heads", sizes.q_heads),
        field("kv_heads", sizes.kv_heads),
        field("seq_q", sizes.seq_q),
        field("seq_k", sizes.seq_k),
        field("head_dim", sizes.head_dim),
        field("causal", sizes.causal),
        autotune_field{.name = "scale", .integer = 0, .real = sizes.scale, .text = nullptr}};
    char message[256] = "";
    const autotune_call call{.abi = AUTOTUNE_REFERENCE_ABI,
                             .threads = 2,
                             .seed = 0,
                             .tensor_count = std::size(tensors),
                             .tensors = tensors,
                             .field_count = std::size(fields),
                             .fields = fields,
                             .message = message,
                             .message_size = sizeof message};
    EXPECT_EQ(autotune_reference_attention(&call), 0) << message;
    return result;
}

/// What the check allows at one element, as the search space's tolerance says for f16 and few keys.
double bound(double value, double magnitude) {
    const double unit = 0x1p-11, accumulate = 0x1p-23;
    return unit * std::abs(value) + (accumulate + unit) * magnitude;
}

TEST(AttentionReference, EqualScoresGiveTheMeanOfV) {
    const Result o = attention({.seq_q = 1, .seq_k = 4, .head_dim = 2}, {1, 1}, {2, -1, 2, -1, 2, -1, 2, -1},
                               {1, 10, 2, 20, 3, 30, 6, 60});
    EXPECT_DOUBLE_EQ(o.value[0], 3.0);
    EXPECT_DOUBLE_EQ(o.value[1], 30.0);
}

TEST(AttentionReference, TwoKeysAreWeighedByTheExponentialOfTheirScores) {
    // Scores 0.5 * 2 = 1 and 0.5 * -2 = -1: the weights are 1 / (1 + e^-2) and the rest.
    const Result o = attention({.seq_q = 1, .seq_k = 2, .head_dim = 1, .scale = 0.5}, {1}, {2, -2}, {4, -4});
    const double weight = 1.0 / (1.0 + std::exp(-2.0));
    EXPECT_NEAR(o.value[0], 4.0 * weight - 4.0 * (1.0 - weight), 1e-15);
}

TEST(AttentionReference, OneScoreFarAboveTheOthersPicksItsRow) {
    const Result o = attention({.seq_q = 1, .seq_k = 3, .head_dim = 1}, {100}, {1, 100, 2}, {5, 7, 9});
    EXPECT_DOUBLE_EQ(o.value[0], 7.0);
}

TEST(AttentionReference, AZeroScaleGivesTheMeanAndANegativeOneTurnsTheOrder) {
    const Sizes sizes{.seq_q = 1, .seq_k = 2, .head_dim = 1};
    Sizes zero = sizes, negative = sizes;
    zero.scale = 0.0;
    negative.scale = -1.0;
    EXPECT_DOUBLE_EQ(attention(zero, {100}, {1, -1}, {2, 4}).value[0], 3.0);
    EXPECT_DOUBLE_EQ(attention(negative, {100}, {1, -1}, {2, 4}).value[0], 4.0);
}

TEST(AttentionReference, TheCausalMaskIsAlignedToTheLastKey) {
    // Two rows, three keys, all scores equal: row 0 sees keys 0 and 1, row 1 sees all.
    const Result o = attention({.seq_q = 2, .seq_k = 3, .head_dim = 1, .causal = true}, {0, 0}, {1, 1, 1}, {2, 4, 12});
    EXPECT_DOUBLE_EQ(o.value[0], 3.0);
    EXPECT_DOUBLE_EQ(o.value[1], 6.0);
}

TEST(AttentionReference, ARowThatSeesNoKeyGivesZero) {
    const Result o = attention({.seq_q = 3, .seq_k = 1, .head_dim = 1, .causal = true}, {1, 1, 1}, {1}, {8});
    EXPECT_EQ(o.value, (std::vector<double>{0.0, 0.0, 8.0}));
    EXPECT_EQ(o.magnitude[0], 0.0);
}

TEST(AttentionReference, QueryHeadsShareKeyHeadsInRuns) {
    // Heads 0 and 1 read key head 0, heads 2 and 3 read key head 1; the second batch follows the first.
    const Result o = attention({.batch = 2, .q_heads = 4, .kv_heads = 2, .seq_q = 1, .seq_k = 1, .head_dim = 1},
                               std::vector<double>(8, 1.0), {1, 1, 1, 1}, {1, 2, 3, 4});
    EXPECT_EQ(o.value, (std::vector<double>{1, 1, 2, 2, 3, 3, 4, 4}));
}

TEST(AttentionReference, ANaNReachesOnlyTheRowsThatSeeItsKey) {
    const Result o = attention({.seq_q = 2, .seq_k = 2, .head_dim = 1, .causal = true}, {1, 1}, {1, 1}, {3, NAN});
    EXPECT_DOUBLE_EQ(o.value[0], 3.0);
    EXPECT_TRUE(std::isnan(o.value[1]));
}

TEST(AttentionReference, TheMagnitudeIsTheWeighedSumOfMagnitudesForSmallScores) {
    const Result o = attention({.seq_q = 1, .seq_k = 2, .head_dim = 1}, {0}, {1, 1}, {3, -1});
    EXPECT_DOUBLE_EQ(o.value[0], 1.0);
    EXPECT_GE(o.magnitude[0], 2.0);
    EXPECT_NEAR(o.magnitude[0], 2.0, 0.01);
}

// Goal: the bound grows with the error that large scores must have, and no further.
// Method: two keys with nearly equal scores of about 2000; the upper one is moved by what a float can err there.
TEST(AttentionReference, TheMagnitudeCoversTheErrorOfLargeScores) {
    const Sizes sizes{.seq_q = 1, .seq_k = 2, .head_dim = 1};
    const Result o = attention(sizes, {1}, {2000, 2000}, {1, -1});
    EXPECT_DOUBLE_EQ(o.value[0], 0.0);
    const auto moved = [](double error) { return (std::exp(error) - 1.0) / (std::exp(error) + 1.0); };
    EXPECT_LT(moved(2000.0 * 0x1p-23), bound(o.value[0], o.magnitude[0]));
    EXPECT_GT(moved(2000.0 * 0x1p-19), bound(o.value[0], 1.0));
    EXPECT_LT(bound(o.value[0], o.magnitude[0]), 0.01);
}

}  // namespace

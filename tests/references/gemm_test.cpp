// Goal: gemm's reference is the formula, whatever the layout, and its loops are the same product.
// Method: a triple loop written as the formula reads, over small integers, so that every sum is exact and equality is
// the test.
#include <autotune/reference.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tuner/references/gemm_loops.h"

extern "C" int autotune_reference_gemm(const autotune_call* call);

namespace {

constexpr float poison = NAN;

struct Case {
    std::int64_t m = 1, n = 1, k = 1;
    bool trans_a = false, trans_b = false, bias = false, beta0 = true;
    std::string act = "none";
    double alpha = 1.0, beta = 0.0;
    std::int64_t gap = 0;  // elements between rows, filled with NaN
};

/// An f32 matrix with a gap behind each row.
struct Matrix {
    std::int64_t rows, columns, pitch;
    std::vector<float> data;

    Matrix(std::int64_t rows_, std::int64_t columns_, std::int64_t gap)
        : rows{rows_},
          columns{columns_},
          pitch{columns_ + gap},
          data(static_cast<std::size_t>(rows_ * (columns_ + gap)), poison) {}
    float& at(std::int64_t r, std::int64_t c) { return data[static_cast<std::size_t>(r * pitch + c)]; }

    static Matrix random(std::int64_t rows, std::int64_t columns, std::int64_t gap, std::mt19937& random) {
        Matrix x{rows, columns, gap};
        std::uniform_int_distribution<int> small{-3, 3};
        for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t c = 0; c < columns; ++c) x.at(r, c) = static_cast<float>(small(random));
        return x;
    }
};

struct Result {
    std::vector<double> value, magnitude;
};

struct Inputs {
    Matrix a, b, c, bias;
};

Inputs inputs_of(const Case& of) {
    std::mt19937 random{7};
    Inputs in{Matrix::random(of.trans_a ? of.k : of.m, of.trans_a ? of.m : of.k, of.gap, random),
              Matrix::random(of.trans_b ? of.n : of.k, of.trans_b ? of.k : of.n, of.gap, random),
              Matrix::random(of.m, of.n, of.gap, random), Matrix::random(1, of.n, 0, random)};
    if (of.beta0) in.c = Matrix{of.m, of.n, of.gap};
    return in;
}

Result reference(const Case& of, Inputs& in, int threads = 2) {
    const auto count = static_cast<std::size_t>(of.m * of.n);
    Result result{std::vector<double>(count, NAN), std::vector<double>(count, NAN)};
    const auto view = [](const char* name, std::int32_t role, const std::int64_t* shape, const std::int64_t* strides,
                         std::int32_t rank, void* data) {
        return autotune_tensor_view{.name = name,
                                    .dtype = AUTOTUNE_F32,
                                    .role = role,
                                    .rank = rank,
                                    .shape = shape,
                                    .strides = strides,
                                    .data = data,
                                    .value = nullptr,
                                    .magnitude = nullptr};
    };
    const std::int64_t a_shape[] = {in.a.rows, in.a.columns}, a_strides[] = {in.a.pitch, 1};
    const std::int64_t b_shape[] = {in.b.rows, in.b.columns}, b_strides[] = {in.b.pitch, 1};
    const std::int64_t c_shape[] = {of.m, of.n}, c_strides[] = {in.c.pitch, 1};
    const std::int64_t bias_shape[] = {of.n}, bias_strides[] = {1};
    autotune_tensor_view tensors[] = {
        view("a", AUTOTUNE_IN, a_shape, a_strides, 2, in.a.data.data()),
        view("b", AUTOTUNE_IN, b_shape, b_strides, 2, in.b.data.data()),
        view("bias", AUTOTUNE_IN, bias_shape, bias_strides, 1, of.bias ? in.bias.data.data() : nullptr),
        view("c", of.beta0 ? AUTOTUNE_OUT : AUTOTUNE_INOUT, c_shape, c_strides, 2,
             of.beta0 ? nullptr : in.c.data.data())};
    tensors[3].value = result.value.data();
    tensors[3].magnitude = result.magnitude.data();
    const auto whole = [](const char* name, std::int64_t value) {
        return autotune_field{.name = name, .integer = value, .real = static_cast<double>(value), .text = nullptr};
    };
    const auto real = [](const char* name, double value) {
        return autotune_field{.name = name, .integer = 0, .real = value, .text = nullptr};
    };
    const autotune_field fields[] = {whole("m", of.m),
                                     whole("n", of.n),
                                     whole("k", of.k),
                                     whole("trans_a", of.trans_a),
                                     whole("trans_b", of.trans_b),
                                     whole("bias", of.bias),
                                     whole("beta0", of.beta0),
                                     autotune_field{.name = "act", .integer = 0, .real = 0.0, .text = of.act.c_str()},
                                     real("alpha", of.alpha),
                                     real("beta", of.beta)};
    std::string message(200, '\0');
    const autotune_call call{.abi = AUTOTUNE_REFERENCE_ABI,
                             .threads = threads,
                             .seed = 0,
                             .tensor_count = std::size(tensors),
                             .tensors = tensors,
                             .field_count = std::size(fields),
                             .fields = fields,
                             .message = message.data(),
                             .message_size = message.size()};
    EXPECT_EQ(autotune_reference_gemm(&call), 0) << message.c_str();
    return result;
}

Result formula(const Case& of, Inputs& in) {
    Result result;
    for (std::int64_t i = 0; i < of.m; ++i)
        for (std::int64_t j = 0; j < of.n; ++j) {
            double sum = 0.0, size = 0.0;
            for (std::int64_t p = 0; p < of.k; ++p) {
                const double product = static_cast<double>(of.trans_a ? in.a.at(p, i) : in.a.at(i, p)) *
                                       static_cast<double>(of.trans_b ? in.b.at(j, p) : in.b.at(p, j));
                sum += product;
                size += std::abs(product);
            }
            const double old = of.beta0 ? 0.0 : of.beta * static_cast<double>(in.c.at(i, j));
            const double shift = of.bias ? static_cast<double>(in.bias.at(0, j)) : 0.0;
            double x = of.alpha * sum + old + shift;
            if (of.act == "relu") x = std::max(x, 0.0);
            if (of.act == "gelu") x = x * 0.5 * std::erfc(-x / std::sqrt(2.0));
            result.value.push_back(x);
            result.magnitude.push_back(std::abs(of.alpha) * size + std::abs(old) + std::abs(shift));
        }
    return result;
}

void expect_formula(const Case& of) {
    Inputs in = inputs_of(of);
    const Result got = reference(of, in), want = formula(of, in);
    ASSERT_EQ(got.value.size(), want.value.size());
    for (std::size_t i = 0; i < want.value.size(); ++i) {
        ASSERT_NEAR(got.value[i], want.value[i], of.act == "gelu" ? 1e-14 * want.magnitude[i] : 0.0) << "element " << i;
        ASSERT_EQ(got.magnitude[i], want.magnitude[i]) << "element " << i;
    }
}

TEST(GemmReference, MultipliesEveryStorageOrder) {
    for (const bool trans_a : {false, true})
        for (const bool trans_b : {false, true})
            expect_formula({.m = 13, .n = 21, .k = 35, .trans_a = trans_a, .trans_b = trans_b});
}

TEST(GemmReference, NeverTouchesTheGapsBetweenRows) {
    for (const bool transposed : {false, true})
        expect_formula({.m = 5, .n = 9, .k = 6, .trans_a = transposed, .trans_b = !transposed, .gap = 3});
}

TEST(GemmReference, ScalesBothProductAndOldC) {
    expect_formula({.m = 7, .n = 11, .k = 5, .beta0 = false, .alpha = -0.5, .beta = 2.0, .gap = 1});
}

TEST(GemmReference, NeverReadsCWhenBetaIsZero) {
    Case of{.m = 4, .n = 4, .k = 4};
    Inputs in = inputs_of(of);  // c is all NaN
    for (const double x : reference(of, in).value) EXPECT_FALSE(std::isnan(x));
}

TEST(GemmReference, AddsTheBiasOfAColumnBeforeTheActivation) {
    for (const char* act : {"none", "relu", "gelu"})
        expect_formula({.m = 6, .n = 10, .k = 3, .bias = true, .beta0 = false, .act = act, .beta = -1.0});
}

TEST(GemmReference, CoversShapesThatNoBlockDivides) {
    for (const std::int64_t m : {1, 3, 65})
        for (const std::int64_t n : {1, 7, 17})
            for (const std::int64_t k : {1, 255, 257}) expect_formula({.m = m, .n = n, .k = k});
}

TEST(GemmReference, IsTheSameForAnyNumberOfThreads) {
    const Case of{.m = 150, .n = 30, .k = 40};
    Inputs in = inputs_of(of);
    EXPECT_EQ(reference(of, in, 1).value, reference(of, in, 5).value);
}

TEST(GemmReference, LetsNaNThroughAProductAndARelu) {
    const Case of{.m = 3, .n = 4, .k = 5, .act = "relu"};
    Inputs in = inputs_of(of);
    in.a.at(1, 2) = NAN;
    const Result got = reference(of, in);
    for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(std::isnan(got.value[i]), i / 4 == 1) << "element " << i;
}

TEST(GemmLoops, AllGiveTheSameProduct) {
    std::mt19937 random{11};
    std::normal_distribution<double> normal;
    for (const autotune::GemmShape shape : {autotune::GemmShape{1, 1, 1}, {4, 8, 256}, {5, 9, 257}, {67, 300, 130}}) {
        std::vector<double> a(shape.m * shape.k), b(shape.k * shape.n), want(shape.m * shape.n, NAN);
        for (double& x : a) x = normal(random);
        for (double& x : b) x = normal(random);
        autotune::gemm_naive(shape, a, b, want);
        for (const auto loop : {autotune::gemm_blocked, autotune::gemm_vectorised, autotune::gemm_eigen}) {
            std::vector<double> got(want.size(), NAN);
            loop(shape, a, b, got);
            for (std::size_t i = 0; i < want.size(); ++i)
                ASSERT_NEAR(got[i], want[i], 1e-13 * static_cast<double>(shape.k)) << "element " << i;
        }
    }
}

}  // namespace

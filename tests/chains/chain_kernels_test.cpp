#include <gtest/gtest.h>

#include <string>

#include "tests/device/emulator/template_run.h"
#include "tuner/chains/chain_op.h"

namespace autotune {
namespace {

using Fields = std::vector<std::pair<std::string, Value>>;

struct ChainCase {
    std::string chain;
    Fields problem;
};

Fields sizes(std::int64_t batch, std::int64_t rows, std::int64_t cols, Fields more = {}) {
    Fields fields{{"batch", batch}, {"rows", rows}, {"cols", cols}};
    fields.insert(fields.end(), more.begin(), more.end());
    return fields;
}

const ChainCase cases[] = {
    {"relu(x + bias)", sizes(1, 33, 65, {{"bias_rows", std::int64_t{1}}})},
    {"relu(x + bias)", sizes(2, 9, 64, {{"bias_rows", std::int64_t{1}}, {"bias_batch", std::int64_t{1}}})},
    {"x * scale", sizes(1, 7, 100, {{"scale_cols", std::int64_t{1}}, {"dtype", std::string{"f32"}}})},
    {"dropout(gelu(x), p) + other", sizes(1, 5, 77)},
    {"dropout(x, p) - dropout(x, 0.25)", sizes(1, 16, 48, {{"dtype", std::string{"f16"}}})},
    {"x > 0 and not x > 2 ? silu(x) : bf16(tanh(x)) ** 2", sizes(1, 3, 129, {{"x_dtype", std::string{"f32"}}})},
    {"exp(log(abs(x) + 1)) * rsqrt(x * x + 0.5)", sizes(1, 1, 1000)},
    {"gelu(x * 5) + 1 / gelu((abs(x) + 1) / 0)", sizes(1, 8, 256, {{"x_dtype", std::string{"f32"}}})},
    {"gelu(x * 2)", sizes(1, 8, 256, {{"dtype", std::string{"f16"}}})},
    {"gelu(x * 5)", sizes(1, 8, 256, {{"dtype", std::string{"f32"}}})},
    {"gelu_tanh(x * 4) + 1 / gelu_tanh((abs(x) + 1) / 0)", sizes(1, 8, 256)},
    {"silu(x * 40) + 1 / silu((abs(x) + 1) / 0)", sizes(1, 8, 256)},
    {"sigmoid(x * 40) + sigmoid(-(abs(x) + 1) / 0)", sizes(1, 8, 256, {{"dtype", std::string{"f16"}}})},
    {"x * z", sizes(1, 517, 1, {{"x_rows", std::int64_t{1}}})},
    {"x * z", sizes(3, 1, 1, {{"x_batch", std::int64_t{1}}, {"dtype", std::string{"f32"}}})},
    {"x * z", sizes(1, 5, 7, {{"x_rows", std::int64_t{1}}, {"x_cols", std::int64_t{1}}})},
    {"x * z", sizes(1, 1, 1)},
};

// Goal: a chain's kernels give what its text says, whatever is broadcast, ragged, random or of another type.
// Method: each variant that may run, at its defaults, against the walk of the tree in double.
TEST(ChainKernels, AreRightAndClean) {
    if (const std::string trouble = no_compiler(); !trouble.empty()) GTEST_SKIP() << trouble;
    for (const ChainCase& one : cases) {
        const Op op = chain_op(one.chain);
        TemplateRun run{"sm_90", op, one.problem};
        int tried = 0;
        for (const Variant& variant : op.variants) {
            const std::optional<Config> config = run.instance().defaults_of(variant);
            if (!config || run.instance().objection(*config)) continue;
            const Outcome outcome = run.trial(*config);
            EXPECT_TRUE(outcome.ok()) << one.chain << ": " << config->text() << ": " << info(outcome.ending).words
                                      << ": " << outcome.reason << "\n"
                                      << outcome.log;
            ++tried;
        }
        EXPECT_GT(tried, 0) << one.chain;
    }
}

// Goal: rows of any start and length are right with vectors of every width, and drop the same elements.
// Method: the variant for such rows in configs that differ in each parameter, on lengths that are odd, on two batches,
// with a broadcast row and column, and with types whose vectors are not aligned together.
TEST(ChainKernels, TakeRaggedRowsByVectors) {
    if (const std::string trouble = no_compiler(); !trouble.empty()) GTEST_SKIP() << trouble;
    const ChainCase ragged[] = {
        {"dropout(x + bias, p) * scale",
         sizes(1, 70, 131, {{"bias_rows", std::int64_t{1}}, {"scale_cols", std::int64_t{1}}})},
        {"x + bias + dropout(a, 0.5)",
         sizes(2, 37, 1101,
               {{"bias_rows", std::int64_t{1}}, {"bias_batch", std::int64_t{1}}, {"a_dtype", std::string{"f32"}}})},
        {"x - bias", sizes(3, 5, 65, {{"bias_rows", std::int64_t{1}}, {"dtype", std::string{"f32"}}})},
    };
    for (const ChainCase& one : ragged) {
        const Op op = chain_op(one.chain);
        TemplateRun run{"sm_90", op, one.problem};
        int tried = 0;
        for (const char* const text : {"ragged BX=64 BY=4 VEC=8 ITEMS=2", "ragged BX=32 BY=4 VEC=4 ITEMS=1",
                                       "ragged BX=32 BY=16 VEC=2 ITEMS=4", "ragged BX=128 BY=1 VEC=16 ITEMS=2"}) {
            const Config config = config_from_text(text);
            if (run.instance().objection(config)) continue;  // too wide for short rows
            ++tried;
            const Outcome outcome = run.trial(config);
            EXPECT_TRUE(outcome.ok()) << one.chain << ": " << text << ": " << info(outcome.ending).words << ": "
                                      << outcome.reason << "\n"
                                      << outcome.log;
        }
        EXPECT_GE(tried, 2) << one.chain;
    }
}

}  // namespace
}  // namespace autotune

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

}  // namespace
}  // namespace autotune

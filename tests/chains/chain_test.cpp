#include "tuner/chains/chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autotune/error.h"
#include "tuner/chains/chain_op.h"
#include "tuner/model/instance.h"

namespace autotune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const std::string& text) {
    try {
        Chain::parse(text);
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Error::Kind::usage);
        return error.what();
    }
    return "it was taken";
}

TEST(Chain, KnowsItsNamesInOrder) {
    const Chain chain = Chain::parse("dropout(relu(x + bias), p) * scalar(alpha) + x");
    EXPECT_THAT(chain.inputs, ElementsAre("x", "bias"));
    EXPECT_THAT(chain.scalars, ElementsAre("p", "alpha"));
    EXPECT_EQ(chain.dropouts, 1u);
    EXPECT_EQ(chain.name, "elementwise");
}

TEST(Chain, TakesANameBeforeAnEqualsSign) {
    const Chain chain = Chain::parse("bias_relu = relu(x + bias)");
    EXPECT_EQ(chain.name, "bias_relu");
    EXPECT_EQ(chain.text, "relu(x + bias)");
    EXPECT_EQ(Chain::parse("x == 0 ? 1 : x").name, "elementwise");
}

// Goal: two spellings of one chain share their records.
TEST(Chain, HasOneSpelling) {
    const std::pair<const char*, const char*> spellings[] = {
        {"(x+y2)", "x + y2"},
        {"x-(a-b)", "x - (a - b)"},
        {"(x-a)-b", "x - a - b"},
        {"x*(a+b)", "x * (a + b)"},
        {"-(x)**2", "-x ** 2"},
        {"(-x)**2", "(-x) ** 2"},
        {"min(a,b,x)", "min(min(a, b), x)"},
        {"(x>0)?x:(0.10*x)", "x > 0 ? x : 0.1 * x"},
        {"0<x<1 ? x : 1.0", "0 < x and x < 1 ? x : 1"},
        {"not (x>1) or x<0 ? x : -x", "not x > 1 or x < 0 ? x : -x"},
        {"dropout(x, p)*1e-5", "dropout(x, p) * 1e-05"},
        {"x ? 1 : 2", nullptr},
    };
    for (const auto& [given, canonical] : spellings) {
        if (!canonical) continue;
        const Chain chain = Chain::parse(given);
        EXPECT_EQ(chain.text, canonical);
        EXPECT_EQ(Chain::parse(chain.text).text, chain.text) << given;
    }
}

TEST(Chain, SaysWhereItWentWrong) {
    EXPECT_THAT(refusal("relu(x"), HasSubstr("column 7"));
    EXPECT_THAT(refusal("rleu(x)"), HasSubstr("did you mean 'relu'"));
    EXPECT_THAT(refusal("x + (y > 0)"), HasSubstr("'y' has a meaning of its own"));
    EXPECT_THAT(refusal("VEC + 1"), HasSubstr("'VEC' has a meaning of its own"));
    EXPECT_THAT(refusal("a + A"), HasSubstr("'a' and 'A' differ in case alone"));
    EXPECT_THAT(refusal("x + (a > 0)"), HasSubstr("a condition where a number is expected"));
    EXPECT_THAT(refusal("x ? a : b"), HasSubstr("a number where a condition"));
    EXPECT_THAT(refusal("x ** a"), HasSubstr("an exponent is a whole number from 2 to 8"));
    EXPECT_THAT(refusal("dropout(x, x)"), HasSubstr("'x' is a scalar here and a tensor there"));
    EXPECT_THAT(refusal("dropout(x, 1.5)"), HasSubstr("a number from 0 to 1"));
    EXPECT_THAT(refusal("1 + 2"), HasSubstr("names no tensor"));
    EXPECT_THAT(refusal("x % 2"), HasSubstr("has no meaning for elements"));
    EXPECT_THAT(refusal("x in [1, 2] ? 1 : 0"), HasSubstr("no meaning for elements"));
    EXPECT_THAT(refusal("x * 1e39"), HasSubstr("beyond what a float holds"));
    EXPECT_THAT(refusal("x + 'a'"), HasSubstr("is no number"));
    EXPECT_THAT(refusal("sizeof(x)"), HasSubstr("no meaning for elements"));
    EXPECT_THAT(refusal(std::string(3000, '(')), HasSubstr("the most is 2048"));
    EXPECT_THAT(refusal(std::string(2000, '(')), HasSubstr("levels deep"));
    EXPECT_THAT(refusal("x; }"), HasSubstr("';' has no meaning here"));
    EXPECT_THAT(refusal("Bad Name = x"), HasSubstr("column"));
    EXPECT_THAT(refusal("int = x + 1"), HasSubstr("column 1: 'int' is a word of C++"));
    EXPECT_THAT(refusal("  main = x"), HasSubstr("column 3: 'main' is a word of C++"));
    EXPECT_THAT(refusal("a__b = x"), HasSubstr("is a word of C++"));
}

TEST(ChainOp, IsAnOpAsAnyOther) {
    const Op op = chain_op("residual = dropout(gelu(x + bias), p) + other");
    EXPECT_EQ(op.name, "residual");
    EXPECT_EQ(op.summary, "y = dropout(gelu(x + bias), p) + other");
    ASSERT_EQ(op.tensors.size(), 4u);
    EXPECT_EQ(op.scalars.size(), 3u);
    EXPECT_EQ(op.variants.size(), 3u);
    EXPECT_TRUE(op.files.contains("residual.cu"));
    EXPECT_TRUE(op.files.contains("elementwise.cuh"));
    EXPECT_FALSE(op.builtin);
}

TEST(ChainOp, TakesEveryNameThatAChainTakes) {
    for (const char* const name : {"int", "float", "T", "Y_T", "threadIdx", "a_b", "x9", "flat", "grid"})
        EXPECT_NO_THROW(chain_op(std::string{name} + " + 1")) << name;
}

// Goal: no kernel is launched whose threads across rows do not fit the 32 bits that it counts them in.
// Method: 2^32 rows, which are counted where a thread has eight of them.
TEST(ChainOp, CountsTheThreadsAcrossRaggedRowsIn32Bits) {
    const Op op = chain_op("x + bias");
    const Instance instance = Instance::make(
        op, {{"rows", std::int64_t{1} << 32}, {"cols", std::int64_t{65}}, {"bias_rows", std::int64_t{1}}},
        {.cc = 90, .sm_count = 132});
    const auto objection = instance.objection(config_from_text("ragged BX=32 BY=16 VEC=4 ITEMS=1"));
    ASSERT_TRUE(objection);
    EXPECT_THAT(*objection, HasSubstr("rows are counted in 32 bits"));
    EXPECT_FALSE(instance.objection(config_from_text("ragged BX=32 BY=16 VEC=4 ITEMS=8")));
}

}  // namespace
}  // namespace autotune

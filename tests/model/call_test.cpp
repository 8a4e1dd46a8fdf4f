#include "tuner/model/call.h"

#include <gtest/gtest.h>

#include "autotune/error.h"
#include "tests/model/ops.h"

namespace autotune {
namespace {

using test::whole;
using Extents = std::vector<std::int64_t>;

/// A call of the worked gemm example whose extents live here.
struct GemmCall {
    Extents a{64, 32}, b{32, 128}, c{64, 128}, bias{128};
    Extents a_strides{}, c_strides{};
    DType dtype = DType::f16;
    std::uint64_t a_address = 0x7000, b_address = 0x8000;
    bool with_bias = false;

    std::vector<ObservedTensor> tensors() const {
        std::vector<ObservedTensor> out{
            {"a", dtype, a, a_strides, a_address}, {"b", dtype, b, {}, b_address}, {"c", dtype, c, c_strides, 0x9000}};
        if (with_bias) out.push_back({"bias", dtype, bias, {}, 0});
        return out;
    }
};

std::string refusal_of(const Op& op, const GemmCall& call,
                       const std::vector<std::pair<std::string, Value>>& given = {}) {
    try {
        instance_of_call(op, call.tensors(), test::hopper(), given);
        return "accepted";
    } catch (const Error& error) {
        return error.what();
    }
}

TEST(Call, SolvesDimsTypesFlagsStridesAndAlignment) {
    const Op op = test::gemm_op();
    GemmCall call;
    call.a_strides = {40, 1};
    call.a_address = 0x7008;
    call.with_bias = true;
    const auto instance =
        instance_of_call(op, call.tensors(), test::hopper(), {{"act", std::string{"relu"}}}, {{"beta", 1.0}});
    EXPECT_EQ(instance.problem().text(), "m=64 n=128 k=32 dtype=f16 bias=true beta0=false act=relu");
    EXPECT_EQ(instance.tensors()[0].strides, (Extents{40, 1}));
    EXPECT_EQ(instance.tensors()[0].align, 8);
    EXPECT_EQ(instance.tensors()[1].align, 16);
}

TEST(Call, GivesTheProblemThatItsFieldsGive) {
    const Op op = test::gemm_op();
    const auto by_call = instance_of_call(op, GemmCall{}.tensors(), test::hopper());
    const auto by_fields = Instance::make(op, test::fields("m=64 n=128 k=32 dtype=f16"), test::hopper());
    EXPECT_EQ(by_call.key(), by_fields.key());
}

TEST(Call, RefusesTensorsThatDisagree) {
    const Op op = test::gemm_op();
    GemmCall call;
    call.b = {33, 128};
    EXPECT_EQ(refusal_of(op, call), "'k' of 'gemm' is 32, but 33 by tensor 'b'");
    call = {};
    EXPECT_EQ(refusal_of(op, call, {{"m", whole(65)}}), "'m' of 'gemm' is 65, but 64 by tensor 'a'");
    call.c = {64, 128, 1};
    EXPECT_EQ(refusal_of(op, call), "tensor 'c' of 'gemm' has 2 dimensions and is given 3: [64, 128, 1]");
    call = {};
    call.c_strides = {256, 1};
    EXPECT_EQ(refusal_of(op, call), "tensor 'c' of 'gemm' has a stride of 256 in dimension 0, and 128 is needed");
    call = {};
    EXPECT_EQ(refusal_of(op, call, {{"bias", true}}), "'bias' of 'gemm' is true, but false by tensor 'bias'");
    call.dtype = DType::i32;
    EXPECT_NE(refusal_of(op, call).find("'i32' is not a choice for 'dtype'"), std::string::npos);
    call = {};
    std::vector<ObservedTensor> two = call.tensors();
    two.pop_back();
    EXPECT_THROW(solve_dims(op, two), Error) << "c is missing";
    two.push_back({"d", DType::f16, {}});
    EXPECT_THROW(solve_dims(op, two), Error);
}

TEST(Call, ChecksShapesThatAreNoBareNames) {
    Op op = test::softmax_op();
    op.tensors[0].shape = test::expressions({"rows + 14", "cols"});
    const Extents y{10, 8}, good{24, 8}, bad{23, 8};
    const auto call = [&](const Extents& x) {
        return std::vector<ObservedTensor>{{"x", DType::f32, x}, {"y", DType::f32, y}};
    };
    EXPECT_EQ(instance_of_call(op, call(good), test::hopper()).problem().text(), "rows=10 cols=8 dtype=f32");
    try {
        instance_of_call(op, call(bad), test::hopper());
        FAIL();
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "tensor 'x' of 'softmax' has the shape [23, 8], and [24, 8] is needed");
    }
}

TEST(Call, DecidesConditionsInShapesFirst) {
    Op op = test::gemm_op();
    Field trans;
    trans.name = "trans_a";
    trans.kind = Field::Kind::flag;
    trans.fallback = Expression::constant(false);
    op.fields.push_back(trans);
    op.lets.emplace_back("turned", test::expression("trans_a and m != 0"));
    op.tensors[0].shape = test::expressions({"trans_a ? k : m", "turned ? m : k"});
    GemmCall call;
    EXPECT_EQ(*instance_of_call(op, call.tensors(), test::hopper()).problem().find("k"), whole(32))
        << "the default decides";
    call.a = {32, 64};
    const auto turned = instance_of_call(op, call.tensors(), test::hopper(), {{"trans_a", true}});
    EXPECT_EQ(*turned.problem().find("m"), whole(64));
    EXPECT_EQ(refusal_of(op, call), "'m' of 'gemm' is 64, but 32 by tensor 'a'");
}

TEST(Call, IgnoresTheStrideOfASingleElement) {
    const Op op = test::gemm_op();
    GemmCall call;
    call.a = {1, 32};
    call.c = {1, 128};
    call.c_strides = {7, 1};
    EXPECT_EQ(refusal_of(op, call), "accepted");
}

}  // namespace
}  // namespace autotune

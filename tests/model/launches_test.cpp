#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "autotune/error.h"
#include "autotune/reference.hpp"
#include "tests/model/ops.h"
#include "tuner/model/argument.h"

namespace autotune {
namespace {

using test::fields, test::whole;

template <class T>
Argument bytes_of(T value) {
    ValueArgument out;
    out.size = sizeof value;
    std::memcpy(out.bytes.data(), &value, sizeof value);
    return out;
}
Argument buffer(std::uint32_t index) { return BufferArgument{index}; }
const Argument null = ValueArgument{};

TEST(Launches, TurnTheWorkedExampleIntoNumbers) {
    const Op op = test::gemm_op();
    const auto instance = Instance::make(op, fields("m=100 n=200 k=64"), test::hopper());
    const auto sequence = instance.launches(instance.resolve(config_from_text("splitk SPLITS=2")));
    ASSERT_EQ(sequence.launches.size(), 2u);
    EXPECT_EQ(sequence.scratch, (std::vector<ScratchBuffer>{{.name = "partial", .bytes = 2 * 100 * 200 * 4}}));
    const Launch& part = sequence.launches[0];
    EXPECT_EQ(part.entry, "gemm_part");
    EXPECT_EQ(part.source, "gemm_mma.cu");
    EXPECT_EQ(part.grid, (Dim3{2, 1, 2}));
    EXPECT_EQ(part.block, (Dim3{256, 1, 1}));
    EXPECT_EQ(part.cluster, Dim3{});
    EXPECT_EQ(part.shared_bytes, 3u * 256 * 32 * 2);
    EXPECT_EQ(part.arguments,
              (std::vector<Argument>{buffer(0), buffer(1), buffer(4), null, bytes_of(100), bytes_of(200), bytes_of(64),
                                     bytes_of(std::int64_t{64}), bytes_of(1.0f), bytes_of(0.0f)}));
    EXPECT_EQ(sequence.launches[1].grid, (Dim3{20, 1, 1}));
}

TEST(Launches, LeaveOutWhatAConfigDoesWithout) {
    const Op op = test::gemm_op();
    const auto instance = Instance::make(op, fields("bias=true"), test::hopper());
    const auto sequence = instance.launches(instance.resolve(config_from_text("splitk SPLITS=1")));
    ASSERT_EQ(sequence.launches.size(), 1u);
    EXPECT_TRUE(sequence.scratch.empty());
    EXPECT_EQ(sequence.launches[0].arguments[2], buffer(3));
    EXPECT_EQ(sequence.launches[0].arguments[3], buffer(2)) << "the tensor, not the flag of the same name";
}

TEST(Launches, GiveTheReferenceAnArrayOfValuesAndOneOfMagnitudes) {
    const Op op = test::gemm_op();
    const auto instance = Instance::make(op, fields("m=3 n=5"), test::hopper());
    const auto sequence = instance.reference_launches();
    EXPECT_EQ(sequence.scratch,
              (std::vector<ScratchBuffer>{{.name = "c.value", .bytes = 120}, {.name = "c.magnitude", .bytes = 120}}));
    ASSERT_EQ(sequence.launches.size(), 1u);
    EXPECT_EQ(sequence.launches[0].arguments, (std::vector<Argument>{buffer(0), buffer(1), buffer(4), buffer(5)}));
    const auto sources = instance.reference_sources();
    ASSERT_EQ(sources.size(), 1u);
    EXPECT_EQ(sources[0].text, "// fp64\n");
    EXPECT_EQ(sources[0].entries, (std::vector<std::string>{"gemm_reference"}));
    EXPECT_EQ(sources[0].defines, (std::vector<std::pair<std::string, std::string>>{{"T", "__nv_bfloat16"}}));
}

TEST(Launches, DescribeTensorMapsInnermostFirst) {
    Op op = test::softmax_op();
    ArgumentSpec map;
    map.kind = ArgumentSpec::Kind::tensor_map;
    map.tensor = "x";
    map.box = test::expressions({"THREADS // 4", "VEC"});
    map.swizzle = 128;
    op.variants[0].launches[0].arguments = {map};
    const auto instance = Instance::make(op, fields("rows=7 cols=64"), test::hopper(), {.strides = {{"ldx", 72}}});
    const auto sequence = instance.launches(instance.resolve(config_from_text("online THREADS=256 VEC=8")));
    const auto& argument = std::get<TensorMapArgument>(sequence.launches[0].arguments[0]);
    EXPECT_EQ(argument, (TensorMapArgument{.buffer = 0,
                                           .dtype = DType::bf16,
                                           .extents = {64, 7},
                                           .strides_bytes = {144},
                                           .box = {8, 64},
                                           .swizzle_bytes = 128}));
}

TEST(Launches, KnowBlocksPerSmInAGridOnly) {
    Op op = test::softmax_op();
    op.variants[1].launches[0].grid = test::expressions({"min(rows, sm_count * blocks_per_sm)"});
    const auto instance = Instance::make(op, {}, test::hopper());
    EXPECT_TRUE(instance.needs_blocks_per_sm({"naive", {}}));
    EXPECT_FALSE(instance.needs_blocks_per_sm(instance.resolve(config_from_text("online"))));
    EXPECT_EQ(instance.launches({"naive", {}}, 4).launches[0].grid.x, 528u);
    EXPECT_THROW((void)instance.launches({"naive", {}}), Error);
    EXPECT_EQ(instance.objection({"naive", {}}), std::nullopt);
}

TEST(Launches, CopySymbolsFromTensors) {
    Op op = test::softmax_op();
    op.variants[1].symbols = {{.name = "d_x", .from = "x", .each_launch = true}};
    const auto sequence = Instance::make(op, {}, test::hopper()).launches({"naive", {}});
    EXPECT_EQ(sequence.symbols,
              (std::vector<SymbolCopy>{{.symbol = "d_x", .source = "naive.cu", .buffer = 0, .each_launch = true}}));
}

TEST(Sources, HoldTheMacrosSortedAndTheHeadersThatAreIncluded) {
    const Op op = test::softmax_op();
    const auto instance = Instance::make(op, fields("dtype=f16"), test::hopper());
    const auto sources = instance.sources(instance.resolve(config_from_text("online VEC=8")));
    ASSERT_EQ(sources.size(), 1u);
    EXPECT_EQ(sources[0].source, "softmax.cu");
    EXPECT_EQ(sources[0].defines,
              (std::vector<std::pair<std::string, std::string>>{{"T", "__half"}, {"THREADS", "256"}, {"VEC", "8"}}));
    ASSERT_EQ(sources[0].headers.size(), 2u);
    EXPECT_EQ(sources[0].headers[0].first, "common.cuh");
    EXPECT_EQ(sources[0].headers[1].first, "deep.cuh");
    EXPECT_EQ(sources[0].entries, (std::vector<std::string>{"softmax_rows"}));
}

TEST(Sources, PasteFlagsChoicesAndTypes) {
    const Op op = test::gemm_op();
    const auto instance = Instance::make(op, fields("bias=true act=gelu"), test::hopper());
    const auto sources = instance.sources(instance.default_config());
    ASSERT_EQ(sources.size(), 1u);
    const std::vector<std::pair<std::string, std::string>> defines{
        {"ACT", "gelu"}, {"BIAS", "1"},   {"BK", "32"},    {"BM", "128"},
        {"BN", "128"},   {"SPLITS", "2"}, {"STAGES", "3"}, {"T", "__nv_bfloat16"}};
    EXPECT_EQ(sources[0].defines, defines);
    EXPECT_EQ(sources[0].entries, (std::vector<std::string>{"gemm_part", "gemm_sum"}));
}

TEST(Sources, PutParametersIntoATemplatesEntry) {
    Op op = test::softmax_op();
    Variant& online = op.variants[0];
    online.parameters_as_template = true;
    online.entry = "ns::rows<float, {THREADS}, {VEC}, {PAD}>";
    Parameter pad;
    pad.name = "PAD";
    pad.values = {false, true};
    online.parameters.push_back(pad);
    const auto instance = Instance::make(op, {}, test::hopper());
    const auto sources = instance.sources(instance.resolve(config_from_text("online THREADS=64 PAD=true")));
    EXPECT_EQ(sources[0].entries, (std::vector<std::string>{"ns::rows<float, 64, 4, true>"}));
    EXPECT_EQ(sources[0].defines, (std::vector<std::pair<std::string, std::string>>{{"T", "__nv_bfloat16"}}));
}

TEST(Sources, PasteNoWordThatCouldBeCode) {
    Op op = test::softmax_op();
    op.fields[2].choices.emplace_back(std::string{"float; int y"});
    const auto instance = Instance::make(op, fields("dtype=f16"), test::hopper());
    op.variants[1].define = {{"T", test::expression("'float; int y'")}};
    EXPECT_THROW((void)instance.sources({"naive", {}}), Error);
    Field text;
    text.name = "chain";
    text.kind = Field::Kind::text;
    text.fallback = Expression::constant(std::string{"relu"});
    op.fields.push_back(text);
    op.variants[1].define = {{"CHAIN", test::expression("chain")}};
    EXPECT_THROW((void)Instance::make(op, {}, test::hopper()).sources({"naive", {}}), Error);
}

TEST(Sources, HashEveryThingThatReachesTheCompiler) {
    const Op op = test::softmax_op();
    const auto instance = Instance::make(op, {}, test::hopper());
    const SourceSpec base = instance.sources({"naive", {}})[0];
    const auto differs = [&](auto&& change) {
        SourceSpec changed = base;
        change(changed);
        return changed.hash() != base.hash();
    };
    EXPECT_TRUE(differs([](SourceSpec& s) { s.text += " "; }));
    EXPECT_TRUE(differs([](SourceSpec& s) { s.source = "n.cu"; }));
    EXPECT_TRUE(differs([](SourceSpec& s) { s.arch = "sm_90a"; }));
    EXPECT_TRUE(differs([](SourceSpec& s) { s.options.push_back("-G"); }));
    EXPECT_TRUE(differs([](SourceSpec& s) { s.defines.push_back({"A", "1"}); }));
    EXPECT_TRUE(differs([](SourceSpec& s) { s.headers.push_back({"a.h", ""}); }));
    EXPECT_TRUE(differs([](SourceSpec& s) { s.entries.push_back("f"); }));
    EXPECT_FALSE(differs([](SourceSpec&) {}));
}

TEST(Argument, IsATensorAScalarOrASizedNumber) {
    const Op op = test::gemm_op();
    const auto reason = [&](std::string_view text) {
        const auto objection = argument_objection(op, op.variants[0].scratch, test::expression(text));
        return objection ? objection->reason : "fine";
    };
    for (const char* text : {"a", "partial", "alpha", "i32(m * 2)", "i64(lda)", "f32(0.5)", "SPLITS > 1 ? partial : c",
                             "bias ? bias : m > 1 ? a : i64(0)"})
        EXPECT_EQ(reason(text), "fine") << text;
    EXPECT_EQ(reason("m"), "the argument 'm' is a number without a width; write i32(m), i64(m) or f32(m)");
    EXPECT_EQ(reason("m + 1"),
              "the argument 'm + 1' is a number without a width; write i32(m + 1), i64(m + 1) or f32(m + 1)");
    EXPECT_NE(reason("SPLITS > 1 ? partial : 0"), "fine");
    EXPECT_TRUE(argument_objection(op, {}, test::expression("partial")).has_value());
}

TEST(Argument, RoundsHalvesToNearestEvenAsTheirReadersReadThem) {
    for (const DType dtype : {DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
        const std::uint32_t count = size_of(dtype) == 2 ? 65536 : 256;
        for (std::uint32_t bits = 0; bits < count; ++bits) {
            const double value = element_as_double(&bits, static_cast<int>(dtype), 0);
            if (std::isnan(value)) continue;
            std::uint32_t back = 0;
            std::memcpy(&back, value_argument(value, dtype).bytes.data(), size_of(dtype));
            ASSERT_EQ(back, bits) << name_of(dtype) << " " << value;
        }
    }
    EXPECT_EQ(value_argument(1.0 + 0x1p-11, DType::f16), value_argument(1.0, DType::f16)) << "a tie goes to even";
    EXPECT_EQ(value_argument(1.0 + 0x3p-11, DType::f16), value_argument(1.0 + 0x1p-9, DType::f16));
    EXPECT_EQ(value_argument(65520.0, DType::f16), value_argument(INFINITY, DType::f16));
    EXPECT_EQ(value_argument(0x1p-26, DType::f16), value_argument(0.0, DType::f16));
}

TEST(Argument, RefusesANumberThatTheTypeDoesNotHold) {
    EXPECT_THROW(value_argument(whole(128), DType::i8), EvaluationError);
    EXPECT_THROW(value_argument(0.5, DType::i32), EvaluationError);
    EXPECT_THROW(value_argument(std::string{"x"}, DType::f32), EvaluationError);
    EXPECT_EQ(Argument{value_argument(whole(-1), DType::i64)}, bytes_of(std::int64_t{-1}));
    EXPECT_EQ(value_argument(4.0, DType::i32).size, 4);
    EXPECT_EQ(value_argument(whole(4294967295), DType::u32).size, 4);
}

}  // namespace
}  // namespace autotune

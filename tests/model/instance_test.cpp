#include "tuner/model/instance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "autotune/error.h"
#include "tests/model/ops.h"

namespace autotune {
namespace {

using test::fields, test::whole;

std::string refusal_of(const Op& op, std::string_view problem, const Binding& binding = {}) {
    try {
        Instance::make(op, fields(problem), test::hopper(), binding);
        return "accepted";
    } catch (const Error& error) {
        return error.what();
    }
}

TEST(Instance, CompletesAProblemInTheOpsOrder) {
    const Op op = test::gemm_op();
    const auto instance = Instance::make(op, fields("dtype=f16 k=64 m=1e3"), test::hopper());
    EXPECT_EQ(instance.problem().text(), "m=1000 n=4096 k=64 dtype=f16 bias=false beta0=true act=none");
    EXPECT_EQ(*instance.problem().find("m"), whole(1000));
    EXPECT_EQ(instance.flops(), 2.0 * 1000 * 4096 * 64);
    EXPECT_EQ(instance.bytes(), (1000.0 * 64 + 64 * 4096 + 1000 * 4096) * 2);
}

TEST(Instance, RefusesWhatTheProblemDoesNotDeclare) {
    const Op op = test::softmax_op();
    EXPECT_EQ(refusal_of(op, "row=4"), "there is no field 'row' in 'softmax'; did you mean 'rows'?");
    EXPECT_EQ(refusal_of(op, "dtype=bf61"), "'bf61' is not a choice for 'dtype' of 'softmax'; did you mean 'bf16'?");
    EXPECT_EQ(refusal_of(op, "heads=4"), "there is no field 'heads' in 'softmax'; the fields are rows, cols and dtype");
    for (const char* bad : {"rows=0", "rows=-3", "rows=1.5", "rows=many", "rows=1099511627777"})
        EXPECT_NE(refusal_of(op, bad).find("is a dimension and is given"), std::string::npos) << bad;
    EXPECT_EQ(refusal_of(op, "rows=1099511627776 cols=4"), "accepted");
    EXPECT_EQ(refusal_of(op, "rows=1099511627776 cols=1099511627776"),
              "tensor 'x' of 'softmax' with shape [1099511627776, 1099511627776] is beyond 2^62 bytes");
    EXPECT_EQ(refusal_of(test::gemm_op(), "bias=2"),
              "'bias' of 'gemm' is a flag and is given '2': it takes true or false");
    EXPECT_EQ(refusal_of(op, "", {.scalars = {{"eps", 1.0}}}), "there is no scalar 'eps' in 'softmax'");
    EXPECT_EQ(refusal_of(op, "", {.strides = {{"ldy", 4096}}}), "there is no free stride 'ldy' in 'softmax'");
    EXPECT_EQ(refusal_of(op, "", {.align = {{"x", 3}}}), "the alignment of 'x' is 3: it takes a power of two");
}

TEST(Instance, RefusesAnIllegalProblemWithTheClaimAndItsNumbers) {
    Op op = test::softmax_op();
    op.constraints = {{"rows come in fours", test::expression("rows % 4 == 0")}};
    EXPECT_EQ(refusal_of(op, "rows=6"),
              "not a legal problem of 'softmax': rows come in fours: rows % 4 == 0 does not hold (rows=6)");
    EXPECT_EQ(refusal_of(op, "rows=8"), "accepted");
}

TEST(Instance, DerivesAFieldFromItsScalarAndAScalarFromItsField) {
    const Op op = test::gemm_op();
    const auto with_beta = Instance::make(op, {}, test::hopper(), {.scalars = {{"beta", whole(2)}}});
    EXPECT_EQ(*with_beta.problem().find("beta0"), Value{false});
    EXPECT_EQ(with_beta.tensors()[3].role, Role::inout);
    const auto from_field = Instance::make(op, fields("beta0=false"), test::hopper());
    EXPECT_EQ(from_field.scalars()[1], (std::pair<std::string, Value>{"beta", 1.0}));
    const auto as_field = Instance::make(op, fields("beta=0.5"), test::hopper());
    EXPECT_EQ(*as_field.problem().find("beta0"), Value{false});
    EXPECT_EQ(refusal_of(op, "beta0=true", {.scalars = {{"beta", 3.0}}}),
              "'beta0' of 'gemm' is given as true, but it follows from beta == 0, which is false (beta=3.0)");
}

TEST(Instance, MeasuresTensorsWithFreeStrides) {
    const Op op = test::softmax_op();
    const auto packed = Instance::make(op, fields("rows=3 cols=8"), test::hopper());
    const BoundTensor& x = packed.tensors()[0];
    EXPECT_EQ(x.strides, (std::vector<std::int64_t>{8, 1}));
    EXPECT_EQ(x.bytes, 48u);
    EXPECT_EQ(x.align, 16);
    EXPECT_TRUE(x.contiguous);

    const auto pitched = Instance::make(op, fields("rows=3 cols=8"), test::hopper(), {.strides = {{"ldx", 10}}});
    const BoundTensor& wide = pitched.tensors()[0];
    EXPECT_EQ(wide.elements, 24u);
    EXPECT_EQ(wide.bytes, (2 * 10 + 8) * 2u);
    EXPECT_EQ(wide.align, 4);  // rows are 20 bytes apart
    EXPECT_FALSE(wide.contiguous);
    EXPECT_TRUE(pitched.tensors()[1].contiguous);

    const auto one_row = Instance::make(op, fields("rows=1 cols=8"), test::hopper(), {.strides = {{"ldx", 9}}});
    EXPECT_TRUE(one_row.tensors()[0].contiguous);  // the stride of a single row is never taken
    EXPECT_EQ(one_row.tensors()[0].align, 16);
}

TEST(Instance, TakesDimensionsInAnyOrder) {
    Op op = test::softmax_op();
    for (Tensor& tensor : op.tensors) {
        tensor.shape = test::expressions({"4", "rows", "cols"});
        tensor.strides = test::expressions({"outer", "row", "1"});
    }
    // 4 heads lie inside each row.
    const auto inside =
        Instance::make(op, fields("rows=3 cols=8"), test::hopper(), {.strides = {{"outer", 8}, {"row", 32}}});
    EXPECT_EQ(inside.tensors()[1].bytes, 4u * 3 * 8 * 2);
    EXPECT_FALSE(inside.tensors()[1].contiguous);
    const auto rest = Instance::make(op, fields("rows=3 cols=8"), test::hopper(), {.strides = {{"row", 40}}});
    EXPECT_EQ(rest.tensors()[1].strides, (std::vector<std::int64_t>{120, 40, 1}))
        << "a stride left out goes around the others";
    EXPECT_NE(refusal_of(op, "rows=3 cols=8", {.strides = {{"outer", 8}, {"row", 24}}}).find("overlaps itself"),
              std::string::npos);
}

TEST(Instance, AScalarThatIsNanEqualsNothing) {
    const Op op = test::gemm_op();
    const auto instance = Instance::make(op, {}, test::hopper(), {.scalars = {{"beta", std::nan("")}}});
    EXPECT_EQ(*instance.problem().find("beta0"), Value{false}) << "c would not be read";
}

TEST(Instance, LowersAlignmentToWhatTheCallerHas) {
    const Op op = test::softmax_op();
    const auto instance =
        Instance::make(op, fields("rows=4 cols=1024"), test::hopper(), {.align = {{"x", 4}, {"y", 64}}});
    EXPECT_EQ(instance.tensors()[0].align, 4);
    EXPECT_EQ(instance.tensors()[1].align, 16);
    EXPECT_EQ(instance.default_config()["VEC"], whole(1));
}

TEST(Instance, RefusesAnAddressThatNoLoadOfAnElementCanTake) {
    const Op op = test::softmax_op();
    EXPECT_EQ(refusal_of(op, "dtype=f32", {.align = {{"x", 2}}}),
              "tensor 'x' of 'softmax' is aligned to 2 bytes, and its elements are 4 bytes each");
    EXPECT_EQ(refusal_of(op, "dtype=f32", {.align = {{"x", 4}}}), "accepted");
}

TEST(Instance, TakesAWrittenTensorThatIsASliceWithAStep) {
    Op op = test::softmax_op();
    op.tensors[1].strides = test::expressions({"ldy", "step"});
    // Every second of three columns: elements lie at 0 2, 3 5, 6 8.
    EXPECT_EQ(refusal_of(op, "rows=3 cols=2", {.strides = {{"ldy", 3}, {"step", 2}}}), "accepted");
    EXPECT_NE(refusal_of(op, "rows=3 cols=2", {.strides = {{"ldy", 2}, {"step", 2}}}).find("overlaps itself"),
              std::string::npos);
    EXPECT_NE(refusal_of(op, "rows=3 cols=2", {.strides = {{"ldy", 0}, {"step", 1}}}).find("overlaps itself"),
              std::string::npos);
}

TEST(Instance, RefusesAWrittenTensorThatOverlapsItself) {
    Op op = test::softmax_op();
    EXPECT_EQ(refusal_of(op, "rows=4 cols=8", {.strides = {{"ldx", 0}}}), "accepted");
    op.tensors[1].strides = test::expressions({"ldy", "1"});
    EXPECT_NE(refusal_of(op, "rows=4 cols=8", {.strides = {{"ldy", 7}}}).find("is written and overlaps itself"),
              std::string::npos);
    EXPECT_NE(refusal_of(op, "rows=4 cols=8", {.strides = {{"ldx", -8}}}).find("is negative"), std::string::npos);
}

// Goal: no two problems that differ in any single thing share a key.
// Method: change each thing alone, and every pair of fields that could be confused.
TEST(Instance, KeysDifferWhenAnySingleFieldDiffers) {
    const Op op = test::gemm_op();
    std::set<std::vector<std::byte>> keys;
    std::set<std::string> texts;
    std::size_t count = 0;
    const auto add = [&](std::string_view problem, const Binding& binding = {}) {
        const auto instance = Instance::make(op, fields(problem), test::hopper(), binding);
        keys.insert(instance.key());
        texts.insert(instance.key_json());
        ++count;
    };
    add("");
    for (const char* dim : {"m", "n", "k"})
        for (const char* value : {"1", "2", "4095", "4097", "65536"}) add(std::string{dim} + "=" + value);
    for (const char* change : {"dtype=f32", "dtype=f16", "bias=true", "beta=1", "act=relu", "act=gelu"}) add(change);
    for (const char* tensor : {"a", "b", "c"})
        for (const int align : {2, 4, 8}) add("", {.align = {{tensor, align}}});
    add("", {.strides = {{"lda", 4104}}});  // pitched
    add("k=8", {.strides = {{"lda", 0}}});  // broadcast
    add("k=8");
    add("m=8 n=16");
    add("m=16 n=8");
    EXPECT_EQ(keys.size(), count);
    EXPECT_EQ(texts.size(), count);
}

TEST(Instance, KeysStayEqualWhenOnlyTheOrderOfFieldsOrAnInputFieldChanges) {
    Op op = test::softmax_op();
    const auto key = Instance::make(op, {}, test::hopper()).key();
    Op turned = op;
    std::swap(turned.fields[0], turned.fields[2]);
    EXPECT_EQ(Instance::make(turned, {}, test::hopper()).key(), key);
    Field lens;
    lens.name = "lens_are";
    lens.key = false;
    lens.fallback = Expression::constant(whole(1));
    turned.fields.push_back(lens);
    EXPECT_EQ(Instance::make(turned, fields("lens_are=5"), test::hopper()).key(), key);
    EXPECT_EQ(Instance::make(op, {}, test::turing()).key(), key) << "a device is no part of a problem";
}

TEST(Instance, WritesItsKeyForPeople) {
    const Op op = test::softmax_op();
    const auto instance = Instance::make(op, fields("rows=2 cols=8"), test::hopper(), {.strides = {{"ldx", 12}}});
    EXPECT_EQ(
        instance.key_json(),
        R"({"cols":8,"dtype":"bf16","rows":2,"x.align":8,"x.layout":"pitched","y.align":16,"y.layout":"contiguous"})");
}

TEST(Instance, BoundsErrorsByTheWayOfSumming) {
    const Op op = test::gemm_op();
    const auto mma = Instance::make(op, fields("k=8192"), test::hopper()).bound_of("c");
    EXPECT_EQ(mma.of_value, 0x1p-8);
    EXPECT_EQ(mma.of_magnitude, 512 * 0x1p-23);
    EXPECT_EQ(mma.absolute, 0x1p-133);
    const auto fma = Instance::make(op, fields("k=400 dtype=f32"), test::hopper()).bound_of("c");
    EXPECT_EQ(fma.of_magnitude, 2 * 20 * 0x1p-24);
    const auto short_fma = Instance::make(op, fields("k=2 dtype=f32"), test::hopper()).bound_of("c");
    EXPECT_EQ(short_fma.of_magnitude, 2 * 0x1p-24) << "never above the worst case";
}

TEST(Instance, AddsWhatAToleranceSaysBesides) {
    Op op = test::softmax_op();
    op.tolerances[0].intermediate = test::expression("bf16");
    op.tolerances[0].relative = test::expression("1e-3");
    op.tolerances[0].absolute = test::expression("1e-5");
    const auto bound = Instance::make(op, fields("cols=4 dtype=f16"), test::hopper()).bound_of("y");
    EXPECT_EQ(bound.of_value, 0x1p-11 + 1e-3);
    EXPECT_EQ(bound.of_magnitude, 4 * 0x1p-24 + 0x1p-8);
    EXPECT_EQ(bound.absolute, 0x1p-24 + 1e-5);
    op.tolerances[0].exact = true;
    const auto exact = Instance::make(op, {}, test::hopper());
    EXPECT_TRUE(exact.exact("y"));
    EXPECT_EQ(exact.bound_of("y"), Bound{});
    EXPECT_THROW((void)exact.bound_of("z"), Error);
}

TEST(Instance, EvaluatesFillsAndExpectsTheirSums) {
    Op op = test::softmax_op();
    Tensor lens;
    lens.name = "lens";
    lens.role = Expression::constant(std::string{"in"});
    lens.dtype = Expression::constant(std::string{"i32"});
    lens.shape = test::expressions({"rows"});
    lens.fill.kind = "lengths";
    lens.fill.arguments = {{"max", test::expression("cols")}, {"zeros", test::expression("true")}};
    op.tensors.push_back(lens);
    op.flops = test::expression("sum(lens)");
    const auto instance = Instance::make(op, fields("rows=100 cols=50"), test::hopper());
    EXPECT_EQ(instance.flops(), 2500);
    const FillSpec fill = instance.fill_of(instance.tensors()[2], 9);
    EXPECT_EQ(fill.kind, FillSpec::Kind::lengths);
    EXPECT_EQ(fill.low, 0);
    EXPECT_EQ(fill.high, 50);
    EXPECT_EQ(fill.seed, 9u);
    EXPECT_EQ(fill.stream, 2u);
    op.tensors[2].fill.arguments.push_back({"like", Expression::constant(std::string{"full"})});
    EXPECT_EQ(Instance::make(op, fields("rows=100 cols=50"), test::hopper()).flops(), 5000);
}

TEST(Instance, ObjectsWithTheClaimAndItsNumbers) {
    const Op op = test::gemm_op();
    const auto instance = Instance::make(op, fields("k=64"), test::hopper());
    const Config good = instance.resolve(config_from_text("splitk BK=32 SPLITS=2"));
    EXPECT_EQ(instance.objection(good), std::nullopt);
    const Config split = instance.resolve(config_from_text("splitk BK=64 SPLITS=2"));
    EXPECT_EQ(instance.objection(split), "each split has a step: SPLITS <= steps does not hold (SPLITS=2, steps=1)");
    Config foreign = good;
    foreign.values[0].second = whole(928);
    EXPECT_EQ(instance.objection(foreign), "BM=928 is not a value of BM (64 and 128)");
    foreign = good;
    foreign.values.pop_back();
    EXPECT_EQ(instance.objection(foreign), "SPLITS is not given just once");
    foreign.values.push_back(foreign.values[0]);
    EXPECT_EQ(instance.objection(foreign), "BM is not given just once");
    EXPECT_EQ(instance.objection({"tiled", {}}), "there is no variant 'tiled' in 'gemm'");
    const auto old = Instance::make(op, {}, test::turing());
    EXPECT_EQ(old.objection(good),
              "'splitk' is not for this problem and device: cc >= 80 and dtype != 'f32' and min(align(a), "
              "align(b)) >= 16 does not hold (cc=75, dtype=bf16, align(a)=16, align(b)=16)");
}

TEST(Instance, ObjectsToWhatTheDeviceCannotLaunch) {
    Op op = test::softmax_op();
    const auto objection = [&](std::string_view problem, const DeviceLimits& limits) {
        return Instance::make(op, fields(problem), limits).objection({"naive", {}});
    };
    LaunchSpec& launch = op.variants[1].launches[0];
    EXPECT_EQ(objection("", test::hopper()), std::nullopt);
    launch.block = test::expressions({"64", "rows"});
    EXPECT_EQ(objection("rows=16", test::hopper()), std::nullopt);
    EXPECT_EQ(objection("rows=17", test::hopper()),
              "threads a block within the limit: a block of 64 x 17 threads in 'softmax_naive', the limit is 1024");
    launch.block = test::expressions({"rows - 1"});
    EXPECT_NE(objection("rows=1", test::hopper()), std::nullopt) << "no threads at all";
    launch.block = test::expressions({"1", "1", "rows"});
    EXPECT_EQ(objection("rows=64", test::hopper()), std::nullopt);
    EXPECT_NE(objection("rows=65", test::hopper()), std::nullopt);
    launch.block = test::expressions({"32"});
    launch.grid = test::expressions({"1", "rows"});
    EXPECT_EQ(objection("rows=65535", test::hopper()), std::nullopt);
    EXPECT_NE(objection("rows=65536", test::hopper()), std::nullopt);
    launch.grid = test::expressions({"rows / 3"});
    EXPECT_EQ(objection("rows=64", test::hopper()),
              "the grid of 'softmax_naive' cannot be computed: not a whole number where one is needed in 'rows / 3'");
    launch.grid = test::expressions({"rows"});
    EXPECT_EQ(objection("rows=2147483647", test::hopper()), std::nullopt);
    EXPECT_NE(objection("rows=2147483648", test::hopper()), std::nullopt);
    launch.cluster = test::expressions({"2"});
    EXPECT_EQ(objection("rows=4", test::hopper()), std::nullopt);
    EXPECT_NE(objection("rows=5", test::hopper()), std::nullopt) << "the grid is no multiple";
    EXPECT_NE(objection("rows=4", test::turing()), std::nullopt) << "no clusters before 9.0";
}

TEST(Instance, TakesSharedMemoryUpToTheLimitAndNoByteMore) {
    Op op = test::softmax_op();
    op.variants[1].launches[0].shared = test::expression("rows");
    DeviceLimits limits = test::hopper();
    for (const int limit : {49152, 65536, 101376, 232448}) {
        limits.max_shared = limit;
        const auto objection = [&](int bytes) {
            return Instance::make(op, {{"rows", whole(bytes)}}, limits).objection({"naive", {}});
        };
        EXPECT_EQ(objection(limit), std::nullopt) << limit;
        EXPECT_EQ(objection(limit + 1), "shared memory fits: " + std::to_string(limit + 1) +
                                            " bytes a block in 'softmax_naive', the limit is " + std::to_string(limit));
    }
}

TEST(Instance, NeverPassesAConstraintThatHasNoValue) {
    Op op = test::softmax_op();
    op.variants[0].constraints.push_back({"rows split", test::expression("1024 % (THREADS - 256) == 0")});
    const auto instance = Instance::make(op, {}, test::hopper());
    const std::string objection = instance.objection(instance.resolve(config_from_text("online"))).value_or("");
    EXPECT_EQ(objection, "rows split: division by zero in '1024 % (THREADS - 256)' (THREADS=256)");
}

TEST(Instance, ChoosesTheFirstVariantThatHoldsAtItsDefaults) {
    const Op op = test::gemm_op();
    EXPECT_EQ(Instance::make(op, {}, test::hopper()).default_config().text(),
              "splitk BM=128 BN=128 BK=32 STAGES=3 SPLITS=2");
    EXPECT_EQ(Instance::make(op, {}, test::turing()).default_config().text(), "naive");
    EXPECT_EQ(Instance::make(op, fields("k=32"), test::hopper()).default_config().text(), "naive")
        << "one step, two splits";
    Op broken = op;
    broken.variants.pop_back();
    try {
        Instance::make(broken, {}, test::turing()).default_config();
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Error::Kind::nothing_found);
        EXPECT_NE(std::string{error.what()}.find("splitk: 'splitk' is not for this problem and device"),
                  std::string::npos);
    }
}

TEST(Instance, SnapsDefaultsToDeclaredValuesAndObjectsToOthers) {
    Op op = test::softmax_op();
    Parameter& threads = op.variants[0].parameters[0];
    threads.fallback = test::expression("cols * 0.5");
    const auto config = Instance::make(op, fields("cols=1024"), test::hopper()).default_config();
    EXPECT_EQ(config.text(), "online THREADS=512 VEC=4");
    EXPECT_TRUE(std::holds_alternative<std::int64_t>(config["THREADS"]));
    const auto other = Instance::make(op, fields("cols=1000"), test::hopper());
    EXPECT_EQ(other.objection(*other.defaults_of(op.variants[0])),
              "THREADS=500.0 is not a value of THREADS (64, 128, 256, 512 and 1024)");
    EXPECT_EQ(other.default_config().text(), "naive");
    op.variants[0].parameters[1].fallback = test::expression("THREADS == 512 ? 2 : 1");
    EXPECT_EQ(Instance::make(op, fields("cols=1024"), test::hopper()).default_config()["VEC"], whole(2));
}

TEST(Instance, ResolvesAConfigAsAPersonWritesIt) {
    const Op op = test::softmax_op();
    const auto instance = Instance::make(op, {}, test::hopper());
    EXPECT_EQ(instance.resolve(config_from_text("VEC=2.0")).text(), "online THREADS=256 VEC=2");
    EXPECT_EQ(instance.resolve(config_from_text("online VEC=2 THREADS=64")).text(), "online THREADS=64 VEC=2");
    const auto message = [&](std::string_view text) {
        try {
            return instance.resolve(config_from_text(text)).text();
        } catch (const Error& error) {
            return std::string{error.what()};
        }
    };
    EXPECT_EQ(message("onlin VEC=2"), "there is no variant 'onlin' in 'softmax'; did you mean 'online'?");
    EXPECT_EQ(message("online VEK=2"), "variant 'online' of 'softmax' has no parameter 'VEK'; did you mean 'VEC'?");
    EXPECT_EQ(message("online VEC=3"), "VEC=3 is not a value of VEC (1, 2, 4 and 8)");
}

TEST(Instance, NamesItsDeviceInExpressions) {
    const Op op = test::softmax_op();
    const auto instance = Instance::make(op, {}, test::hopper());
    const auto scope = instance.scope();
    for (const std::string_view name : device_names()) EXPECT_NE(scope->find(name), nullptr) << name;
    EXPECT_EQ(*scope->find("sm_count"), whole(132));
    EXPECT_EQ(scope->find("blocks_per_sm"), nullptr);
    EXPECT_EQ(scope->tensor_align("x"), 16);
    EXPECT_EQ(*scope->find("ldx"), whole(1024));
}

TEST(Instance, SaysWhichLetDependsOnItself) {
    Op op = test::softmax_op();
    op.lets = {{"p", test::expression("q + 1")}, {"q", test::expression("p + 1")}, {"r", test::expression("rows * 2")}};
    const auto instance = Instance::make(op, {}, test::hopper());
    const auto scope = instance.scope();
    EXPECT_EQ(*scope->find("r"), whole(8192));
    EXPECT_THROW((void)scope->find("p"), EvaluationError);
}

}  // namespace
}  // namespace autotune

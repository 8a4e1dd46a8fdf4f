#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "autotune/error.h"
#include "device/cubin.h"
#include "tests/device/emulator/template_run.h"

namespace autotune {
namespace {

using Fields = std::vector<std::pair<std::string, Value>>;

struct Case {
    std::string part, op;
    Fields problem;
};

void PrintTo(const Case& one, std::ostream* out) {
    *out << one.part << " " << one.op << " " << Problem{one.problem}.text();
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
    std::string name = info.param.part + "_" + info.param.op + "_" + std::to_string(info.index);
    for (char& c : name)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    return name;
}

class Templates : public testing::TestWithParam<Case> {};

// Goal: every variant of every op runs without a GPU, is right, and does nothing that the checks object to.
// Method: small problems with ragged edges, each variant that may run there at its defaults, against the CPU reference.
TEST_P(Templates, EachVariantIsRightAndClean) {
    if (const std::string trouble = no_compiler(); !trouble.empty()) GTEST_SKIP() << trouble;
    const auto& [part, op, problem] = GetParam();
    TemplateRun run{part, op, problem};
    int tried = 0;
    for (const Variant& variant : run.instance().op().variants) {
        const std::optional<Config> config = run.instance().defaults_of(variant);
        if (!config || run.instance().objection(*config)) continue;
        const Outcome outcome = run.trial(*config);
        EXPECT_TRUE(outcome.ok()) << config->text() << ": " << info(outcome.ending).words << ": " << outcome.reason
                                  << "\n"
                                  << outcome.log;
        ++tried;
    }
    EXPECT_GT(tried, 0);
}

// Goal: what depends on where a row starts, or on which tiles are waited for, is right in other configs than the
// default. Method: transposes of tiles of each slant, scans and uniques over more than 1024 tiles, whose sets and
// groups all fill.
TEST(TemplateConfigs, AreRightWhereRowsStartAnywhereAndTilesWait) {
    if (const std::string trouble = no_compiler(); !trouble.empty()) GTEST_SKIP() << trouble;
    const auto number = [](std::int64_t n) { return Value{n}; };
    const auto text = [](const char* s) { return Value{std::string{s}}; };
    const Fields odd{{"rows", number(131)}, {"cols", number(67)}, {"batch", number(2)}, {"dtype", text("bf16")}};
    const Fields bytes{{"rows", number(101)}, {"cols", number(133)}, {"dtype", text("u8")}};
    const Fields words{{"rows", number(70)}, {"cols", number(33)}, {"dtype", text("f32")}};
    struct Picked {
        const char* op;
        Fields problem;
        const char* config;
    };
    const Picked picked[] = {
        {"transpose", odd, "ragged UNIT=2 TILE_R=64 TILE_C=32 THREADS=256 EDGE=64 DOWN=false"},
        {"transpose", odd, "ragged UNIT=2 TILE_R=32 TILE_C=64 THREADS=256 EDGE=16 DOWN=true"},
        {"transpose", bytes, "ragged UNIT=1 TILE_R=128 TILE_C=64 THREADS=512 EDGE=64 DOWN=true"},
        {"transpose", words, "ragged UNIT=4 TILE_R=64 TILE_C=32 THREADS=512 EDGE=128 DOWN=true"},
        {"scan", {{"n", number(600001)}, {"dtype", text("i32")}}, "tiles THREADS=128 VEC=2 UNROLL=2"},
        {"unique",
         {{"n", number(300001)}, {"distinct", number(100000)}, {"dtype", text("i64")}},
         "tiles THREADS=128 VEC=1 UNROLL=2"},
        {"unique",
         {{"n", number(262151)}, {"distinct", number(30000)}, {"dtype", text("bf16")}},
         "split THREADS=256 VEC=8 UNROLL=2"},
    };
    for (const Picked& one : picked) {
        TemplateRun run{"sm_90", one.op, one.problem};
        const Config config = config_from_text(one.config);
        const auto objection = run.instance().objection(config);
        ASSERT_FALSE(objection) << one.op << " " << one.config;
        const Outcome outcome = run.trial(config);
        EXPECT_TRUE(outcome.ok()) << one.op << " " << one.config << ": " << info(outcome.ending).words << ": "
                                  << outcome.reason << "\n"
                                  << outcome.log;
    }
}

class DeviceReferences : public testing::TestWithParam<Case> {};

// Goal: what stands in for a CPU reference where that would take seconds says the same.
// Method: on small problems, of more than one of their chunks where they take some.
TEST_P(DeviceReferences, AgreeWithThoseForTheCpu) {
    if (const std::string trouble = no_compiler(); !trouble.empty()) GTEST_SKIP() << trouble;
    const auto& [part, op, problem] = GetParam();
    TemplateRun run{part, op, problem};
    const std::vector<Comparison> compared = run.anchor();
    EXPECT_FALSE(compared.empty());
    for (const Comparison& one : compared)
        EXPECT_EQ(one.bad, 0u) << "element " << one.first_bad << " is " << one.got << ", not " << one.want;
}

std::vector<Case> chunked_cases() {
    const auto number = [](std::int64_t n) { return Value{n}; };
    const auto text = [](const char* word) { return Value{std::string{word}}; };
    std::vector<Case> all;
    for (const char* const dtype : {"f32", "f16", "bf16", "i32"})
        for (const bool exclusive : {false, true}) {
            all.push_back({"sm_90", "scan", {{"rows", number(1)}, {"n", number(9001)}, {"dtype", text(dtype)}}});
            all.back().problem.emplace_back("exclusive", exclusive);
            all.push_back({"sm_90", "scan", {{"rows", number(300)}, {"n", number(33)}, {"dtype", text(dtype)}}});
            all.back().problem.emplace_back("exclusive", exclusive);
        }
    for (const char* const dtype : {"i32", "i64", "f32", "f16", "bf16"})
        for (const std::int64_t distinct : {1, 700, 100000})
            all.push_back(
                {"sm_90", "unique", {{"n", number(9001)}, {"distinct", number(distinct)}, {"dtype", text(dtype)}}});
    return all;
}

INSTANTIATE_TEST_SUITE_P(Chunked, DeviceReferences, testing::ValuesIn(chunked_cases()), name_of);

std::vector<Case> cases() {
    std::vector<Case> all;
    const auto number = [](std::int64_t n) { return Value{n}; };
    for (const char* const part : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90"}) {
        // Code for 8.6 and 8.9 is that for 8.0 but for defaults: a part of the cases does.
        const bool whole = std::string{part} != "sm_86" && std::string{part} != "sm_89";
        for (const char* const dtype : {"f32", "f16", "bf16"}) {
            if (!whole && std::string{dtype} == "bf16") continue;
            all.push_back({part,
                           "softmax",
                           {{"rows", std::int64_t{5}}, {"cols", std::int64_t{333}}, {"dtype", std::string{dtype}}}});
            all.push_back({part,
                           "softmax",
                           {{"rows", std::int64_t{3}}, {"cols", std::int64_t{1024}}, {"dtype", std::string{dtype}}}});
            for (const bool turned : {false, true}) {
                if (turned && !whole) continue;
                all.push_back({part,
                               "gemm",
                               {{"m", number(turned ? 130 : 97)},
                                {"n", number(turned ? 68 : 200)},
                                {"k", number(turned ? 72 : 77)},
                                {"dtype", std::string{dtype}},
                                {"trans_a", turned},
                                {"trans_b", turned}}});
            }
            if (std::string{dtype} == "f32") continue;
            for (const bool causal : {false, true}) {
                if (!causal && !whole) continue;
                all.push_back({part,
                               "attention",
                               {{"batch", number(1)},
                                {"q_heads", number(2)},
                                {"kv_heads", number(1)},
                                {"seq_q", number(causal ? 70 : 33)},
                                {"seq_k", number(causal ? 133 : 65)},
                                {"head_dim", number(causal ? 64 : 40)},
                                {"dtype", std::string{dtype}},
                                {"causal", causal}}});
            }
        }
    }
    const auto text = [](const char* word) { return Value{std::string{word}}; };
    for (const auto& [part, dtype] : {std::pair{"sm_75", "f32"}, {"sm_80", "f16"}, {"sm_90", "bf16"}}) {
        const std::vector<std::pair<std::string, Fields>> problems{
            {"reduce", {{"outer", number(3)}, {"n", number(333)}, {"kind", text("max")}}},
            {"reduce", {{"outer", number(1)}, {"n", number(70001)}}},
            {"reduce", {{"outer", number(2)}, {"n", number(77)}, {"inner", number(12)}, {"kind", text("l2")}}},
            {"argreduce", {{"outer", number(3)}, {"n", number(333)}}},
            {"argreduce", {{"outer", number(1)}, {"n", number(70001)}, {"kind", text("argmin")}}},
            {"transpose", {{"batch", number(2)}, {"rows", number(70)}, {"cols", number(136)}}},
            {"transpose", {{"rows", number(67)}, {"cols", number(33)}}},
            {"transpose", {{"rows", number(133)}, {"cols", number(131)}}},
            {"permute", {{"d0", number(2)}, {"d1", number(5)}, {"d2", number(7)}, {"d3", number(24)}}},
            {"permute",
             {{"d0", number(2)}, {"d1", number(5)}, {"d2", number(9)}, {"d3", number(16)}, {"order", number(312)}}},
            {"copy", {{"rows", number(5)}, {"cols", number(1003)}}},
            {"quantise", {{"rows", number(5)}, {"cols", number(192)}, {"scales", text("row")}}},
            {"quantise",
             {{"rows", number(3)}, {"cols", number(256)}, {"scales", text("block")}, {"format", text("int4")}}},
            {"quantise",
             {{"rows", number(3)}, {"cols", number(70)}, {"scales", text("tensor")}, {"format", text("e5m2")}}},
            {"dequantise", {{"rows", number(5)}, {"cols", number(192)}}},
            {"dequantise",
             {{"rows", number(3)}, {"cols", number(70)}, {"format", text("int8")}, {"scales", text("tensor")}}},
            {"rope", {{"tokens", number(5)}, {"q_heads", number(3)}, {"kv_heads", number(1)}, {"dim", number(64)}}},
            {"rope",
             {{"tokens", number(3)}, {"dim", number(20)}, {"rot", number(12)}, {"convention", text("interleaved")}}},
            {"scan", {{"rows", number(3)}, {"n", number(1001)}}},
            {"scan", {{"rows", number(1)}, {"n", number(9001)}, {"exclusive", true}}},
            {"scan", {{"rows", number(2)}, {"n", number(100004)}}},
            {"histogram", {{"n", number(10007)}, {"bins", number(7)}}},
            {"histogram", {{"n", number(5003)}, {"bins", number(9001)}}},
            {"unique", {{"n", number(9001)}, {"distinct", number(500)}}},
        };
        for (const auto& [op, fields] : problems) {
            all.push_back({part, op, fields});
            all.back().problem.emplace_back("dtype", text(dtype));
        }
        all.push_back({part, "adam", {{"count", number(1003)}, {"tensors", number(5)}, {"grad", text(dtype)}}});
    }
    for (const auto& [part, dtype] : {std::pair{"sm_75", "f32"}, {"sm_80", "f16"}, {"sm_90", "bf16"}}) {
        const std::vector<std::pair<std::string, Fields>> rows{
            {"log_softmax", {{"rows", number(5)}, {"cols", number(61)}}},
            {"softmax_backward", {{"rows", number(5)}, {"cols", number(61)}}},
            {"cross_entropy", {{"rows", number(5)}, {"cols", number(61)}}},
            {"layernorm", {{"rows", number(5)}, {"cols", number(61)}}},
            {"log_softmax", {{"rows", number(5)}, {"cols", number(333)}}},
            {"log_softmax", {{"rows", number(3)}, {"cols", number(1024)}}},
            {"masked_softmax",
             {{"batch", number(2)},
              {"heads", number(2)},
              {"queries", number(3)},
              {"keys", number(103)},
              {"causal", true}}},
            {"masked_softmax",
             {{"batch", number(1)},
              {"heads", number(2)},
              {"queries", number(3)},
              {"keys", number(264)},
              {"mask", text("add")}}},
            {"softmax_backward", {{"rows", number(5)}, {"cols", number(333)}}},
            {"softmax_backward", {{"rows", number(3)}, {"cols", number(1024)}, {"log", true}}},
            {"cross_entropy", {{"rows", number(5)}, {"cols", number(333)}}},
            {"cross_entropy", {{"rows", number(3)}, {"cols", number(1024)}, {"label_type", text("i32")}}},
            {"layernorm", {{"rows", number(5)}, {"cols", number(333)}, {"stats", true}}},
            {"layernorm", {{"rows", number(3)}, {"cols", number(264)}, {"residual", true}, {"out", text("int8")}}},
            {"rmsnorm", {{"rows", number(5)}, {"cols", number(333)}, {"residual", true}, {"weights", text("f32")}}},
            {"rmsnorm", {{"rows", number(3)}, {"cols", number(264)}, {"out", text("e4m3")}, {"bias", true}}},
            {"layernorm_backward", {{"rows", number(37)}, {"cols", number(133)}, {"dh", true}}},
            {"rmsnorm_backward", {{"rows", number(37)}, {"cols", number(264)}}},
        };
        for (const auto& [op, fields] : rows) {
            all.push_back({part, op, fields});
            all.back().problem.emplace_back("dtype", text(dtype));
        }
    }
    // A row that is long enough for a cluster.
    for (const char* const op : {"log_softmax", "cross_entropy", "layernorm"})
        all.push_back({"sm_90", op, {{"rows", number(2)}, {"cols", number(16384)}, {"dtype", text("f32")}}});
    return all;
}

// Goal: a ring of tiles in shared memory is right when it is gone round, by rows whose parts start anywhere.
// Method: clusters of four, of which an H100 is given thirty at a time, so each has five rows; its ring has three.
TEST(StagedRows, FollowOneAnotherThroughTheRing) {
    if (const std::string trouble = no_compiler(); !trouble.empty()) GTEST_SKIP() << trouble;
    for (const auto& [op, cols, more] : std::vector<std::tuple<std::string, std::int64_t, Fields>>{
             {"softmax", 8203, {}},
             {"log_softmax", 8203, {}},
             {"cross_entropy", 8203, {}},
             {"softmax_backward", 8200, {}},
             {"layernorm", 8203, {{"stats", true}}},
             {"rmsnorm", 8203, {{"out", std::string{"e4m3"}}}}}) {
        Fields fields{{"rows", std::int64_t{150}}, {"cols", cols}, {"dtype", std::string{"f32"}}};
        fields.insert(fields.end(), more.begin(), more.end());
        TemplateRun run{"sm_90", op, fields};
        for (const std::string through_l1 : {"false", "true"}) {
            const Config config = config_from_text(
                "staged CLUSTER=4 THREADS=512 VEC=4 UNROLL=1 RAGGED=" + std::string{cols % 4 == 0 ? "false" : "true"} +
                " THROUGH_L1=" + through_l1 + " BLOCKS=1");
            ASSERT_EQ(run.instance().objection(config), std::nullopt) << op;
            const Outcome outcome = run.trial(config);
            EXPECT_TRUE(outcome.ok()) << op << " " << config.text() << ": " << info(outcome.ending).words << ": "
                                      << outcome.reason << "\n"
                                      << outcome.log;
        }
    }
}

// Goal: rows that arrive while others are worked on are right when their places in shared memory are gone round: packed
// ones, ones that lie apart and start anywhere, with y in the place of x, with elements that are no numbers; and one
// row. Method: a device is given so few blocks or clusters at a time that each has four rows or more, and places for
// three.
TEST(RowsAhead, FollowOneAnotherThroughTheirPlaces) {
    if (const std::string trouble = no_compiler(); !trouble.empty()) GTEST_SKIP() << trouble;
    struct Way {
        const char *part, *dtype, *config;
        std::int64_t rows, cols;
        Binding binding = {};
        bool in_place = false, specials = false;
    };
    const auto apart = [](int x, int y, std::int64_t ld) {
        return Binding{.strides = {{"ldx", ld}, {"ldy", ld}}, .align = {{"x", x}, {"y", y}}};
    };
    const Way ways[] = {
        {"sm_80", "f32", "CLUSTER=1 THREADS=1024 CHUNKS=2 RAGGED=true BLOCKS=1", 430, 4099, {}, false, true},
        {"sm_90", "f32", "CLUSTER=1 THREADS=1024 CHUNKS=2 RAGGED=false BLOCKS=1", 530, 4104, {}, true},
        {"sm_90", "f32", "CLUSTER=2 THREADS=512 CHUNKS=2 RAGGED=true BLOCKS=1", 270, 4099, apart(4, 8, 4104)},
        {"sm_90", "f16", "CLUSTER=4 THREADS=256 CHUNKS=2 RAGGED=true BLOCKS=2", 240, 8205, apart(2, 2, 8210), true},
        {"sm_90", "f32", "CLUSTER=8 THREADS=256 CHUNKS=2 RAGGED=false BLOCKS=2", 121, 8204},
        {"sm_90", "f32", "CLUSTER=8 THREADS=512 CHUNKS=4 RAGGED=false BLOCKS=2", 1, 65536},
    };
    for (const auto& [op, more] : std::vector<std::tuple<std::string, Fields>>{{"layernorm", {{"stats", true}}},
                                                                               {"rmsnorm", {{"bias", true}}}}) {
        const Op& made = *std::ranges::find(builtin_ops(), op, &Op::name);
        for (const Way& way : ways) {
            Fields fields{{"rows", way.rows}, {"cols", way.cols}, {"dtype", std::string{way.dtype}}};
            fields.insert(fields.end(), more.begin(), more.end());
            const TemplateMemory memory{
                .specials = way.specials, .output = way.in_place ? "y" : "", .over = way.in_place ? "x" : ""};
            TemplateRun run{way.part, made, fields, way.binding, memory};
            const Config config = config_from_text(std::string{"ahead "} + way.config);
            ASSERT_EQ(run.instance().objection(config), std::nullopt) << op << " " << config.text();
            const Outcome outcome = run.trial(config);
            EXPECT_TRUE(outcome.ok()) << op << " " << config.text() << ": " << info(outcome.ending).words << ": "
                                      << outcome.reason << "\n"
                                      << outcome.log;
        }
    }
}

// Goal: no copy to shared memory that L2 is asked to keep has a uniform register in its address: ptxas 13.0 makes such
// instructions, which an H200 refuses as illegal, and the emulator sees PTX only. Method: the machine code of rows that
// come ahead and that are staged, whose places in shared memory are uniform sums.
TEST(CopiesThatL2Keeps, HaveNoUniformPartInTheirAddresses) {
    if (const std::string trouble = no_compiler(); !trouble.empty()) GTEST_SKIP() << trouble;
    constexpr unsigned opcode = 0xfff, copy = 0xfae, with_uniform_address = 0xdae;  // LDGSTS
    for (const auto& [op, dtype, config] : std::vector<std::tuple<const char*, const char*, const char*>>{
             {"rmsnorm", "f32", "ahead CLUSTER=2 THREADS=512 CHUNKS=16 RAGGED=false BLOCKS=1"},
             {"rmsnorm", "f32", "ahead CLUSTER=4 THREADS=256 CHUNKS=16 RAGGED=false BLOCKS=2"},
             {"layernorm", "bf16", "ahead CLUSTER=1 THREADS=512 CHUNKS=16 RAGGED=false BLOCKS=1"},
             {"rmsnorm", "f32", "staged CLUSTER=2 THREADS=1024 VEC=4 UNROLL=4 RAGGED=false THROUGH_L1=true BLOCKS=1"},
             {"softmax", "bf16",
              "staged CLUSTER=2 THREADS=1024 VEC=8 UNROLL=2 RAGGED=false THROUGH_L1=false BLOCKS=1"}}) {
        const Op& made = *std::ranges::find(builtin_ops(), std::string{op}, &Op::name);
        const Instance instance = Instance::make(
            made, {{"rows", std::int64_t{1024}}, {"cols", std::int64_t{65536}}, {"dtype", std::string{dtype}}},
            make_emulated_device("sm_90")->identity().limits);
        ASSERT_EQ(instance.objection(config_from_text(config)), std::nullopt) << op << " " << config;
        for (const SourceSpec& source : instance.sources(config_from_text(config))) {
            const CompileResult result = compiled_for(instance.limits(), source);
            ASSERT_TRUE(result.ok) << result.log;
            const std::vector<std::byte>& binary = result.artefact.cubin;
            int copies = 0;
            for (const CubinKernel& kernel : read_cubin(binary).kernels)
                for (std::size_t at = kernel.code_offset; at + 16 <= kernel.code_offset + kernel.code_bytes; at += 16) {
                    std::uint32_t low = 0;
                    std::memcpy(&low, &binary[at], sizeof low);
                    EXPECT_NE(low & opcode, with_uniform_address) << op << " " << config << " at " << at;
                    copies += (low & opcode) == copy;
                }
            EXPECT_GT(copies, 0) << op << " " << config;
        }
    }
}

// Goal: the backward pass of a norm, whose rows of a block go on apart, is right when each has several.
TEST(StagedRows, OfABlockGoOnApart) {
    if (const std::string trouble = no_compiler(); !trouble.empty()) GTEST_SKIP() << trouble;
    for (const bool dh : {false, true}) {
        TemplateRun run{
            "sm_80",
            "layernorm_backward",
            {{"rows", std::int64_t{1301}}, {"cols", std::int64_t{1000}}, {"dtype", std::string{"bf16"}}, {"dh", dh}}};
        for (const char* const text : {"fused LANES=64 ROWS=4 VEC=8 CHUNKS=2 STAGES=2 BLOCKS=1",
                                       "fused LANES=128 ROWS=2 VEC=8 CHUNKS=1 STAGES=4 BLOCKS=1"}) {
            const Config config = config_from_text(text);
            ASSERT_EQ(run.instance().objection(config), std::nullopt) << text;
            const Outcome outcome = run.trial(config);
            EXPECT_TRUE(outcome.ok()) << text << ": " << info(outcome.ending).words << ": " << outcome.reason << "\n"
                                      << outcome.log;
        }
    }
}

// Goal: a scan by blocks that stay is right whatever the tiles and whoever takes them, and writes over x where told to.
// Method: each type with ragged rows, of more than 1024 tiles, of hardly more than one and of whole ones, with x and y
// apart and in one place, by blocks that run one after the other and by turns.
TEST(ScanRing, IsRightWhicheverBlockTakesATile) {
    if (const std::string trouble = no_compiler(); !trouble.empty()) GTEST_SKIP() << trouble;
    const Op* scan = nullptr;
    for (const Op& op : builtin_ops())
        if (op.name == "scan") scan = &op;
    ASSERT_NE(scan, nullptr);
    struct Picked {
        const char* dtype;
        std::int64_t rows, n;
        bool exclusive, in_place;
        const char* config;
    };
    const Picked picked[] = {
        {"f32", 1, 2097153, false, false, "ring WARPS=4 UNROLL=4 SLOTS=9 BLOCKS=2"},
        {"f32", 3, 20004, true, true, "ring WARPS=8 UNROLL=4 SLOTS=14 BLOCKS=1"},
        {"f32", 1, 16387, false, true, "ring WARPS=8 UNROLL=8 SLOTS=7 BLOCKS=1"},
        {"f16", 1, 100003, false, true, "ring WARPS=8 UNROLL=2 SLOTS=12 BLOCKS=1"},
        {"bf16", 5, 65536, true, false, "ring WARPS=8 UNROLL=4 SLOTS=14 BLOCKS=1"},
        {"i32", 1, 500001, false, true, "ring WARPS=4 UNROLL=4 SLOTS=7 BLOCKS=2"},
        {"i32", 2, 40000, true, false, "ring WARPS=8 UNROLL=8 SLOTS=7 BLOCKS=1"},
    };
    for (const Picked& one : picked) {
        TemplateMemory memory;
        if (one.in_place) memory = {.output = "y", .over = "x"};
        const Config config = config_from_text(one.config);
        TemplateRun run{
            "sm_90",
            *scan,
            {{"rows", one.rows}, {"n", one.n}, {"dtype", std::string{one.dtype}}, {"exclusive", one.exclusive}},
            {},
            memory};
        ASSERT_EQ(run.instance().objection(config), std::nullopt) << one.config;
        for (const bool together : {false, true}) {
            const Outcome outcome = run.trial(config, together);
            EXPECT_TRUE(outcome.ok()) << one.dtype << " " << one.n << " " << one.config << ": "
                                      << info(outcome.ending).words << ": " << outcome.reason << "\n"
                                      << outcome.log;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All, Templates, testing::ValuesIn(cases()), name_of);

}  // namespace
}  // namespace autotune

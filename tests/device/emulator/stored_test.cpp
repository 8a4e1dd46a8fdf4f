// Goal: the interpreter alone, without NVRTC: calls, tensor cores, collectives, printf, determinism, hostile text.
// Method: PTX that NVRTC made of small kernels, stored in the fuzz corpus; what they compute stands here in plain C++.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <numeric>

#include "autotune/error.h"
#include "device/emulator/parts.h"
#include "device/emulator/rows.h"
#include "tests/device/emulator/kernel.h"

namespace autotune {
namespace {

using testing::HasSubstr;

std::string stored(const std::string& name) {
    const std::string path = AUTOTUNE_SOURCE_DIR "/tests/fuzz/corpus/ptx/" + name + ".ptx";
    std::ifstream in{path};
    if (!in) in.open("tests/fuzz/corpus/ptx/" + name + ".ptx");
    return {std::istreambuf_iterator<char>{in}, {}};
}

std::vector<float> ramp() {
    std::vector<float> x(64);
    for (int i = 0; i < 64; ++i) x[static_cast<std::size_t>(i)] = static_cast<float>(i) / 8 - 3;
    return x;
}

TEST(Stored, CallsFunctionsByNameAndByAddress) {
    std::string printed;
    EmulatorOptions options;
    options.printed = &printed;
    Kernel kernel{ptx_only(stored("calls")), "sm_80", options};
    const std::vector<float> x = ramp();
    const std::uint32_t in = kernel.buffer(x), out = kernel.empty(64 * 4);
    // scale[] is a variable that the caller fills; it is zero here.
    kernel.run("kernel", {1}, {64}, {BufferArgument{in}, BufferArgument{out}});
    const std::vector<float> y = kernel.contents<float>(out);
    for (int i = 0; i < 64; ++i) {
        const auto at = [&](int k) { return x[static_cast<std::size_t>(k)]; };
        const float scale = i % 2 ? 2.0f : 0.5f;
        const int slot = i * 7 & 15;
        float r = (i % 2 ? at(i) + 3 : at(i) * 2) + scale;
        r += static_cast<float>(10 * ((i & 3) + 1));
        r += at(slot) + (slot == (i & 15) ? 1.0f : 0.0f);
        r += static_cast<float>(i * (i % 10));
        switch (i % 6) {
            case 0:
                r += 100;
                break;
            case 1:
                r *= 2;
                break;
            case 2:
                r -= 7;
                break;
            case 3:
                r = -r;
                break;
            case 4:
                r = r * r;
                break;
            default:
                r += at(i * 5 & 63);
        }
        EXPECT_FLOAT_EQ(y[static_cast<std::size_t>(i)], r) << i;
    }
    EXPECT_THAT(printed, HasSubstr("lane 7 has "));
    EXPECT_THAT(printed, HasSubstr("%, as it should\n"));
}

std::uint16_t half(float x) {  // of small whole numbers
    if (x == 0) return 0;
    int exponent = 0;
    const float fraction = std::frexp(std::fabs(x), &exponent);
    return static_cast<std::uint16_t>((x < 0 ? 0x8000 : 0) | (exponent + 14) << 10 |
                                      (static_cast<int>(fraction * 2048) & 0x3ff));
}

TEST(Stored, MultipliesMatrices) {
    Kernel kernel{ptx_only(stored("tensor"))};
    std::vector<float> a(256), b(256);
    std::vector<std::uint16_t> ha, hb;
    for (int i = 0; i < 256; ++i) {
        a[static_cast<std::size_t>(i)] = static_cast<float>(i * 37 % 17 - 8);
        b[static_cast<std::size_t>(i)] = static_cast<float>(i * 29 % 13 - 6);
        ha.push_back(half(a[static_cast<std::size_t>(i)]));
        hb.push_back(half(b[static_cast<std::size_t>(i)]));
    }
    const std::uint32_t first = kernel.buffer(ha), second = kernel.buffer(hb), c1 = kernel.empty(16 * 8 * 4),
                        c2 = kernel.empty(256 * 4);
    kernel.run("kernel", {1}, {32},
               {BufferArgument{first}, BufferArgument{second}, BufferArgument{c1}, BufferArgument{c2}});
    const std::vector<float> mma = kernel.contents<float>(c1), wmma = kernel.contents<float>(c2);
    for (std::size_t i = 0; i < 16; ++i)
        for (std::size_t j = 0; j < 16; ++j) {
            float sum = 0;
            for (std::size_t k = 0; k < 16; ++k) sum += a[16 * i + k] * b[16 * k + j];
            if (j < 8) EXPECT_EQ(mma[8 * i + j], sum) << i << ", " << j;
            EXPECT_EQ(wmma[16 * i + j], 2 * sum + 1) << i << ", " << j;
        }
}

TEST(Stored, LanesWorkTogether) {
    Kernel kernel{ptx_only(stored("warps"))};
    std::vector<int> x(64);
    for (int i = 0; i < 64; ++i) x[static_cast<std::size_t>(i)] = i * 7 % 61;
    const std::uint32_t in = kernel.buffer(x), out = kernel.empty(64 * 4), sums = kernel.buffer(std::vector<int>(4));
    kernel.run("kernel", {1}, {64}, {BufferArgument{in}, BufferArgument{out}, BufferArgument{sums}});
    const std::vector<int> y = kernel.contents<int>(out), s = kernel.contents<int>(sums);
    const int odd = static_cast<int>(std::count_if(x.begin(), x.end(), [](int v) { return v % 2; }));
    for (std::size_t i = 0; i < 64; ++i) {
        const std::size_t first = i / 32 * 32;
        int same = 0;
        for (std::size_t k = first; k < first + 32; ++k) same += x[k] % 3 == x[i] % 3;
        EXPECT_EQ(y[i], same + (x[i] > 30 ? 100 : 0) + odd * 1000 + (i % 32 ? x[i - 1] * 100000 : 0) + 32) << i;
    }
    EXPECT_EQ(s[0], std::accumulate(x.begin(), x.end(), 0));
    EXPECT_EQ(s[1], 60);
    EXPECT_EQ(s[2], 64 % 10);
    EXPECT_EQ(s[3], 64);
}

TEST(Stored, RoundsNumbersOfAllKinds) {
    Kernel kernel{ptx_only(stored("numbers")), "sm_89"};
    const std::vector<float> x = ramp();
    const std::uint32_t in = kernel.buffer(x), out = kernel.empty(64 * 4);
    kernel.run("kernel", {1}, {64}, {BufferArgument{in}, BufferArgument{out}});
    const std::vector<float> y = kernel.contents<float>(out);
    const auto rounded = [](double v, int bits) {  // to that many, ties to even
        if (v == 0) return 0.0;
        const double unit = std::exp2(std::floor(std::log2(std::fabs(v))) - bits);
        return std::nearbyint(v / unit) * unit;
    };
    for (std::size_t i = 0; i < 64; ++i) {
        const double v = static_cast<double>(x[i]), next = static_cast<double>(x[(i + 1) % 64]);
        double r = rounded(v * v + 0.25, 10) + rounded(next * next + 0.25, 10) + rounded(v * v, 7) + rounded(v, 3);
        r += std::exp(-v * v) + 1 / std::sqrt(1 + v * v) + std::erf(v) + std::tanh(v) + std::sin(v) +
             std::log(2 + v * v) + std::pow(1.5, v);
        r += std::fmod(v, static_cast<double>(0.7f)) + std::trunc(v * 1000) / 1000 +
             static_cast<double>(static_cast<unsigned>(i * 2654435761u) % 1000u);
        r += 1.0 / (3.0 + v * v);
        EXPECT_NEAR(static_cast<double>(y[i]), r, 2e-3 + 1e-6 * r) << i;
    }
}

TEST(Stored, GivesTheSameBitsAndCountsInEveryRunAndBuild) {
    struct Run {
        std::vector<float> y;
        emulator::Counters counters;
    };
    const auto run = [](const emulator::RowBuild* build) {
        emulator::choose_row_build(build);
        EmulatorOptions options;
        options.counters = true;
        Kernel kernel{ptx_only(stored("numbers")), "sm_89", options};
        const std::uint32_t in = kernel.buffer(ramp()), out = kernel.empty(64 * 4);
        kernel.run("kernel", {1}, {64}, {BufferArgument{in}, BufferArgument{out}});
        emulator::choose_row_build(nullptr);
        return Run{kernel.contents<float>(out), kernel.device->take_counters()};
    };
    const Run first = run(nullptr), second = run(nullptr), baseline = run(&emulator::baseline_rows);
    EXPECT_EQ(first.y, second.y);
    EXPECT_EQ(first.y, baseline.y);
    EXPECT_TRUE(first.counters == second.counters);
    EXPECT_TRUE(first.counters == baseline.counters);
    EXPECT_GT(first.counters.instructions, 100u);
    EXPECT_EQ(first.counters.global_load_requests, 4u);
    EXPECT_EQ(first.counters.global_store_bytes, 256u);
    EXPECT_EQ(first.counters.global_store_sectors, 8u);
}

TensorMapArgument plane(std::uint32_t buffer, DType dtype, std::uint64_t width, std::uint64_t height,
                        std::uint32_t box_width, std::uint32_t box_height, std::uint32_t swizzle) {
    TensorMapArgument map;
    map.buffer = buffer;
    map.dtype = dtype;
    map.extents = {width, height};
    map.strides_bytes = {width * size_of(dtype)};
    map.box = {box_width, box_height};
    map.swizzle_bytes = swizzle;
    return map;
}

// The kernels of hopper_test.cpp: a ring of tiles behind mbarriers, a product by wgmma, a sum over a cluster.
TEST(Stored, RunsARingOfTensorMapTiles) {
    Kernel kernel{ptx_only(stored("hopper_ring")), "sm_90"};
    constexpr int rows = 21, cols = 44;
    std::vector<float> x(rows * cols);
    std::iota(x.begin(), x.end(), -100.0f);
    const std::uint32_t in = kernel.buffer(x), out = kernel.empty(rows * cols * 4);
    const auto map = [&](std::uint32_t buffer) { return plane(buffer, DType::f32, cols, rows, 32, 16, 0); };
    kernel.run("kernel", {1}, {96}, {map(in), map(out), value(rows), value(cols)});
    const std::vector<float> y = kernel.contents<float>(out);
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], 2 * x[i] + 1) << i;
}

void multiply_by_warpgroups(const EmulatorOptions& options) {
    Kernel kernel{ptx_only(stored("hopper_product")), "sm_90", options};
    std::vector<std::uint16_t> a(4096), b(4096);
    std::vector<float> x(4096), y(4096);
    for (std::size_t i = 0; i < 4096; ++i) {
        x[i] = static_cast<float>(static_cast<int>(i * 37 % 17) - 8);
        y[i] = static_cast<float>(static_cast<int>(i * 29 % 13) - 6);
        a[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x[i]) >> 16);
        b[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(y[i]) >> 16);
    }
    const std::uint32_t first = kernel.buffer(a), second = kernel.buffer(b), out = kernel.empty(4096 * 4);
    const auto map = [&](std::uint32_t buffer) { return plane(buffer, DType::bf16, 64, 64, 64, 64, 128); };
    kernel.run("kernel", {1}, {128}, {map(first), map(second), BufferArgument{out}});
    const std::vector<float> c = kernel.contents<float>(out);
    for (std::size_t i = 0; i < 64; ++i)
        for (std::size_t j = 0; j < 64; ++j) {
            float sum = 0;
            for (std::size_t k = 0; k < 64; ++k) sum += x[64 * i + k] * y[64 * k + j];
            ASSERT_EQ(c[64 * i + j], sum) << i << ", " << j;
        }
    if (!options.counters) return;
    const emulator::Counters counters = kernel.device->take_counters();
    EXPECT_EQ(counters.flops, 2u * 64 * 64 * 64);
    EXPECT_EQ(counters.async_bytes, 2u * 8192);
}

TEST(Stored, MultipliesByWarpgroupsWithAndWithoutChecks) {
    EmulatorOptions options;
    multiply_by_warpgroups(options);
    options.counters = true;
    multiply_by_warpgroups(options);
    options.checks = {.memory = false, .uninitialised = false, .races = false, .sync = false};
    multiply_by_warpgroups(options);
    options.checks.memory = true;
    multiply_by_warpgroups(options);
}

TEST(Stored, SumsOverACluster) {
    Kernel kernel{ptx_only(stored("hopper_cluster")), "sm_90"};
    std::vector<float> x(8 * 64);
    std::iota(x.begin(), x.end(), 0.0f);
    const std::uint32_t in = kernel.buffer(x), out = kernel.empty(8 * 64 * 4);
    Launch launch;
    launch.entry = "kernel";
    launch.grid = {8};
    launch.block = {64};
    launch.cluster = {4};
    launch.arguments = {BufferArgument{in}, BufferArgument{out}};
    kernel.launch(launch);
    const std::vector<float> y = kernel.contents<float>(out);
    for (std::size_t i = 0; i < y.size(); ++i) {
        float sum = 0;
        for (std::size_t k = 0; k < 4; ++k) sum += x[i / 256 * 256 + 64 * k + i % 64];
        EXPECT_EQ(y[i], sum) << i;
    }
}

std::string refusal(const std::string& ptx) {
    try {
        Kernel kernel{ptx_only(ptx)};
        return "nothing was refused";
    } catch (const DeviceFailure& failure) {
        EXPECT_EQ(failure.fault().kind, DeviceFault::Kind::launch_failed);
        return failure.what();
    }
}

TEST(Stored, RefusesBrokenTextWithTheLine) {
    EXPECT_THAT(refusal(""), HasSubstr("no PTX"));
    EXPECT_THAT(refusal("<html>"), HasSubstr("PTX line 1: a directive is expected"));
    const std::string head = ".version 8.0\n.target sm_80\n.address_size 64\n";
    EXPECT_THAT(refusal(head + ".visible .entry kernel() {\nret;\n"), HasSubstr("PTX line 6: a function does not end"));
    EXPECT_THAT(refusal(head + ".strange 5;\n"), HasSubstr("PTX line 4: the directive '.strange' is not emulated"));
    EXPECT_THAT(refusal(head + ".entry kernel() {\nbra NOWHERE;\n}\n"),
                HasSubstr("'NOWHERE', which is nowhere in 'kernel'"));
    EXPECT_THAT(refusal(head + ".entry kernel() {\n.reg .b32 %r<2000000000>;\n}\n"), HasSubstr("too many registers"));
    EXPECT_THAT(refusal(head + ".global .b8 huge[99999999999];\n"), HasSubstr("no sensible size"));
    EXPECT_THAT(refusal(head + ".entry kernel() {\nmov.u32 %r1, elsewhere;\n}\n").substr(0, 200),
                testing::Not(HasSubstr("internal")));
}

TEST(Stored, AnUnknownInstructionIsToldWhenItRuns) {
    Kernel kernel{
        ptx_only(".version 8.0\n.target sm_80\n.address_size 64\n.entry kernel() {\ntex.2d.v4.f32.s32 {%f1, %f2, %f3, "
                 "%f4}, [t, {%r1, %r2}];\n}\n.entry other() {\nret;\n}\n")};
    EXPECT_NO_THROW(kernel.run("other", {2}, {64}, {}));
    try {
        kernel.run("kernel", {1}, {32}, {});
        FAIL();
    } catch (const DeviceFailure& failure) {
        EXPECT_EQ(failure.fault().kind, DeviceFault::Kind::not_emulated);
        EXPECT_THAT(failure.what(), testing::StartsWith("not emulated: tex.2d.v4.f32.s32 at line 5 of the PTX"));
    }
}

TEST(Stored, ABadLaunchIsRefused) {
    Kernel kernel{ptx_only(stored("warps"))};
    const auto kind = [&](const std::string& entry, Dim3 block, std::vector<Argument> arguments, std::uint32_t shared) {
        try {
            kernel.run(entry, {1}, block, std::move(arguments), shared);
            return std::string{"ran"};
        } catch (const DeviceFailure& failure) {
            return std::string{failure.what()};
        }
    };
    const std::uint32_t x = kernel.buffer(std::vector<int>(64));
    const std::vector<Argument> three{BufferArgument{x}, BufferArgument{x}, BufferArgument{x}};
    EXPECT_THAT(kind("nobody", {32}, three, 0), HasSubstr("there is no kernel 'nobody'"));
    EXPECT_THAT(kind("kernel", {2048}, three, 0), HasSubstr("launched with 2048 threads a block"));
    EXPECT_THAT(kind("kernel", {0}, three, 0), HasSubstr("launched with 0 threads"));
    EXPECT_THAT(kind("kernel", {32}, three, 200000), HasSubstr("bytes of shared memory a block"));
    EXPECT_THAT(kind("kernel", {32}, {BufferArgument{x}}, 0), HasSubstr("takes 3 arguments, and 1 are given"));
}

TEST(EmulatedDevice, MemoryIsLimitedGuardedAndNeverPacked) {
    EmulatorOptions options;
    options.memory_bytes = 1 << 20;
    const auto device = make_emulated_device("a100", options);
    const Buffer first = device->allocate(1000, 4), second = device->allocate(1000);
    EXPECT_EQ(first.address % 256, 4u);
    EXPECT_GE(second.address - first.address, 1000u + 4096u);
    std::int64_t where = 0;
    EXPECT_TRUE(device->guards_intact(first, where));
    EXPECT_THROW(device->allocate(1 << 20), DeviceFailure);
    device->release(first);
    EXPECT_EQ(device->free_bytes(), (1 << 20) - 1000);
    EXPECT_NO_THROW(device->allocate((1 << 20) - 2000));
}

TEST(EmulatedDevice, KnowsThePartsByNameAndCapability) {
    EXPECT_EQ(make_emulated_device("sm_86")->identity().name, "NVIDIA RTX A6000");
    EXPECT_EQ(make_emulated_device("h200")->identity().limits.sm_count, 132);
    EXPECT_TRUE(make_emulated_device("sm_90a")->identity().emulated);
    EXPECT_THROW(make_emulated_device("sm_12"), Error);
}

TEST(EmulatedLike, ThePartOfTheCapabilityThatComesClosest) {
    const auto like = [](int cc, int sm_count, int bandwidth_gbs) {
        DeviceIdentity gpu{.name = "anything"};
        gpu.limits.cc = cc;
        gpu.limits.sm_count = sm_count;
        gpu.bandwidth_gbs = bandwidth_gbs;
        return emulated_like(gpu).value_or("none");
    };
    EXPECT_EQ(like(90, 132, 4800), "emulated:h200");
    EXPECT_EQ(like(90, 114, 2000), "emulated:h100") << "a PCIe card";
    EXPECT_EQ(like(86, 46, 448), "emulated:a4000");
    EXPECT_EQ(like(80, 108, 0), "emulated:a100");
    EXPECT_EQ(like(120, 170, 1790), "none");
}

}  // namespace
}  // namespace autotune

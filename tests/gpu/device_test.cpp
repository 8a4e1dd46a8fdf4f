#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>

#include "autotune/error.h"
#include "device/compare.h"
#include "device/compiler.h"
#include "device/cuda_device.h"
#include "device/driver.h"
#include "device/fill.h"
#include "device/identity.h"
#include "device/nvml.h"
#include "device/nvrtc.h"
#include "device/occupancy.h"
#include "device/support.h"

namespace autotune {
namespace {

/// Why the tests cannot run here, or empty.
const std::string& obstacle() {
    static const std::string why = [] {
        std::string reason;
        if (!driver_if_present(&reason)) return reason;
        if (!nvrtc_if_present(&reason)) return reason;
        return present_devices().empty() ? std::string{"there is no GPU here"} : std::string{};
    }();
    return why;
}

std::string arch() { return arch_name(identify(0).limits.cc); }

Artefact compiled(const std::string& source, std::vector<std::string> entries = {}) {
    static Compiler compiler;
    const CompileResult result = compiler.compile({.name = "test.cu",
                                                   .source = source,
                                                   .headers = {},
                                                   .defines = {},
                                                   .options = {},
                                                   .entries = std::move(entries),
                                                   .arch = arch()});
    EXPECT_TRUE(result.ok) << result.log;
    return result.artefact;
}

std::unique_ptr<Device> make_device() {
    static Compiler compiler;
    static const CompileResult support = compiler.compile(support_request(arch()));
    if (!support.ok) throw std::runtime_error{support.log};
    return make_cuda_device(0, support.artefact);
}

class DeviceTest : public ::testing::Test {
protected:
    void SetUp() override {
        if (!obstacle().empty()) GTEST_SKIP() << obstacle();
        device = make_device();
    }
    Launch launch(std::string entry, Dim3 grid, Dim3 block, std::vector<Argument> arguments) const {
        Launch made;
        made.entry = std::move(entry);
        made.grid = grid;
        made.block = block;
        made.arguments = std::move(arguments);
        return made;
    }
    template <class T>
    Buffer upload(const std::vector<T>& values, std::uint64_t misalign = 0) {
        const Buffer buffer = device->allocate(values.size() * sizeof(T), misalign);
        device->write(buffer, 0, std::as_bytes(std::span{values}));
        return buffer;
    }
    template <class T>
    std::vector<T> download(Buffer buffer) {
        std::vector<T> values(buffer.bytes / sizeof(T));
        device->read(buffer, 0, std::as_writable_bytes(std::span{values}));
        return values;
    }

    std::unique_ptr<Device> device;
};

ValueArgument whole(std::int64_t value) {
    ValueArgument argument;
    std::memcpy(argument.bytes.data(), &value, sizeof value);
    return argument;
}

TEST_F(DeviceTest, TellsWhatItIs) {
    const DeviceIdentity& identity = device->identity();
    EXPECT_EQ(identity.fp.size(), 64U);
    EXPECT_EQ(identity.fp, present_devices().at(0).fp);
    EXPECT_GT(identity.limits.sm_count, 0);
    EXPECT_GE(identity.limits.max_shared, 48 * 1024);
    EXPECT_EQ(identity.uuid.size(), 32U);
    const double copy = device->copy_bandwidth_gbs();
    EXPECT_GT(copy, 10);
    const auto monitor = GpuMonitor::open(identity.pci_id);
    const GpuState state = monitor ? monitor->state() : GpuState{};
    std::printf("%s, capability %d, %d SMs, %d GB/s on paper, %.0f GB/s copied, L2 %lld MiB, driver %s, fp %s\n",
                identity.name.c_str(), identity.limits.cc, identity.limits.sm_count, identity.bandwidth_gbs, copy,
                static_cast<long long>(identity.limits.l2_bytes >> 20), identity.driver.c_str(), identity.fp.c_str());
    std::printf("SM clock %.0f of %.0f MHz, %.0f of %.0f W, %.0f C, throttle reasons %llx, %zu processes\n",
                state.sm_clock_mhz.value_or(0), state.max_sm_clock_mhz.value_or(0), state.power_w.value_or(0),
                state.power_limit_w.value_or(0), state.temperature_c.value_or(0),
                static_cast<unsigned long long>(state.throttle_reasons.value_or(0)),
                state.processes ? state.processes->size() : 0);
    if (const auto row = limits_of_capability(identity.limits.cc)) {
        EXPECT_EQ(row->max_shared, identity.limits.max_shared);
        EXPECT_EQ(row->shared_per_sm, identity.limits.shared_per_sm);
        EXPECT_EQ(row->reserved_shared, identity.limits.reserved_shared);
        EXPECT_EQ(row->threads_per_sm, identity.limits.threads_per_sm);
        EXPECT_EQ(row->blocks_per_sm_limit, identity.limits.blocks_per_sm_limit);
    }
}

TEST_F(DeviceTest, FillsWithTheSameBitsAsTheHost) {
    constexpr std::uint64_t elements = 100'003;
    for (const DTypeInfo& row : dtypes)
        for (int kind = 0; kind <= static_cast<int>(FillSpec::Kind::zero); ++kind)
            for (const std::uint64_t misalign : {std::uint64_t{0}, std::uint64_t{row.bytes}, std::uint64_t{1}}) {
                const FillSpec spec{.kind = static_cast<FillSpec::Kind>(kind),
                                    .seed = 11,
                                    .stream = 3,
                                    .low = -3,
                                    .high = 90,
                                    .modulus = kind % 2 ? 0U : 1001U};
                const Buffer buffer = device->allocate(elements * row.bytes, misalign);
                device->fill(buffer, row.dtype, elements, spec);
                std::vector<std::byte> want(elements * row.bytes);
                fill_on_host(want, row.dtype, 0, elements, spec);
                EXPECT_EQ(download<std::byte>(buffer), want)
                    << row.name << ", kind " << kind << ", misaligned " << misalign;
                std::int64_t where = 0;
                EXPECT_TRUE(device->guards_intact(buffer, where)) << row.name << " at " << where;
                device->release(buffer);
            }
}

TEST_F(DeviceTest, FindsOneWrongElementOfSixteenMillion) {
    constexpr std::uint64_t elements = 16 << 20;
    std::vector<float> got(elements);
    fill_on_host(std::as_writable_bytes(std::span{got}), DType::f32, 0, elements, {});
    const std::vector<double> want(got.begin(), got.end());
    const std::array<std::int64_t, 2> shape{4096, 4096}, strides{4096, 1};
    const Buffer value = upload(want), output = upload(got);
    EXPECT_EQ(device->compare(output, DType::f32, shape, strides, value, value, {}, 0xff).bad, 0U);
    constexpr std::uint64_t wrong = 12'345'678;
    const float other = std::nextafter(got[wrong], 10.0F);
    device->write(output, wrong * sizeof(float), std::as_bytes(std::span{&other, 1}));
    const Comparison result = device->compare(output, DType::f32, shape, strides, value, value, {}, 0xff);
    EXPECT_EQ(result.bad, 1U);
    EXPECT_EQ(result.first_bad, wrong);
    EXPECT_EQ(result.got, other);
    EXPECT_EQ(result.want, got[wrong]);
}

// Goal: device and host judge alike, to the bit, for every type and layout.
// Method: random outputs near random references, with NaN, infinities and poison among them, contiguous and strided.
TEST_F(DeviceTest, ComparesAsTheHostDoes) {
    std::mt19937 random{5};
    for (const DTypeInfo& row : dtypes)
        for (const bool transposed : {false, true}) {
            const std::array<std::int64_t, 3> shape{3, 41, 37};
            const std::array<std::int64_t, 3> strides =
                transposed ? std::array<std::int64_t, 3>{1, 3 * 38, 3} : std::array<std::int64_t, 3>{41 * 37, 37, 1};
            const std::uint64_t elements = element_count(shape);
            std::vector<std::byte> got(41 * 3 * 38 * row.bytes);
            fill_on_host(got, row.dtype, 0, got.size() / row.bytes,
                         {.kind = FillSpec::Kind::special, .seed = 2, .low = -100, .high = 100});
            std::vector<double> value(elements), magnitude(elements);
            for (std::uint64_t i = 0; i < elements; ++i) {
                const auto at = static_cast<std::size_t>(element_offset(i, shape, strides)) * row.bytes;
                value[i] = element_value(std::span{got}.subspan(at, row.bytes), row.dtype);
                magnitude[i] = std::abs(value[i]) * static_cast<double>(random() % 8);
                switch (random() % 16) {
                    case 0:
                        value[i] *= 1.0 + 0x1p-7;
                        break;
                    case 1:
                        value[i] = std::nan("");
                        break;
                    case 2:
                        value[i] = INFINITY;
                        break;
                    case 3:
                        std::memset(got.data() + at, 0xff, row.bytes);
                        break;
                    case 4:
                        magnitude[i] = std::nan("");
                        break;
                    case 5:
                        value[i] = 1e6;
                        break;
                    default:
                        break;
                }
            }
            const Bound bound{.of_value = 0x1p-9, .of_magnitude = 0x1p-10, .absolute = 0x1p-30};
            const Comparison want = compare_on_host(got, row.dtype, shape, strides, value, magnitude, bound, 0xff);
            const Comparison have =
                device->compare(upload(got), row.dtype, shape, strides, upload(value), upload(magnitude), bound, 0xff);
            SCOPED_TRACE(row.name);
            EXPECT_GT(want.bad, 0U);
            EXPECT_EQ(have.elements, want.elements);
            EXPECT_EQ(have.bad, want.bad);
            EXPECT_EQ(have.still_poison, want.still_poison);
            EXPECT_EQ(have.not_finite, want.not_finite);
            EXPECT_EQ(have.first_bad, want.first_bad);
            EXPECT_EQ(have.largest_ratio, want.largest_ratio);
            EXPECT_TRUE(have.got == want.got || (std::isnan(have.got) && std::isnan(want.got)));
            EXPECT_TRUE(have.want == want.want || (std::isnan(have.want) && std::isnan(want.want)));
            EXPECT_EQ(have.bound, want.bound);
        }
}

TEST_F(DeviceTest, BuffersAreEqualToTheLastByte) {
    std::vector<unsigned char> bytes(1'000'003, 7);
    const Buffer a = upload(bytes), b = upload(bytes), c = upload(bytes, 3);
    EXPECT_TRUE(device->equal(a, b));
    EXPECT_TRUE(device->equal(a, c));
    const unsigned char other = 8;
    device->write(b, bytes.size() - 1, std::as_bytes(std::span{&other, 1}));
    EXPECT_FALSE(device->equal(a, b));
    EXPECT_FALSE(device->equal(a, device->allocate(5)));
}

constexpr auto kernels = R"(
extern "C" __global__ void poke(unsigned char* x, long long at) { x[at] ^= 0x55; }
extern "C" __global__ void increment(float* x, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] += 1.0f;
}
extern "C" __global__ void count(unsigned* counter, unsigned* out) { if (atomicAdd(counter, 1u) == gridDim.x - 1) *out = gridDim.x; }
extern "C" __global__ void spin(long long nanoseconds) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); while (now - start < nanoseconds);
}
extern "C" __global__ void misaligned(float* x) { *reinterpret_cast<float*>(reinterpret_cast<char*>(x) + 2) = 1.0f; }
extern "C" __global__ void wild(float* x) { x[1LL << 40] = 1.0f; }
extern "C" __global__ void shared_user(unsigned* out, int bytes) {
    __shared__ volatile unsigned fixed[4];
    extern __shared__ unsigned dynamic[];
    if (threadIdx.x == 0) { fixed[0] = 3; dynamic[bytes / 4 - 1] = 4; *out = fixed[0] + dynamic[bytes / 4 - 1]; }
}
__constant__ float weights[4];
extern "C" __global__ void weigh(float* y) { y[threadIdx.x] = 2.0f * weights[threadIdx.x]; }
template <class T, int N> __global__ void scaled(T* x) { x[threadIdx.x] *= N; }
)";

TEST_F(DeviceTest, GuardsSeeOneByteOnEitherSide) {
    const Module module = device->load(compiled(kernels));
    for (const std::uint64_t bytes : {std::uint64_t{1000}, std::uint64_t{1001}})
        for (const std::uint64_t misalign : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{8}}) {
            const Buffer buffer = device->allocate(bytes, misalign);
            EXPECT_EQ(buffer.address % 256, misalign);
            std::int64_t where = 99;
            ASSERT_TRUE(device->guards_intact(buffer, where)) << where;
            const auto size = static_cast<std::int64_t>(bytes);
            for (const auto& [at, distance] :
                 {std::pair<std::int64_t, std::int64_t>{size, 0}, {-1, -1}, {size + 4095, 4095}, {-4096, -4096}}) {
                LaunchSequence plan;
                plan.launches.push_back(launch("poke", {}, {}, {BufferArgument{0}, whole(at)}));
                device->run({.sequence = &plan, .module = module, .buffers = {buffer}});
                EXPECT_FALSE(device->guards_intact(buffer, where)) << at;
                EXPECT_EQ(where, distance);
                EXPECT_TRUE(device->guards_intact(buffer, where)) << "mended";
            }
        }
}

TEST_F(DeviceTest, RunsAKernelOfATemplateByItsNameExpression) {
    const Module module = device->load(compiled(kernels, {"scaled<float, 3>"}));
    const Buffer x = upload(std::vector<float>{1, 2, 3, 4});
    LaunchSequence plan;
    plan.launches.push_back(launch("scaled<float, 3>", {}, {4}, {BufferArgument{0}}));
    plan.launches.back().repeat = 2;
    device->run({.sequence = &plan, .module = module, .buffers = {x}});
    EXPECT_EQ(download<float>(x), (std::vector<float>{9, 18, 27, 36}));
}

TEST_F(DeviceTest, ZeroesScratchAndFillsSymbolsAsPartOfTheSequence) {
    const Module module = device->load(compiled(kernels));
    const Buffer out = upload(std::vector<unsigned>{0}), counter = upload(std::vector<unsigned>{77});
    const Buffer table = upload(std::vector<float>{1, 2, 3, 4}), y = upload(std::vector<float>(4));
    LaunchSequence plan;
    plan.scratch.push_back({.name = "counter", .bytes = 4, .zeroed = true});
    plan.symbols.push_back({.symbol = "weights", .source = {}, .buffer = 1, .each_launch = true});
    plan.launches.push_back(launch("count", {50}, {1}, {BufferArgument{3}, BufferArgument{0}}));
    plan.launches.push_back(launch("weigh", {}, {4}, {BufferArgument{2}}));
    const BoundSequence bound{.sequence = &plan, .module = module, .buffers = {out, table, y, counter}};
    for (int turn = 0; turn < 2; ++turn) {
        device->set(out, 0);
        device->run(bound);
        EXPECT_EQ(download<unsigned>(out)[0], 50U);
    }
    EXPECT_EQ(download<float>(y), (std::vector<float>{2, 4, 6, 8}));
    plan.symbols[0].each_launch = false;
    const float ten = 10;
    device->write(table, 0, std::as_bytes(std::span{&ten, 1}));
    device->run(bound);
    EXPECT_EQ(download<float>(y)[0], 20);
}

TEST_F(DeviceTest, TimesASpinOfKnownLength) {
    const Module module = device->load(compiled(kernels));
    for (const bool graph : {true, false})
        for (const std::int64_t microseconds : {20, 200}) {
            LaunchSequence plan;
            plan.launches.push_back(launch("spin", {}, {}, {whole(1000 * microseconds)}));
            const BoundSequence one{.sequence = &plan, .module = module, .buffers = {}};
            const std::array sets{one, one};
            const Samples samples = device->time(sets, {}, {.samples = 7, .graph = graph});
            EXPECT_EQ(samples.graph, graph);
            ASSERT_EQ(samples.time_us.size(), 7U);
            for (const double time : samples.time_us) {
                EXPECT_GT(time, 0.99 * static_cast<double>(microseconds));
                EXPECT_LT(time, 1.1 * static_cast<double>(microseconds) + 6);
            }
            std::printf("spin of %lld us, %s: %.2f to %.2f us, clock %.0f MHz\n", static_cast<long long>(microseconds),
                        graph ? "graph" : "events", *std::min_element(samples.time_us.begin(), samples.time_us.end()),
                        *std::max_element(samples.time_us.begin(), samples.time_us.end()), samples.clock_mhz);
        }
}

TEST_F(DeviceTest, DropsTheHopelessEarly) {
    const Module module = device->load(compiled(kernels));
    LaunchSequence plan;
    plan.launches.push_back(launch("spin", {}, {}, {whole(300'000)}));
    const BoundSequence one{.sequence = &plan, .module = module, .buffers = {}};
    for (const double limit : {50.0, 280.0}) {
        const Samples samples = device->time(std::span{&one, 1}, {}, {.samples = 9, .drop_above_us = limit});
        EXPECT_TRUE(samples.dropped);
        EXPECT_EQ(samples.time_us.size(), 1U);
        EXPECT_GT(samples.time_us[0], limit);
    }
    EXPECT_FALSE(device->time(std::span{&one, 1}, {}, {.samples = 3, .drop_above_us = 400}).dropped);
}

// Goal: tensors that a kernel updates in place are as they were before every replay.
// Method: a kernel adds 1; after timing, each set has been through exactly one replay since its last restoring.
TEST_F(DeviceTest, RestoresInPlaceTensorsBetweenReplays) {
    const Module module = device->load(compiled(kernels));
    const std::vector<float> start(1000, 5);
    const Buffer pristine = upload(start), first = upload(start), second = upload(start);
    LaunchSequence plan;
    plan.launches.push_back(launch("increment", {4}, {256}, {BufferArgument{0}, whole(1000)}));
    const std::array<BoundSequence, 2> sets{BoundSequence{.sequence = &plan, .module = module, .buffers = {first}},
                                            BoundSequence{.sequence = &plan, .module = module, .buffers = {second}}};
    const std::array<Device::Restore, 2> restore{Device::Restore{0, first, pristine},
                                                 Device::Restore{1, second, pristine}};
    for (const bool graph : {true, false}) {
        device->time(sets, restore, {.samples = 4, .graph = graph});
        EXPECT_EQ(download<float>(first), std::vector<float>(1000, 6));
        EXPECT_EQ(download<float>(second), std::vector<float>(1000, 6));
    }
}

// 48 KiB is where opting in starts, static memory included; what exceeds the device is refused with the numbers.
TEST_F(DeviceTest, OptsInToSharedMemoryUpToTheLimit) {
    const Module module = device->load(compiled(kernels));
    const Buffer out = device->allocate(4);
    constexpr int fixed = 16;
    const int limit = device->identity().limits.max_shared;
    for (const int bytes :
         {1024, 48 * 1024 - fixed, 48 * 1024, 48 * 1024 + 4, 64 * 1024 - fixed, limit - fixed - limit % 4}) {
        device->set(out, 0);
        LaunchSequence plan;
        plan.launches.push_back(launch("shared_user", {}, {32}, {BufferArgument{0}, whole(bytes)}));
        plan.launches.back().shared_bytes = static_cast<std::uint32_t>(bytes);
        device->run({.sequence = &plan, .module = module, .buffers = {out}});
        EXPECT_EQ(download<unsigned>(out)[0], 7U) << bytes;
    }
    LaunchSequence plan;
    plan.launches.push_back(launch("shared_user", {}, {32}, {BufferArgument{0}, whole(1024)}));
    plan.launches.back().shared_bytes = static_cast<std::uint32_t>(limit - fixed + 1);
    try {
        device->run({.sequence = &plan, .module = module, .buffers = {out}});
        FAIL() << "ran";
    } catch (const DeviceFailure& failure) {
        EXPECT_EQ(failure.fault().kind, DeviceFault::Kind::does_not_fit);
        EXPECT_FALSE(failure.fault().sticky);
        EXPECT_NE(std::string{failure.what()}.find(std::to_string(limit)), std::string::npos) << failure.what();
    }
}

TEST_F(DeviceTest, RefusesABlockOfTooManyThreads) {
    const Module module = device->load(compiled(kernels));
    LaunchSequence plan;
    plan.launches.push_back(launch("increment", {}, {1025}, {BufferArgument{0}, whole(0)}));
    try {
        device->run({.sequence = &plan, .module = module, .buffers = {device->allocate(4)}});
        FAIL() << "ran";
    } catch (const DeviceFailure& failure) {
        EXPECT_EQ(failure.fault().kind, DeviceFault::Kind::does_not_fit);
    }
}

TEST_F(DeviceTest, KernelThatIsMissingIsNamed) {
    const Module module = device->load(compiled(kernels));
    LaunchSequence plan;
    plan.launches.push_back(launch("no_such_kernel", {}, {}, {}));
    try {
        device->run({.sequence = &plan, .module = module, .buffers = {}});
        FAIL() << "ran";
    } catch (const DeviceFailure& failure) {
        EXPECT_NE(std::string{failure.what()}.find("no_such_kernel"), std::string::npos);
        EXPECT_FALSE(failure.fault().sticky);
    }
}

TEST_F(DeviceTest, PtxIsTakenWhereTheCubinIsNot) {
    Artefact artefact = compiled(kernels);
    artefact.cubin.assign(artefact.cubin.size(), std::byte{1});
    const Module module = device->load(artefact);
    const Buffer x = upload(std::vector<float>{1});
    LaunchSequence plan;
    plan.launches.push_back(launch("increment", {}, {1}, {BufferArgument{0}, whole(1)}));
    device->run({.sequence = &plan, .module = module, .buffers = {x}});
    EXPECT_EQ(download<float>(x)[0], 2);
    artefact.ptx = "nonsense";
    EXPECT_THROW(device->load(artefact), DeviceFailure);
}

TEST_F(DeviceTest, MemoryThatIsNotThereLeavesTheDeviceUsable) {
    try {
        device->allocate(std::uint64_t{1} << 45);
        FAIL() << "allocated";
    } catch (const DeviceFailure& failure) {
        EXPECT_EQ(failure.fault().kind, DeviceFault::Kind::out_of_memory);
        EXPECT_FALSE(failure.fault().sticky);
    }
    EXPECT_EQ(download<int>(upload(std::vector<int>{4}))[0], 4);
}

/// Exits with 0 when the kernel's fault was told as a sticky one, and the device refuses what follows.
[[noreturn]] void run_faulty(const char* entry) {
    const auto device = make_device();
    const Buffer x = device->allocate(64);
    const Module module = device->load(compiled(kernels));
    LaunchSequence plan;
    Launch only;
    only.entry = entry;
    only.arguments = {BufferArgument{0}};
    plan.launches.push_back(only);
    try {
        device->run({.sequence = &plan, .module = module, .buffers = {x}});
    } catch (const DeviceFailure& failure) {
        const DeviceFault& fault = failure.fault();
        bool refused = false;
        try {
            device->set(x, 0);
        } catch (const DeviceFailure&) {
            refused = true;
        }
        const bool named = std::string{failure.what()}.find(entry) != std::string::npos;
        std::_Exit(fault.sticky && fault.kind == DeviceFault::Kind::invalid_access && refused && named ? 0 : 1);
    }
    std::_Exit(2);
}

TEST_F(DeviceTest, FaultyAccessIsStickyAndNamesTheKernel) {
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(run_faulty("misaligned"), ::testing::ExitedWithCode(0), "");
    EXPECT_EXIT(run_faulty("wild"), ::testing::ExitedWithCode(0), "");
}

TEST_F(DeviceTest, OccupancyAndResourcesAreTheDriversOwn) {
    const Artefact artefact = compiled(std::string{kernels} + R"(
extern "C" __global__ void __launch_bounds__(512) hungry(float* x) {
    float v[64];
    for (int i = 0; i < 64; ++i) v[i] = x[threadIdx.x + 512 * i];
    for (int i = 1; i < 64; ++i) v[0] += v[i] * v[i - 1] * v[63 - i];
    for (int i = 0; i < 64; ++i) x[threadIdx.x + 512 * i] = v[i] * v[0];
})");
    const DriverCalls& calls = driver();
    CUmodule raw = nullptr;
    check(calls.cuModuleLoadData(&raw, artefact.cubin.data()), "loading");
    const OwnedModule module{raw};
    for (const KernelInfo& kernel : artefact.kernels) {
        CUfunction function = nullptr;
        check(calls.cuModuleGetFunction(&function, raw, kernel.symbol.c_str()), "looking for '{}'", kernel.symbol);
        int registers = 0, fixed = 0;
        check(calls.cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function), "asking");
        check(calls.cuFuncGetAttribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function), "asking");
        EXPECT_EQ(kernel.registers, registers) << kernel.name;
        EXPECT_EQ(kernel.static_shared_bytes, fixed) << kernel.name;
        check(calls.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                       device->identity().limits.max_shared - fixed),
              "opting in");
        for (int threads = 32; threads <= (kernel.max_threads ? kernel.max_threads : 1024); threads += 96)
            for (const int dynamic : {0, 1000, 20'000, 100'000}) {
                if (dynamic + fixed > device->identity().limits.max_shared) continue;
                int want = 0;
                check(calls.cuOccupancyMaxActiveBlocksPerMultiprocessor(&want, function, threads,
                                                                        static_cast<std::size_t>(dynamic)),
                      "asking");
                const Occupancy have = occupancy(device->identity().limits, {.threads = threads,
                                                                             .registers = kernel.registers,
                                                                             .static_shared_bytes = fixed,
                                                                             .dynamic_shared_bytes = dynamic,
                                                                             .barriers = std::max(kernel.barriers, 1)});
                EXPECT_EQ(have.blocks, want) << kernel.name << ": " << threads << " threads, " << dynamic << " bytes";
            }
    }
}

long resident_kib() {
    std::ifstream status{"/proc/self/statm"};
    long total = 0, resident = 0;
    status >> total >> resident;
    return resident * 4;
}

TEST_F(DeviceTest, TenThousandModulesLeaveNothingBehind) {
    const Artefact artefact = compiled(kernels);
    const Buffer x = upload(std::vector<float>{0});
    LaunchSequence plan;
    plan.launches.push_back(launch("increment", {}, {1}, {BufferArgument{0}, whole(1)}));
    const auto round = [&] {
        const Module module = device->load(artefact);
        device->run({.sequence = &plan, .module = module, .buffers = {x}});
        device->unload(module);
    };
    for (int i = 0; i < 200; ++i) round();
    const std::int64_t free_before = device->free_bytes();
    const long resident_before = resident_kib();
    for (int i = 0; i < 10'000; ++i) round();
    EXPECT_LT(free_before - device->free_bytes(), 4 << 20);
    EXPECT_LT(resident_kib() - resident_before, 16 * 1024);
    EXPECT_EQ(download<float>(x)[0], 10'200);
}

TEST_F(DeviceTest, LaunchesClustersAndCooperativeGrids) {
    const int cc = device->identity().limits.cc;
    const Artefact artefact = compiled(R"(
extern "C" __global__ void together(unsigned* counter, unsigned* out) {
    atomicAdd(counter, 1u);
    while (atomicAdd(counter, 0u) < gridDim.x) {}
    if (blockIdx.x == 0) *out = gridDim.x;
}
#if __CUDA_ARCH__ >= 900
extern "C" __global__ void ranked(unsigned* out) {
    unsigned rank, size;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    out[blockIdx.x] = 100 * size + rank;
}
#endif
)");
    const Module module = device->load(artefact);
    const Buffer out = device->allocate(64), counter = device->allocate(4);
    LaunchSequence plan;
    plan.scratch.push_back({.name = "counter", .bytes = 4, .zeroed = true});
    plan.launches.push_back(launch("together", {static_cast<std::uint32_t>(device->identity().limits.sm_count)}, {32},
                                   {BufferArgument{1}, BufferArgument{0}}));
    plan.launches[0].cooperative = true;
    const BoundSequence bound{.sequence = &plan, .module = module, .buffers = {out, counter}};
    device->run(bound);
    EXPECT_EQ(download<int>(out)[0], device->identity().limits.sm_count);
    std::printf("a cooperative grid is captured: %d\n", device->time(std::span{&bound, 1}, {}, {.samples = 2}).graph);
    plan.launches[0].grid.x *= 100;
    EXPECT_THROW(device->run(bound), DeviceFailure);

    if (cc < 90) return;
    for (const std::uint32_t cluster : {2U, 8U, 16U}) {
        plan = {};
        plan.launches.push_back(launch("ranked", {16}, {32}, {BufferArgument{0}}));
        plan.launches[0].cluster = {cluster};
        device->run({.sequence = &plan, .module = module, .buffers = {out}});
        EXPECT_EQ(download<unsigned>(out)[15], 100 * cluster + 15 % cluster);
    }
}

// Goal: a tensor map reads the box it was made for. Method: the bulk copy engine brings a 16 x 32 box, and beyond the
// tensor's edge there are zeros.
TEST_F(DeviceTest, MakesTensorMaps) {
    if (device->identity().limits.cc < 90) GTEST_SKIP() << "no tensor maps below capability 9.0";
    const Module module = device->load(compiled(R"(
struct alignas(64) Map { char bytes[128]; };
extern "C" __global__ void fetch(const __grid_constant__ Map map, float* out, int column, int row) {
    __shared__ alignas(128) float tile[16 * 32];
    __shared__ alignas(8) unsigned long long barrier;
    const unsigned at = (unsigned)__cvta_generic_to_shared(&barrier), to = (unsigned)__cvta_generic_to_shared(tile);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at));
        asm volatile("fence.proxy.async.shared::cta;");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(16 * 32 * 4));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                     ::"r"(to), "l"(&map), "r"(column), "r"(row), "r"(at) : "memory");
    }
    __syncthreads();
    unsigned done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(at) : "memory");
    for (int i = threadIdx.x; i < 16 * 32; i += blockDim.x) out[i] = tile[i];
}
)"));
    constexpr int columns = 100, rows = 40;
    std::vector<float> values(columns * rows);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    const Buffer x = upload(values), out = device->allocate(16 * 32 * sizeof(float));
    LaunchSequence plan;
    plan.launches.push_back(launch("fetch", {}, {128},
                                   {TensorMapArgument{.buffer = 0,
                                                      .dtype = DType::f32,
                                                      .extents = {columns, rows},
                                                      .strides_bytes = {columns * sizeof(float)},
                                                      .box = {32, 16}},
                                    BufferArgument{1}, whole(80), whole(30)}));
    device->run({.sequence = &plan, .module = module, .buffers = {x, out}});
    const std::vector<float> tile = download<float>(out);
    for (int row = 0; row < 16; ++row)
        for (int column = 0; column < 32; ++column) {
            const bool inside = 80 + column < columns && 30 + row < rows;
            EXPECT_EQ(tile[static_cast<std::size_t>(row * 32 + column)],
                      inside ? static_cast<float>((30 + row) * columns + 80 + column) : 0.0F);
        }
}

TEST_F(DeviceTest, EmptyTensorsAreNoTrouble) {
    const Buffer none = device->allocate(0);
    device->set(none, 1);
    device->fill(none, DType::f32, 0, {});
    device->copy(none, none);
    EXPECT_TRUE(device->equal(none, none));
    const std::array<std::int64_t, 1> shape{0}, strides{1};
    EXPECT_EQ(device->compare(none, DType::f32, shape, strides, none, none, {}, 0).bad, 0U);
    std::int64_t where = 0;
    EXPECT_TRUE(device->guards_intact(none, where));
}

}  // namespace
}  // namespace autotune

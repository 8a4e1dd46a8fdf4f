// Goal: the emulated device and the GPU agree: on every op, and on what the emulator's own tests expect of
// instructions, tensor cores and Hopper's units. Method: each op's check problems that are small, in every type, with
// configs drawn by a written seed; one compile gives the GPU its code and the emulator its PTX; both must hold the
// check against the CPU reference, and differ from each other by no more than `agreed_bound`. The emulator calls itself
// what the GPU is, so that both run the same launches. AUTOTUNE_AGREEMENT_DEVICE=emulated:PART puts an emulated device
// in the GPU's place and tries less: a test of this test.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <random>
#include <semaphore>

#include "device/compare.h"
#include "device/cuda_device.h"
#include "device/driver.h"
#include "device/emulator/parts.h"
#include "device/identity.h"
#include "device/support.h"
#include "tests/device/emulator/kernel_cases.h"
#include "tuner/chains/chain_op.h"
#include "tuner/model/builtin_ops.h"
#include "tuner/model/space.h"
#include "tuner/model/suggest.h"
#include "tuner/references/table.h"
#include "tuner/worker/candidate_task.h"
#include "tuner/worker/check.h"
#include "tuner/worker/compiled_sources.h"
#include "tuner/worker/evaluate.h"

namespace autotune {
namespace {

constexpr std::uint64_t seed = 20260731;  // of the inputs and of the configs that are drawn

/// What AUTOTUNE_AGREEMENT_DEVICE says; empty: nothing.
std::string asked_device() {
    const char* const text = std::getenv("AUTOTUNE_AGREEMENT_DEVICE");
    return text ? text : "";
}

/// What stands in the GPU's place; nullopt: nothing does.
const std::optional<DeviceIdentity>& stand_in() {
    static const std::optional<DeviceIdentity> identity = emulated_device(asked_device());
    return identity;
}

/// A part that there is none of is told once, and no test runs: on the GPU they would not be what was asked for.
class StandInIsKnown : public testing::Environment {
    void SetUp() override {
        if (asked_device().empty() || stand_in()) return;
        std::vector<std::string> parts;
        for (const emulator::Part& part : emulator::parts) parts.emplace_back(part.key);
        FAIL() << fmt::format(
            "AUTOTUNE_AGREEMENT_DEVICE is emulated:PART, a PART being one of {}, or a capability of theirs, not '{}'",
            enumerated(parts), asked_device());
    }
};

[[maybe_unused]] const testing::Environment* const stand_in_is_known =
    testing::AddGlobalTestEnvironment(new StandInIsKnown);

/// Why nothing can be compared here; empty: it can.
const std::string& obstacle() {
    static const std::string why = [] {
        std::string reason;
        if (!stand_in() && !driver_if_present(&reason)) return reason;
        if (!stand_in() && present_devices().empty()) return std::string{"there is no GPU here"};
        return no_compiler();
    }();
    return why;
}

/// The GPU, opened at first use and closed when all tests have ended: the driver ends before statics do.
std::shared_ptr<Device>& opened() {
    static std::shared_ptr<Device> device;
    return device;
}

const std::shared_ptr<Device>& gpu() {
    if (opened()) return opened();
    if (stand_in()) return opened() = std::make_shared<EmulatedDevice>(*stand_in());
    Compiler compiler;
    const CompileResult support = compiler.compile(support_request(arch_name(identify(0).limits.cc)));
    if (!support.ok) throw std::runtime_error{support.log};
    return opened() = make_cuda_device(0, support.artefact);
}

// ---- Ops.

struct Row {
    std::string op, dtype;
    int problems = 0, configs = 0;
    double largest = 0, gpu_error = 0, emulator_error = 0;  ///< shares of the bound
    std::uint64_t elements = 0, identical = 0;
};

/// The rows of all tests, printed when the last has ended.
class Table : public testing::Environment {
public:
    static std::vector<Row>& rows() {
        static std::vector<Row> all;
        return all;
    }
    void TearDown() override {
        if (!rows().empty()) print();
        opened().reset();
    }

private:
    static void print() {
        std::printf(
            "\n%s and its emulation: the largest difference between the two, and of each from the reference,\n"
            "in shares of the op's bound (between the two the output's rounding counts twice)\n",
            gpu()->identity().name.c_str());
        std::printf("%-10s %-5s %8s %7s %10s %10s %10s %22s\n", "op", "dtype", "problems", "configs", "difference",
                    "GPU", "emulator", "identical to the bit");
        for (const Row& row : rows())
            std::printf("%-10s %-5s %8d %7d %10.4f %10.4f %10.4f %10llu of %8llu\n", row.op.c_str(), row.dtype.c_str(),
                        row.problems, row.configs, row.largest, row.gpu_error, row.emulator_error,
                        static_cast<unsigned long long>(row.identical), static_cast<unsigned long long>(row.elements));
    }
};

[[maybe_unused]] const testing::Environment* const table = testing::AddGlobalTestEnvironment(new Table);

CompiledSources& sources() {
    static CompiledSources all{{.worker = find_worker({}), .workers = 0, .limit_s = 120}};
    return all;
}

/// What a device made of a config: the check's verdict, and the bytes of each output.
struct Result {
    CheckResult checked;
    std::vector<std::vector<std::byte>> inputs, outputs;
};

/// A problem with its CPU reference, for any number of devices.
struct AgreedProblem {
    Instance instance;
    std::vector<TensorTask> tensors;
    Evaluation evaluation;

    std::vector<MappedMemory> values() const {
        std::vector<MappedMemory> all;
        for (const Fd& fd : evaluation.values) all.emplace_back(fd, std::uint64_t{1} << 32);
        return all;
    }
};

AgreedProblem agreed_problem(Instance instance) {
    std::vector<TensorTask> tensors = tensor_tasks(instance, seed);
    const std::string& cpp = instance.op().reference.cpp;
    Evaluation evaluation = evaluate(
        {.op = cpp.substr(0, cpp.rfind('.')), .tensors = tensors, .fields = field_tasks(instance), .seed = seed},
        [](std::string_view name) { return builtin_reference(name); });
    return {std::move(instance), std::move(tensors), std::move(evaluation)};
}

Result result_on(Device& device, const AgreedProblem& problem, const Config& config, const Binaries& binaries) {
    ScratchPool pool{device};
    ProblemMemory memory{device, {.slot = 0, .tensors = problem.tensors, .rotate = false}, {}};
    const std::vector<MappedMemory> values = problem.values();
    establish_reference(device, pool, memory, {.slot = 0}, values, {});
    const TrialTask task{.candidate = candidate_task(problem.instance, config, binaries, 0, device.identity().emulated),
                         .twice = false,
                         .measure = false};
    Candidate candidate{device, pool, memory, task.candidate, 1};
    Result result;
    result.checked = check(device, memory, candidate, task, {});
    const auto bytes_of = [&](std::size_t tensor) {
        std::vector<std::byte> bytes(problem.tensors[tensor].bytes);
        device.read(memory.set(0)[tensor], 0, bytes);
        return bytes;
    };
    for (const std::size_t i : memory.inputs())
        if (problem.tensors[i].role == Role::in) result.inputs.push_back(bytes_of(i));
    for (const std::size_t i : memory.outputs()) result.outputs.push_back(bytes_of(i));
    return result;
}

/// By how much the two may differ, with the emulator's result as the value and the CPU reference's magnitude: the op's
/// own bound, but that each of the two rounds its output, and sums that differ in their last bits may be rounded apart.
Bound agreed_bound(Bound bound) {
    bound.of_value *= 2;
    return bound;
}

/// Compares what the two made of a config, and adds it to the row.
void compare_results(const AgreedProblem& problem, const Result& have, const Result& emulated, Row& row) {
    ASSERT_FALSE(have.checked.failure) << "the GPU: " << have.checked.failure->reason;
    ASSERT_FALSE(emulated.checked.failure) << "the emulator: " << emulated.checked.failure->reason;
    EXPECT_EQ(have.inputs, emulated.inputs);
    row.gpu_error = std::max(row.gpu_error, have.checked.max_error);
    row.emulator_error = std::max(row.emulator_error, emulated.checked.max_error);
    const std::vector<MappedMemory> values = problem.values();
    std::size_t output = 0;
    for (const TensorTask& tensor : problem.tensors) {
        if (!is_written(tensor)) continue;
        const std::span<const std::byte> ours = emulated.outputs[output], theirs = have.outputs[output];
        const std::size_t size = size_of(tensor.dtype);
        std::vector<double> value(tensor.elements), magnitude(tensor.elements);
        const std::span<const std::byte> given = values.at(2 * output + 1).bytes();
        ASSERT_EQ(given.size(), magnitude.size() * sizeof(double));
        std::memcpy(magnitude.data(), given.data(), given.size());
        for (std::uint64_t i = 0; i < tensor.elements; ++i) {
            const auto at = static_cast<std::size_t>(element_offset(i, tensor.shape, tensor.strides)) * size;
            value[i] = element_value(ours.subspan(at, size), tensor.dtype);
            row.identical += std::memcmp(&ours[at], &theirs[at], size) == 0;
        }
        const Comparison compared = compare_on_host(theirs, tensor.dtype, tensor.shape, tensor.strides, value,
                                                    magnitude, agreed_bound(tensor.bound), first_poison);
        EXPECT_EQ(compared.bad, 0u) << element_name(tensor, compared.first_bad) << " is " << compared.got
                                    << " on the GPU and " << compared.want << " on the emulator, bound "
                                    << compared.bound;
        row.largest = std::max(row.largest, compared.largest_ratio);
        row.elements += tensor.elements;
        ++output;
    }
}

/// The op's check problems in one type that an interpreter is through with in a fraction of a second.
std::vector<Instance> small_instances(const Op& op, const std::string& dtype, const DeviceLimits& limits) {
    constexpr double most_flops = 4e7, most_elements = 6e5;
    std::vector<Instance> all;
    for (std::vector<std::pair<std::string, Value>> fields : op.check_problems) {
        if (op.field("dtype")) fields.emplace_back("dtype", dtype);
        Instance instance = Instance::make(op, fields, limits);
        double elements = 0;
        for (const BoundTensor& tensor : instance.tensors())
            if (tensor.present) elements += static_cast<double>(tensor.elements);
        if (instance.flops() <= most_flops && elements <= most_elements) all.push_back(std::move(instance));
    }
    return all;
}

/// The default, and of each variant that may run as many as are asked for.
std::vector<Config> drawn_configs(const Instance& instance, int of_each, std::mt19937_64& random) {
    const Space space = Space::make(instance);
    std::vector<Config> all{instance.default_config()};
    for (const Space::VariantSpace& variant : space.variants())
        for (int i = 0; i < of_each && variant.count > 0; ++i) {
            Config config = space.config(variant.first + random() % variant.count);
            if (std::ranges::find(all, config) == all.end()) all.push_back(std::move(config));
        }
    return all;
}

struct OpType {
    const Op* op;
    std::string dtype;
};

void PrintTo(const OpType& one, std::ostream* out) { *out << one.op->name << " " << one.dtype; }

/// Chains, of whose variants each is among the configs: flat, rows and ragged.
const std::vector<Op>& chains() {
    static const std::vector<Op> all = [] {
        std::vector<Op> made;
        for (const char* const text :
             {"chain_of_one = gelu_tanh(x)", "chain_of_three = dropout(relu(x + bias), p) * scale"})
            made.push_back(chain_op(text));
        return made;
    }();
    return all;
}

std::vector<OpType> op_types() {
    std::vector<OpType> all;
    const auto add = [&](const Op& op) {
        const Field* const dtype = op.field("dtype");
        if (!dtype) all.push_back({&op, "any"});
        if (dtype)
            for (const Value& choice : dtype->choices) all.push_back({&op, to_text(choice)});
    };
    std::ranges::for_each(builtin_ops(), add);
    std::ranges::for_each(chains(), add);
    return all;
}

class Agreement : public testing::TestWithParam<OpType> {};

TEST_P(Agreement, OfTheGpuAndTheEmulatorIsWithinTheBound) {
    if (!obstacle().empty()) GTEST_SKIP() << obstacle();
    const auto& [op, dtype] = GetParam();
    const DeviceIdentity identity = gpu()->identity();
    std::vector<Instance> instances = small_instances(*op, dtype, identity.limits);
    if (stand_in() && instances.size() > 2) instances.resize(2, instances.front());
    // Few problems get more configs of each variant.
    const int of_each = stand_in() || instances.size() > 4 ? 1 : 2;
    struct Pair {
        std::shared_ptr<const AgreedProblem> problem;
        Config config;
        std::shared_ptr<const Binaries> binaries;
        std::future<Result> emulated;
    };
    std::counting_semaphore<> free_cores{static_cast<std::ptrdiff_t>(usable_threads())};
    std::vector<Pair> pairs;  // behind it: the futures wait for their threads
    std::mt19937_64 random{seed};
    const std::string arch = arch_name(identity.limits.cc);
    for (const Instance& instance : instances) {
        const std::vector<Config> configs = drawn_configs(instance, of_each, random);
        for (const Config& config : configs) sources().expect(instance.sources(config), arch);
        const auto problem = std::make_shared<const AgreedProblem>(agreed_problem(instance));
        for (const Config& config : configs) pairs.push_back({problem, config, nullptr, {}});
    }
    Row row{.op = op->name, .dtype = dtype, .problems = static_cast<int>(instances.size())};
    // The emulator runs on all cores while the rest is compiled; the GPU has one thread, as everywhere.
    for (Pair& pair : pairs) {
        SCOPED_TRACE(pair.problem->instance.problem().text() + ": " + pair.config.text());
        const BinariesResult compiled = sources().get(pair.problem->instance.sources(pair.config), arch);
        throw_obstacle(compiled.obstacle);
        EXPECT_TRUE(compiled.binaries) << compiled.failure.reason << "\n" << compiled.failure.log;
        if (!compiled.binaries) continue;
        const std::optional<Outcome> refused = gate(*op->variant(pair.config.variant), *compiled.binaries,
                                                    pair.problem->instance.launches(pair.config, 1), identity.limits);
        if (refused && refused->ending == Ending::does_not_fit) continue;
        pair.binaries = compiled.binaries;
        pair.emulated = std::async(std::launch::async, [&free_cores, &pair, &identity] {
            free_cores.acquire();
            struct Release {
                std::counting_semaphore<>& of;
                ~Release() { of.release(); }
            } const release{free_cores};
            EmulatedDevice device{[&] {
                DeviceIdentity same = identity;
                same.emulated = true;
                return same;
            }()};
            return result_on(device, *pair.problem, pair.config, *pair.binaries);
        });
    }
    for (Pair& pair : pairs) {
        if (!pair.emulated.valid()) continue;
        SCOPED_TRACE(pair.problem->instance.problem().text() + ": " + pair.config.text());
        try {
            const Result have = result_on(*gpu(), *pair.problem, pair.config, *pair.binaries);
            compare_results(*pair.problem, have, pair.emulated.get(), row);
            ++row.configs;
        } catch (const DeviceFailure& failure) {
            ADD_FAILURE() << failure.what();
            if (failure.fault().sticky) break;
        }
    }
    EXPECT_GE(row.configs, 3);
    Table::rows().push_back(row);
}

INSTANTIATE_TEST_SUITE_P(Ops, Agreement, testing::ValuesIn(op_types()), [](const testing::TestParamInfo<OpType>& one) {
    std::string name = one.param.op->name + "_" + one.param.dtype;
    for (char& c : name)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    return name;
});

// ---- What the emulator's own tests expect.

Ground gpu_ground() {
    return {[](const Artefact& artefact) { return KernelOn<Device>{gpu(), artefact}; }, true};
}

/// Why the cases cannot run here, or empty: they are compiled for sm_90a, which no other capability runs.
std::string no_hopper() {
    if (!obstacle().empty()) return obstacle();
    const int cc = gpu()->identity().limits.cc;
    return cc == 90 ? "" : fmt::format("these kernels are for capability 9.0, and this is {}.{}", cc / 10, cc % 10);
}

void expect_case_holds(const KernelCase& one) {
    SCOPED_TRACE(one.name);
    try {
        one.run(gpu_ground());
    } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
    }
}

class KernelsOnTheGpu : public testing::TestWithParam<KernelCase> {};

TEST_P(KernelsOnTheGpu, DoWhatIsExpectedOfTheEmulator) {
    if (const std::string why = no_hopper(); !why.empty()) GTEST_SKIP() << why;
    expect_case_holds(GetParam());
}

const auto case_name = [](const testing::TestParamInfo<KernelCase>& one) { return one.param.name; };
INSTANTIATE_TEST_SUITE_P(Hopper, KernelsOnTheGpu, testing::ValuesIn(hopper_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Matrices, KernelsOnTheGpu, testing::ValuesIn(matrix_cases()), case_name);

TEST(InstructionsOnTheGpu, GiveWhatIsExpectedOfTheEmulator) {
    if (const std::string why = no_hopper(); !why.empty()) GTEST_SKIP() << why;
    for (const KernelCase& one : opcode_cases()) expect_case_holds(one);
}

}  // namespace
}  // namespace autotune

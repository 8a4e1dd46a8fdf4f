// How fast the emulated device interprets: our templates at the sizes that its design names, on one core, without
// checks, with all of them, and with checks and counters: the fastest of many rounds, in CPU time. Needs NVRTC, no GPU.
//
//   emulator_bench [PART] [OP] [SECONDS] [MODE]      sm_86, all ops, 3 seconds for each problem and all modes by
//   default
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "autotune/error.h"
#include "device/compiler.h"
#include "device/emulator/emulated_device.h"
#include "tuner/model/builtin_ops.h"
#include "tuner/model/compile_request.h"
#include "tuner/model/instance.h"

namespace autotune {
namespace {

using Fields = std::vector<std::pair<std::string, Value>>;

/// CPU time of this process, which a busy machine does not stretch much.
double now_ms() { return static_cast<double>(std::clock()) * 1e3 / CLOCKS_PER_SEC; }

/// One problem at one config, bound to buffers of an emulated device.
class Bound {
public:
    Bound(EmulatedDevice& device, const Instance& instance, const Config& config) : device_{device} {
        static Compiler compiler;
        sequence_ = instance.launches(config, 1);
        bound_.sequence = &sequence_;
        for (const SourceSpec& source : instance.sources(config)) {
            CompileResult result =
                compiler.compile(compile_request(source, fmt::format("sm_{}", instance.limits().cc)));
            if (!result.ok) throw Error{Error::Kind::compile, result.log};
            const double start = now_ms();
            const Module module = device_.load(result.artefact);
            load_ms += now_ms() - start;
            bound_.module = module;
            bound_.others.emplace_back(source.source, module);
        }
        for (const BoundTensor& tensor : instance.tensors()) {
            if (!tensor.present) {
                bound_.buffers.push_back({});
                continue;
            }
            const Buffer buffer = device_.allocate(tensor.bytes);
            device_.fill(buffer, tensor.dtype, tensor.bytes / size_of(tensor.dtype), {});
            bound_.buffers.push_back(buffer);
        }
        for (const ScratchBuffer& scratch : sequence_.scratch)
            bound_.buffers.push_back(device_.allocate(scratch.bytes));
    }

    /// One run, in milliseconds.
    double run_ms() {
        const double start = now_ms();
        device_.run(bound_);
        return now_ms() - start;
    }

    double load_ms = 0;

private:
    EmulatedDevice& device_;
    LaunchSequence sequence_;
    BoundSequence bound_;
};

struct Request {
    std::string part = "sm_86", op, mode;
    double seconds = 3;
};

/// What is looked for and counted in a run, and the fastest run so far.
struct Mode {
    const char* name;
    emulator::Checks checks;
    bool counters = false;
    double best_ms = 1e30;
};

void measure(const Request& request, const std::string& op, const Fields& problem, const std::string& variant) {
    if (!request.op.empty() && request.op != op) return;
    const auto device = make_emulated_device(request.part);
    const auto found =
        std::find_if(builtin_ops().begin(), builtin_ops().end(), [&](const Op& one) { return one.name == op; });
    const Instance instance = Instance::make(*found, problem, device->identity().limits);
    const Config config =
        variant.empty() ? instance.default_config() : instance.resolve({.variant = variant, .values = {}});
    Bound bound{*device, instance, config};

    constexpr emulator::Checks none{.memory = false, .uninitialised = false, .races = false, .sync = false};
    Mode modes[] = {{"plain", none}, {"checks", {}}, {"checks and counters", {}, true}};
    emulator::Counters counters;
    // In turns, so that what else the machine does slows all of them alike.
    const double end = now_ms() + request.seconds * 1e3;
    for (int round = 0; round < 5 || now_ms() < end; ++round)
        for (Mode& mode : modes) {
            if (!request.mode.empty() && request.mode != mode.name && round > 0) continue;
            device->options().checks = mode.checks;
            device->options().counters = mode.counters;
            mode.best_ms = std::min(mode.best_ms, bound.run_ms());
            if (mode.counters) counters = device->take_counters();
        }
    fmt::print("{} {}: {}\n", op, instance.problem().text(), config.text());
    fmt::print("  {:.2f} M warp instructions, load {:.1f} ms\n", static_cast<double>(counters.instructions) / 1e6,
               bound.load_ms);
    for (const Mode& mode : modes)
        if (request.mode.empty() || request.mode == mode.name)
            fmt::print("  {:20} {:8.1f} ms  {:5.2f} G thread instructions/s\n", mode.name, mode.best_ms,
                       static_cast<double>(counters.lane_instructions) / mode.best_ms / 1e6);
    std::fflush(stdout);
}

}  // namespace
}  // namespace autotune

int main(int argc, char** argv) {
    using namespace autotune;
    Request request;
    if (argc > 1) request.part = argv[1];
    if (argc > 2) request.op = argv[2];
    if (argc > 4) request.mode = argv[4];
    if (argc > 3) request.seconds = std::strtod(argv[3], nullptr);
    const auto number = [](std::int64_t n) { return Value{n}; };
    try {
        for (const std::int64_t n : {256, 512})
            measure(request, "gemm",
                    {{"m", number(n)}, {"n", number(n)}, {"k", number(n)}, {"dtype", std::string{"f32"}}}, "");
        measure(request, "gemm",
                {{"m", number(512)}, {"n", number(512)}, {"k", number(512)}, {"dtype", std::string{"bf16"}}}, "");
        measure(request, "softmax", {{"rows", number(1024)}, {"cols", number(1024)}, {"dtype", std::string{"f32"}}},
                "");
        for (const std::int64_t length : {256, 1024})
            measure(request, "attention",
                    {{"batch", number(1)},
                     {"q_heads", number(8)},
                     {"kv_heads", number(8)},
                     {"seq_q", number(length)},
                     {"seq_k", number(length)},
                     {"head_dim", number(64)},
                     {"dtype", std::string{"f16"}},
                     {"causal", true}},
                    "");
    } catch (const Error& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
}

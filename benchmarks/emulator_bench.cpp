// How fast the emulated device interprets: our templates at the sizes that its design names, on one core, without
// checks, with all of them, and with checks and counters. Needs NVRTC, no GPU.
//
//   emulator_bench [PART]      sm_86 by default
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "autotune/error.h"
#include "device/compiler.h"
#include "device/emulator/emulated_device.h"
#include "tuner/model/builtin_ops.h"
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
            CompileRequest request{
                .name = source.source,
                .source = source.text,
                .headers = {},
                .defines = source.defines,
                .options = source.options,
                .entries = source.entries,
                .arch = source.arch.empty() ? fmt::format("sm_{}", instance.limits().cc) : source.arch};
            for (const auto& [name, text] : source.headers) request.headers.push_back({name, text});
            CompileResult result = compiler.compile(request);
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

    /// The fastest of some runs, in milliseconds.
    double run_ms() {
        double best = 1e30;
        for (int i = 0; i < 5; ++i) {
            const double start = now_ms();
            device_.run(bound_);
            best = std::min(best, now_ms() - start);
        }
        return best;
    }

    double load_ms = 0;

private:
    EmulatedDevice& device_;
    LaunchSequence sequence_;
    BoundSequence bound_;
};

void measure(const std::string& part, const std::string& op, const Fields& problem, const std::string& variant) {
    const auto device = make_emulated_device(part);
    const auto found =
        std::find_if(builtin_ops().begin(), builtin_ops().end(), [&](const Op& one) { return one.name == op; });
    const Instance instance = Instance::make(*found, problem, device->identity().limits);
    const Config config =
        variant.empty() ? instance.default_config() : instance.resolve({.variant = variant, .values = {}});
    Bound bound{*device, instance, config};

    device->options().checks = {.memory = false, .uninitialised = false, .races = false, .sync = false};
    device->options().counters = true;
    bound.run_ms();
    const emulator::Counters counters = device->take_counters();
    const double lanes = static_cast<double>(counters.lane_instructions) / 5;
    device->options().counters = false;
    const double plain = bound.run_ms();
    device->options().checks = {};
    const double checked = bound.run_ms();
    device->options().counters = true;
    const double both = bound.run_ms();
    fmt::print("{} {}: {}\n", op, instance.problem().text(), config.text());
    fmt::print("  {:.2f} M warp instructions, load {:.1f} ms\n", static_cast<double>(counters.instructions) / 5e6,
               bound.load_ms);
    for (const auto& [name, ms] : {std::pair{"plain", plain}, {"checks", checked}, {"checks and counters", both}})
        fmt::print("  {:20} {:8.1f} ms  {:5.2f} G thread instructions/s\n", name, ms, lanes / ms / 1e6);
    std::fflush(stdout);
}

}  // namespace
}  // namespace autotune

int main(int argc, char** argv) {
    using namespace autotune;
    const std::string part = argc > 1 ? argv[1] : "sm_86";
    const auto number = [](std::int64_t n) { return Value{n}; };
    try {
        for (const std::int64_t n : {256, 512})
            measure(part, "gemm", {{"m", number(n)}, {"n", number(n)}, {"k", number(n)}, {"dtype", std::string{"f32"}}},
                    "");
        measure(part, "gemm",
                {{"m", number(512)}, {"n", number(512)}, {"k", number(512)}, {"dtype", std::string{"bf16"}}}, "");
        measure(part, "softmax", {{"rows", number(1024)}, {"cols", number(1024)}, {"dtype", std::string{"f32"}}}, "");
        for (const std::int64_t length : {256, 1024})
            measure(part, "attention",
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

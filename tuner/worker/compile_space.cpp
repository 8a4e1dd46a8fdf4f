#include "tuner/worker/compile_space.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "autotune/error.h"
#include "device/identity.h"
#include "tuner/worker/compiled_sources.h"
#include "tuner/worker/gates.h"

namespace autotune {
namespace {

using namespace std::chrono_literals;

CompiledConfig judge(const Instance& instance, const Config& config, const BinariesResult& result) {
    CompiledConfig compiled{.config = config, .outcome = result.failure, .artefacts = {}};
    if (!result.binaries) return compiled;
    LaunchSequence sequence;
    try {
        sequence = instance.launches(config, 1);
    } catch (const EvaluationError& e) {
        compiled.outcome = {.ending = Ending::not_valid, .reason = e.what()};
        return compiled;
    }
    const Resources used = resources_of(*result.binaries, sequence, instance.limits());
    const std::optional<Outcome> failure =
        gate(*instance.op().variant(config.variant), *result.binaries, sequence, instance.limits());
    compiled.outcome = failure.value_or(Outcome{});
    compiled.outcome.compile_ms = result.compile_ms;
    compiled.outcome.registers = used.registers;
    compiled.outcome.spill_bytes = used.spill_bytes;
    compiled.outcome.shared_bytes = used.shared_bytes;
    compiled.outcome.blocks_per_sm = used.blocks_per_sm;
    if (!failure) compiled.artefacts = result.binaries->artefacts;
    return compiled;
}

}  // namespace

std::vector<CompiledConfig> compile_configs(const Instance& instance, std::span<const Config> configs,
                                            const WorkerOptions& options,
                                            const std::function<bool(std::size_t done)>& progress) {
    const std::string arch = arch_name(instance.limits().cc);
    std::vector<std::optional<CompiledConfig>> results(configs.size());
    std::shared_ptr<const Error> obstacle;
    std::size_t done = 0;
    std::mutex mutex;
    std::condition_variable changed;
    // Declared after what its thread writes to, so that it ends first.
    CompiledSources sources{{.worker = find_worker(options.worker),
                             .workers = options.compile_workers,
                             .limit_s = options.compile_limit_s}};
    for (std::size_t i = 0; i < configs.size(); ++i)
        sources.want(instance.sources(configs[i]), arch, [&, i](const BinariesResult& result) {
            CompiledConfig compiled = judge(instance, configs[i], result);
            const std::lock_guard lock{mutex};
            results[i] = std::move(compiled);
            if (result.obstacle) obstacle = result.obstacle;
            ++done;
            changed.notify_one();
        });
    std::unique_lock lock{mutex};
    while (done < configs.size() && !obstacle) {
        changed.wait_for(lock, 100ms);
        const std::size_t so_far = done;
        lock.unlock();
        const bool go_on = !progress || progress(so_far);
        lock.lock();
        if (!go_on) break;
    }
    throw_obstacle(obstacle);
    std::vector<CompiledConfig> reached;
    for (std::optional<CompiledConfig>& result : results)
        if (result) reached.push_back(std::move(*result));
    return reached;
}

}  // namespace autotune

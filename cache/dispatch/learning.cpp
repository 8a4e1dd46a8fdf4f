// What a dispatcher does for want of a record, and what it writes of what it found out.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "autotune/error.h"
#include "cache/dispatch/dispatcher_impl.h"
#include "cache/store/json.h"

namespace autotune {

namespace {

constexpr std::size_t most_misses = 4096;

bool is_tuned(Rung rung) noexcept { return rung == Rung::exact || rung == Rung::exact_stale; }

/// What a kernel and a GPU have against each other, on any day: that is worth remembering. Want of memory passes, and
/// wrong values may be the caller's.
bool lasts(CUresult status) noexcept {
    switch (status) {
        case CUDA_ERROR_INVALID_IMAGE:
        case CUDA_ERROR_NO_BINARY_FOR_GPU:
        case CUDA_ERROR_INVALID_PTX:
        case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
        case CUDA_ERROR_INVALID_SOURCE:
        case CUDA_ERROR_NOT_FOUND:
        case CUDA_ERROR_NOT_SUPPORTED:
        case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
        case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
        case CUDA_ERROR_INVALID_CLUSTER_SIZE:
            return true;
        default:
            return false;
    }
}

TuneRequest request_of(const Instance& instance, int device, std::chrono::milliseconds budget) {
    StoredMiss miss = miss_of(instance, {}, {});
    return {.op = std::move(miss.op),
            .problem = std::move(miss.fields),
            .strides = std::move(miss.strides),
            .align = std::move(miss.align),
            .device = device,
            .budget = budget};
}

}  // namespace

RunStart run_of_dispatch(const Instance& instance, const DeviceIdentity& device, std::string strategy,
                         std::pair<int, int> nvrtc) {
    return {.device = device,
            .environment = {.nvrtc_major = nvrtc.first,
                            .nvrtc_minor = nvrtc.second,
                            .driver = device.driver,
                            .runtime = device.driver_version},
            .templates = templates_of(instance.op()),
            .problem = problem_of(instance),
            .info = {.strategy = std::move(strategy), .effort = SearchEffort::online}};
}

void Dispatcher::Impl::start_threads() {
    const bool wants_tuning = options.on_miss == OnMiss::tune_now || options.on_miss == OnMiss::tune_behind;
    if (wants_tuning && !options.tune)
        throw Error{Error::Kind::usage,
                    "a dispatcher that is to tune has no tuner in Options::tune; tuner_for() makes one"};
    const auto log_with_lock = [this](const std::string& sentence) {
        const std::lock_guard lock{mutex};
        log(sentence);
    };
    if (!options.learn.empty()) learner = std::make_unique<Learner>(options.learn, log_with_lock);
    if (wants_tuning)
        tuning = std::make_unique<TuningThread>(options.tune, [this](const std::string& trouble) {
            const std::lock_guard lock{mutex};
            if (!trouble.empty()) log(fmt::format("a problem could not be tuned: {}", trouble));
            if (!frozen) look_for_news(Look::now);
        });
    if (!options.online.empty()) start_online();
}

bool Dispatcher::Impl::is_missed(const std::vector<LadderStep>& steps, int device) const {
    const auto best = std::ranges::find_if(steps, [&](const LadderStep& step) {
        return step.refused.empty() && !failed.contains(name_here(step.name, device));
    });
    return best == steps.end() || !is_tuned(best->rung);
}

void Dispatcher::Impl::note_miss(const Instance& instance, const DeviceIdentity& device, Rung rung) {
    if (is_tuned(rung) || missed.size() >= most_misses) return;
    const std::string problem = instance.problem().text();
    const auto [at, is_new] = missed.try_emplace(instance.op().name + ' ' + problem + ' ' + device.fp);
    if (!is_new) return;
    at->second = {.op = instance.op().name, .problem = problem, .device = device.name};
    if (learner) {
        StoredMiss miss = miss_of(instance, device.fp, device.name);
        miss.last =
            std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
                .count();
        learner->add(std::move(miss));
    }
    if (!said.insert("miss " + instance.op().name).second) return;
    const std::string_view runs = rung == Rung::predicted        ? "what a model predicts runs"
                                  : rung == Rung::none           ? "nothing runs"
                                  : rung == Rung::default_config ? "the default runs"
                                                                 : "what was tuned for another problem or GPU runs";
    log(fmt::format("'{}' {} is not tuned on {}; {} (said once an op){}", instance.op().name, problem, device.name,
                    runs, learner ? "; autotune --from-misses tunes such problems" : ""));
}

bool Dispatcher::Impl::have_tuned(std::unique_lock<std::mutex>& lock, Call& call, const Instance& instance,
                                  const DeviceIdentity& device) {
    if (!tuning || frozen) return false;
    const bool at_once = options.on_miss == OnMiss::tune_now;
    const std::string name = instance.op().name + ' ' + to_hex(instance.key()) + ' ' + device.fp;
    if (call.capturing) {  // a search would synchronise: the first call after the capture asks for it
        if (wanted_searches.size() < TuningThread::most_waiting &&
            std::ranges::find(wanted_searches, name, &WantedSearch::name) == wanted_searches.end())
            wanted_searches.push_back({name, request_of(instance, call.device, options.tune_budget)});
        note_wanted();
        return false;
    }
    if (!tuning->ask(name, request_of(instance, call.device, options.tune_budget), at_once) || !at_once) return false;
    lock.unlock();
    const bool over = tuning->wait(name, options.tune_patience);
    lock.lock();
    if (!over)
        log(fmt::format("'{}' {} is still being tuned after {} s, so the best there is runs meanwhile",
                        instance.op().name, instance.problem().text(), options.tune_patience.count() / 1000));
    call.capturing = capturing(call.stream);  // much may have begun since
    return true;
}

void Dispatcher::Impl::learn_failure(const Instance& instance, const DeviceIdentity& device, const Config& config,
                                     CUresult status) {
    if (!learner || !lasts(status)) return;
    const OpKnowledge& knows = known(instance.op(), device);
    if (knows.negatives.contains(candidate_name(config, instance.key()))) return;
    // No compiler is named: the failure is of whatever binary there was, and a search tries the config again.
    learner->add({.start = run_of_dispatch(instance, device, "dispatch", {}),
                  .trials = {{config, Outcome{.ending = Ending::launch_failed,
                                              .reason = fmt::format("{} when it was dispatched", name_of(status))}}},
                  .end = {.evaluated = 1, .space_size = 2}});
}

}  // namespace autotune

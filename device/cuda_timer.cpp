#include "device/cuda_timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace autotune {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double long_sequence_us = 5000;  // one is sample enough, and no cache outlives it
constexpr double lone_sequence_us =
    2000;                                // the same where two sets are enough to rotate over: each is beyond the cache
constexpr double least_sample_us = 200;  // a graph's start and end are below 1 % of it
constexpr std::size_t fewest_in_a_graph = 20;
constexpr std::size_t most_in_a_graph = 1000;
constexpr double event_pair_us = 10;  // what a pair round one launch may add
constexpr double bridged_us = 2000;
constexpr double hopeless = 1.5;  // a first, rough time this far over the limit needs no second

OwnedEvent make_event() {
    CUevent event = nullptr;
    check(driver().cuEventCreate(&event, CU_EVENT_DEFAULT), "making an event");
    return OwnedEvent{event};
}

void record(const OwnedEvent& event, CUstream stream) {
    check(driver().cuEventRecord(event.get(), stream), "recording an event");
}

double elapsed_us(const OwnedEvent& start, const OwnedEvent& end) {
    float milliseconds = 0;
    check(driver().cuEventElapsedTime(&milliseconds, start.get(), end.get()), "reading the time between events");
    return 1000.0 * static_cast<double>(milliseconds);
}

void wait(CUstream stream, const CudaSequence& sequence) {
    check(driver().cuStreamSynchronize(stream), "running {}", sequence.names());
}

/// n sequences that use the sets in turn, either captured or launched one by one.
class Replay {
public:
    Replay(CUstream stream, std::span<const CudaSequence> sets, std::size_t n, bool graph)
        : stream_{stream}, sets_{sets}, n_{n} {
        if (graph) capture();
    }
    bool is_graph() const noexcept { return static_cast<bool>(graph_); }
    void enqueue() const {
        if (graph_) {
            check(driver().cuGraphLaunch(graph_.get(), stream_), "replaying {}", sets_[0].names());
        } else {
            enqueue_plain();
        }
    }

private:
    void enqueue_plain() const {
        for (std::size_t i = 0; i < n_; ++i) sets_[i % sets_.size()].enqueue(stream_);
    }
    /// Leaves graph_ empty where the launches cannot be captured: then they are launched one by one.
    void capture() {
        if (driver().cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS) return;
        bool captured = true;
        try {
            enqueue_plain();
        } catch (const DeviceFailure&) {
            captured = false;
        }
        CUgraph raw = nullptr;
        captured = driver().cuStreamEndCapture(stream_, &raw) == CUDA_SUCCESS && captured;
        const OwnedGraph graph{raw};
        CUgraphExec instance = nullptr;
        if (!captured || !raw || driver().cuGraphInstantiate(&instance, raw, 0) != CUDA_SUCCESS) return;
        graph_ = OwnedGraphExec{instance};
        check(driver().cuGraphUpload(instance, stream_), "preparing a graph of {}", sets_[0].names());
    }

    CUstream stream_;
    std::span<const CudaSequence> sets_;
    std::size_t n_;
    OwnedGraphExec graph_;
};

/// How many sequences a sample holds.
std::size_t sample_size(double one_us, std::size_t sets, bool restored, const TimePlan& plan) {
    const double alone_us = sets <= 2 ? lone_sequence_us : long_sequence_us;
    if (one_us >= alone_us && one_us >= plan.at_least_us) return 1;
    if (restored) return sets;
    const double wanted = std::max(plan.at_least_us, least_sample_us) / std::max(one_us, 0.1);
    const auto enough = static_cast<std::size_t>(std::ceil(std::min(wanted, static_cast<double>(most_in_a_graph))));
    const std::size_t least = one_us < least_sample_us ? fewest_in_a_graph : 1;
    const std::size_t n = std::max(enough, least);
    return (n + sets - 1) / sets * sets;
}

}  // namespace

double time_once(CUstream stream, const CudaSequence& sequence) {
    const OwnedEvent start = make_event(), end = make_event();
    record(start, stream);
    sequence.enqueue(stream);
    record(end, stream);
    wait(stream, sequence);
    return elapsed_us(start, end);
}

Samples time_sequences(CUstream stream, std::span<const CudaSequence> sets, std::span<const CudaRestore> restores,
                       const TimePlan& plan, const GpuMonitor* monitor) {
    const auto started = Clock::now();
    const auto out_of_time = [&] {
        return plan.timeout_us > 0 &&
               std::chrono::duration<double, std::micro>{Clock::now() - started}.count() > plan.timeout_us;
    };
    const auto restore = [&](std::size_t first_sets) {
        for (const CudaRestore& one : restores)
            if (one.set < first_sets)
                check(driver().cuMemcpyDtoDAsync(one.target, one.pristine, one.bytes, stream), "restoring {} bytes",
                      one.bytes);
    };

    // 1. A rough time of one, unless it is known: the first launch loads the kernel, so it is the second that counts.
    for (const CudaSequence& set : sets) set.enqueue_once(stream);
    const OwnedEvent start = make_event(), end = make_event();
    double one_us = plan.about_us > 0 ? plan.about_us + event_pair_us : 0;
    for (int turn = 0; turn < 2 && plan.about_us <= 0; ++turn) {
        restore(1);
        record(start, stream);
        sets[0].enqueue(stream);
        record(end, stream);
        wait(stream, sets[0]);
        one_us = elapsed_us(start, end);
        if (one_us > long_sequence_us) break;  // loading is nothing beside it
    }
    Samples samples;
    if (plan.about_us <= 0 && plan.drop_above_us > 0 && one_us - event_pair_us > hopeless * plan.drop_above_us) {
        samples.time_us = {one_us - event_pair_us};
        samples.dropped = true;
        return samples;
    }

    // 2. The sample, and replays of it until the caches and clocks are as they will be.
    const std::size_t n = sample_size(std::max(one_us - event_pair_us, 0.5), sets.size(), !restores.empty(), plan);
    const Replay replay{stream, sets, n, plan.graph};
    samples.graph = replay.is_graph();
    for (int turn = 0; turn < plan.warmup; ++turn) {
        restore(n);
        replay.enqueue();
    }

    // 3. The first sample, after which the hopeless are dropped, then the others in one go.
    const auto take = [&](int count, bool last) {
        std::vector<std::pair<OwnedEvent, OwnedEvent>> pairs;
        for (int i = 0; i < count; ++i) {
            auto& [before, after] = pairs.emplace_back(make_event(), make_event());
            restore(n);
            record(before, stream);
            replay.enqueue();
            record(after, stream);
        }
        // While the work runs: the clock is that of the work, and asking for it takes none of the device's time.
        if (last && monitor) samples.clock_mhz = monitor->sm_clock_mhz().value_or(0);
        wait(stream, sets[0]);
        for (const auto& [before, after] : pairs)
            samples.time_us.push_back(elapsed_us(before, after) / static_cast<double>(n));
    };
    take(1, plan.samples <= 1);
    samples.dropped = plan.drop_above_us > 0 && samples.time_us.front() > plan.drop_above_us;
    int left = samples.dropped ? 0 : plan.samples - 1;
    while (left > 0 && !out_of_time()) {
        // The GPU was idle while the host looked on: one untimed replay bridges its start, which is lost in a long
        // sample. A batch is some 50 ms long.
        const double sample_us = samples.time_us.front() * static_cast<double>(n);
        if (sample_us < bridged_us) {
            restore(n);
            replay.enqueue();
        }
        const int batch = std::clamp(static_cast<int>(50000 / std::max(sample_us, 1.0)), 1, left);
        take(batch, batch == left);
        left -= batch;
    }
    return samples;
}

}  // namespace autotune

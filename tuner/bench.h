#ifndef AUTOTUNE_TUNER_BENCH_H
#define AUTOTUNE_TUNER_BENCH_H

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tuner/model/instance.h"
#include "tuner/model/outcome.h"
#include "tuner/model/space.h"

namespace autotune {

/// How much a trial may cost: quick, normal and full, or just what its check needs.
enum class Effort { quick, normal, full };

/// What a bench found out when it made a problem ready.
struct Preparation {
    std::string reference;  ///< "CPU, fp64", "device, fp64, anchored", "kernel naive": for the heading
    std::string method;     ///< "graph" or "events"
    double copy_bandwidth_gbs = 0;
    double floor_us = 0;  ///< 0.9 x the larger of flops over peak and bytes over copy bandwidth; 0: none
    bool warm = false;    ///< one set of buffers inside L2
};

/// A part of a run, in seconds since the bench was made. Stages of different processes overlap.
struct Stage {
    std::string name;  ///< "device opens", "trials", "final rounds"
    double begin_s = 0, end_s = 0;
};

/// Where the time went that the problem at hand has taken so far; `stages` are of the whole run.
struct BenchUse {
    double compile_s = 0, check_s = 0, time_s = 0;
    std::size_t compile_workers = 0;
    /// Of the time in which a trial was outstanding, compiling or waiting for the device: the share in which the device
    /// tried none.
    double gpu_idle_share = 0;
    int workers_replaced = 0;
    std::vector<Stage> stages;  ///< in the order of their ends
};

/// The re-check of a winner: other seeds, and ragged problems near this one.
struct Verification {
    int problems = 0, inputs = 0;  ///< inputs: sets of them, over all problems; 0: it was not done
    double largest_error = 0;      ///< over its bound
    std::optional<Outcome> failure;
    std::string failed_on;  ///< the problem
};

/// What a cost model says that configs take, without a trial of any.
struct Predictions {
    std::string model;                           ///< of which GPU: "NVIDIA H200"; empty: none is like this one
    std::vector<std::optional<double>> time_us;  ///< one a config; nullopt: the model says nothing of it
};

/// Tries candidates of one problem: what the loop sees of compilers, devices and workers. One thread calls it.
class Bench {
public:
    virtual ~Bench() = default;

    /// The problem with the dims that its input generator sets (`from = "inputs"`); what is prepared must have them.
    /// Throws Error{usage} when the generator fails.
    virtual Instance sized(const Instance& instance) { return instance; }
    /// What may be tried of the problem: all that is valid, unless the bench knows less.
    virtual Space space(const Instance& instance) const { return Space::make(instance); }
    /// What will be submitted or predicted first, once the problem is prepared, in this order: a bench may compile it
    /// meanwhile.
    virtual void expect(const Instance& /*instance*/, std::span<const Config> /*first*/) {}
    /// Asked, on any thread, for a source's binary before it is compiled; nullopt: it is compiled. arch: of the device.
    using Ready = std::function<std::optional<Artefact>(const SourceSpec& source, const std::string& arch)>;
    virtual void use_ready(Ready /*ready*/) {}
    /// Inputs, reference, timing method. Throws Error when the problem cannot be tried at all.
    virtual Preparation prepare(const Instance& instance) = 0;

    /// Of the prepared problem, before its first trial: nothing is timed meanwhile, so nothing is disturbed.
    /// go_on: called at least ten times a second; false ends it with what there is.
    virtual Predictions predict(std::span<const Config> configs, const std::function<bool()>& /*go_on*/) {
        return {.model = {}, .time_us = std::vector<std::optional<double>>(configs.size())};
    }

    /// How many trials keep every compile worker busy.
    virtual std::size_t capacity() const = 0;
    /// Begins a trial. drop_above_us: a candidate whose first sample is slower is dropped; 0: none is.
    virtual void submit(const Config& config) = 0;
    /// Waits for the oldest trial that was not fetched yet: outcomes come in the order of submissions.
    /// `idle` is called at least ten times a second meanwhile.
    virtual Outcome next(const std::function<void()>& idle) = 0;
    /// The same, but nullopt once `go_on`, which is called in place of `idle`, says no: the trial stays the oldest.
    virtual std::optional<Outcome> next_while(const std::function<bool()>& go_on) {
        return next([&] { go_on(); });
    }
    /// Forgets trials that were submitted but not fetched, and ends what is being compiled for them.
    virtual void cancel() = 0;
    /// The best time so far, which early drops are measured against.
    virtual void best_so_far(double time_us) = 0;
    /// The holder of the best time was struck out: early drops are measured against this one instead; 0: nothing is
    /// dropped. No trial is outstanding.
    virtual void best_is_now(double time_us) { best_so_far(time_us); }

    /// Times finalists in interleaved rounds of random order: one vector of samples a finalist, equally long.
    /// rounds: at most; a bench may end earlier where more would tell nothing new.
    virtual std::vector<Outcome> rounds(std::span<const Config> finalists, int rounds) = 0;
    /// Re-checks a config after timing.
    virtual Verification verify(const Config& config) = 0;
    /// The binaries that were timed, one for each of the config's sources, in their order; empty when there are none.
    virtual std::vector<Artefact> artefacts(const Config& config) = 0;
    virtual BenchUse use() const = 0;

    /// What an emulator counts while it models a config on the problem at hand: an outcome with `counters`, or one that
    /// says why there are none. Its time is a prediction, whatever the device.
    virtual Outcome count(const Config& /*config*/) {
        return {.ending = Ending::not_emulated, .reason = "this bench has no emulator beside it"};
    }
    /// What an emulator says of a config that ended badly on a GPU, run once more: the line, the thread and the buffer,
    /// that it found nothing, or why it could not look. Empty where there is nothing to say beside the outcome itself.
    /// It takes seconds of a core, in a process of its own: no round should be under way.
    virtual std::string explain(const Config& /*config*/, const Outcome& /*outcome*/) { return {}; }
};

/// Puts what the bench's emulator says of a failure behind what the GPU said.
inline void explain(Bench& bench, const Config& config, Outcome& outcome) {
    if (const std::string more = bench.explain(config, outcome); !more.empty()) outcome.reason += "; " + more;
}

}  // namespace autotune
#endif

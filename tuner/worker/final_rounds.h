#ifndef AUTOTUNE_TUNER_WORKER_FINAL_ROUNDS_H
#define AUTOTUNE_TUNER_WORKER_FINAL_ROUNDS_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tuner/model/instance.h"
#include "tuner/worker/compiled_sources.h"
#include "tuner/worker/effort_plan.h"
#include "tuner/worker/trial_desk.h"

namespace autotune {

/// What disturbed finals, for people; empty: nothing did. `clocks_mhz` are the finalists', as far as known: more than 2
/// % between two disturbs.
std::string disturbance(const DeviceState& seen, std::span<const double> clocks_mhz);

/// The last timing of a problem's finalists: samples of each in turn, in an order of its own each round, until they are
/// told apart. Made for one call.
class FinalRounds {
public:
    /// What they take part in; all of it outlives this.
    struct Setting {
        RunLane& lane;
        CompiledSources& store;
        TrialDesk& desk;
        StageLog& log;
        const EffortPlan& plan;
        const Instance& instance;
        const std::map<std::string, double>& known_us;  ///< of timed trials, by config; the lane's thread's own
        bool graph;
        std::uint64_t seed;  ///< of the order in rounds
    };

    FinalRounds(const Setting& setting, std::span<const Config> configs) : setting_{setting}, configs_{configs} {}

    /// rounds: at most. An outcome a config, with equally many samples each where it is ok.
    std::vector<Outcome> run(int rounds);

private:
    struct Finalist {
        std::size_t number = 0;
        CandidateTask task;
        double about_us = 0;  ///< 0: not known yet
        std::vector<double> clocks;
    };

    void load_finalists();
    bool run_rounds(int rounds);
    bool load(const Finalist& finalist);
    DeviceState take_rounds(int rounds);
    void warm_up(StageLog::Clock::time_point since);
    void look_at_device(DeviceState& state);
    void take_sample(Finalist& finalist, bool watch, Outcome& outcome, DeviceState& state);
    void sum_up(const DeviceState& state);
    Frame ask(Message type, const nlohmann::json& body);

    const Setting setting_;
    const std::span<const Config> configs_;
    std::vector<Outcome> outcomes_;    ///< of the configs
    std::vector<Finalist> finalists_;  ///< those that have not failed
    std::size_t running_ = 0;          ///< the finalist that a loss is laid to
};

}  // namespace autotune
#endif

#include "tuner/worker/final_rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <memory>
#include <numeric>
#include <random>
#include <utility>

#include "device/identity.h"
#include "tuner/statistics.h"
#include "tuner/worker/candidate_task.h"
#include "tuner/worker/json_types.h"

namespace autotune {
namespace {

using Clock = StageLog::Clock;

/// Fewer rounds have no interval at 95 % that is narrower than all samples.
constexpr int fewest_rounds = 7;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Whether more rounds would tell nothing new: each finalist is known to be slower than the fastest.
bool all_told_apart(const std::vector<Outcome>& outcomes) {
    const std::vector<double>* best = nullptr;
    for (const Outcome& outcome : outcomes)
        if (outcome.ok() && (!best || median(outcome.samples_us) < median(*best))) best = &outcome.samples_us;
    return best && std::ranges::all_of(outcomes, [&](const Outcome& outcome) {
               return !outcome.ok() || &outcome.samples_us == best ||
                      paired_ratio(outcome.samples_us, *best).low > 1 + same_within;
           });
}

void note(const DeviceState& seen, DeviceState& state) {
    state.other_processes = std::max(state.other_processes, seen.other_processes);
    state.throttled = state.throttled || seen.throttled;
}

}  // namespace

std::string disturbance(const DeviceState& seen, std::span<const double> clocks_mhz) {
    constexpr double clocks_differ = 1.02;
    if (seen.other_processes > 0)
        return fmt::format("{} other process{} on the GPU", seen.other_processes,
                           seen.other_processes == 1 ? "" : "es");
    if (seen.throttled) return "heat or the hardware slowed the GPU down";
    if (clocks_mhz.empty()) return {};
    const auto [slowest, fastest] = std::ranges::minmax(clocks_mhz);
    if (fastest <= clocks_differ * slowest) return {};
    return fmt::format("the clock was {:.0f} MHz for one finalist and {:.0f} for another", slowest, fastest);
}

std::vector<Outcome> FinalRounds::run(int rounds) {
    outcomes_.resize(configs_.size());
    // A finalist that ends the worker is left out, and the others begin again.
    for (std::size_t attempt = 0; attempt <= configs_.size(); ++attempt) {
        load_finalists();
        if (finalists_.empty() || run_rounds(rounds)) break;
    }
    return std::move(outcomes_);
}

/// Those that have not failed yet, with their binaries.
void FinalRounds::load_finalists() {
    const Instance& instance = setting_.instance;
    finalists_.clear();
    std::vector<std::future<BinariesResult>> binaries;
    for (const Config& config : configs_) {
        auto promise = std::make_shared<std::promise<BinariesResult>>();
        binaries.push_back(promise->get_future());
        setting_.store.want(
            instance.sources(config), arch_name(instance.limits().cc),
            [promise](BinariesResult result) { promise->set_value(std::move(result)); }, true);
    }
    for (std::size_t i = 0; i < configs_.size(); ++i) {
        const BinariesResult result = binaries[i].get();
        if (!outcomes_[i].ok()) continue;
        throw_obstacle(result.obstacle);
        if (!result.binaries) {
            outcomes_[i] = result.failure;
            continue;
        }
        Finalist finalist{
            .number = i,
            .task = candidate_task(instance, configs_[i], *result.binaries, 0, setting_.lane.device().emulated)};
        finalist.task.id = static_cast<int>(i);
        const Resources used = resources_of(*result.binaries, finalist.task.sequence, instance.limits());
        outcomes_[i].compile_ms = result.compile_ms;
        outcomes_[i].registers = used.registers;
        outcomes_[i].spill_bytes = used.spill_bytes;
        outcomes_[i].shared_bytes = used.shared_bytes;
        outcomes_[i].blocks_per_sm = used.blocks_per_sm;
        finalists_.push_back(std::move(finalist));
    }
}

/// False: the worker was lost; its culprit's outcome says so.
bool FinalRounds::run_rounds(int rounds) {
    return setting_.lane.thread().run([&] {
        running_ = 0;
        try {
            const auto start = Clock::now();
            setting_.desk.hold_main();
            for (Finalist& finalist : finalists_)
                if (const auto known = setting_.known_us.find(configs_[finalist.number].text());
                    known != setting_.known_us.end())
                    finalist.about_us = known->second;
            for (; running_ < finalists_.size(); ++running_)
                if (!load(finalists_[running_])) return false;
            for (const Finalist& finalist : finalists_) outcomes_[finalist.number].samples_us.clear();
            warm_up(start);
            const auto begin = Clock::now();
            setting_.log.add(fmt::format("{} finalists loaded", finalists_.size()), start, begin);
            const DeviceState state = take_rounds(rounds);
            setting_.log.add(fmt::format("{} final rounds", outcomes_[finalists_.front().number].samples_us.size()),
                             begin, Clock::now());
            ask(Message::unload, nlohmann::json::object());
            sum_up(state);
            return true;
        } catch (const WorkerLost& e) {
            outcomes_[finalists_[running_].number] = {.ending = e.ending(), .reason = e.what(), .log = e.log()};
            setting_.lane.retire();
            return false;
        }
    });
}

/// False: there is no room for it beside those before, which are unloaded; its outcome says so.
bool FinalRounds::load(const Finalist& finalist) {
    try {
        ask(Message::load, finalist.task);
        return true;
    } catch (const Error& e) {
        if (e.kind() != Error::Kind::device) throw;
        outcomes_[finalist.number] = {.ending = Ending::out_of_memory, .reason = e.what()};
    }
    ask(Message::unload, nlohmann::json::object());
    return false;
}

/// Samples of each finalist in turn, in an order of its own each round.
DeviceState FinalRounds::take_rounds(int rounds) {
    std::mt19937_64 random{setting_.seed};
    std::vector<std::size_t> order(finalists_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    DeviceState state;
    double device_us = 0;
    for (int round = 0; round < rounds; ++round) {
        std::shuffle(order.begin(), order.end(), random);
        for (const std::size_t index : order) {
            running_ = index;
            const bool watch = round == 0 && index == order.back();
            take_sample(finalists_[index], watch, outcomes_[finalists_[index].number], state);
            device_us += std::max(finalists_[index].about_us, setting_.plan.round_us);
        }
        if (round + 1 >= fewest_rounds && (device_us > setting_.plan.rounds_us || all_told_apart(outcomes_))) break;
    }
    look_at_device(state);
    return state;
}

void FinalRounds::take_sample(Finalist& finalist, bool watch, Outcome& outcome, DeviceState& state) {
    constexpr double long_us = 2000;  // nothing that a launch before it warms up shows in it
    const RoundTask task{.order = {finalist.task.id},
                         .about_us = {finalist.about_us},
                         .plan = {.warmup = finalist.about_us > long_us ? 0 : 1,
                                  .samples = 1,
                                  .at_least_us = setting_.plan.round_us,
                                  .graph = setting_.graph},
                         .watch = watch};
    const auto result = ask(Message::round, task).json().get<RoundSamples>();
    if (!result.failure.empty()) throw WorkerLost{Ending::crashed, result.failure, setting_.lane.take_text()};
    for (const Samples& samples : result.samples) {
        if (!samples.time_us.empty()) finalist.about_us = samples.time_us.back();
        outcome.samples_us.insert(outcome.samples_us.end(), samples.time_us.begin(), samples.time_us.end());
        outcome.method = samples.graph ? "graph" : "events";
        outcome.predicted = samples.predicted;
        if (samples.clock_mhz > 0) finalist.clocks.push_back(samples.clock_mhz);
    }
    note(result.state, state);
}

/// What disturbs the device now.
void FinalRounds::look_at_device(DeviceState& state) {
    note(ask(Message::round, RoundTask{.watch = true}).json().get<RoundSamples>().state, state);
}

/// The clock settles before the first round counts; loading the finalists, which runs each, is part of that.
void FinalRounds::warm_up(Clock::time_point loading) {
    const bool known = std::ranges::all_of(finalists_, [](const Finalist& one) { return one.about_us > 0; });
    if (known && since(loading) >= setting_.plan.warm_up_s) return;
    do
        for (running_ = 0; running_ < finalists_.size(); ++running_) {
            Outcome ignored;
            DeviceState nobody;
            take_sample(finalists_[running_], false, ignored, nobody);
        }
    while (since(loading) < setting_.plan.warm_up_s);
}

/// Medians, and what disturbed them.
void FinalRounds::sum_up(const DeviceState& state) {
    std::vector<double> clocks_mhz;
    for (const Finalist& finalist : finalists_) {
        Outcome& outcome = outcomes_[finalist.number];
        outcome.time_us = outcome.samples_us.empty() ? 0 : median(outcome.samples_us);
        outcome.clock_mhz = finalist.clocks.empty() ? 0 : median(finalist.clocks);
        if (outcome.clock_mhz > 0) clocks_mhz.push_back(outcome.clock_mhz);
    }
    const std::string words = disturbance(state, clocks_mhz);
    for (const Finalist& finalist : finalists_) {
        outcomes_[finalist.number].tainted = !words.empty();
        outcomes_[finalist.number].reason = words;
    }
}

Frame FinalRounds::ask(Message type, const nlohmann::json& body) {
    return setting_.lane.ask(type, body, setting_.desk.patience());
}

}  // namespace autotune

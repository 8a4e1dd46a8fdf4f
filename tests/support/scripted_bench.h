#ifndef AUTOTUNE_TESTS_SCRIPTED_BENCH_H
#define AUTOTUNE_TESTS_SCRIPTED_BENCH_H

#include <algorithm>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "tuner/bench.h"

namespace autotune {

/// A bench that answers as a test tells it: no device, no compiler, no waiting.
class ScriptedBench : public Bench {
public:
    using Answer = std::function<Outcome(const Config&)>;
    explicit ScriptedBench(Answer answer) : answer_{std::move(answer)} {}

    void expect(const Instance&, std::span<const Config> first) override {
        expected.assign(first.begin(), first.end());
    }
    Preparation prepare(const Instance&) override { return {.reference = "scripted", .method = "graph"}; }
    Predictions predict(std::span<const Config> configs, const std::function<bool()>& go_on) override {
        Predictions predictions{.model = prediction ? "made up" : "", .time_us = {}};
        predictions.time_us.resize(configs.size());
        for (std::size_t i = 0; prediction && i < configs.size() && go_on(); ++i) {
            predictions.time_us[i] = prediction(configs[i]);
            asked_to_predict.push_back(configs[i]);
        }
        return predictions;
    }
    std::size_t capacity() const override { return 4; }
    void submit(const Config& config) override {
        submitted.push_back(config);
        waiting_.push_back(config);
    }
    Outcome next(const std::function<void()>& idle) override {
        if (idle) idle();
        const Config config = waiting_.front();
        waiting_.pop_front();
        return answer_(config);
    }
    std::optional<Outcome> next_while(const std::function<bool()>& go_on) override {
        while (hangs && hangs(waiting_.front()))
            if (!go_on()) return std::nullopt;
        return next([&] { go_on(); });
    }
    void cancel() override {
        cancelled += waiting_.size();
        waiting_.clear();
    }
    void best_so_far(double time_us) override {
        best.push_back(time_us);
        best_us = best_us > 0 ? std::min(best_us, time_us) : time_us;
    }
    void best_is_now(double time_us) override { best_us = time_us; }
    std::vector<Outcome> rounds(std::span<const Config> finalists, int count) override {
        std::vector<Outcome> outcomes;
        for (const Config& config : finalists) {
            Outcome outcome = final_answer ? final_answer(config) : answer_(config);
            outcome.samples_us.assign(static_cast<std::size_t>(count), outcome.time_us);
            outcomes.push_back(outcome);
        }
        ++rounds_run;
        return outcomes;
    }
    Verification verify(const Config& config) override {
        verified.push_back(config);
        return verification ? verification(config) : Verification{.problems = 1, .inputs = 1};
    }
    std::vector<Artefact> artefacts(const Config&) override { return {}; }
    BenchUse use() const override { return {}; }
    Outcome count(const Config& config) override { return counts ? counts(config) : Bench::count(config); }
    std::string explain(const Config& config, const Outcome& outcome) override {
        return explanation ? explanation(config, outcome) : std::string{};
    }

    std::function<bool(const Config&)> hangs;  ///< of a trial that would never end; empty: all end
    Answer final_answer;                       ///< of the rounds; the trials' answer when empty
    Answer counts;                             ///< of the emulator; without, there is none
    std::function<std::string(const Config&, const Outcome&)> explanation;
    std::function<Verification(const Config&)> verification;
    std::function<std::optional<double>(const Config&)> prediction;  ///< of the model; empty: there is none
    std::vector<Config> expected, submitted, verified, asked_to_predict;
    std::vector<double> best;
    double best_us = 0;  ///< what a real bench measures early drops against
    std::size_t cancelled = 0;
    int rounds_run = 0;

private:
    Answer answer_;
    std::deque<Config> waiting_;
};

}  // namespace autotune
#endif

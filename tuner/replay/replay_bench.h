#ifndef AUTOTUNE_REPLAY_REPLAY_BENCH_H
#define AUTOTUNE_REPLAY_REPLAY_BENCH_H

#include <deque>

#include "tuner/bench.h"
#include "tuner/replay/recorded_space.h"

namespace autotune {

/// A recorded space in place of a device: tune() searches it as it would the GPU it was recorded on, at once. Of a
/// config's samples a record keeps the mean alone, so finals repeat it, and nothing is there to be verified.
class ReplayBench final : public Bench {
public:
    /// The space must outlive it. Problems other than its instance() are refused.
    explicit ReplayBench(const RecordedSpace& space) : space_{space} {}

    Space space(const Instance&) const override { return space_.space(); }
    Preparation prepare(const Instance& instance) override;
    std::size_t capacity() const override { return 1; }
    void submit(const Config& config) override { waiting_.push_back(config); }
    Outcome next(const std::function<void()>& idle) override;
    void cancel() override { waiting_.clear(); }
    void best_so_far(double) override {}
    std::vector<Outcome> rounds(std::span<const Config> finalists, int rounds) override;
    Verification verify(const Config&) override { return {}; }
    std::vector<Artefact> artefacts(const Config&) override { return {}; }
    BenchUse use() const override { return {}; }

private:
    Outcome outcome_of(const Config& config) const;

    const RecordedSpace& space_;
    std::deque<Config> waiting_;
};

}  // namespace autotune
#endif

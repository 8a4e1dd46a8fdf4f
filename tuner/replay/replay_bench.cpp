#include "tuner/replay/replay_bench.h"

#include <fmt/format.h>

#include "autotune/error.h"

namespace autotune {

Preparation ReplayBench::prepare(const Instance& instance) {
    if (&instance.op() != &space_.instance().op())
        throw Error{Error::Kind::usage,
                    fmt::format("'{}' is not what was recorded as '{}'", instance.op().name, space_.name())};
    return {.reference = "recorded", .method = "recorded"};
}

Outcome ReplayBench::next(const std::function<void()>& idle) {
    if (idle) idle();
    const Config config = waiting_.front();
    waiting_.pop_front();
    return outcome_of(config);
}

std::vector<Outcome> ReplayBench::rounds(std::span<const Config> finalists, int rounds) {
    std::vector<Outcome> outcomes;
    for (const Config& config : finalists) {
        Outcome& outcome = outcomes.emplace_back(outcome_of(config));
        if (outcome.ok()) outcome.samples_us.assign(static_cast<std::size_t>(rounds), outcome.time_us);
    }
    return outcomes;
}

Outcome ReplayBench::outcome_of(const Config& config) const {
    const std::optional<std::size_t> number = space_.space().find(config);
    if (!number) return {.ending = Ending::not_valid, .reason = "the record does not have it"};
    return space_.outcome(*number);
}

}  // namespace autotune

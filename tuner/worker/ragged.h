#ifndef AUTOTUNE_TUNER_WORKER_RAGGED_H
#define AUTOTUNE_TUNER_WORKER_RAGGED_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tuner/model/instance.h"

namespace autotune {

using GivenFields = std::vector<std::pair<std::string, Value>>;

/// Problems near this one on which a config may go wrong: per dimension 1, d - 1, d + 1 and a prime near d / 3
/// (with its followers where it cannot change alone), and the op's own list; those only that are legal, where the
/// config's constraints hold, and that cost at most `most_work` times as much. None twice, and not the problem itself.
std::vector<Instance> ragged_problems(const Instance& instance, const Config& config, double most_work);

/// The prime nearest to n from below; 2 for less.
std::int64_t prime_below(std::int64_t n);

/// Fields of a problem as they may be given again: those that follow from a scalar or from inputs are left out.
GivenFields given_fields(const Instance& instance);

/// The given fields with another extent of one, and without those that have its extent because it is their default:
/// they follow it. Empty where it has no followers.
GivenFields with_followers(const Instance& instance, const std::string& name, std::int64_t extent);

}  // namespace autotune
#endif

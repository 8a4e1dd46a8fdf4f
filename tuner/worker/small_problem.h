#ifndef AUTOTUNE_TUNER_WORKER_SMALL_PROBLEM_H
#define AUTOTUNE_TUNER_WORKER_SMALL_PROBLEM_H

#include <optional>

#include "tuner/model/instance.h"

namespace autotune {

/// A problem like this one, with the same binaries of the config, on which it can be checked where every thread is
/// interpreted, in a fraction of a second: dims are cut, the largest first, to primes where the op and the config's
/// claims allow, else to what is as ragged as they allow; the problem itself where it is small enough. nullopt: what
/// the config allows is not small.
std::optional<Instance> small_problem(const Instance& instance, const Config& config);

}  // namespace autotune
#endif

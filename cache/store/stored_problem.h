#ifndef AUTOTUNE_CACHE_STORE_STORED_PROBLEM_H
#define AUTOTUNE_CACHE_STORE_STORED_PROBLEM_H

#include "cache/store/identity.h"
#include "tuner/model/keyed_problem.h"

namespace autotune {

/// The way back from problem_of(), with the alignments and layouts that the key holds: see instance_of_key().
/// Throws Error{usage} where today's op has no such problem.
inline Instance instance_of(const ProblemIdentity& problem, const Op& op, const DeviceLimits& limits) {
    return instance_of_key(op, problem.fields, problem.json, problem.key, limits);
}

}  // namespace autotune
#endif

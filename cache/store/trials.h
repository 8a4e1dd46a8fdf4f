#ifndef AUTOTUNE_CACHE_STORE_TRIALS_H
#define AUTOTUNE_CACHE_STORE_TRIALS_H

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/store/database.h"
#include "cache/store/store.h"

namespace autotune {

// Rows of trials.db.

/// Puts the outcome in place of an earlier one of the same run and config, whose ordinal stays.
/// source: its template's id in tune.db.
void put_trial(Database& trials, RunId run, std::int64_t source, std::string_view op, const StoredTrial& trial);

/// A trial with the template that it tried.
struct TrialRow {
    std::int64_t source = 0;
    StoredTrial trial{};
};
/// Those of a run in order of their ordinals, or the one of that ordinal; rows whose checksum fails are left out.
void scan_trials(Database& trials, RunId run, const std::function<void(const TrialRow&)>& sink,
                 std::int64_t ordinal = 0);

/// One sentence a trial whose checksum fails.
std::vector<std::string> faults_of_trials(Database& trials);

}  // namespace autotune
#endif

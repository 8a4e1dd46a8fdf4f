#ifndef AUTOTUNE_CACHE_DISPATCH_ROBUST_H
#define AUTOTUNE_CACHE_DISPATCH_ROBUST_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cache/dispatch/snapshot.h"
#include "tuner/model/op.h"

namespace autotune {

/// A config by what it loses, in its worst case, over the tuned problems of an op.
struct RobustConfig {
    std::size_t snapshot = 0;  ///< which of them has it
    SnapshotRow row{};         ///< one of its rows there
    double worst = 1;          ///< the most that its time is of the best one's, over all problems
    std::size_t stored = 0;    ///< problems that it is stored for
    bool verified = true, stale = false, imported = false;  ///< verified: in every row; the others: in any
};

/// Which config to take for a problem that is like none of the stored ones. Where a config is not stored for a problem
/// it was worse than 3 % there or not tried, and is taken to be as slow as the default was. Left out are configs that
/// never beat the default by more than 3 %, those whose worst case is no better than the default's, and those that are
/// stored for one problem of several: a single win says nothing of the others.
class RobustConfigs {
public:
    RobustConfigs() = default;
    /// local_only: rows that were measured elsewhere do not count. Some us a row.
    RobustConfigs(const Op& op, std::span<const Snapshot* const> snapshots, bool local_only);

    /// Best first. fixed: SplitKey::fixed; where no problem with those fields is stored, over all of the op.
    std::span<const RobustConfig> find(const std::string& fixed) const;
    std::size_t problems(const std::string& fixed) const;

private:
    struct Ranking {
        std::vector<RobustConfig> configs;
        std::size_t problems = 0;
    };
    const Ranking& ranking(const std::string& fixed) const;

    std::unordered_map<std::string, Ranking> rankings_;
    Ranking all_;
};

}  // namespace autotune
#endif

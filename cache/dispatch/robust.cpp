#include "cache/dispatch/robust.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "cache/dispatch/neighbours.h"
#include "cache/dispatch/split_key.h"

namespace autotune {
namespace {

constexpr double rank_margin = 1.03;  ///< what a search keeps as ranks

/// A problem on one kind of GPU, and what a config loses there that is not stored for it.
struct Tuned {
    std::size_t snapshot = 0;
    SnapshotRows rows{};
    std::int64_t best_ns = 0;
    double otherwise = rank_margin;
};

/// A config while its rows are being met.
struct Met {
    RobustConfig config{};
    std::vector<std::size_t> places{};  ///< of its problems, the one with the slowest default first
    double worst_stored = 1;
    bool won = false;  ///< beat the default of one of them
};

Tuned tuned_of(std::size_t number, const Snapshot& snapshot, const Snapshot::Problem& problem, bool local_only) {
    Tuned tuned{.snapshot = number, .rows = snapshot.rows(problem)};
    std::int64_t default_ns = 0;
    for (const SnapshotRow& row : tuned.rows) {
        if (local_only && snapshot.provenance(row).imported) continue;
        if (tuned.best_ns == 0 || row.time_ns < tuned.best_ns) tuned.best_ns = row.time_ns;
        default_ns = std::max(default_ns, row.default_ns);
    }
    if (tuned.best_ns > 0)
        tuned.otherwise = std::max(rank_margin, static_cast<double>(default_ns) / static_cast<double>(tuned.best_ns));
    return tuned;
}

/// The slowest default among the problems that a config is not stored for.
double worst_of(const Met& met, std::span<const Tuned> problems) {
    std::size_t place = 0;
    while (place < met.places.size() && met.places[place] == place) ++place;
    return std::max(met.worst_stored, place < problems.size() ? problems[place].otherwise : 1.0);
}

std::vector<RobustConfig> ranked(std::vector<Tuned> problems, std::span<const Snapshot* const> snapshots,
                                 bool local_only) {
    std::ranges::stable_sort(problems, std::greater{}, &Tuned::otherwise);
    std::map<std::string, Met> by_name;
    std::map<std::pair<std::size_t, std::uint32_t>, Met*> by_number;
    for (std::size_t place = 0; place < problems.size(); ++place) {
        const Tuned& problem = problems[place];
        const Snapshot& snapshot = *snapshots[problem.snapshot];
        for (const SnapshotRow& row : problem.rows) {
            const RowProvenance& provenance = snapshot.provenance(row);
            if (local_only && provenance.imported) continue;
            Met*& met = by_number[{problem.snapshot, row.config}];
            if (!met) {
                const Config& config = snapshot.config(row);
                met = &by_name[config.variant + ' ' + config.hash()];
                if (met->places.empty()) met->config = {.snapshot = problem.snapshot, .row = row};
            }
            if (met->places.empty() || met->places.back() != place) met->places.push_back(place);
            met->worst_stored =
                std::max(met->worst_stored, static_cast<double>(row.time_ns) / static_cast<double>(problem.best_ns));
            met->won = met->won || beat_default(row);
            met->config.verified = met->config.verified && provenance.verified == Verified::verified;
            met->config.stale = met->config.stale || provenance.stale != 0;
            met->config.imported = met->config.imported || provenance.imported;
        }
    }
    std::vector<RobustConfig> out;
    const double worst_of_default = problems.empty() ? 1.0 : problems.front().otherwise;
    for (auto& [name, met] : by_name) {  // by name: equal ones keep an order that the contents alone decide
        met.config.worst = worst_of(met, problems);
        met.config.stored = met.places.size();
        const bool won_once_of_many = met.places.size() == 1 && problems.size() > 1;
        if (!met.won || won_once_of_many || met.config.worst >= worst_of_default) continue;
        out.push_back(met.config);
    }
    std::ranges::stable_sort(out, [](const RobustConfig& a, const RobustConfig& b) {
        return std::tuple{a.stale, a.worst, b.stored} < std::tuple{b.stale, b.worst, a.stored};
    });
    return out;
}

}  // namespace

RobustConfigs::RobustConfigs(const Op& op, std::span<const Snapshot* const> snapshots, bool local_only) {
    const KeySplitter splitter{op};
    SplitKey key;
    std::vector<std::byte> whole;
    std::unordered_map<std::string, std::vector<Tuned>> groups;
    std::vector<Tuned> all;
    for (std::size_t number = 0; number < snapshots.size(); ++number) {
        const Snapshot& snapshot = *snapshots[number];
        for (const Snapshot::Problem& problem : snapshot.problems()) {
            const Tuned tuned = tuned_of(number, snapshot, problem, local_only);
            if (tuned.best_ns <= 0 || !splitter.split(snapshot.key(problem, whole), key)) continue;
            groups[key.fixed].push_back(tuned);
            all.push_back(tuned);
        }
    }
    for (auto& [fixed, problems] : groups)
        rankings_[fixed] = {.configs = ranked(problems, snapshots, local_only), .problems = problems.size()};
    all_ = {.configs = ranked(all, snapshots, local_only), .problems = all.size()};
}

const RobustConfigs::Ranking& RobustConfigs::ranking(const std::string& fixed) const {
    const auto found = rankings_.find(fixed);
    return found == rankings_.end() ? all_ : found->second;
}

std::span<const RobustConfig> RobustConfigs::find(const std::string& fixed) const { return ranking(fixed).configs; }
std::size_t RobustConfigs::problems(const std::string& fixed) const { return ranking(fixed).problems; }

}  // namespace autotune

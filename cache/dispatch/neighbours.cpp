#include "cache/dispatch/neighbours.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <utility>

namespace autotune {
namespace {

constexpr double worth_borrowing = 1.03;
constexpr std::int32_t grain = octave / 1024;  ///< of distances: what a log2 is rounded by must not part equals

std::int32_t rounded(std::int32_t distance) noexcept { return (distance + grain / 2) / grain * grain; }

/// Enough of a row to say whether its problem is worth a place, and whether that is a stale one.
enum class Worth { none, stale, fresh };
Worth worth_of(const Snapshot& snapshot, const Snapshot::Problem& problem, bool local_only) noexcept {
    Worth worth = Worth::none;
    for (const SnapshotRow& row : snapshot.rows(problem))
        if (beat_default(row) && !(local_only && snapshot.provenance(row).imported))
            worth = std::max(worth, snapshot.fresh(row) ? Worth::fresh : Worth::stale);
    return worth;
}

std::size_t distinct(std::vector<std::int32_t> values) {
    std::ranges::sort(values);
    return values.size() - std::ranges::unique(values).size();
}

}  // namespace

bool beat_default(const SnapshotRow& row) noexcept {
    return row.default_ns > 0 &&
           static_cast<double>(row.default_ns) > static_cast<double>(row.time_ns) * worth_borrowing;
}

Neighbours::Neighbours(const Op& op, const Snapshot& snapshot, bool local_only) {
    const KeySplitter splitter{op};
    SplitKey key;
    std::vector<std::byte> whole;
    std::unordered_map<std::string, std::map<std::vector<std::uint8_t>, Group>> found;
    const auto problems = snapshot.problems();
    for (std::uint32_t i = 0; i < problems.size(); ++i) {
        const Worth worth = worth_of(snapshot, problems[i], local_only);
        if (worth == Worth::none || !splitter.split(snapshot.key(problems[i], whole), key)) continue;
        Group& group = found[key.fixed][key.aligns];
        group.dims = key.octaves.size();
        group.octaves.insert(group.octaves.end(), key.octaves.begin(), key.octaves.end());
        group.problems.push_back(i);
        group.stale.push_back(worth == Worth::stale);
    }
    for (auto& [fixed, by_align] : found) {
        std::size_t first = 0;
        for (auto& [aligns, group] : by_align) {
            group.aligns = aligns;
            group.first = first;
            first += group.problems.size();
            sort(group, snapshot);
            groups_[fixed].push_back(std::move(group));
        }
    }
}

/// By the dim with the most values; problems that are alike in it by their keys, so that the same rows in any order
/// give the same answers.
void Neighbours::sort(Group& group, const Snapshot& snapshot) {
    const std::size_t count = group.problems.size();
    std::size_t most = 0;
    for (std::size_t dim = 0; dim < group.dims; ++dim) {
        std::vector<std::int32_t> values;
        for (std::size_t i = 0; i < count; ++i) values.push_back(group.octaves[i * group.dims + dim]);
        if (const std::size_t spread = distinct(std::move(values)); spread > most) {
            most = spread;
            group.by = dim;
        }
    }
    const auto value = [&](std::size_t i) { return group.dims ? group.octaves[i * group.dims + group.by] : 0; };
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
        if (value(a) != value(b)) return value(a) < value(b);
        return snapshot.before(snapshot.problems()[group.problems[a]], snapshot.problems()[group.problems[b]]);
    });
    Group sorted{.dims = group.dims, .by = group.by, .first = group.first, .aligns = group.aligns};
    for (const std::size_t i : order) {
        sorted.sorted.push_back(value(i));
        for (std::size_t dim = 0; dim < group.dims; ++dim)
            sorted.octaves.push_back(group.octaves[i * group.dims + dim]);
        sorted.problems.push_back(group.problems[i]);
        sorted.stale.push_back(group.stale[i]);
    }
    group = std::move(sorted);
}

/// A config may count on every alignment that it was tuned with.
bool Neighbours::may_lend(const Group& group, const SplitKey& key) noexcept {
    for (std::size_t t = 0; t < group.aligns.size(); ++t)
        if (group.aligns[t] > key.aligns[t]) return false;
    return true;
}

/// Whether the problem is near enough to lend, and how good a lender it is.
bool Neighbours::judge(const Group& group, std::size_t at, const SplitKey& key, Found& found) noexcept {
    std::int32_t distance = 0;
    std::int64_t size = 0;
    for (std::size_t dim = 0; dim < group.dims; ++dim) {
        const std::int32_t there = group.octaves[at * group.dims + dim];
        const std::int32_t apart = std::abs(there - key.octaves[dim]);
        if (rounded(apart) > most_a_dim) return false;
        distance += apart;
        size += there;
    }
    distance = rounded(distance);
    if (distance > most_in_all) return false;
    std::int32_t align = 0;
    for (const std::uint8_t there : group.aligns) align += there;
    found = {.stale = group.stale[at],
             .distance = distance,
             .size = -size / grain,
             .align = -align,
             .place = group.first + at,
             .problem = group.problems[at]};
    return true;
}

std::size_t Neighbours::nearest(const SplitKey& key, std::span<Found> out) const noexcept {
    const auto named = groups_.find(key.fixed);
    if (named == groups_.end() || out.empty()) return 0;
    std::size_t count = 0;
    for (const Group& group : named->second)
        if (may_lend(group, key)) count = search(group, key, out, count);
    return count;
}

/// Puts what the group has into `out`, whose first `count` others have found.
std::size_t Neighbours::search(const Group& group, const SplitKey& key, std::span<Found> out,
                               std::size_t count) noexcept {
    const std::int32_t here = group.dims ? key.octaves[group.by] : 0;
    const auto& sorted = group.sorted;
    // From here outwards on both sides, until what is left is further away in this one dim than all that was found.
    auto up = static_cast<std::size_t>(std::ranges::lower_bound(sorted, here) - sorted.begin());
    std::size_t down = up;
    const auto reach = [&] {
        const bool full = count == out.size() && !out[count - 1].stale;
        return std::min(most_a_dim, full ? out[count - 1].distance : most_in_all) + grain;
    };
    for (;;) {
        const bool is_up = up<sorted.size(), is_down = down> 0;
        if (!is_up && !is_down) break;
        const std::int32_t above = is_up ? sorted[up] - here : most_in_all,
                           below = is_down ? here - sorted[down - 1] : most_in_all;
        const bool climbs = is_up && (!is_down || above <= below);
        if ((climbs ? above : below) > reach()) break;
        const std::size_t at = climbs ? up++ : --down;
        Found found;
        if (!judge(group, at, key, found)) continue;
        if (count == out.size() && !(found < out[count - 1])) continue;
        std::size_t place = count < out.size() ? count++ : count - 1;
        for (; place > 0 && found < out[place - 1]; --place) out[place] = out[place - 1];
        out[place] = found;
    }
    return count;
}

}  // namespace autotune

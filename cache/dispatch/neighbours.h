#ifndef AUTOTUNE_CACHE_DISPATCH_NEIGHBOURS_H
#define AUTOTUNE_CACHE_DISPATCH_NEIGHBOURS_H

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "cache/dispatch/snapshot.h"
#include "cache/dispatch/split_key.h"

namespace autotune {

/// Whether tuning found anything that a borrower could win: more than 3 % over the op's default.
bool beat_default(const SnapshotRow& row) noexcept;

/// The problems of a snapshot by how close their dims are: what to borrow where a problem is not stored itself.
///
/// A neighbour has equal fields but for dims that the op marks `near`, tensors that are aligned no better, each dim
/// within 4x and all together within 3 octaves, and a config that beat its default. Nearest first; of equals the larger
/// problem, since what suits it has work enough for every SM.
class Neighbours {
public:
    static constexpr std::int32_t most_a_dim = 2 * octave, most_in_all = 3 * octave;

    struct Found {
        bool stale = false;         ///< every config worth borrowing is; such problems come last
        std::int32_t distance = 0;  ///< in units of 1 / octave, rounded to 1/1024 octave
        std::int64_t size = 0;      ///< negated sum of octaves: the larger problem sorts first
        std::int32_t align = 0;     ///< negated, likewise
        std::size_t place = 0;      ///< in an order that the contents alone decide
        std::uint32_t problem = 0;  ///< in Snapshot::problems()
        friend auto operator<=>(const Found&, const Found&) = default;
    };

    Neighbours() = default;
    /// local_only: rows that were measured elsewhere do not count. Made at the first miss after each read of the
    /// databases, which waits for it: some 0.5 us a problem, 25 ms for 50 000.
    Neighbours(const Op& op, const Snapshot& snapshot, bool local_only);

    /// The best of them, up to the size of `out`; returns how many. Allocates nothing; time grows with the problems
    /// whose widest-spread dim is as close as the answer's.
    std::size_t nearest(const SplitKey& key, std::span<Found> out) const noexcept;

private:
    /// Problems that differ in near dims only, by the dim whose values are most spread.
    struct Group {
        std::size_t dims = 0, by = 0;
        std::size_t first = 0;              ///< place of its first problem among those of all alignments
        std::vector<std::uint8_t> aligns;   ///< one a tensor
        std::vector<std::int32_t> sorted;   ///< of each problem its octaves of dim `by`, ascending
        std::vector<std::int32_t> octaves;  ///< `dims` a problem
        std::vector<std::uint32_t> problems;
        std::vector<bool> stale;
    };
    static void sort(Group& group, const Snapshot& snapshot);
    static bool may_lend(const Group& group, const SplitKey& key) noexcept;
    static bool judge(const Group& group, std::size_t at, const SplitKey& key, Found& found) noexcept;
    static std::size_t search(const Group& group, const SplitKey& key, std::span<Found> out,
                              std::size_t count) noexcept;

    std::unordered_map<std::string, std::vector<Group>> groups_;  ///< by fixed fields; a group for each alignment
};

}  // namespace autotune
#endif

#ifndef AUTOTUNE_CACHE_DISPATCH_ROW_TABLE_H
#define AUTOTUNE_CACHE_DISPATCH_ROW_TABLE_H

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <vector>

#include "cache/dispatch/key_parts.h"
#include "cache/dispatch/snapshot_rows.h"

namespace autotune {

/// The rows of all problems whose keys have one length, by key. A slot has the parts of a key and the best of its rows,
/// so a look-up waits for memory once: the tags, of which it needs some first, are so small that they stay in a cache.
class RowTable {
public:
    /// A key that was there before.
    struct Repeat {
        std::uint32_t first, number;  ///< of keys; by these they are ordered
    };

    /// Whether a table of these keys can say in 32 bits where each stands; only a hostile file has more.
    static bool fits(const PackedKeys& keys, std::size_t rows) noexcept {
        constexpr std::size_t most = ~std::uint32_t{0}, beside_parts = 40;
        return rows <= most && keys.count() <= most &&
               slots_for(keys.count()) * (keys.filled_size() + beside_parts) <= most;
    }
    /// The keys fit. Rows are to be put for each key that repeats none; then comes done().
    explicit RowTable(const PackedKeys& keys);
    /// Until done().
    std::span<const Repeat> repeats() const noexcept { return repeats_; }
    /// At least one row, best first. Returns the key's slot, for key(), before() and rows().
    std::uint32_t put(std::uint32_t number, std::span<const SnapshotRow> rows);
    void done();

    /// Of a key filled up as PackedKeys has them.
    SnapshotRows find(const std::byte* key) const noexcept {
        const std::uint64_t hash = parts_.hash(key);
        std::size_t at = group_of(hash);
        __builtin_prefetch(&groups_[at]);  // comes while the rest of the key is compared: of 22 ns, that saves 7
        if (!parts_.fit(key)) return {};
        for (;; at = after(at)) {
            const Group group = groups_[at];
            for (std::uint64_t hits = group.hits(tag_of(hash)); hits != 0; hits &= hits - 1) {
                const std::size_t slot = at * Group::slots + Group::slot_of(hits);
                if (parts_.same(parts_at(slot), key)) return rows(slot);
            }
            if (group.free() != 0) return {};
        }
    }
    /// The key of a slot, which is made in `buffer`.
    std::span<const std::byte> key(std::size_t slot, std::vector<std::byte>& buffer) const {
        buffer.resize(parts_.key_bytes());
        parts_.restore(parts_at(slot), buffer.data());
        return std::span{buffer}.first(key_size_);
    }
    /// Whether the key of a slot comes before another's, byte by byte.
    bool before(std::size_t slot, std::size_t other) const noexcept {
        return parts_.before(parts_at(slot), parts_at(other));
    }
    SnapshotRows rows(std::size_t slot) const noexcept {
        const std::byte* const at = slot_at(slot);
        return {std::launder(reinterpret_cast<const SnapshotRow*>(at + best_at_)),
                further_.data() + number_at<std::uint32_t>(at)};
    }
    std::size_t bytes() const noexcept;

private:
    using Tag = std::uint8_t;  ///< some bits of a key's hash; the highest one says that there is a key

    /// The tags of slots whose keys have hashes that begin alike, one a byte: all are compared at once, so that nothing
    /// hangs on the order in which keys came. What finds no room is in the next group.
    struct Group {
        static constexpr std::size_t slots = 8, wanted = 5;
        static constexpr std::uint64_t each = 0x0101'0101'0101'0101, highest = each << 7;
        std::uint64_t tags = 0;

        /// The highest bit of each slot with that tag. Above a slot that has it, one whose tag differs in its lowest bit
        /// alone may be told too, but never a free one.
        std::uint64_t hits(Tag tag) const noexcept {
            const std::uint64_t differ = tags ^ each * tag;
            return (differ - each) & ~differ & highest;
        }
        std::uint64_t free() const noexcept { return ~tags & highest; }
        /// Of the lowest bit.
        static std::size_t slot_of(std::uint64_t hits) noexcept {
            return static_cast<std::size_t>(std::countr_zero(hits)) / 8;
        }
    };
    struct alignas(64) Line {
        std::array<std::byte, 64> bytes;
    };

    static std::size_t groups_for(std::size_t keys) noexcept { return keys / Group::wanted + 1; }
    static std::size_t slots_for(std::size_t keys) noexcept { return groups_for(keys) * Group::slots; }
    static Tag tag_of(std::uint64_t hash) noexcept { return static_cast<Tag>(hash | 0x80); }
    std::size_t group_of(std::uint64_t hash) const noexcept { return scaled_to(groups_.size(), hash); }
    std::size_t after(std::size_t group) const noexcept { return group + 1 == groups_.size() ? 0 : group + 1; }
    const std::byte* slot_at(std::size_t slot) const noexcept {
        return lines_.data()->bytes.data() + slot * slot_size_;
    }
    std::byte* slot_at(std::size_t slot) noexcept { return lines_.data()->bytes.data() + slot * slot_size_; }
    const std::byte* parts_at(std::size_t slot) const noexcept { return slot_at(slot) + sizeof(std::uint32_t); }
    std::uint32_t enter(std::uint32_t number, const std::byte* key, std::uint64_t hash);

    std::size_t key_size_;
    KeyParts parts_;
    std::size_t best_at_, slot_size_;
    std::vector<Group> groups_;
    /// Slots: each the number of its second row in further_ (of its key, until its rows are put), the parts of its key,
    /// and at best_at_ its best row.
    std::vector<Line> lines_;
    std::vector<SnapshotRow> further_;
    std::vector<std::uint32_t> slot_of_;  ///< by key, until done()
    std::vector<Repeat> repeats_;
};

}  // namespace autotune
#endif

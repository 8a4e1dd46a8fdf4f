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
#include "cache/dispatch/snapshot_row.h"

namespace autotune {

/// The rows of all problems whose keys have one length, by key. A look-up waits for memory twice: for a bucket, and for
/// the parts of a key, which stand before its rows.
class RowTable {
public:
    /// A key that was there before.
    struct Repeat {
        std::uint32_t first, number;  ///< of keys; by these they are ordered
    };

    /// Whether a table of these keys can say in 32 bits where each stands; only a hostile file has more.
    static bool fits(const PackedKeys& keys, std::size_t rows) noexcept {
        constexpr std::size_t head = 32;  // beside the parts, at most
        return keys.count() * (keys.stride() + head) + rows * sizeof(SnapshotRow) <= ~std::uint32_t{0};
    }
    /// The keys fit. Rows are to be put for each key that repeats none; then comes done(), which gives back the memory
    /// of the whole keys. rows: how many there will be, at most.
    RowTable(PackedKeys keys, std::size_t rows);
    /// Until done().
    std::span<const Repeat> repeats() const noexcept { return repeats_; }
    /// Returns their entry, for key(), before() and rows().
    std::uint32_t put(std::uint32_t number, std::span<const SnapshotRow> rows);
    void done();

    /// Of a key as PackedKeys has them.
    std::span<const SnapshotRow> find(const std::byte* key) const noexcept {
        if (!parts_.fit(key)) return {};
        const std::uint64_t hash = parts_.hash(key);
        for (std::size_t at = bucket_of(hash);; at = after(at)) {
            const Bucket& bucket = buckets_[at];
            for (std::uint64_t hits = bucket.hits(tag_of(hash)); hits != 0; hits &= hits - 1) {
                const std::uint32_t entry = bucket.entries[Bucket::slot_of(hits)];
                if (parts_.same(parts_at(entry), key)) return rows_at(entry);
            }
            if (!bucket.full()) return {};
        }
    }
    /// The key of an entry, which is made in `buffer`.
    std::span<const std::byte> key(std::uint32_t entry, std::vector<std::byte>& buffer) const {
        buffer.resize(parts_.key_bytes());
        parts_.restore(parts_at(entry), buffer.data());
        return std::span{buffer}.first(key_size_);
    }
    /// Whether the key of an entry comes before another's, byte by byte.
    bool before(std::uint32_t entry, std::uint32_t other) const noexcept {
        return parts_.before(parts_at(entry), parts_at(other));
    }
    std::span<const SnapshotRow> rows(std::uint32_t entry) const noexcept { return rows_at(entry); }
    std::size_t bytes() const noexcept;

private:
    using RowCount = std::uint32_t;
    using Tag = std::uint16_t;  ///< some bits of a key's hash
    static constexpr Tag no_tag = 0;

    /// Keys whose hashes begin alike, up to eight: all of its tags are compared at once, so that nothing hangs on the
    /// order in which they came. What finds no room is in the next one. Each lies in one cache line.
    struct alignas(64) Bucket {
        static constexpr std::size_t slots = 8, wanted = 5;
        using Tags = Tag __attribute__((vector_size(slots * sizeof(Tag))));
        using Halves = std::uint64_t __attribute__((vector_size(sizeof(Tags))));

        Tags tags{};
        std::array<std::uint32_t, slots> entries{};

        /// A bit for each slot with that tag.
        std::uint64_t hits(Tag tag) const noexcept {
            const auto same = reinterpret_cast<Halves>(tags == (Tags{} + tag));
            constexpr std::uint64_t each = 0x0001'0001'0001'0001;
            return (same[0] & each) | (same[1] & each << 1);
        }
        /// Of the lowest bit.
        static std::size_t slot_of(std::uint64_t hits) noexcept {
            const auto bit = static_cast<std::size_t>(std::countr_zero(hits));
            return bit / 16 + bit % 2 * 4;
        }
        bool full() const noexcept { return hits(no_tag) == 0; }
    };

    static Tag tag_of(std::uint64_t hash) noexcept { return static_cast<Tag>(hash | 1); }
    std::size_t bucket_of(std::uint64_t hash) const noexcept { return scaled_to(buckets_.size(), hash); }
    std::size_t after(std::size_t bucket) const noexcept { return bucket + 1 == buckets_.size() ? 0 : bucket + 1; }
    /// Before the rows of an entry: their number and the parts of their key.
    std::size_t head_size() const noexcept {
        constexpr std::size_t unit = alignof(SnapshotRow);
        return (sizeof(RowCount) + parts_.bytes() + unit - 1) / unit * unit;
    }
    const std::byte* parts_at(std::uint32_t entry) const noexcept { return entries_.data() + entry + sizeof(RowCount); }
    std::span<const SnapshotRow> rows_at(std::uint32_t entry) const noexcept {
        const std::byte* const at = entries_.data() + entry;
        return {std::launder(reinterpret_cast<const SnapshotRow*>(at + head_size())), number_at<RowCount>(at)};
    }
    std::uint32_t enter(std::uint32_t number, std::uint64_t hash);

    PackedKeys keys_;  ///< until done()
    std::size_t key_size_;
    KeyParts parts_;
    std::vector<Bucket> buckets_;
    std::vector<std::byte> entries_;       ///< each its row count, the parts of its key and its rows
    std::size_t used_ = 0;                 ///< of them
    std::vector<std::uint32_t> entry_of_;  ///< by key, until done()
    std::vector<Repeat> repeats_;
};

}  // namespace autotune
#endif

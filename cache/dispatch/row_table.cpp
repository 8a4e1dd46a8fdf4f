#include "cache/dispatch/row_table.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

namespace autotune {

/// How many keys there may be is known, so the buckets of several are fetched together.
RowTable::RowTable(PackedKeys keys, std::size_t rows)
    : keys_{std::move(keys)},
      key_size_{keys_.key_size()},
      parts_{keys_},
      buckets_(keys_.count() / Bucket::wanted + 1),
      entries_(keys_.count() * head_size() + rows * sizeof(SnapshotRow)),
      entry_of_(keys_.count()) {
    std::array<std::uint64_t, 16> hashes;
    for (std::uint32_t begin = 0; begin < keys_.count(); begin += hashes.size()) {
        const std::size_t several = std::min(hashes.size(), keys_.count() - begin);
        for (std::size_t i = 0; i < several; ++i) {
            hashes[i] = parts_.hash(keys_.at(begin + i));
            __builtin_prefetch(&buckets_[bucket_of(hashes[i])], 1);
        }
        for (std::uint32_t i = 0; i < several; ++i) {
            const std::uint32_t first = enter(begin + i, hashes[i]);
            if (first != begin + i) repeats_.push_back({first, begin + i});
        }
    }
    std::ranges::sort(repeats_, {}, [](const Repeat& repeat) { return std::tuple{repeat.first, repeat.number}; });
}

/// The number of the first such key. It stands in the bucket until the entry is known.
std::uint32_t RowTable::enter(std::uint32_t number, std::uint64_t hash) {
    for (std::size_t at = bucket_of(hash);; at = after(at)) {
        Bucket& bucket = buckets_[at];
        for (std::uint64_t hits = bucket.hits(tag_of(hash)); hits != 0; hits &= hits - 1) {
            const std::uint32_t other = bucket.entries[Bucket::slot_of(hits)];
            if (std::memcmp(keys_.at(other), keys_.at(number), keys_.key_size()) == 0) return other;
        }
        if (const std::uint64_t free = bucket.hits(no_tag); free != 0) {
            const std::size_t slot = Bucket::slot_of(free);
            bucket.tags[slot] = tag_of(hash);
            return bucket.entries[slot] = number;
        }
    }
}

std::uint32_t RowTable::put(std::uint32_t number, std::span<const SnapshotRow> rows) {
    std::byte* const entry = entries_.data() + used_;
    const auto count = static_cast<RowCount>(rows.size());
    std::memcpy(entry, &count, sizeof count);
    parts_.copy(keys_.at(number), entry + sizeof count);
    std::memcpy(entry + head_size(), rows.data(), rows.size_bytes());
    entry_of_[number] = static_cast<std::uint32_t>(used_);
    used_ += head_size() + rows.size_bytes();
    return entry_of_[number];
}

void RowTable::done() {
    for (Bucket& bucket : buckets_)
        for (std::size_t slot = 0; slot < Bucket::slots; ++slot)
            if (bucket.tags[slot] != no_tag) bucket.entries[slot] = entry_of_[bucket.entries[slot]];
    keys_ = PackedKeys{key_size_};
    entry_of_ = {};
    repeats_ = {};
}

std::size_t RowTable::bytes() const noexcept {
    return keys_.bytes() + buckets_.capacity() * sizeof(Bucket) + entries_.capacity() +
           entry_of_.capacity() * sizeof(std::uint32_t);
}

}  // namespace autotune

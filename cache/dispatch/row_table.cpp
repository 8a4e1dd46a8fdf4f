#include "cache/dispatch/row_table.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace autotune {

namespace {

std::size_t aligned(std::size_t bytes) noexcept {
    constexpr std::size_t unit = alignof(SnapshotRow);
    return (bytes + unit - 1) / unit * unit;
}

}  // namespace

/// How many keys there may be is known, so the slots of several are fetched together.
RowTable::RowTable(const PackedKeys& keys)
    : key_size_{keys.key_size()},
      parts_{keys},
      best_at_{aligned(sizeof(std::uint32_t) + parts_.bytes())},
      slot_size_{best_at_ + sizeof(SnapshotRow)},
      groups_(groups_for(keys.count())),
      lines_(slots_for(keys.count()) * slot_size_ / sizeof(Line) + 1),
      slot_of_(keys.count()) {
    constexpr std::size_t most = 16;
    const std::size_t size = keys.filled_size();
    std::vector<std::byte> whole(most * size);
    std::array<std::uint64_t, most> hashes;
    for (std::uint32_t begin = 0; begin < keys.count(); begin += most) {
        const std::size_t several = std::min(most, keys.count() - begin);
        for (std::size_t i = 0; i < several; ++i) {
            std::byte* const key = whole.data() + i * size;
            keys.copy(begin + i, key);
            hashes[i] = parts_.hash(key);
            const std::size_t group = group_of(hashes[i]);
            const std::uint64_t free = groups_[group].free();
            if (free != 0) __builtin_prefetch(slot_at(group * Group::slots + Group::slot_of(free)), 1);
        }
        for (std::uint32_t i = 0; i < several; ++i) {
            const std::uint32_t first = enter(begin + i, whole.data() + i * size, hashes[i]);
            if (first != begin + i) repeats_.push_back({first, begin + i});
        }
    }
    std::ranges::sort(repeats_, {}, [](const Repeat& repeat) { return std::tuple{repeat.first, repeat.number}; });
}

/// The number of the first such key.
std::uint32_t RowTable::enter(std::uint32_t number, const std::byte* key, std::uint64_t hash) {
    for (std::size_t at = group_of(hash);; at = after(at)) {
        Group& group = groups_[at];
        for (std::uint64_t hits = group.hits(tag_of(hash)); hits != 0; hits &= hits - 1) {
            const std::size_t slot = at * Group::slots + Group::slot_of(hits);
            if (parts_.same(parts_at(slot), key)) return number_at<std::uint32_t>(slot_at(slot));
        }
        if (const std::uint64_t free = group.free(); free != 0) {
            const std::size_t place = Group::slot_of(free), slot = at * Group::slots + place;
            group.tags |= std::uint64_t{tag_of(hash)} << 8 * place;
            std::memcpy(slot_at(slot), &number, sizeof number);
            parts_.copy(key, slot_at(slot) + sizeof number);
            slot_of_[number] = static_cast<std::uint32_t>(slot);
            return number;
        }
    }
}

std::uint32_t RowTable::put(std::uint32_t number, std::span<const SnapshotRow> rows) {
    std::byte* const slot = slot_at(slot_of_[number]);
    const auto second = static_cast<std::uint32_t>(further_.size());
    SnapshotRow best = rows.front();
    best.last = rows.size() == 1;
    std::memcpy(slot, &second, sizeof second);
    std::memcpy(slot + best_at_, &best, sizeof best);
    for (SnapshotRow row : rows.subspan(1)) {
        row.last = false;
        further_.push_back(row);
    }
    if (!best.last) further_.back().last = true;
    return slot_of_[number];
}

void RowTable::done() {
    further_.shrink_to_fit();
    slot_of_ = {};
    repeats_ = {};
}

std::size_t RowTable::bytes() const noexcept {
    return groups_.capacity() * sizeof(Group) + lines_.capacity() * sizeof(Line) +
           further_.capacity() * sizeof(SnapshotRow);
}

}  // namespace autotune

#ifndef AUTOTUNE_CACHE_DISPATCH_SNAPSHOT_H
#define AUTOTUNE_CACHE_DISPATCH_SNAPSHOT_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "autotune/dispatcher.h"
#include "cache/dispatch/hashing.h"
#include "cache/store/store.h"

namespace autotune {

/// A database, and which layer it is.
struct LayeredStore {
    Store* store = nullptr;
    Layer layer = Layer::project;
};

/// A stored config as the dispatcher needs it: 40 bytes, so that 50 000 of them with their keys stay below 10 MiB.
struct SnapshotRow {
    std::uint32_t config = 0;  ///< in Snapshot::configs
    std::uint32_t source = 0;  ///< in Snapshot::sources
    std::uint32_t stale = 0;   ///< in Snapshot::reasons; 0: fresh
    std::int16_t nvrtc_major = 0, nvrtc_minor = 0;
    std::int64_t time_ns = 0, default_ns = 0;  ///< default_ns 0: not known
    Verified verified = Verified::checked;
    bool imported = false;
    Layer layer = Layer::project;
};

/// All that the databases know of one op on one kind of device, in a table that never changes: built aside, published
/// as a whole, read by any number of threads.
class Snapshot {
public:
    struct Problem {
        std::uint32_t entry_at = 0;  ///< in the pool of entries
    };

    /// The rows of the stores for the op and a device, which may have several fingerprints; stores that cannot be read
    /// just now are left out and `complete` says so.
    static Snapshot read(std::span<const LayeredStore> stores, std::string_view op,
                         std::span<const std::string> device_fps, const Today& today);
    /// Of stores of one layer.
    static Snapshot read(std::span<Store* const> stores, std::string_view op, std::string_view device_fp,
                         const Today& today);

    /// Rows of the problem, best first; empty: none.
    std::span<const SnapshotRow> find(std::span<const std::byte> key) const noexcept {
        if (slots_.empty()) return {};
        const std::uint64_t hash = hash_bytes(key);
        for (std::size_t at = hash & mask_;; at = (at + 1) & mask_) {
            const Slot& slot = slots_[at];
            if (slot.entry_at == no_entry) return {};
            if (slot.tag != static_cast<std::uint32_t>(hash >> 32)) continue;
            const Entry entry = entry_at(slot.entry_at);
            if (entry.key_size == key.size() && same_bytes(key_at(slot.entry_at), key.data(), key.size()))
                return rows_of(entry);
        }
    }

    const Config& config(const SnapshotRow& row) const noexcept { return configs_[row.config]; }
    const TemplateIdentity& source(const SnapshotRow& row) const noexcept { return sources_[row.source]; }
    const std::string& stale(const SnapshotRow& row) const noexcept { return reasons_[row.stale]; }
    std::span<const Problem> problems() const noexcept { return problems_; }
    std::span<const std::byte> key(const Problem& problem) const noexcept {
        return {key_at(problem.entry_at), entry_at(problem.entry_at).key_size};
    }
    std::span<const SnapshotRow> rows(const Problem& problem) const noexcept {
        return rows_of(entry_at(problem.entry_at));
    }
    bool complete() const noexcept { return complete_; }
    std::size_t bytes() const noexcept;

private:
    static constexpr std::uint32_t no_entry = ~std::uint32_t{0};
    struct Slot {
        std::uint32_t tag = 0, entry_at = no_entry;
    };
    /// Stands before its key in the pool: a look-up that hits waits for its slot's cache line and for this one.
    struct Entry {
        std::uint32_t key_size = 0, first_row = 0, row_count = 0;
    };
    Entry entry_at(std::uint32_t at) const noexcept { return number_at<Entry>(entries_.data() + at); }
    const std::byte* key_at(std::uint32_t entry_at) const noexcept {
        return entries_.data() + entry_at + sizeof(Entry);
    }
    std::span<const SnapshotRow> rows_of(const Entry& entry) const noexcept {
        return {rows_.data() + entry.first_row, entry.row_count};
    }
    class Builder;

    std::vector<Slot> slots_;
    std::size_t mask_ = 0;
    std::vector<Problem> problems_;
    std::vector<SnapshotRow> rows_;
    std::vector<std::byte> entries_;
    std::vector<Config> configs_;
    std::vector<TemplateIdentity> sources_;
    std::vector<std::string> reasons_{std::string{}};
    bool complete_ = true;
};

}  // namespace autotune
#endif

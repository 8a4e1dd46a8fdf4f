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
        std::uint32_t key_at = 0, key_size = 0;  ///< in the pool of keys
        std::uint32_t first_row = 0, row_count = 0;
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
            if (slot.problem == no_problem) return {};
            if (slot.tag != static_cast<std::uint32_t>(hash >> 32) || slot.key_size != key.size()) continue;
            // Where the key lies stands in the slot too, so that both are fetched at once.
            __builtin_prefetch(&problems_[slot.problem]);
            if (std::memcmp(keys_.data() + slot.key_at, key.data(), key.size()) == 0) {
                const Problem& problem = problems_[slot.problem];
                return {rows_.data() + problem.first_row, problem.row_count};
            }
        }
    }

    const Config& config(const SnapshotRow& row) const noexcept { return configs_[row.config]; }
    const TemplateIdentity& source(const SnapshotRow& row) const noexcept { return sources_[row.source]; }
    const std::string& stale(const SnapshotRow& row) const noexcept { return reasons_[row.stale]; }
    std::span<const Problem> problems() const noexcept { return problems_; }
    std::span<const std::byte> key(const Problem& problem) const noexcept {
        return {keys_.data() + problem.key_at, problem.key_size};
    }
    std::span<const SnapshotRow> rows(const Problem& problem) const noexcept {
        return {rows_.data() + problem.first_row, problem.row_count};
    }
    bool complete() const noexcept { return complete_; }
    std::size_t bytes() const noexcept;

private:
    static constexpr std::uint32_t no_problem = ~std::uint32_t{0};
    struct Slot {
        std::uint32_t tag = 0, problem = no_problem;
        std::uint32_t key_at = 0, key_size = 0;
    };
    class Builder;

    std::vector<Slot> slots_;
    std::size_t mask_ = 0;
    std::vector<Problem> problems_;
    std::vector<SnapshotRow> rows_;
    std::vector<std::byte> keys_;
    std::vector<Config> configs_;
    std::vector<TemplateIdentity> sources_;
    std::vector<std::string> reasons_{std::string{}};
    bool complete_ = true;
};

}  // namespace autotune
#endif

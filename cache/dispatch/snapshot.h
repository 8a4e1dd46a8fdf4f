#ifndef AUTOTUNE_CACHE_DISPATCH_SNAPSHOT_H
#define AUTOTUNE_CACHE_DISPATCH_SNAPSHOT_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/dispatcher.h"
#include "cache/dispatch/row_table.h"
#include "cache/dispatch/snapshot_rows.h"
#include "cache/store/store.h"

namespace autotune {

/// A database, and which layer it is.
struct LayeredStore {
    Store* store = nullptr;
    Layer layer = Layer::project;
};

/// All that the databases know of one op on one kind of device, in a table that never changes: built aside, published
/// as a whole, read by any number of threads.
class Snapshot {
public:
    struct Problem {
        std::uint32_t table = 0, slot = 0;  ///< in that
    };

    /// The rows of the stores for the op and a device, which may have several fingerprints; stores that cannot be read
    /// just now are left out and `complete` says so.
    static Snapshot read(std::span<const LayeredStore> stores, std::string_view op,
                         std::span<const std::string> device_fps, const Today& today);
    /// Of stores of one layer.
    static Snapshot read(std::span<Store* const> stores, std::string_view op, std::string_view device_fp,
                         const Today& today);

    /// Rows of the problem, best first; empty: none.
    SnapshotRows find(std::span<const std::byte> key) const noexcept {
        if (key.size() >= table_of_size_.size() || table_of_size_[key.size()] == no_table) return {};
        PackedKeys::FilledUp filled_up;
        return tables_[table_of_size_[key.size()]].find(PackedKeys::like_packed(key, filled_up));
    }

    const Config& config(const SnapshotRow& row) const noexcept { return configs_[row.config]; }
    const RowProvenance& provenance(const SnapshotRow& row) const noexcept { return provenances_[row.provenance]; }
    const TemplateIdentity& source(const SnapshotRow& row) const noexcept { return sources_[provenance(row).source]; }
    bool fresh(const SnapshotRow& row) const noexcept { return provenance(row).stale == 0; }
    /// Why it is not fresh.
    const std::string& stale(const SnapshotRow& row) const noexcept { return reasons_[provenance(row).stale]; }
    std::span<const Problem> problems() const noexcept { return problems_; }
    /// Its key, which is made in `buffer`: no table keeps it as a whole.
    std::span<const std::byte> key(const Problem& problem, std::vector<std::byte>& buffer) const {
        return tables_[problem.table].key(problem.slot, buffer);
    }
    /// By the lengths of keys, then by their bytes: an order that no order of rows changes.
    bool before(const Problem& problem, const Problem& other) const noexcept {
        if (problem.table != other.table) return problem.table < other.table;
        return tables_[problem.table].before(problem.slot, other.slot);
    }
    SnapshotRows rows(const Problem& problem) const noexcept { return tables_[problem.table].rows(problem.slot); }
    bool complete() const noexcept { return complete_; }
    std::size_t bytes() const noexcept;

private:
    static constexpr std::uint32_t no_table = ~std::uint32_t{0};
    class Builder;

    std::vector<std::uint32_t> table_of_size_;
    std::vector<RowTable> tables_;
    std::vector<Problem> problems_;
    std::vector<Config> configs_;
    std::vector<RowProvenance> provenances_;
    std::vector<TemplateIdentity> sources_;
    std::vector<std::string> reasons_{std::string{}};
    bool complete_ = true;
};

}  // namespace autotune
#endif

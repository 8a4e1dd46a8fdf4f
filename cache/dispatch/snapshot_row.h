#ifndef AUTOTUNE_CACHE_DISPATCH_SNAPSHOT_ROW_H
#define AUTOTUNE_CACHE_DISPATCH_SNAPSHOT_ROW_H

#include <compare>
#include <cstdint>

#include "autotune/dispatcher.h"
#include "cache/store/record.h"

namespace autotune {

/// What many rows of a snapshot have in common: where they come from and what they are worth.
struct RowProvenance {
    std::uint32_t source = 0;  ///< in Snapshot::sources_
    std::uint32_t stale = 0;   ///< in Snapshot::reasons_; 0: fresh
    std::int16_t nvrtc_major = 0, nvrtc_minor = 0;
    Verified verified = Verified::checked;
    bool imported = false;
    Layer layer = Layer::project;
    friend auto operator<=>(const RowProvenance&, const RowProvenance&) = default;
};

/// A stored config as the dispatcher needs it: small, since a look-up waits for it to come from memory.
struct SnapshotRow {
    static constexpr std::uint32_t most_provenances = ~std::uint32_t{0} >> 1;  ///< far more than fit in memory

    std::uint32_t config = 0;                  ///< for Snapshot::config
    std::uint32_t provenance : 31 = 0;         ///< for Snapshot::provenance
    std::uint32_t last : 1 = 0;                ///< of its problem's rows: RowTable says so
    std::int64_t time_ns = 0, default_ns = 0;  ///< default_ns 0: not known
};

}  // namespace autotune
#endif

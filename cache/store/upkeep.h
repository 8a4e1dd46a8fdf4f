#ifndef AUTOTUNE_CACHE_STORE_UPKEEP_H
#define AUTOTUNE_CACHE_STORE_UPKEEP_H

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cache/store/store.h"

namespace autotune {

class Database;

/// What is stored of one op on one device.
struct StoredGroup {
    std::string op{}, device_fp{}, device_name{};
    std::size_t problems = 0, records = 0, stale = 0, imported = 0;
    std::int64_t oldest = 0, newest = 0;  ///< seconds since 1970, of the records; 0: there are none
};

struct Statistics {
    std::map<std::string, std::int64_t> rows{};               ///< a table, as Store::row_counts
    std::uint64_t bytes = 0, trials_bytes = 0;                ///< of the two files
    std::uint64_t unused_bytes = 0, unused_trials_bytes = 0;  ///< of these, what a compact gives back
    std::size_t spool_files = 0;
    int schema = 0;
    std::vector<StoredGroup> groups{};  ///< by op, then device
};

/// What goes, each member for itself; nothing by default. A record that waits beside a better one goes by the same
/// rules as one that stands: what an import brought and nobody has timed here is as stale and as old as what was.
struct PruneRules {
    bool trials = false;  ///< the outcomes of ended searches: a new search tries their configs again
    bool stale = false;   ///< records of ops that are loaded and whose sources, space or compiler are others today
    /// From before this many seconds ago: of what the other two name, or, alone, all records and outcomes. What is
    /// dated in the future stays.
    std::optional<std::int64_t> older_than{};
};

struct Pruned {
    std::size_t records = 0, trials = 0;
    std::size_t waiting = 0;            ///< records that waited beside others
    std::size_t not_removed = 0;        ///< damaged records that no key leads to: salvage() leaves them out
    std::size_t negatives = 0;          ///< refusals of templates that are gone: they go with any rule
    std::size_t runs = 0, configs = 0;  ///< that nothing speaks of any more
};

struct Compacted {
    std::size_t folded = 0;                           ///< records of spool files
    std::uint64_t bytes_before = 0, bytes_after = 0;  ///< of both files
};

struct Salvaged {
    std::size_t records = 0, predictions = 0, negatives = 0, runs = 0, trials = 0;  ///< copied
    std::size_t waiting = 0;     ///< copied: records and predictions that wait beside others, of imports or behind one
    std::size_t unreadable = 0;  ///< rows that were met and whose checksum or parts fail
    bool cut_off = false;        ///< pages are missing or broken, so there may have been more rows
};

/// What `autotune db` does to keep a database small, and what it tells of it.
class Upkeep {
public:
    explicit Upkeep(Store& store) noexcept : store_{store} {}

    Statistics statistics(const Today& today) const;
    /// dry_run: tells what would go, and changes nothing. Throws Error{store}; Error{usage} where the clock is so far
    /// ahead of all that is stored that an age means nothing.
    Pruned prune(const PruneRules& rules, const Today& today, bool dry_run);
    /// Takes spool files in and gives unused pages back. Where hosts share the folder it makes a new file and renames
    /// it, one process at a time. Throws Error{store}.
    Compacted compact();

    /// The work of salvage(). trials: null where there are none.
    static Salvaged copy_readable(Database& from, Database* trials, Store& to);

private:
    void fold_shared(Compacted& out);
    Store& store_;
};

/// Everything that is wrong with the database at that path: its pages, its references and the checksum of each record,
/// prediction's part and trial; empty: sound. Throws Error{usage} when there is none or it is not ours.
std::vector<std::string> faults_of(const std::filesystem::path& database);

/// Copies what can be read of a broken database, with the trials beside it, into a new one, which is there when all of
/// it is; the broken one is only read. Throws Error{usage} when `to` exists or `from` is none of ours, Error{store}
/// when `to` cannot be written.
Salvaged salvage(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace autotune
#endif

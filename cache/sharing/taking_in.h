#ifndef AUTOTUNE_CACHE_SHARING_TAKING_IN_H
#define AUTOTUNE_CACHE_SHARING_TAKING_IN_H

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cache/sharing/bundle.h"
#include "cache/sharing/intake.h"
#include "cache/store/foreign_database.h"
#include "cache/store/store.h"
#include "tuner/model/op_set.h"

namespace autotune {

struct TakingInOptions {
    const OpSet* ops = nullptr;  ///< what is valid here; must not be null
    Trust trust = Trust::elsewhere;
    bool dry_run = false;        ///< tells what would be, and writes nothing
    std::size_t most_named = 5;  ///< refused rows that are named one by one
    ForeignDatabase::Limits limits{};
    std::size_t most_rows = 20'000'000;
    /// Sees each bundle before anything is written; what it throws refuses all files. Of a bundle, only records go in.
    std::function<void(const Bundle& bundle)> see_bundle{};
    /// Asked every 2,048 rows; true: nothing of any file is taken in, and Error{interrupted} says so.
    std::function<bool()> stopped{};
};

/// A row that is not taken in.
struct RefusedRow {
    std::size_t number = 0;  ///< in its file, from 1: the row of a database, the line of a text
    std::string op{};        ///< as the file says
    std::string reason{};
};

/// What became of one file's rows.
struct TakenIn {
    std::string file{};
    std::string sha256{}, source_uuid{};
    std::int64_t import_id = 0;  ///< in import_log; 0: nothing was changed
    std::size_t rows = 0, added = 0, better = 0, not_better = 0, refused = 0;
    std::vector<RefusedRow> named{};               ///< the first of those refused
    std::map<std::string, std::size_t> reasons{};  ///< each with its count; beyond 100 different ones: "others"
};

/// Takes records out of files of elsewhere into the store: databases, JSON lines as export writes them, and bundles,
/// told apart by their first bytes. All files go in or, where one of them is no such file, none. The store's own better
/// rows stay. Throws Error{usage} for a file that is none, Error{store} where the store can't be written.
std::vector<TakenIn> take_in(Store& store, const std::vector<std::filesystem::path>& files,
                             const TakingInOptions& options);

/// What take_in does with one file in memory, for tests of hostile ones. `name` stands for it in messages.
TakenIn take_in_bytes(Store& store, std::vector<std::byte> bytes, const std::string& name,
                      const TakingInOptions& options);

/// What taking an import out did.
struct Reverted {
    std::size_t records = 0, predictions = 0;  ///< that stood, and are gone
    std::size_t back = 0;                      ///< what they had displaced, and stands again
};
/// Takes an import or a merge out, as if it had never been: what else was imported, merged, measured and verified stays
/// and stands as it would. Of rows alone: what they made `verify` measure here stays.
/// Throws Error{usage} where there is no such import.
Reverted revert_import(Store& store, std::int64_t import_id, bool dry_run);

/// A row of import_log.
struct ImportEntry {
    std::int64_t id = 0, when = 0;  ///< seconds since 1970
    std::string source_uuid{}, sha256{}, policy{};
    std::size_t rows = 0, accepted = 0;
    std::size_t standing = 0;  ///< records and predictions of it that are here now
    std::size_t beside = 0;    ///< those that wait beside better ones
    std::string rejected_json{};
};
/// Oldest first.
std::vector<ImportEntry> imports(const Store& store);

}  // namespace autotune
#endif

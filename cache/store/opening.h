#ifndef AUTOTUNE_CACHE_STORE_OPENING_H
#define AUTOTUNE_CACHE_STORE_OPENING_H

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cache/store/database.h"
#include "cache/store/store.h"

namespace autotune {

struct Migration;

/// The two databases of a store, opened one way or another.
struct Opened {
    enum class Where {
        file,    ///< on disk
        memory,  ///< what the file held, if anything; nothing is written
        spool,   ///< the same, and records also go to spool files
    };
    Where where = Where::memory;
    bool may_write = false;        ///< file only: the mode was write
    bool own_place = false;        ///< not named by anybody: a broken file may be set aside
    std::filesystem::path path{};  ///< empty: nothing on disk
    std::string state{};           ///< for `doctor`
    Database tune = Database::in_memory(), trials = Database::in_memory();
    std::optional<Database> on_disk{};  ///< the file, where a reader works on a copy of it: of an older schema
};

/// The help of the Error{store} for a damaged file.
inline constexpr std::string_view damaged_help =
    "autotune db salvage copies what can be read of it; --db names another place";
/// The same for a file that another process holds just now: the one that waiting mends.
inline constexpr std::string_view locked_help = "run the command again once the other process has ended";

/// 32 hex digits that nothing else has: of a database, of a run.
std::string random_uuid();

/// Store::open_bytes.
Opened open_bytes(std::span<const std::byte> bytes);

/// All the cases of Store::open; allow_shared_folder counts as it stands. Spool files are not looked at.
Opened open_databases(const Store::Options& options);
/// The same with other steps than migrations().
Opened open_databases(const Store::Options& options, std::span<const Migration> steps);

/// After damage that only showed later: sets the broken file at our own place aside and opens an empty one.
/// trials: that of the two databases which is damaged.
void replace_damaged(Opened& opened, const Store::Options& options, bool trials);

/// Opens what another process has put in the place of either file.
void reopen_replaced(Opened& opened, const Store::Options& options);

/// A copy of the database under another name, or an empty one where there is none, which nobody else knows of.
Opened open_for_folding(const std::filesystem::path& database, const std::filesystem::path& copy,
                        const Store::Options& options);
/// Renames the copy to the database, once its bytes are on the disk; its name is there when this returns. False when
/// that failed.
bool put_in_place(const std::filesystem::path& copy, const std::filesystem::path& database);
/// A file of SQLite's with what lies beside it.
void remove_database(const std::filesystem::path& path) noexcept;

/// Spool files lie here.
std::filesystem::path spool_folder(const std::filesystem::path& database);

}  // namespace autotune
#endif

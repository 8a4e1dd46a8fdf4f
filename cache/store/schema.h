#ifndef AUTOTUNE_CACHE_STORE_SCHEMA_H
#define AUTOTUNE_CACHE_STORE_SCHEMA_H

#include <string_view>
#include <vector>

namespace autotune {

class Database;

/// Marks our files at byte 68 of the header: "ATUN".
inline constexpr int application_id = 0x4154554E;
/// What this program writes, at byte 60. Additive changes keep min_reader; a reader ignores files above its own version
/// only when their min_reader is. A change comes with its step in migration.cpp.
inline constexpr int schema_version = 1;
/// Names the folder of the default place: what is not additive goes to a folder of its own.
inline constexpr int schema_major = 1;

/// Tables of tune.db and of trials.db: STRICT, no triggers, views, generated columns or virtual tables, so that a file
/// of elsewhere with anything more is refused.
extern const char* const tune_schema;
extern const char* const trials_schema;

/// The tables that a schema makes.
std::vector<std::string_view> tables_of(std::string_view schema);
/// A file of ours that lacks a table would fail in the middle of a search: DatabaseFailure{SQLITE_CORRUPT}.
void require_tables(Database& database, std::string_view schema);

}  // namespace autotune
#endif

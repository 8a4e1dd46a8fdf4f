#ifndef AUTOTUNE_CACHE_STORE_SCHEMA_H
#define AUTOTUNE_CACHE_STORE_SCHEMA_H

#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace autotune {

class Database;

/// Marks our files at byte 68 of the header: "ATUN".
inline constexpr int application_id = 0x4154554E;
/// What this program writes, at byte 60. A reader ignores files above its own version only when their min_reader is: a
/// change that is not additive raises that. A change comes with its step in migration.cpp and its literal in
/// old_schemas.h.
inline constexpr int schema_version = 3;
/// The oldest schema whose programs read what this one writes.
inline constexpr int min_reader = 3;
/// Names the folder of the default place.
inline constexpr int schema_major = 1;

/// Tables of tune.db and of trials.db: STRICT, no triggers, views, generated columns or virtual tables, so that a file
/// of elsewhere with anything more is refused.
extern const char* const tune_schema;
extern const char* const trials_schema;

/// The statement that makes a table or an index of it: "TABLE run", "INDEX run_by_number".
std::string statement_of(std::string_view schema, std::string_view made);
/// The tables that a schema makes.
std::vector<std::string_view> tables_of(std::string_view schema);

/// type, name, table and text of everything in a schema, without blanks and quotes that say nothing: a migration and an
/// ALTER write these in their own way. What ANALYZE keeps is left out: it decides nothing.
using SchemaRows = std::set<std::tuple<std::string, std::string, std::string, std::string>>;
SchemaRows schema_rows(Database& database);
/// Those of a literal, today's or an earlier one, made once.
const SchemaRows& our_schema_rows(std::string_view schema);
/// Those of a tune.db of schema `version`, 1 to today's.
const SchemaRows& tune_schema_rows(int version);

/// A file that lacks a table would fail in the middle of a search, and what it has beside ours may run when it is used:
/// then throws DatabaseFailure{SQLITE_CORRUPT}. Of today's schema nothing may differ; a newer one may have more tables,
/// columns and indexes; an older one may lack some.
void require_our_schema(Database& database, std::string_view schema);

/// The policy of a merge of schema 1, which did not keep what it brought.
inline constexpr std::string_view old_merge = "old merge";

}  // namespace autotune
#endif

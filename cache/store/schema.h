#ifndef AUTOTUNE_CACHE_STORE_SCHEMA_H
#define AUTOTUNE_CACHE_STORE_SCHEMA_H

namespace autotune {

/// Marks our files at byte 68 of the header: "ATUN".
inline constexpr int application_id = 0x4154554E;
/// What this program writes, at byte 60. Additive changes keep min_reader; a reader ignores files above its own version
/// only when their min_reader is.
inline constexpr int schema_version = 1;

/// Tables of tune.db and of trials.db: STRICT, no triggers, views, generated columns or virtual tables, so that a file
/// of elsewhere with anything more is refused.
extern const char* const tune_schema;
extern const char* const trials_schema;

}  // namespace autotune
#endif

#ifndef AUTOTUNE_CACHE_STORE_OLD_SCHEMAS_H
#define AUTOTUNE_CACHE_STORE_OLD_SCHEMAS_H

namespace autotune {

// The tables of tune.db as earlier programs made them. Their files are migrated, and taken in by an import, and what
// differs from these is refused.

extern const char* const tune_schema_1;
/// Each row says which import brought it, and what competes for a key with a better one waits in a table beside.
extern const char* const tune_schema_2;

}  // namespace autotune
#endif

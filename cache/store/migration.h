#ifndef AUTOTUNE_CACHE_STORE_MIGRATION_H
#define AUTOTUNE_CACHE_STORE_MIGRATION_H

#include <chrono>
#include <filesystem>
#include <span>
#include <string>

#include "cache/store/database.h"
#include "cache/store/schema.h"

namespace autotune {

/// One step from a schema to the next: what earlier programs would read wrongly raises min_reader. Code rather than
/// SQL: a new column of a record changes its crc.
struct Migration {
    int from = 0;        ///< to from + 1
    int min_reader = 1;  ///< the oldest schema whose programs read the result rightly
    /// Run within the transaction; nullptr: that file stays as it is.
    void (*tune)(Database&) = nullptr;
    void (*trials)(Database&) = nullptr;
};

/// What leads from each released schema to today's, in order.
std::span<const Migration> migrations() noexcept;

/// The file is as it was. what(): "has schema 1 and cannot be brought to 2: the disk is full".
class MigrationFailure : public DatabaseFailure {
public:
    using DatabaseFailure::DatabaseFailure;
};

/// The schema's number, as the database says.
int schema_of(Database& database);

/// Brings a database that nobody else sees to schema `to`, in one transaction; nothing happens where it is there.
/// Throws MigrationFailure.
void migrate(Database& database, bool trials, std::span<const Migration> steps = migrations(), int to = schema_version);

/// The same of a file, behind its other writers: one immediate transaction, after a copy beside it (PATH.schema-N) that
/// goes with success. A process that is killed leaves the file as it was and the copy; the next one begins anew. Needs
/// some two and a half times the space that the file takes, of which most comes back with a compact.
/// Throws MigrationFailure; DatabaseFailure where the file is locked or damaged.
void migrate_file(const std::filesystem::path& path, bool trials, std::chrono::milliseconds patience,
                  std::span<const Migration> steps = migrations(), int to = schema_version);

/// Removes the copies of a file that is of today's schema: whoever was killed between the commit and the removal left
/// one.
void remove_copies(const std::filesystem::path& path);

}  // namespace autotune
#endif

#ifndef AUTOTUNE_CACHE_STORE_SPOOL_H
#define AUTOTUNE_CACHE_STORE_SPOOL_H

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/store/file.h"
#include "cache/store/record.h"

namespace autotune {

/// Records that could not go into the database, one file a write, whole or not at all: `HOST-PID-TIME-NUMBER.jsonl`,
/// a line a record. Where several hosts share the folder this is how they write. Returns the file; empty when it could
/// not be written either.
std::filesystem::path write_spool(const std::filesystem::path& folder, std::span<const Record> records);

/// The spool files there are, oldest name first.
std::vector<std::filesystem::path> spool_files(const std::filesystem::path& folder);

/// A number of 2^62 or more that changes with the files; 0: there are none.
std::int64_t spool_mark(const std::filesystem::path& folder);

struct SpoolContents {
    std::vector<Record> records{};
    std::size_t refused = 0;  ///< lines that are no records, or records of a newer program
};
/// nullopt when the file could not be read whole, since it is too large or may be of other writers: then it may hold
/// more than was seen.
std::optional<SpoolContents> read_spool(const std::filesystem::path& file, Writers writers);

/// A file of more bytes is not read, and a longer line is no record.
inline constexpr std::uint64_t most_spool_bytes = 256 << 20;
inline constexpr std::size_t longest_spool_line = 1 << 20;
/// So many records make no file that is too large.
inline constexpr std::size_t most_spooled = 10'000;

/// Renames a file that has lines nobody here can read, so that it is not read again and not lost either: NAME.refused.
/// Returns the new path; empty when that failed.
std::filesystem::path set_spool_aside(const std::filesystem::path& file);

/// SHA-256 of the host's name: tells hosts apart and names none.
std::string host_hash();

}  // namespace autotune
#endif

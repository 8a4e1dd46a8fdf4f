#ifndef AUTOTUNE_CACHE_STORE_SPOOL_H
#define AUTOTUNE_CACHE_STORE_SPOOL_H

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "cache/store/record.h"

namespace autotune {

/// Records that could not go into the database, one file a write, whole or not at all: `HOST-PID-NUMBER.jsonl`, a line
/// a record. Where several hosts share the folder this is how they write. Returns the file; empty when it could not be
/// written either.
std::filesystem::path write_spool(const std::filesystem::path& folder, std::span<const Record> records);

/// The spool files there are, oldest name first.
std::vector<std::filesystem::path> spool_files(const std::filesystem::path& folder);

/// The records of a file; lines that are none are counted and left out.
std::vector<Record> read_spool(const std::filesystem::path& file, std::size_t* refused = nullptr);

/// SHA-256 of the host's name: tells hosts apart and names none.
std::string host_hash();

}  // namespace autotune
#endif

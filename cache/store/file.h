#ifndef AUTOTUNE_CACHE_STORE_FILE_H
#define AUTOTUNE_CACHE_STORE_FILE_H

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace autotune {

/// Makes the file appear with all its bytes or not at all, also across a power cut: written beside it, synced, renamed,
/// the folder synced. False, with errno, when that failed; nothing is left behind then. A folder, pipe or device that
/// stands there is no file, and stays: EEXIST.
enum class Mode { under_umask, exact };
bool write_file_whole(const std::filesystem::path& path, std::span<const std::byte> bytes, unsigned mode = 0600,
                      Mode kind = Mode::under_umask);

/// Brings a file's bytes to the disk. False, with errno, when that failed.
bool sync_file(const std::filesystem::path& file);
/// Brings to the disk which names that folder has, where its file system can.
void sync_folder_of(const std::filesystem::path& file);

/// Whose files are read: anybody's, or only those that nobody else can have written to (location.h: untrusted).
enum class Writers { any, trusted };
/// nullopt when it cannot be read, is no regular file, holds more than `most_bytes` or may be of other writers.
std::optional<std::vector<std::byte>> read_file_whole(const std::filesystem::path& path,
                                                      std::uint64_t most_bytes = UINT64_MAX,
                                                      Writers writers = Writers::any);

/// Removes what killed processes left of write_file_whole(), of databases in the making and of folders in which some
/// were made, a day or more ago: in a folder of ours, or in another that of the files which begin with this name.
void sweep_unfinished(const std::filesystem::path& folder, std::string_view name = {});

}  // namespace autotune
#endif

#ifndef AUTOTUNE_TOOLS_NAMED_FILE_H
#define AUTOTUNE_TOOLS_NAMED_FILE_H

#include <cstddef>
#include <filesystem>
#include <istream>
#include <memory>
#include <span>
#include <string_view>

namespace autotune {

/// Throws Error{usage} where a result must not go: the database in use (empty: none), what belongs to it, and any file
/// that begins as an SQLite database.
void refuse_as_output(const std::filesystem::path& path, const std::filesystem::path& database);

/// Puts a result where the user said. A regular file appears whole or not at all, with the mode that it had, else this
/// one under the umask; a link leads to what it names. Pipes and character devices are written to, until an interrupt.
/// Throws Error{usage} for what refuse_as_output() and folders and disks are, and where the path cannot be written;
/// Error{store} where the disk is full or fails; Error{interrupted}.
void write_named_file(const std::filesystem::path& path, std::span<const std::byte> bytes,
                      const std::filesystem::path& database, unsigned mode = 0600);
void write_named_file(const std::filesystem::path& path, std::string_view text, const std::filesystem::path& database,
                      unsigned mode = 0600);

/// A file or pipe to read, whose reads throw Error{interrupted} after an interrupt, also while no writer has come to a
/// pipe. Null, with errno, when it cannot be opened.
std::unique_ptr<std::istream> open_named_file(const std::filesystem::path& path);

}  // namespace autotune
#endif

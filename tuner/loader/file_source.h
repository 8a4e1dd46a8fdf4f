#ifndef AUTOTUNE_LOADER_FILE_SOURCE_H
#define AUTOTUNE_LOADER_FILE_SOURCE_H

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace autotune {

inline constexpr std::size_t largest_source = 4u << 20;  ///< bytes of one file that an op names
inline constexpr std::size_t most_files = 256;           ///< of one op, and of op files in a folder

/// Where the files come from that an op names.
class FileSource {
public:
    virtual ~FileSource() = default;
    /// nullopt: there is none. Throws Error{usage} for one that may not be read; the message names it.
    virtual std::optional<std::string> read(std::string_view path) const = 0;
    virtual bool has(std::string_view path) const { return read(path).has_value(); }
};

/// The files of a folder, and nothing outside: no `..`, no absolute path, no symbolic link that leaves it.
class FolderFiles : public FileSource {
public:
    explicit FolderFiles(std::filesystem::path folder);
    std::optional<std::string> read(std::string_view path) const override;
    bool has(std::string_view path) const override;

private:
    std::optional<std::filesystem::path> inside(std::string_view path) const;
    std::filesystem::path folder_;
};

/// Files in memory: the built-in templates and headers, and tests.
class MemoryFiles : public FileSource {
public:
    MemoryFiles() = default;
    explicit MemoryFiles(std::map<std::string, std::string, std::less<>> files) : files_{std::move(files)} {}
    std::optional<std::string> read(std::string_view path) const override;

private:
    std::map<std::string, std::string, std::less<>> files_;
};

/// The names in `#include "..."` lines of a source, in order.
std::vector<std::string> quoted_includes(std::string_view source);

}  // namespace autotune
#endif

#ifndef AUTOTUNE_CACHE_SHARING_FILE_IN_MAKING_H
#define AUTOTUNE_CACHE_SHARING_FILE_IN_MAKING_H

#include <filesystem>
#include <string>

#include "cache/store/database.h"

namespace autotune {

/// A file of SQLite that is being made under another name, and appears whole or not at all; it never replaces one.
class FileInMaking {
public:
    /// Throws Error{usage} where there is such a file already, or no such folder.
    explicit FileInMaking(std::filesystem::path path);
    FileInMaking(const FileInMaking&) = delete;
    FileInMaking& operator=(const FileInMaking&) = delete;
    ~FileInMaking();

    /// Where to write it.
    const std::filesystem::path& making() const noexcept { return making_; }
    /// Throws what SQLite's failure means: Error{store} for a full disk, else Error{usage}.
    [[noreturn]] void fail(const DatabaseFailure& failure) const;
    /// Puts it in its place. Throws Error{usage} where another one has come there meanwhile.
    void appear() const;

private:
    std::filesystem::path path_, making_;
};

}  // namespace autotune
#endif

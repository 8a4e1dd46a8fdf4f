#ifndef AUTOTUNE_CACHE_STORE_DATABASE_FILE_H
#define AUTOTUNE_CACHE_STORE_DATABASE_FILE_H

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

struct sqlite3_file;

namespace autotune {

/// The bytes of a file that may be a database which this process has open. They are read through a handle of SQLite's:
/// to close any other would give up all locks that this process has on the file, in the middle of another thread's
/// write.
class DatabaseFile {
public:
    enum class Links { follow, refuse };
    /// Opens a regular file for reading; error() says how that went.
    explicit DatabaseFile(const std::filesystem::path& path, Links links = Links::follow);
    DatabaseFile(const DatabaseFile&) = delete;
    DatabaseFile& operator=(const DatabaseFile&) = delete;
    ~DatabaseFile();

    /// An errno; 0: it is open. EINVAL: what is there is no regular file. ELOOP: it is a link and may not be, or leads
    /// round and round.
    int error() const noexcept { return error_; }
    /// False: there is not as much, or it cannot be read.
    bool read(std::span<std::byte> bytes, std::uint64_t offset = 0) const;
    std::uint64_t size() const;
    /// False where the file system has none: then SQLite says that another process has the file. A file that could not
    /// be opened says nothing of that.
    bool may_be_locked() const;

private:
    std::unique_ptr<std::max_align_t[]> memory_{};
    const char* name_ = nullptr;  ///< SQLite wants it to outlive the handle
    sqlite3_file* file_ = nullptr;
    int error_ = 0;
};

}  // namespace autotune
#endif

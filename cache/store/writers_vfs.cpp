#include "cache/store/writers_vfs.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace autotune {

namespace {

class Descriptor {
public:
    explicit Descriptor(int file) noexcept : file_{file} {}
    Descriptor(Descriptor&& other) noexcept : file_{std::exchange(other.file_, -1)} {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(file_, other.file_);
        return *this;
    }
    ~Descriptor() {
        if (file_ >= 0) ::close(file_);
    }
    int get() const noexcept { return file_; }
    /// Whether the path names the file that is open here.
    bool is_at(const char* path) const noexcept {
        struct stat mine {
        }, there{};
        return ::fstat(file_, &mine) == 0 && ::lstat(path, &there) == 0 && S_ISREG(there.st_mode) &&
               mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
    }
    bool has_no_name() const noexcept {
        struct stat mine {};
        return ::fstat(file_, &mine) != 0 || mine.st_nlink == 0;
    }

private:
    int file_;
};

/// Journals whose names are on the disk. Each is kept open: as long as it is, no other file gets its number.
class SyncedJournals {
public:
    /// Called by who holds the database's write lock: nobody else makes or removes the journal meanwhile.
    bool contains(const char* path) {
        const std::scoped_lock lock{mutex_};
        if (const auto found = files_.find(std::string_view{path}); found != files_.end()) {
            if (found->second.is_at(path)) return true;
            files_.erase(found);
        }
        // As SQLite opens it: a file system of layers copies what it opens so, and what is synced has to be the copy.
        Descriptor journal{::open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
        if (journal.get() < 0) return false;
        const std::filesystem::path parent = std::filesystem::path{path}.parent_path();
        const Descriptor folder{::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
        if (folder.get() < 0 || ::fsync(folder.get()) != 0 || !journal.is_at(path)) return false;
        std::erase_if(files_, [](const auto& entry) { return entry.second.has_no_name(); });
        if (files_.size() >= most_kept) files_.clear();
        files_.emplace(path, std::move(journal));
        return true;
    }

    void forget(const char* path) {
        const std::scoped_lock lock{mutex_};
        if (const auto found = files_.find(std::string_view{path}); found != files_.end()) files_.erase(found);
    }

private:
    static constexpr std::size_t most_kept = 32;
    std::mutex mutex_;
    std::map<std::string, Descriptor, std::less<>> files_;
};

struct WritersVfs {
    sqlite3_vfs* own = sqlite3_vfs_find(nullptr);
    sqlite3_vfs as_registered{};
    SyncedJournals synced{};
};

WritersVfs& the_writers_vfs() {
    static auto* const vfs = new WritersVfs;  // SQLite holds its address until the process ends
    return *vfs;
}

/// SQLite syncs the folder of a journal that it may have to make.
int open_through(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* opened_as) {
    WritersVfs& vfs = the_writers_vfs();
    constexpr int made_here = SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_CREATE;
    try {
        if (name && (flags & made_here) == made_here && vfs.synced.contains(name) &&
            vfs.own->xOpen(vfs.own, name, file, flags & ~SQLITE_OPEN_CREATE, opened_as) == SQLITE_OK)
            return SQLITE_OK;
    } catch (...) {
        // Without memory for what is known, the folder is synced.
    }
    return vfs.own->xOpen(vfs.own, name, file, flags, opened_as);
}

}  // namespace

void forget_journal(const char* path) noexcept {
    try {
        the_writers_vfs().synced.forget(path);
    } catch (...) {
        // It is one descriptor, and goes when others come.
    }
}

const char* writers_vfs() noexcept {
    static const bool registered = [] {
        WritersVfs& vfs = the_writers_vfs();
        if (!vfs.own || std::string_view{vfs.own->zName} != "unix") return false;
        vfs.as_registered = *vfs.own;
        vfs.as_registered.zName = "autotune-writers";
        vfs.as_registered.pNext = nullptr;
        vfs.as_registered.xOpen = open_through;
        return sqlite3_vfs_register(&vfs.as_registered, 0) == SQLITE_OK;
    }();
    return registered ? the_writers_vfs().as_registered.zName : nullptr;
}

}  // namespace autotune

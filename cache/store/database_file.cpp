#include "cache/store/database_file.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace autotune {

DatabaseFile::DatabaseFile(const std::filesystem::path& path, Links links) {
    struct stat status {};
    if ((links == Links::follow ? ::stat : ::lstat)(path.c_str(), &status) != 0) {
        error_ = errno;
        return;
    }
    if (S_ISLNK(status.st_mode)) {
        error_ = ELOOP;
        return;
    }
    // SQLite would wait for the writer of a pipe.
    if (!S_ISREG(status.st_mode)) {
        error_ = EINVAL;
        return;
    }
    sqlite3_vfs* const vfs = sqlite3_vfs_find(nullptr);
    // SQLite opens no link: where one may be, it is asked for what that leads to.
    std::string whole = links == Links::refuse ? std::filesystem::absolute(path).string() : std::string{};
    if (vfs && links == Links::follow) {
        whole.resize(static_cast<std::size_t>(vfs->mxPathname) + 1);
        const int code = vfs->xFullPathname(vfs, path.c_str(), static_cast<int>(whole.size()), whole.data());
        if ((code & 0xff) != SQLITE_OK) whole.clear();
    }
    if (vfs && !whole.empty()) name_ = sqlite3_create_filename(whole.c_str(), "", "", 0, nullptr);
    if (!name_) {
        error_ = EIO;
        return;
    }
    memory_ =
        std::make_unique<std::max_align_t[]>(static_cast<std::size_t>(vfs->szOsFile) / sizeof(std::max_align_t) + 1);
    auto* const file = reinterpret_cast<sqlite3_file*>(memory_.get());
    errno = 0;
    if (vfs->xOpen(vfs, name_, file, SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB, nullptr) == SQLITE_OK)
        file_ = file;
    else
        error_ = errno ? errno : EIO;
}

DatabaseFile::~DatabaseFile() {
    if (file_) file_->pMethods->xClose(file_);
    if (name_) sqlite3_free_filename(const_cast<char*>(name_));
}

bool DatabaseFile::read(std::span<std::byte> bytes, std::uint64_t offset) const {
    constexpr std::size_t at_once = std::size_t{1} << 30;
    for (std::size_t at = 0; file_ && at < bytes.size();) {
        const std::size_t count = std::min(bytes.size() - at, at_once);
        if (file_->pMethods->xRead(file_, bytes.data() + at, static_cast<int>(count),
                                   static_cast<sqlite3_int64>(offset + at)) != SQLITE_OK)
            return false;
        at += count;
    }
    return file_ != nullptr;
}

std::uint64_t DatabaseFile::size() const {
    sqlite3_int64 size = 0;
    return file_ && file_->pMethods->xFileSize(file_, &size) == SQLITE_OK ? static_cast<std::uint64_t>(size) : 0;
}

bool DatabaseFile::may_be_locked() const {
    int reserved = 0;
    return !file_ || file_->pMethods->xCheckReservedLock(file_, &reserved) == SQLITE_OK;
}

}  // namespace autotune

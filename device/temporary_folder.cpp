#include "device/temporary_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <system_error>

namespace autotune {
namespace {

namespace fs = std::filesystem;

constexpr const char* lock_name = ".lock";
/// A folder without a lock is one that its owner is making, or was killed while making.
constexpr auto longest_making = std::chrono::minutes{10};

bool is_ours(const fs::path& folder) {
    struct stat facts {};
    return lstat(folder.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid() &&
           (facts.st_mode & 077u) == 0;
}

bool is_abandoned(const fs::path& folder) {
    const int lock = open((folder / lock_name).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (lock < 0) {
        std::error_code error;
        const fs::file_time_type changed = fs::last_write_time(folder, error);
        return !error && fs::file_time_type::clock::now() - changed > longest_making;
    }
    const bool free = flock(lock, LOCK_EX | LOCK_NB) == 0;
    close(lock);
    return free;
}

void remove_abandoned(const fs::path& base, const std::string& prefix) {
    std::error_code error;
    for (fs::directory_iterator entry{base, fs::directory_options::skip_permission_denied, error}, end;
         !error && entry != end; entry.increment(error)) {
        std::error_code ignored;
        if (entry->path().filename().string().starts_with(prefix) && is_ours(entry->path()) &&
            is_abandoned(entry->path()))
            fs::remove_all(entry->path(), ignored);
    }
}

}  // namespace

TemporaryFolder::TemporaryFolder(std::string_view kind) {
    std::error_code error;
    fs::path base = fs::temp_directory_path(error);
    if (error) base = "/tmp";
    const std::string prefix = fmt::format("autotune-{}-", kind);
    remove_abandoned(base, prefix);
    std::string pattern = (base / (prefix + "XXXXXX")).string();
    if (!mkdtemp(pattern.data())) return;
    path_ = pattern;
    lock_ = open((path_ / lock_name).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (lock_ >= 0) flock(lock_, LOCK_EX | LOCK_NB);
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
    if (lock_ >= 0) close(lock_);
}

}  // namespace autotune

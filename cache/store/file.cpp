#include "cache/store/file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <string_view>

#include "cache/store/location.h"
#include "cache/store/opening.h"

namespace autotune {

namespace fs = std::filesystem;

namespace {

bool write_all(int file, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const auto wrote = ::write(file, bytes.data(), bytes.size());
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return false;
        bytes = bytes.subspan(static_cast<std::size_t>(wrote));
    }
    return true;
}

constexpr std::string_view unfinished = ".new-";

/// NAME.new-PID-UUID; processes of earlier versions counted in place of the UUID.
bool is_unfinished(std::string_view name) {
    const std::size_t at = name.rfind(unfinished);
    if (at == std::string_view::npos || at == 0) return false;
    std::string_view rest = name.substr(at + unfinished.size());
    constexpr std::string_view journal = "-journal";
    if (rest.ends_with(journal)) rest.remove_suffix(journal.size());
    const std::size_t dash = rest.find('-');
    return dash != 0 && dash != std::string_view::npos && dash + 1 < rest.size() &&
           rest.find_first_not_of("0123456789") == dash &&
           rest.find_first_not_of("0123456789abcdef", dash + 1) == std::string_view::npos;
}

}  // namespace

bool write_file_whole(const fs::path& path, std::span<const std::byte> bytes, unsigned mode, Mode kind) {
    struct stat there {};
    if (::lstat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode) && !S_ISLNK(there.st_mode)) {
        errno = EEXIST;
        return false;
    }
    // Process ids come again, in a container at once, and what a killed process left may still lie there.
    const fs::path making = fmt::format("{}{}{}-{}", path.string(), unfinished, ::getpid(), random_uuid());
    const int file = ::open(making.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file < 0) return false;
    const bool wrote =
        write_all(file, bytes) && (kind == Mode::under_umask || ::fchmod(file, mode) == 0) && ::fsync(file) == 0;
    int trouble = wrote ? 0 : errno;
    if (::close(file) != 0 && trouble == 0) trouble = errno;
    if (trouble == 0 && ::rename(making.c_str(), path.c_str()) != 0) trouble = errno;
    if (trouble != 0) {
        ::unlink(making.c_str());
        errno = trouble;
        return false;
    }
    sync_folder_of(path);
    return true;
}

bool sync_file(const fs::path& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    const int trouble = ::fsync(file) == 0 ? 0 : errno;
    ::close(file);
    errno = trouble;
    return trouble == 0;
}

void sync_folder_of(const fs::path& path) {
    const int folder =
        ::open(path.parent_path().empty() ? "." : path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;
    ::fsync(folder);
    ::close(folder);
}

std::optional<std::vector<std::byte>> read_file_whole(const fs::path& path, std::uint64_t most_bytes, Writers writers) {
    // A pipe that lies there would be waited for without O_NONBLOCK, which means nothing to a file.
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return std::nullopt;
    struct stat status {};
    std::vector<std::byte> bytes;
    bool whole = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
                 static_cast<std::uint64_t>(status.st_size) <= most_bytes &&
                 (writers == Writers::any || !may_be_of_others(file));
    if (whole) {
        bytes.resize(static_cast<std::size_t>(status.st_size));
        std::size_t at = 0;
        while (at < bytes.size()) {
            const auto got = ::read(file, bytes.data() + at, bytes.size() - at);
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) break;
            at += static_cast<std::size_t>(got);
        }
        whole = at == bytes.size();
    }
    ::close(file);
    return whole ? std::optional{std::move(bytes)} : std::nullopt;
}

void sweep_unfinished(const fs::path& folder, std::string_view name) {
    constexpr std::int64_t longest_write_s = 86'400;  // with the clocks of hosts that share the folder
    std::error_code error;
    for (fs::directory_iterator each{folder, error}; each != fs::directory_iterator{}; each.increment(error)) {
        const fs::directory_entry& entry = *each;
        const std::string file = entry.path().filename().string();
        struct stat status {};
        if (!file.starts_with(name) || !is_unfinished(file) || ::lstat(entry.path().c_str(), &status) != 0 ||
            std::time(nullptr) - status.st_mtim.tv_sec <= longest_write_s)
            continue;
        if (S_ISREG(status.st_mode)) ::unlink(entry.path().c_str());
        if (S_ISDIR(status.st_mode)) fs::remove_all(entry.path(), error);
    }
}

}  // namespace autotune

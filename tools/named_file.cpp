#include "tools/named_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <optional>
#include <streambuf>
#include <string_view>

#include "autotune/error.h"
#include "cache/store/database_file.h"
#include "cache/store/file.h"
#include "cache/store/location.h"
#include "cache/store/miss_list.h"
#include "cache/store/opening.h"
#include "tools/interrupt.h"

namespace autotune {
namespace {

namespace fs = std::filesystem;

constexpr int wait_ms = 50;

class OpenFile {
public:
    explicit OpenFile(int number) : number_{number} {}
    ~OpenFile() {
        if (number_ >= 0) ::close(number_);
    }
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;
    int number() const noexcept { return number_; }

private:
    int number_;
};

void end_when_interrupted(const fs::path& path) {
    if (interrupted())
        throw Error{Error::Kind::interrupted, fmt::format("interrupted while '{}' was waited for", shown(path))};
}

/// Returns once a read or write would not block.
void wait_for(int file, short what, const fs::path& path) {
    for (pollfd wanted{.fd = file, .events = what, .revents = 0};;) {
        end_when_interrupted(path);
        if (::poll(&wanted, 1, wait_ms) > 0) return;
    }
}

/// Where the links at a path lead, whether something is there or not, up to a descriptor of this process: what such a
/// link says of its file is not always a path to it.
fs::path target_of(fs::path path) {
    constexpr int most_links = 40;
    const fs::path descriptors = fmt::format("/proc/{}/fd", ::getpid());
    std::error_code error;
    for (int i = 0; i < most_links; ++i) {
        const fs::path folder = fs::canonical(path.has_parent_path() ? path.parent_path() : ".", error);
        if (error) return path;
        path = folder / path.filename();
        if (folder == descriptors) return path;
        const fs::path next = fs::read_symlink(path, error);
        if (error) return path;
        path = folder / next;
    }
    return path;
}

std::optional<int> descriptor_of(const fs::path& target) {
    if (target.parent_path() != fmt::format("/proc/{}/fd", ::getpid())) return std::nullopt;
    const std::string name = target.filename().string();
    int number = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc{} || end != name.data() + name.size()) return std::nullopt;
    return number;
}

bool begins_as_database(const fs::path& path) {
    constexpr std::string_view mark{"SQLite format 3\0", 16};
    std::array<char, mark.size()> begin{};
    return DatabaseFile{path}.read(std::as_writable_bytes(std::span{begin})) &&
           std::string_view{begin.data(), begin.size()} == mark;
}

bool is_same(const fs::path& target, const fs::path& other) {
    std::error_code error;
    return target == target_of(other) || fs::equivalent(target, other, error);
}

bool lies_in(const fs::path& target, const fs::path& folder) {
    std::error_code error;
    const fs::path whole = fs::canonical(folder, error);
    if (error) return false;
    return std::ranges::mismatch(whole, target).in1 == whole.end();
}

bool belongs_to(const fs::path& target, const fs::path& database) {
    for (const fs::path& each : {database, trials_path(database)})
        for (const char* end : {"", "-lock", "-queue", "-fold", "-journal", "-wal", "-shm"})
            if (is_same(target, each.string() + end)) return true;
    return is_same(target, MissList{database}.path()) || lies_in(target, database.parent_path() / "binaries") ||
           lies_in(target, spool_folder(database)) || lies_in(target, database.parent_path() / "trusted_keys");
}

[[noreturn]] void fail(const fs::path& path, int error) {
    const bool full = error == ENOSPC || error == EDQUOT;
    const bool ours = full || error == EIO;
    throw Error{ours ? Error::Kind::store : Error::Kind::usage,
                fmt::format("'{}' could not be written: {}", shown(path), std::strerror(error)),
                full ? "free some space, or name another place" : "name a file in a folder that you may write to"};
}

void write_through(int file, const fs::path& path, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        wait_for(file, POLLOUT, path);
        // A pipe that has room at all takes so much without blocking.
        const auto wrote = ::write(file, bytes.data(), std::min<std::size_t>(bytes.size(), PIPE_BUF));
        if (wrote < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (wrote <= 0) fail(path, wrote < 0 ? errno : EIO);
        bytes = bytes.subspan(static_cast<std::size_t>(wrote));
    }
}

/// Opening a pipe for writing fails until somebody reads it.
int open_to_write(const fs::path& path, const fs::path& target, bool pipe) {
    for (;;) {
        const int file = ::open(target.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (file >= 0) return file;
        if (!(pipe && errno == ENXIO) && errno != EINTR) fail(path, errno);
        end_when_interrupted(path);
        ::poll(nullptr, 0, wait_ms);
    }
}

class NamedFileBuffer : public std::streambuf {
public:
    NamedFileBuffer(int file, fs::path path) : file_{file}, path_{std::move(path)} {}

protected:
    int_type underflow() override {
        for (;;) {
            wait_for(file_.number(), POLLIN, path_);
            const auto got = ::read(file_.number(), bytes_.data(), bytes_.size());
            if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
            if (got < 0)
                throw Error{Error::Kind::usage,
                            fmt::format("'{}' could not be read: {}", shown(path_), std::strerror(errno))};
            if (got == 0) return traits_type::eof();
            setg(bytes_.data(), bytes_.data(), bytes_.data() + got);
            return traits_type::to_int_type(bytes_.front());
        }
    }

private:
    OpenFile file_;
    fs::path path_;
    std::array<char, 4096> bytes_{};
};

class NamedFile : public std::istream {
public:
    NamedFile(int file, const fs::path& path) : std::istream{nullptr}, buffer_{file, path} {
        rdbuf(&buffer_);
        exceptions(std::ios::badbit);  // else a stream swallows what its buffer throws
    }

private:
    NamedFileBuffer buffer_;
};

}  // namespace

void refuse_as_output(const fs::path& path, const fs::path& database) {
    const fs::path target = target_of(path);
    if (!database.empty() && belongs_to(target, fs::absolute(database)))
        throw Error{
            Error::Kind::usage,
            fmt::format("'{}' belongs to the database '{}', and is left as it is", shown(path), shown(database)),
            "name another file"};
    if (begins_as_database(target))
        throw Error{Error::Kind::usage, fmt::format("'{}' is a database, and is left as it is", shown(path)),
                    "name another file, or remove that one"};
}

void write_named_file(const fs::path& path, std::span<const std::byte> bytes, const fs::path& database, unsigned mode) {
    refuse_as_output(path, database);
    const fs::path target = target_of(path);
    if (const auto number = descriptor_of(target)) {
        const OpenFile file{::fcntl(*number, F_DUPFD_CLOEXEC, 0)};
        if (file.number() < 0) fail(path, errno);
        return write_through(file.number(), path, bytes);
    }
    struct stat status {};
    const bool there = ::stat(target.c_str(), &status) == 0;
    if (!there && errno != ENOENT) fail(path, errno);
    if (there && (S_ISDIR(status.st_mode) || S_ISBLK(status.st_mode)))
        throw Error{Error::Kind::usage,
                    fmt::format("'{}' is a {}, no file that could be written", shown(path),
                                S_ISDIR(status.st_mode) ? "folder" : "disk"),
                    "name a file"};
    if (there && !S_ISREG(status.st_mode)) {
        const OpenFile file{open_to_write(path, target, S_ISFIFO(status.st_mode))};
        return write_through(file.number(), path, bytes);
    }
    const bool wrote = there ? write_file_whole(target, bytes, status.st_mode & 0777U, Mode::exact)
                             : write_file_whole(target, bytes, mode, Mode::under_umask);
    if (!wrote) fail(path, errno);
}

void write_named_file(const fs::path& path, std::string_view text, const fs::path& database, unsigned mode) {
    write_named_file(path, std::as_bytes(std::span{text}), database, mode);
}

std::unique_ptr<std::istream> open_named_file(const fs::path& path) {
    const auto number = descriptor_of(target_of(path));
    // Not to wait for a pipe's writer here, where nothing would end it.
    const int file = number ? ::fcntl(*number, F_DUPFD_CLOEXEC, 0)
                            : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0) return nullptr;
    return std::make_unique<NamedFile>(file, path);
}

}  // namespace autotune

#include "cache/store/location.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sstream>
#include <system_error>
#include <thread>

#include "cache/store/database_file.h"
#include "cache/store/schema.h"
#include "cache/store/store.h"
#include "tuner/model/cache_root.h"
#include "tuner/model/printable.h"

namespace autotune {

namespace fs = std::filesystem;

namespace {

struct NetworkRow {
    std::uint32_t magic;
    const char* name;
};

/// statfs(2) and the sources of the file systems that it does not list.
constexpr std::array<NetworkRow, 13> networks{{
    {0x6969, "NFS"},
    {0xff534d42, "CIFS"},
    {0xfe534d42, "SMB2"},
    {0x517b, "SMB"},
    {0x0bd00bd0, "Lustre"},
    {0x47504653, "GPFS"},
    {0x01021997, "9p"},
    {0x65735546, "FUSE"},
    {0x6a656a63, "virtiofs"},
    {0x5346414f, "AFS"},
    {0x00c36400, "Ceph"},
    {0x19830326, "BeeGFS"},
    {0x7461636f, "OCFS2"},
}};

fs::path environment_path(const char* name) {
    const char* value = std::getenv(name);
    return value && *value ? fs::path{value} : fs::path{};
}

fs::path folder_of(const fs::path& file) {
    const fs::path folder = file.parent_path();
    return folder.empty() ? fs::path{"."} : folder;
}

/// Whether the group is that of one user alone: the first one of the user who runs this, with no members but him.
/// Accounts that have it as their first one are not listed in it; that it bears his name says that there are none.
bool is_private(gid_t group) {
    std::vector<char> user_text(1 << 14), group_text(1 << 14);  // a group that needs more is not private
    passwd user{}, *found_user = nullptr;
    struct group members {
    }, *found_group = nullptr;
    if (::getpwuid_r(::geteuid(), &user, user_text.data(), user_text.size(), &found_user) != 0 || !found_user ||
        user.pw_gid != group)
        return false;
    if (::getgrgid_r(group, &members, group_text.data(), group_text.size(), &found_group) != 0 || !found_group)
        return false;
    const std::string_view name = user.pw_name;
    if (name != members.gr_name) return false;
    for (char** member = members.gr_mem; *member; ++member)
        if (name != *member) return false;
    return true;
}

/// Root and the user are trusted; a folder that all may write to is sound with the sticky bit only for existing files.
const char* untrusted_status(const struct stat& status) {
    if (status.st_uid != ::geteuid() && status.st_uid != 0) return "belongs to another user";
    if (S_ISLNK(status.st_mode)) return nullptr;  // all may "write" to each
    if (S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX)) return nullptr;
    if (status.st_mode & S_IWOTH) return "may be written to by others";
    if ((status.st_mode & S_IWGRP) && !is_private(status.st_gid)) return "may be written to by its group";
    return nullptr;
}

Untrusted untrusted_here(const fs::path& where, const char* why, const struct stat& status) {
    const bool of_another = status.st_uid != ::geteuid() && status.st_uid != 0;
    return {.where = where,
            .why = fmt::format("'{}' {}", shown(where), why),
            .remedy = of_another ? "name another place" : fmt::format("chmod go-w {}", shell_word(where.string()))};
}

constexpr int most_links = 40;  // as the kernel follows

/// What the link at that path names; nullopt: it is none.
std::optional<fs::path> next_link(const fs::path& at) {
    std::error_code error;
    const fs::path next = fs::read_symlink(at, error);
    if (error) return std::nullopt;
    return next.is_absolute() ? next : at.parent_path() / next;
}

/// Of one name of the file alone.
std::optional<Untrusted> untrusted_at(const fs::path& file) {
    const std::string name = file.string();
    // A journal or log that somebody puts beside a database is read into it; who has its lock can hold it for ever.
    for (const char* companion : {"", "-journal", "-wal", "-shm", "-lock", "-queue"}) {
        const fs::path path = name + companion;
        struct stat status {};
        for (const auto look : {::lstat, ::stat})  // a link of another's, or to what is another's
            if (look(path.c_str(), &status) == 0 && (look == ::stat || S_ISLNK(status.st_mode)))
                if (const char* why = untrusted_status(status)) return untrusted_here(path, why, status);
    }
    struct stat status {};
    if (::stat(folder_of(file).c_str(), &status) == 0)
        if (const char* why = untrusted_status(status)) return untrusted_here(folder_of(file), why, status);
    return std::nullopt;
}

std::uint32_t big_endian(const unsigned char* bytes) noexcept {
    return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

using Head = std::array<unsigned char, 100>;

/// Foreign, ours or newer.
FileProbe probe_head(const Head& head) {
    if (std::memcmp(head.data(), "SQLite format 3", 16) != 0 ||
        big_endian(&head[68]) != static_cast<std::uint32_t>(application_id))
        return {.kind = FileKind::foreign};
    FileProbe found{
        .kind = FileKind::ours, .schema = static_cast<int>(big_endian(&head[60])), .write_ahead_log = head[18] == 2};
    if (found.schema > schema_version) found.kind = FileKind::newer;
    return found;
}

std::uint64_t bytes_of(const Head& head) noexcept {
    const std::uint32_t page_word = std::uint32_t{head[16]} << 8 | head[17];
    const std::uint64_t page = page_word == 1 ? 65536 : page_word;
    return page * big_endian(&head[28]);
}

FileProbe probe_once(const fs::path& path) {
    Head head{};
    const DatabaseFile file{path};
    const int trouble = file.error();
    if (trouble == ENOENT || trouble == ENOTDIR) return {.kind = FileKind::absent};
    if (trouble != 0 && trouble != EINVAL)
        return {.kind = FileKind::unreadable, .trouble = std::generic_category().message(trouble)};
    if (!file.read(std::as_writable_bytes(std::span{head}))) return {.kind = FileKind::foreign};
    FileProbe found = probe_head(head);
    if (found.kind == FileKind::foreign) return found;
    // A log not yet checkpointed, or a journal to roll back, may hold what the file lacks.
    std::error_code error;
    const auto journal = fs::file_size(path.string() + "-journal", error);
    const bool settled = !found.write_ahead_log && (error || journal == 0);
    if (settled && file.size() < bytes_of(head)) found.kind = FileKind::truncated;
    return found;
}

}  // namespace

fs::path Store::default_path() {
    if (const fs::path named = environment_path("AUTOTUNE_DB"); !named.empty()) return named;
    const fs::path root = cache_root();
    if (root.empty()) return {};
    return root / std::to_string(schema_major) / "tune.db";
}

std::vector<fs::path> system_databases() {
    if (const fs::path named = environment_path("AUTOTUNE_SYSTEM_DB"); !named.empty()) return {named};
    const std::string folders = environment_path("XDG_DATA_DIRS").string();
    std::vector<fs::path> out;
    std::istringstream rest{folders.empty() ? "/usr/local/share:/usr/share" : folders};
    for (std::string folder; std::getline(rest, folder, ':');)
        if (folder.starts_with('/'))  // others are to be ignored: XDG Base Directory Specification
            out.push_back(fs::path{folder} / "autotune" / std::to_string(schema_major) / "tune.db");
    return out;
}

std::optional<std::string> network_file_system(const fs::path& path) {
    std::error_code error;
    fs::path at = fs::absolute(path, error);
    while (!at.empty() && !fs::exists(at, error) && at != at.root_path()) at = at.parent_path();
    struct statfs facts {};
    if (::statfs(at.c_str(), &facts) != 0) return std::nullopt;
    const auto magic = static_cast<std::uint32_t>(facts.f_type);
    for (const NetworkRow& row : networks)
        if (row.magic == magic) return row.name;
    return std::nullopt;
}

bool make_private_folder(const fs::path& folder) {
    std::error_code error;
    if (fs::is_directory(folder, error)) return true;
    if (folder.has_parent_path() && folder != folder.parent_path() && !make_private_folder(folder.parent_path()))
        return false;
    return ::mkdir(folder.c_str(), 0700) == 0 || (errno == EEXIST && fs::is_directory(folder, error));
}

fs::path behind_links(const fs::path& file) {
    fs::path at = file;
    for (int i = 0; i < most_links; ++i) {
        const auto next = next_link(at);
        if (!next) break;
        at = *next;
    }
    std::error_code error;
    return fs::exists(at, error) ? at : file;
}

std::string link_to_nothing(const fs::path& path) {
    std::error_code error;
    if (!fs::is_symlink(fs::symlink_status(path, error)) || fs::exists(path, error)) return {};
    return fmt::format("is a link to '{}', where nothing is", shown(fs::read_symlink(path, error)));
}

std::optional<Untrusted> untrusted(const fs::path& file) {
    std::optional<fs::path> at = file;
    for (int i = 0; at && i < most_links; ++i, at = next_link(*at))
        if (auto found = untrusted_at(*at)) return found;
    return std::nullopt;
}

bool others_may_add_files(const fs::path& file) {
    struct stat status {};
    return ::stat(folder_of(file).c_str(), &status) == 0 && (status.st_mode & (S_IWOTH | S_IWGRP)) != 0;
}

bool shared_folders_are_allowed() {
    const char* said = std::getenv("AUTOTUNE_ALLOW_SHARED");
    return said && std::string_view{said} == "1";
}

bool may_be_of_others(int file) {
    struct stat status {};
    return ::fstat(file, &status) != 0 || untrusted_status(status) != nullptr;
}

FileProbe probe(const fs::path& path) {
    FileProbe found = probe_once(path);
    // A commit writes the header before the pages behind it: only what stays short is truncated.
    for (int again = 0; again < 5 && found.kind == FileKind::truncated; ++again) {
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
        found = probe_once(path);
    }
    return found;
}

FileProbe probe(std::span<const std::byte> bytes) {
    Head head{};
    if (bytes.size() < head.size()) return {.kind = FileKind::foreign};
    std::memcpy(head.data(), bytes.data(), head.size());
    FileProbe found = probe_head(head);
    if (found.kind == FileKind::ours && bytes.size() != bytes_of(head)) found.kind = FileKind::truncated;
    return found;
}

fs::path set_aside(const fs::path& database) {
    const std::string suffix = fmt::format(".broken-{}-{}", std::time(nullptr), ::getpid());
    std::error_code error;
    fs::path to = database.string() + suffix;
    for (int n = 2; fs::exists(to, error); ++n) to = fmt::format("{}{}-{}", database.string(), suffix, n);
    fs::rename(database, to, error);
    if (error) return {};
    for (const char* companion : {"-journal", "-wal", "-shm"}) {  // mostly there is none, or a journal of no bytes
        const fs::path beside = database.string() + companion;
        if (fs::file_size(beside, error) == 0)
            fs::remove(beside, error);
        else
            fs::rename(beside, to.string() + companion, error);
    }
    return to;
}

fs::path trials_path(const fs::path& database) {
    const std::string stem = database.stem().string();
    return folder_of(database) / (stem == "tune" ? "trials.db" : stem + ".trials.db");
}

std::string shown(const fs::path& path) {
    const fs::path home = environment_path("HOME");
    const std::string text = path.string();
    const std::string prefix = home.string() + '/';
    return one_line(!home.empty() && home != "/" && text.starts_with(prefix) ? "~/" + text.substr(prefix.size())
                                                                             : text);
}

}  // namespace autotune

#ifndef AUTOTUNE_CACHE_STORE_LOCATION_H
#define AUTOTUNE_CACHE_STORE_LOCATION_H

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace autotune {

/// "NFS", "FUSE" and the like when the file system under `path` (or under its nearest existing parent) is shared by
/// hosts or kept by a process, where SQLite's locks can't be relied on; nullopt on a local one.
std::optional<std::string> network_file_system(const std::filesystem::path& path);

/// Where the link at that path leads, over any others: what lies beside a database lies beside its file, whichever name
/// it is opened by. The path itself where it is no link, or one to nothing.
std::filesystem::path behind_links(const std::filesystem::path& file);

/// "is a link to 'x', where nothing is"; empty: it is no such link.
std::string link_to_nothing(const std::filesystem::path& path);

/// Makes the folder with mode 0700. False when that can't be done.
bool make_private_folder(const std::filesystem::path& folder);

/// AUTOTUNE_SYSTEM_DB; else autotune/1/tune.db in each of XDG_DATA_DIRS (or /usr/local/share and /usr/share), whether
/// there is one or not: what an administrator or a package put there for all users.
std::vector<std::filesystem::path> system_databases();

/// Whether others than the user may put files beside this one, of names that are not there yet.
bool others_may_add_files(const std::filesystem::path& file);

/// What somebody else could put rows or binaries into, hence run code here.
struct Untrusted {
    std::filesystem::path where;  ///< the file, one that SQLite keeps beside it, or its folder
    std::string why;              ///< "'/srv/tune.db' may be written to by its group"
    std::string remedy;           ///< "chmod go-w /srv/tune.db", as a shell takes it
};
/// nullopt: nobody else can. Looks at the file, at what SQLite keeps beside it and at its folder, as far as they exist,
/// and at the same of each link that leads to it. Root and the user are trusted, and so is a group of the user's own
/// name with nobody else in it, which is what a umask of 002 counts on. A sticky folder is sound for the files that are
/// there; what comes later may be anybody's, and is looked at when it is read.
std::optional<Untrusted> untrusted(const std::filesystem::path& file);
/// The same of a file that is open, whatever stands at its name by now.
bool may_be_of_others(int file);
/// AUTOTUNE_ALLOW_SHARED=1: whoever may write to a database, or to what lies beside it, is trusted.
bool shared_folders_are_allowed();

/// What a file turns out to be, by its first 100 bytes; nothing is opened as a database for that.
enum class FileKind {
    absent,
    ours,       ///< of this or an older schema
    newer,      ///< ours, of a newer schema
    foreign,    ///< no database, or another program's; also an empty file, a folder or a pipe
    truncated,  ///< ours, but shorter than its header says
    unreadable  ///< nothing is known of it: no permission, or no descriptor left
};
struct FileProbe {
    FileKind kind = FileKind::absent;
    int schema = 0;  ///< user_version of one of ours
    bool write_ahead_log = false;
    std::string trouble = {};  ///< why it cannot be read: "Permission denied"
};
FileProbe probe(const std::filesystem::path& path);
/// The same of a whole file's bytes; what is longer or shorter than its header says is truncated.
FileProbe probe(std::span<const std::byte> bytes);

/// Renames the database with its journal to NAME.broken-TIME-PID; returns the new path, empty when it failed.
std::filesystem::path set_aside(const std::filesystem::path& database);

/// Trials of PATH/tune.db are in PATH/trials.db, those of PATH/x.db in PATH/x.trials.db.
std::filesystem::path trials_path(const std::filesystem::path& database);

/// `~/.cache/...` in place of the home folder, for messages: on one line, whatever the name holds.
std::string shown(const std::filesystem::path& path);

}  // namespace autotune
#endif

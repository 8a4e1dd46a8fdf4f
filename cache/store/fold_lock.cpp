#include "cache/store/fold_lock.h"

#include <fmt/core.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <span>
#include <string>

#include "autotune/error.h"
#include "cache/store/file.h"
#include "cache/store/location.h"
#include "cache/store/opening.h"
#include "cache/store/spool.h"

namespace autotune {

namespace fs = std::filesystem;

namespace {

std::string holder_text() { return fmt::format("{} {}\n", host_hash().substr(0, 16), ::getpid()); }

std::string read_holder(const fs::path& lock) {
    const auto bytes = read_file_whole(lock);
    return bytes ? std::string{reinterpret_cast<const char*>(bytes->data()), bytes->size()} : std::string{};
}

/// Of this host, and no process has its number any more.
bool is_dead(const std::string& holder) {
    const std::string here = host_hash().substr(0, 16) + ' ';
    if (!holder.starts_with(here)) return false;
    const long pid = std::strtol(holder.c_str() + here.size(), nullptr, 10);
    return pid > 0 && ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
}

/// A lost answer may say that the link failed when it was made: the count of links tells.
bool linked(const fs::path& own, const fs::path& lock) {
    if (::link(own.c_str(), lock.c_str()) == 0) return true;
    struct stat status {};
    return ::stat(own.c_str(), &status) == 0 && status.st_nlink == 2;
}

/// Only one process renames a given file, so of several that see a dead holder one removes it.
bool remove_dead(const fs::path& lock, const fs::path& aside) {
    if (!is_dead(read_holder(lock)) || ::rename(lock.c_str(), aside.c_str()) != 0) return false;
    const bool dead = is_dead(read_holder(aside));
    if (!dead) linked(aside, lock);  // another came between: it has its lock back
    ::unlink(aside.c_str());
    return dead;
}

}  // namespace

FoldLock::FoldLock(const fs::path& database) : lock_{database.string() + "-fold"} {
    const fs::path own = fmt::format("{}-{}", lock_.string(), random_uuid().substr(0, 16));
    const std::string text = holder_text();
    if (!write_file_whole(own, std::as_bytes(std::span{text})))
        throw Error{Error::Kind::store, fmt::format("'{}' cannot be written", shown(own)),
                    "see whether the folder may be written to"};
    bool held = linked(own, lock_);
    if (!held && remove_dead(lock_, own.string() + "-dead")) held = linked(own, lock_);
    ::unlink(own.c_str());
    if (!held)
        throw Error{Error::Kind::store,
                    fmt::format("another process folds the spool files beside '{}'", shown(database)),
                    fmt::format("wait for it; should it have died on another host, remove '{}'", shown(lock_))};
}

FoldLock::~FoldLock() { ::unlink(lock_.c_str()); }

}  // namespace autotune

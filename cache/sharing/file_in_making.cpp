#include "cache/sharing/file_in_making.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "autotune/error.h"
#include "cache/store/file.h"
#include "cache/store/location.h"
#include "cache/store/opening.h"

namespace autotune {

namespace {

Error exists_already(const std::filesystem::path& path) {
    return Error{Error::Kind::usage, fmt::format("'{}' exists already, and is left as it is", shown(path)),
                 "name another file, or remove that one"};
}

}  // namespace

FileInMaking::FileInMaking(std::filesystem::path path)
    : path_{std::move(path)},
      making_{fmt::format("{}.new-{}-{}", path_.string(), ::getpid(), random_uuid().substr(0, 8))} {
    std::error_code error;
    if (std::filesystem::exists(std::filesystem::symlink_status(path_, error))) throw exists_already(path_);
    sweep_unfinished(path_.has_parent_path() ? path_.parent_path() : ".", path_.filename().string());
}

FileInMaking::~FileInMaking() {
    std::error_code error;
    std::filesystem::remove(making_, error);
}

void FileInMaking::fail(const DatabaseFailure& failure) const {
    if (failure.full())
        throw Error{Error::Kind::store, fmt::format("'{}' could not be written: the disk is full", shown(path_)),
                    "free some space, or name another place"};
    const std::filesystem::path folder = path_.has_parent_path() ? path_.parent_path() : ".";
    const bool writable = ::access(folder.c_str(), W_OK) == 0;
    throw Error{
        Error::Kind::usage,
        fmt::format("'{}' could not be written: {}", shown(path_), writable ? failure.what() : std::strerror(errno)),
        "name a file in a folder that you may write to"};
}

void FileInMaking::appear() const {
    const bool safe = sync_file(making_);
    // RENAME_NOREPLACE: what has come there since the first look is not ours to replace.
    if (safe && (::renameat2(AT_FDCWD, making_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) == 0 ||
                 (errno == EINVAL && ::link(making_.c_str(), path_.c_str()) == 0)))  // a file system without it
        return sync_folder_of(path_);
    if (safe && errno == EEXIST) throw exists_already(path_);
    throw Error{Error::Kind::store, fmt::format("'{}' could not be written: {}", shown(path_), std::strerror(errno))};
}

}  // namespace autotune

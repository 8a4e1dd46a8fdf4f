#ifndef AUTOTUNE_DEVICE_TEMPORARY_FOLDER_H
#define AUTOTUNE_DEVICE_TEMPORARY_FOLDER_H

#include <filesystem>
#include <string_view>

namespace autotune {

/// A folder of this user's alone in the system's temporary one, gone with its owner. What owners that were killed have
/// left of the same kind is removed by the next.
class TemporaryFolder {
public:
    /// kind: a word of its name, "compile" for autotune-compile-XXXXXX.
    explicit TemporaryFolder(std::string_view kind);
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    /// Empty where none could be made.
    const std::filesystem::path& path() const noexcept { return path_; }

private:
    std::filesystem::path path_;
    int lock_ = -1;  ///< held as long as the owner lives
};

}  // namespace autotune
#endif

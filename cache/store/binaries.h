#ifndef AUTOTUNE_CACHE_STORE_BINARIES_H
#define AUTOTUNE_CACHE_STORE_BINARIES_H

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"

namespace autotune {

/// A compiled artefact as stored, with what it was made from: one file, so that nothing can be mixed.
struct Binary {
    std::string key{};     ///< binary_key()
    Artefact artefact{};   ///< cubin, arch and kernels; neither PTX nor log
    std::string source{};  ///< file name, for people
    int nvrtc_major = 0, nvrtc_minor = 0;
};

/// Cubins in a folder, one file an artefact, named by its key. Any number of processes use it at once: files appear by
/// rename, whole or not at all, and are never changed. Trouble is a miss, never an error: a cubin can be made again.
class BinaryStore {
public:
    /// An empty folder name: keeps nothing. cap_bytes: beyond it the files used longest ago go.
    explicit BinaryStore(std::filesystem::path folder, std::uint64_t cap_bytes = std::uint64_t{1} << 30);

    /// nullopt when it is absent, damaged (its SHA-256 fails; the file is removed) or of another key.
    std::optional<Binary> get(std::string_view key) const;
    /// Whether it is now there.
    bool put(const Binary& binary);
    std::vector<std::string> keys() const;
    /// Keys that begin with this source_key, newest NVRTC first: for those who do not know which version there is.
    std::vector<std::string> keys_of(std::string_view source_key) const;
    std::uint64_t bytes() const;
    const std::filesystem::path& folder() const noexcept { return folder_; }

private:
    std::filesystem::path path_of(std::string_view key) const;
    void evict() const;

    std::filesystem::path folder_;
    std::uint64_t cap_bytes_;
};

}  // namespace autotune
#endif

#ifndef AUTOTUNE_CACHE_STORE_BINARIES_H
#define AUTOTUNE_CACHE_STORE_BINARIES_H

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
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

/// The file of a binary, its SHA-256 at the end.
std::vector<std::byte> encode(const Binary& binary);
/// Reads such a file, whoever wrote it; nullopt unless every byte is as it was written.
std::optional<Binary> decode_binary(std::span<const std::byte> file);

/// Whether it looks like a binary_key: never a path.
bool is_binary_key(std::string_view key) noexcept;
/// Those of the keys that begin with this source_key, newest NVRTC first.
std::vector<std::string> newest_first(std::vector<std::string> keys, std::string_view source_key);

/// Cubins in a folder, one file an artefact, named by its key. Any number of processes use it at once: files appear by
/// rename, whole or not at all, and are never changed; one that is removed under a reader is still read whole. Trouble
/// is a miss, never an error: a cubin can be made again.
class BinaryStore {
public:
    /// An empty folder name: keeps nothing. cap_bytes: beyond it the files used longest ago go, until an eighth is
    /// free. Where several processes put at once, each may be a few files late to notice.
    explicit BinaryStore(std::filesystem::path folder, std::uint64_t cap_bytes = std::uint64_t{1} << 30);

    /// nullopt when it is absent, damaged (its SHA-256 fails; the file is removed), of another key, or may be another
    /// user's: a binary is code.
    std::optional<Binary> get(std::string_view key) const;
    /// Whether it is now there.
    bool put(const Binary& binary);
    void remove(std::string_view key);
    std::vector<std::string> keys() const;
    /// Keys that begin with this source_key, newest NVRTC first: for those who do not know which version there is.
    std::vector<std::string> keys_of(std::string_view source_key) const;
    std::uint64_t bytes() const;
    const std::filesystem::path& folder() const noexcept { return folder_; }

private:
    std::filesystem::path path_of(std::string_view key) const;
    void evict();

    std::filesystem::path folder_;
    std::uint64_t cap_bytes_;
    std::uint64_t counted_bytes_ = 0;  ///< when the folder was last looked through, and what was put since
    int uncounted_puts_ = 0;           ///< until the next look; others put too
};

}  // namespace autotune
#endif

#ifndef AUTOTUNE_CACHE_SHARING_BUNDLE_H
#define AUTOTUNE_CACHE_SHARING_BUNDLE_H

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/sharing/signing_key.h"
#include "cache/store/binaries.h"
#include "cache/store/record.h"

namespace autotune {

/// What goes into a bundle.
struct BundleContents {
    std::vector<Record> records{};
    std::vector<Binary> binaries{};
    std::string db_uuid{};     ///< of the database that they come from; empty: none
    std::int64_t created = 0;  ///< seconds since 1970, UTC
};

/// A bundle's bytes. Equal contents and key give equal bytes, whatever their order.
/// key  signs it; null: nobody does
std::vector<std::byte> make_bundle(const BundleContents& contents, const SigningKey* key = nullptr);

/// Records and, perhaps, their binaries in one file: what an application ships and people hand to each other. The file
/// is read as if an enemy had written it, and whole or not at all.
///
///     8 bytes   ATBUNDL1
///     4         size of the signature: 64, or 0 without one
///     8         size of the manifest
///     32        SHA-256 of the manifest
///     manifest  JSON: format, tool, created, db_uuid, counts, key, and of each part its name, offset, size and SHA-256
///     signature Ed25519 over the manifest
///     parts     end to end, in the manifest's order: `records` as sorted JSON lines, then `binary/KEY`, files as
///               BinaryStore keeps them
///
/// Numbers are little-endian. A binary is code: whoever loads it gives it all of the process's device memory.
class Bundle {
public:
    static constexpr std::uint64_t most_bytes = std::uint64_t{4} << 30;
    static constexpr std::uint64_t most_manifest_bytes = std::uint64_t{32} << 20;
    static constexpr std::size_t most_parts = 100'000;
    static constexpr std::size_t most_line_bytes = std::size_t{1} << 20;

    /// Throws Error{usage} for a file that is no bundle, of a newer format, damaged, or whose signature is not that of
    /// the key which it names.
    /// cost  SHA-256 over the file
    static Bundle read(const std::filesystem::path& path);
    /// The same of bytes that others own and that outlive the bundle. name: for messages
    static Bundle view(std::span<const std::byte> bytes, const std::string& name);

    Bundle(Bundle&&) = default;
    Bundle& operator=(Bundle&&) = default;

    const std::string& name() const noexcept { return name_; }
    const std::string& db_uuid() const noexcept { return db_uuid_; }
    const std::string& tool() const noexcept { return tool_; }
    std::int64_t created() const noexcept { return created_; }
    /// Who signed it; nullopt: nobody did.
    const std::optional<PublicKey>& signer() const noexcept { return signer_; }

    std::size_t record_count() const noexcept { return record_count_; }
    /// Sorted JSON lines, a record each.
    std::string_view record_lines() const noexcept;
    /// A line that is no record is left out; warn gets a sentence. What they say is not judged.
    std::vector<Record> records(const std::function<void(const std::string&)>& warn = {}) const;

    /// Sorted.
    std::vector<std::string> binary_keys() const;
    /// nullopt: none, or not the binary of that key. Nothing is said of what it does when it runs.
    std::optional<Binary> binary(std::string_view key) const;

private:
    Bundle() = default;
    struct Part;
    static Bundle parse(std::span<const std::byte> bytes, std::string name);
    [[noreturn]] void refuse(const std::string& why) const;
    void read_manifest(std::string_view text, std::vector<Part>& parts);
    void check_parts(const std::vector<Part>& parts, std::span<const std::byte> bytes);

    std::vector<std::byte> owned_{};
    std::string name_{}, db_uuid_{}, tool_{};
    std::int64_t created_ = 0;
    std::optional<PublicKey> signer_{};
    std::size_t record_count_ = 0, binary_count_ = 0;
    std::span<const std::byte> records_{};
    std::map<std::string, std::span<const std::byte>, std::less<>> binaries_{};
};

/// Whether the file begins as a bundle does.
bool is_bundle(std::span<const std::byte> bytes) noexcept;

}  // namespace autotune
#endif

#ifndef AUTOTUNE_CACHE_SHARING_SIGNING_KEY_H
#define AUTOTUNE_CACHE_SHARING_SIGNING_KEY_H

#include <array>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace autotune {

/// A key of Ed25519 that tells whether a signature is its owner's.
struct PublicKey {
    std::array<std::byte, 32> bytes{};
    std::string hex() const;
    /// 64 hex digits.
    static std::optional<PublicKey> parse(std::string_view hex);
    friend bool operator==(const PublicKey&, const PublicKey&) = default;
};

using KeySignature = std::array<std::byte, 64>;

/// The other half, which signs. Its bytes are wiped when it goes.
class SigningKey {
public:
    static SigningKey generate();
    /// Throws Error{usage} for a file that is none, or that others than its owner may read.
    static SigningKey read(const std::filesystem::path& path);
    SigningKey(const SigningKey&) = default;
    SigningKey& operator=(const SigningKey&) = default;
    ~SigningKey();

    /// FILE (mode 0600) and FILE.pub, for those who are to trust it. Throws Error{usage} where FILE exists,
    /// Error{store} where it cannot be written.
    void write(const std::filesystem::path& path) const;
    PublicKey public_key() const;
    KeySignature sign(std::span<const std::byte> message) const;

private:
    SigningKey() = default;
    std::array<std::byte, 64> secret_{};
};

bool is_signed_by(const PublicKey& key, std::span<const std::byte> message, const KeySignature& signature);

/// Throws Error{usage} for a file that is no public key.
PublicKey read_public_key(const std::filesystem::path& path);

/// Keys whose owners may put code into this user's applications: files NAME.pub in the folder `trusted_keys` beside the
/// database. Nobody else may be able to write there.
class TrustList {
public:
    explicit TrustList(const std::filesystem::path& database);
    /// Where the keys lie.
    const std::filesystem::path& folder() const noexcept { return folder_; }
    /// What the owner is called here; nullopt: not trusted. warn: gets a sentence for each file that does not count.
    std::optional<std::string> name_of(const PublicKey& key,
                                       const std::function<void(const std::string&)>& warn = {}) const;
    /// name: of the file, letters, digits, '-', '_' and '.'. Throws Error{usage} for another name or one that is taken,
    /// Error{store} where it cannot be written.
    void add(const PublicKey& key, const std::string& name) const;
    /// Those that count, by name. warn: as above.
    std::map<std::string, PublicKey> keys(const std::function<void(const std::string&)>& warn = {}) const;
    /// Throws Error{usage} where no key has that name, Error{store} where it cannot be removed.
    void remove(const std::string& name) const;

private:
    std::filesystem::path folder_;
};

}  // namespace autotune
#endif

#include "cache/sharing/signing_key.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sodium.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "autotune/error.h"
#include "cache/store/file.h"
#include "cache/store/json.h"
#include "cache/store/location.h"
#include "tuner/model/printable.h"

namespace autotune {

namespace fs = std::filesystem;

namespace {

// A key's file: a line of these words and the key in hex.
constexpr std::string_view secret_words = "autotune signing key 1: ";
constexpr std::string_view public_words = "autotune public key 1: ";
constexpr std::uint64_t most_key_bytes = 4096;

static_assert(crypto_sign_SECRETKEYBYTES == 64 && crypto_sign_PUBLICKEYBYTES == 32 && crypto_sign_BYTES == 64);

unsigned char* raw(std::byte* bytes) noexcept { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* raw(const std::byte* bytes) noexcept { return reinterpret_cast<const unsigned char*>(bytes); }

void start_sodium() {
    if (sodium_init() < 0) throw Error{Error::Kind::internal, "libsodium does not start"};
}

/// What stands behind the words on the file's only line.
template <std::size_t size>
std::optional<std::array<std::byte, size>> read_key_file(const fs::path& path, std::string_view words) {
    const auto file = read_file_whole(path, most_key_bytes);
    if (!file) return std::nullopt;
    std::string_view text{reinterpret_cast<const char*>(file->data()), file->size()};
    while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
    if (!text.starts_with(words)) return std::nullopt;
    text.remove_prefix(words.size());
    std::array<std::byte, size> key{};
    std::size_t got = 0;
    if (sodium_hex2bin(raw(key.data()), size, text.data(), text.size(), nullptr, &got, nullptr) != 0 || got != size)
        return std::nullopt;
    return text.size() == 2 * size ? std::optional{key} : std::nullopt;
}

void write_key_file(const fs::path& path, std::string_view words, std::span<const std::byte> key) {
    const std::string line = fmt::format("{}{}\n", words, to_hex(key));
    if (!write_file_whole(path, std::as_bytes(std::span{line})))
        throw Error{Error::Kind::store,
                    fmt::format("the key '{}' could not be written: {}", shown(path), std::strerror(errno)),
                    "free some space, or name a file in a folder that you may write to"};
}

bool is_plain_name(std::string_view name) {
    return !name.empty() && name.size() <= 64 && name.front() != '.' && std::ranges::all_of(name, [](unsigned char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
               c == '.';
    });
}

}  // namespace

std::string PublicKey::hex() const { return to_hex(bytes); }

std::optional<PublicKey> PublicKey::parse(std::string_view hex) {
    PublicKey key;
    std::size_t got = 0;
    if (hex.size() != 64 ||
        sodium_hex2bin(raw(key.bytes.data()), key.bytes.size(), hex.data(), hex.size(), nullptr, &got, nullptr) != 0)
        return std::nullopt;
    return got == key.bytes.size() && key.hex() == hex ? std::optional{key} : std::nullopt;
}

SigningKey SigningKey::generate() {
    start_sodium();
    SigningKey key;
    PublicKey half;
    crypto_sign_keypair(raw(half.bytes.data()), raw(key.secret_.data()));
    return key;
}

SigningKey::~SigningKey() { sodium_memzero(secret_.data(), secret_.size()); }

SigningKey SigningKey::read(const fs::path& path) {
    start_sodium();
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0)
        throw Error{Error::Kind::usage, fmt::format("there is no signing key '{}'", shown(path)),
                    fmt::format("autotune db keygen {}", shell_word(path.string()))};
    if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        throw Error{
            Error::Kind::usage, fmt::format("the signing key '{}' is open to other users", shown(path)),
            fmt::format("chmod 600 {}, and make a new one where they may have read it", shell_word(path.string()))};
    const auto secret = read_key_file<64>(path, secret_words);
    if (!secret) throw Error{Error::Kind::usage, fmt::format("'{}' is no signing key of autotune", shown(path))};
    SigningKey key;
    key.secret_ = *secret;
    // The second half of the bytes is the public key; one that does not belong to the first would sign nothing valid.
    PublicKey half;
    std::array<std::byte, 64> derived{};
    crypto_sign_seed_keypair(raw(half.bytes.data()), raw(derived.data()), raw(key.secret_.data()));
    if (derived != key.secret_)
        throw Error{Error::Kind::usage, fmt::format("the signing key '{}' is damaged", shown(path))};
    return key;
}

void SigningKey::write(const fs::path& path) const {
    std::error_code error;
    const fs::path half = path.string() + ".pub";
    for (const fs::path& each : {path, half})
        if (fs::exists(fs::symlink_status(each, error)))
            throw Error{Error::Kind::usage, fmt::format("'{}' exists already", shown(each)), "name another file"};
    write_key_file(path, secret_words, secret_);
    try {
        write_key_file(half, public_words, public_key().bytes);
    } catch (const Error&) {
        fs::remove(path, error);  // alone it would be in the way of the next one
        throw;
    }
}

PublicKey SigningKey::public_key() const {
    PublicKey key;
    crypto_sign_ed25519_sk_to_pk(raw(key.bytes.data()), raw(secret_.data()));
    return key;
}

KeySignature SigningKey::sign(std::span<const std::byte> message) const {
    KeySignature signature{};
    crypto_sign_detached(raw(signature.data()), nullptr, raw(message.data()), message.size(), raw(secret_.data()));
    return signature;
}

bool is_signed_by(const PublicKey& key, std::span<const std::byte> message, const KeySignature& signature) {
    start_sodium();
    return crypto_sign_verify_detached(raw(signature.data()), raw(message.data()), message.size(),
                                       raw(key.bytes.data())) == 0;
}

PublicKey read_public_key(const fs::path& path) {
    const auto bytes = read_key_file<32>(path, public_words);
    if (!bytes)
        throw Error{Error::Kind::usage, fmt::format("'{}' is no public key of autotune", shown(path)),
                    "autotune db keygen FILE makes FILE and FILE.pub"};
    return {.bytes = *bytes};
}

TrustList::TrustList(const fs::path& database) : folder_{behind_links(database).parent_path() / "trusted_keys"} {}

std::map<std::string, PublicKey> TrustList::keys(const std::function<void(const std::string&)>& warn) const {
    std::map<std::string, PublicKey> keys;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator{folder_, error}) {
        if (entry.path().extension() != ".pub") continue;
        if (const auto why = untrusted(entry.path())) {
            if (warn) warn(fmt::format("the key '{}' does not count, since {}", shown(entry.path()), why->why));
            continue;
        }
        if (const auto bytes = read_key_file<32>(entry.path(), public_words))
            keys.emplace(entry.path().stem().string(), PublicKey{.bytes = *bytes});
        else if (warn)
            warn(fmt::format("'{}' is no public key of autotune", shown(entry.path())));
    }
    return keys;
}

std::optional<std::string> TrustList::name_of(const PublicKey& key,
                                              const std::function<void(const std::string&)>& warn) const {
    for (const auto& [name, trusted] : keys(warn))
        if (trusted == key) return name;
    return std::nullopt;
}

void TrustList::add(const PublicKey& key, const std::string& name) const {
    if (!is_plain_name(name))
        throw Error{Error::Kind::usage, fmt::format("'{}' is no name for a key", name),
                    "letters, digits, '-', '_' and '.'"};
    const fs::path path = folder_ / (name + ".pub");
    std::error_code error;
    if (fs::exists(path, error))
        throw Error{Error::Kind::usage, fmt::format("a key named '{}' is trusted already", name), "name another"};
    if (!make_private_folder(folder_))
        throw Error{Error::Kind::store, fmt::format("the folder '{}' could not be made", shown(folder_))};
    if (const auto why = untrusted(path))
        throw Error{Error::Kind::usage, fmt::format("no key is trusted here, since {}", why->why), why->remedy};
    write_key_file(path, public_words, key.bytes);
}

void TrustList::remove(const std::string& name) const {
    const fs::path path = folder_ / (name + ".pub");
    std::error_code error;
    if (!is_plain_name(name) || !fs::exists(fs::symlink_status(path, error)))
        throw Error{Error::Kind::usage, fmt::format("no key named '{}' is trusted", name), "autotune db trust list"};
    if (!fs::remove(path, error))
        throw Error{Error::Kind::store, fmt::format("the key '{}' could not be removed", shown(path))};
}

}  // namespace autotune

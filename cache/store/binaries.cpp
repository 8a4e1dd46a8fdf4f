#include "cache/store/binaries.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "cache/store/file.h"
#include "cache/store/location.h"
#include "tuner/model/hashing.h"

namespace autotune {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// A file: magic, length of the JSON head (8 bytes, little-endian), the head, the cubin, then the SHA-256 of all before
// it.
constexpr std::string_view magic = "ATBINRY1";
constexpr std::size_t digest_size = 64;

constexpr std::size_t hash_digits = 64;

/// {13, 0}
std::pair<int, int> version_of(std::string_view key) {
    std::pair<int, int> version;
    const std::string text{key.substr(hash_digits + 1)};
    std::sscanf(text.c_str(), "%d.%d", &version.first, &version.second);
    return version;
}

json head_of(const Binary& binary) {
    json kernels = json::array();
    for (const KernelInfo& k : binary.artefact.kernels)
        kernels.push_back({{"name", k.name},
                           {"symbol", k.symbol},
                           {"registers", k.registers},
                           {"static_shared_bytes", k.static_shared_bytes},
                           {"stack_bytes", k.stack_bytes},
                           {"spill_bytes", k.spill_bytes},
                           {"barriers", k.barriers},
                           {"max_threads", k.max_threads}});
    return {{"key", binary.key},
            {"arch", binary.artefact.arch},
            {"source", binary.source},
            {"kernels", kernels},
            {"nvrtc_major", binary.nvrtc_major},
            {"nvrtc_minor", binary.nvrtc_minor},
            {"cubin_bytes", binary.artefact.cubin.size()}};
}

Binary from_head(const json& head) {
    Binary binary{.key = head.at("key"),
                  .artefact = {},
                  .source = head.at("source"),
                  .nvrtc_major = head.at("nvrtc_major"),
                  .nvrtc_minor = head.at("nvrtc_minor")};
    binary.artefact.arch = head.at("arch");
    for (const json& k : head.at("kernels"))
        binary.artefact.kernels.push_back({.name = k.at("name"),
                                           .symbol = k.at("symbol"),
                                           .registers = k.at("registers"),
                                           .static_shared_bytes = k.at("static_shared_bytes"),
                                           .stack_bytes = k.at("stack_bytes"),
                                           .spill_bytes = k.at("spill_bytes"),
                                           .barriers = k.at("barriers"),
                                           .max_threads = k.at("max_threads")});
    return binary;
}

void append(std::vector<std::byte>& out, std::string_view text) {
    const auto bytes = std::as_bytes(std::span{text});
    out.insert(out.end(), bytes.begin(), bytes.end());
}

struct Entry {
    fs::path path;
    std::uint64_t bytes;
    std::int64_t used_ns;
};

/// The access time would do, but mounts with noatime keep none: `get` sets the time of change. A time to come says
/// nothing but that a clock was wrong: were it believed, what comes today would always go before it.
std::vector<Entry> entries_of(const fs::path& folder) {
    constexpr std::int64_t clocks_that_differ = 86'400;  // of the hosts of a shared folder, in seconds
    const std::int64_t latest = std::time(nullptr) + clocks_that_differ;
    std::vector<Entry> entries;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator{folder, error}) {
        struct stat status {};
        if (entry.path().extension() != ".cubin" || ::stat(entry.path().c_str(), &status) != 0) continue;
        const std::int64_t used_ns = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
        entries.push_back(
            {entry.path(), static_cast<std::uint64_t>(status.st_size), status.st_mtim.tv_sec > latest ? 0 : used_ns});
    }
    return entries;
}

}  // namespace

bool is_binary_key(std::string_view key) noexcept {
    return key.size() > hash_digits + 1 && key.size() < hash_digits + 16 && key[hash_digits] == '-' &&
           key.substr(0, hash_digits).find_first_not_of("0123456789abcdef") == std::string_view::npos &&
           key.substr(hash_digits + 1).find_first_not_of("0123456789.") == std::string_view::npos;
}

std::vector<std::string> newest_first(std::vector<std::string> keys, std::string_view source_key) {
    std::erase_if(keys, [&](const std::string& key) { return !is_binary_key(key) || !key.starts_with(source_key); });
    std::sort(keys.begin(), keys.end(),
              [](const std::string& a, const std::string& b) { return version_of(a) > version_of(b); });
    return keys;
}

std::vector<std::byte> encode(const Binary& binary) {
    std::vector<std::byte> file;
    const std::string head = head_of(binary).dump();
    const std::uint64_t head_size = head.size();
    append(file, magic);
    const auto length = std::as_bytes(std::span{&head_size, 1});
    file.insert(file.end(), length.begin(), length.end());
    append(file, head);
    file.insert(file.end(), binary.artefact.cubin.begin(), binary.artefact.cubin.end());
    append(file, sha256_hex(std::span<const std::byte>{file}));
    return file;
}

std::optional<Binary> decode_binary(std::span<const std::byte> file) {
    if (file.size() < magic.size() + 8 + digest_size || std::memcmp(file.data(), magic.data(), magic.size()) != 0)
        return std::nullopt;
    const auto body = file.first(file.size() - digest_size);
    if (std::memcmp(sha256_hex(body).data(), file.data() + body.size(), digest_size) != 0) return std::nullopt;
    std::uint64_t head_size = 0;
    std::memcpy(&head_size, body.data() + magic.size(), sizeof head_size);
    const auto rest = body.subspan(magic.size() + 8);
    if (head_size > rest.size()) return std::nullopt;
    try {
        const auto* text = reinterpret_cast<const char*>(rest.data());
        const json head = json::parse(text, text + head_size);
        Binary binary = from_head(head);
        const auto cubin = rest.subspan(head_size);
        if (cubin.size() != head.at("cubin_bytes").get<std::size_t>()) return std::nullopt;
        binary.artefact.cubin.assign(cubin.begin(), cubin.end());
        return binary;
    } catch (const json::exception&) {
        return std::nullopt;
    }
}

BinaryStore::BinaryStore(fs::path folder, std::uint64_t cap_bytes)
    : folder_{std::move(folder)}, cap_bytes_{cap_bytes} {}

fs::path BinaryStore::path_of(std::string_view key) const { return folder_ / (std::string{key} + ".cubin"); }

std::optional<Binary> BinaryStore::get(std::string_view key) const {
    if (folder_.empty() || !is_binary_key(key)) return std::nullopt;
    const fs::path path = path_of(key);
    const bool any = shared_folders_are_allowed();
    // Each time: the folder may not have been there before, and whoever made it owns it.
    if (!any && untrusted(path)) return std::nullopt;
    const auto file = read_file_whole(path, cap_bytes_, any ? Writers::any : Writers::trusted);
    if (!file) return std::nullopt;
    std::optional<Binary> binary = decode_binary(*file);
    if (!binary || binary->key != key) {
        std::error_code error;
        fs::remove(path, error);
        return std::nullopt;
    }
    ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // used just now; a read-only folder keeps no such note
    return binary;
}

bool BinaryStore::put(const Binary& binary) {
    if (folder_.empty() || !is_binary_key(binary.key) || !make_private_folder(folder_)) return false;
    const std::vector<std::byte> file = encode(binary);
    if (file.size() > cap_bytes_ || !write_file_whole(path_of(binary.key), file)) return false;
    counted_bytes_ += file.size();
    if (--uncounted_puts_ < 0 || counted_bytes_ > cap_bytes_) evict();
    return true;
}

void BinaryStore::remove(std::string_view key) {
    std::error_code error;
    if (!folder_.empty() && is_binary_key(key)) fs::remove(path_of(key), error);
}

std::vector<std::string> BinaryStore::keys() const {
    std::vector<std::string> keys;
    for (const Entry& entry : entries_of(folder_)) keys.push_back(entry.path.stem().string());
    std::sort(keys.begin(), keys.end());
    return keys;
}

std::vector<std::string> BinaryStore::keys_of(std::string_view source_key) const {
    return newest_first(keys(), source_key);
}

std::uint64_t BinaryStore::bytes() const {
    std::uint64_t sum = 0;
    for (const Entry& entry : entries_of(folder_)) sum += entry.bytes;
    return sum;
}

void BinaryStore::evict() {
    constexpr int puts_between_looks = 16;  // a look takes as long as there are files
    std::vector<Entry> entries = entries_of(folder_);
    counted_bytes_ = 0;
    uncounted_puts_ = puts_between_looks;
    sweep_unfinished(folder_);  // they count for nothing, so they would outlast all that is evicted
    for (const Entry& entry : entries) counted_bytes_ += entry.bytes;
    if (counted_bytes_ <= cap_bytes_) return;
    const std::uint64_t wanted = cap_bytes_ - cap_bytes_ / 8;
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used_ns < b.used_ns; });
    for (const Entry& entry : entries) {
        if (counted_bytes_ <= wanted) return;
        std::error_code error;
        fs::remove(entry.path, error);
        counted_bytes_ -= entry.bytes;
    }
}

}  // namespace autotune

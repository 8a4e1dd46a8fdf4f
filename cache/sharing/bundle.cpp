#include "cache/sharing/bundle.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "autotune/error.h"
#include "cache/store/file.h"
#include "cache/store/json.h"
#include "cache/store/location.h"
#include "tuner/model/hashing.h"

namespace autotune {

using nlohmann::json;

namespace {

constexpr std::string_view bundle_magic = "ATBUNDL1";
constexpr int bundle_format = 1;
constexpr std::size_t manifest_digest_size = 32;
constexpr std::size_t bundle_head_size = 8 + 4 + 8 + manifest_digest_size;
constexpr std::string_view records_part = "records";
constexpr std::string_view binary_prefix = "binary/";

struct NewPart {
    std::string name;
    std::vector<std::byte> bytes;
};

std::vector<std::byte> bytes_of(std::string_view text) {
    const auto bytes = std::as_bytes(std::span{text});
    return {bytes.begin(), bytes.end()};
}

std::vector<NewPart> parts_of(const BundleContents& contents) {
    std::vector<std::string> lines;
    for (const Record& record : contents.records) lines.push_back(to_line(record) + '\n');
    std::ranges::sort(lines);
    std::string text;
    for (const std::string& line : lines) text += line;
    std::vector<NewPart> parts;
    parts.push_back({std::string{records_part}, bytes_of(text)});
    for (const Binary& binary : contents.binaries)
        parts.push_back({std::string{binary_prefix} + binary.key, encode(binary)});
    std::sort(parts.begin() + 1, parts.end(), [](const NewPart& a, const NewPart& b) { return a.name < b.name; });
    const auto repeated = std::unique(parts.begin() + 1, parts.end(),
                                      [](const NewPart& a, const NewPart& b) { return a.name == b.name; });
    parts.erase(repeated, parts.end());
    return parts;
}

template <class Number>
void append_number(std::vector<std::byte>& out, Number number) {
    for (std::size_t i = 0; i < sizeof number; ++i) out.push_back(static_cast<std::byte>(number >> (8 * i)));
}

template <class Number>
Number little_endian_at(std::span<const std::byte> bytes, std::size_t at) {
    Number number = 0;
    for (std::size_t i = 0; i < sizeof number; ++i)
        number |= static_cast<Number>(static_cast<Number>(bytes[at + i]) << (8 * i));
    return number;
}

/// A whole number that is not negative.
std::uint64_t count_in(const json& object, const char* name) {
    const json& value = object.at(name);
    if (!value.is_number_unsigned()) throw Error{Error::Kind::usage, fmt::format("'{}' is no count", name)};
    return value.get<std::uint64_t>();
}

std::string text_in(const json& object, const char* name) {
    std::string text = object.at(name).get<std::string>();
    if (text.size() > 256 || std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
        throw Error{Error::Kind::usage, fmt::format("'{}' is no short text", name)};
    return text;
}

}  // namespace

struct Bundle::Part {
    std::string name;
    std::uint64_t offset = 0, size = 0;
    std::string sha256;
};

std::vector<std::byte> make_bundle(const BundleContents& contents, const SigningKey* key) {
    const std::vector<NewPart> parts = parts_of(contents);
    json manifest{{"format", bundle_format},     {"tool", "autotune " AUTOTUNE_VERSION}, {"created", contents.created},
                  {"db_uuid", contents.db_uuid}, {"records", contents.records.size()},   {"binaries", parts.size() - 1},
                  {"parts", json::array()}};
    if (key) manifest["key"] = key->public_key().hex();
    std::uint64_t offset = 0;
    for (const NewPart& part : parts) {
        manifest["parts"].push_back({{"name", part.name},
                                     {"offset", offset},
                                     {"size", part.bytes.size()},
                                     {"sha256", sha256_hex(std::span<const std::byte>{part.bytes})}});
        offset += part.bytes.size();
    }
    const std::vector<std::byte> text = bytes_of(manifest.dump());
    std::vector<std::byte> out = bytes_of(bundle_magic);
    append_number(out, static_cast<std::uint32_t>(key ? sizeof(KeySignature) : 0));
    append_number(out, static_cast<std::uint64_t>(text.size()));
    const std::vector<std::byte> digest = from_hex(sha256_hex(std::span{text}));
    out.insert(out.end(), digest.begin(), digest.end());
    out.insert(out.end(), text.begin(), text.end());
    if (key) {
        const KeySignature signature = key->sign(text);
        out.insert(out.end(), signature.begin(), signature.end());
    }
    for (const NewPart& part : parts) out.insert(out.end(), part.bytes.begin(), part.bytes.end());
    return out;
}

bool is_bundle(std::span<const std::byte> bytes) noexcept {
    return bytes.size() >= bundle_magic.size() &&
           std::memcmp(bytes.data(), bundle_magic.data(), bundle_magic.size()) == 0;
}

void Bundle::refuse(const std::string& why) const {
    throw Error{Error::Kind::usage, fmt::format("the bundle '{}' is not used: {}", name_, why),
                "get it anew from where it came"};
}

Bundle Bundle::read(const std::filesystem::path& path) {
    auto bytes = read_file_whole(path, most_bytes);
    if (!bytes)
        throw Error{
            Error::Kind::usage,
            fmt::format("the bundle '{}' cannot be read, or is larger than {} GiB", shown(path), most_bytes >> 30),
            "name a file that autotune db export made"};
    std::vector<std::byte> kept = std::move(*bytes);
    Bundle bundle = parse(kept, shown(path));
    bundle.owned_ = std::move(kept);  // its bytes stay where they are
    return bundle;
}

Bundle Bundle::view(std::span<const std::byte> bytes, const std::string& name) { return parse(bytes, name); }

Bundle Bundle::parse(std::span<const std::byte> bytes, std::string name) {
    Bundle bundle;
    bundle.name_ = std::move(name);
    if (!is_bundle(bytes)) bundle.refuse("it does not begin as bundles of this format do");
    if (bytes.size() < bundle_head_size) bundle.refuse("its head is cut off");
    const auto signature_size = little_endian_at<std::uint32_t>(bytes, 8);
    const auto manifest_size = little_endian_at<std::uint64_t>(bytes, 12);
    if (signature_size != 0 && signature_size != sizeof(KeySignature))
        bundle.refuse(fmt::format("its head speaks of a signature of {} bytes", signature_size));
    if (manifest_size > most_manifest_bytes || manifest_size > bytes.size() - bundle_head_size)
        bundle.refuse(fmt::format("its head speaks of a manifest of {} bytes", manifest_size));
    auto rest = bytes.subspan(bundle_head_size);
    const auto manifest = rest.first(static_cast<std::size_t>(manifest_size));
    rest = rest.subspan(manifest.size());
    const auto digest = bytes.subspan(bundle_head_size - manifest_digest_size, manifest_digest_size);
    if (sha256_hex(manifest) != to_hex(digest)) bundle.refuse("its manifest is damaged");

    std::vector<Part> parts;
    try {
        bundle.read_manifest({reinterpret_cast<const char*>(manifest.data()), manifest.size()}, parts);
    } catch (const json::exception&) {
        bundle.refuse("its manifest is not as a manifest is");
    }
    if (bundle.signer_.has_value() != (signature_size != 0))
        bundle.refuse(signature_size ? "it has a signature of nobody's" : "its signature is missing");
    if (signature_size) {
        KeySignature signature{};
        if (rest.size() < signature.size()) bundle.refuse("its signature is cut off");
        std::ranges::copy(rest.first(signature.size()), signature.begin());
        rest = rest.subspan(signature.size());
        if (!is_signed_by(*bundle.signer_, manifest, signature))
            bundle.refuse("its signature is not that of the key which it names");
    }
    bundle.check_parts(parts, rest);
    return bundle;
}

void Bundle::read_manifest(std::string_view text, std::vector<Part>& parts) {
    try {
        const json manifest = parse_json(text);
        const std::uint64_t format = count_in(manifest, "format");
        if (format != bundle_format)
            refuse(fmt::format("it is of format {}, and this program knows {}", format, bundle_format));
        tool_ = text_in(manifest, "tool");
        db_uuid_ = text_in(manifest, "db_uuid");
        const json& created = manifest.at("created");
        if (!created.is_number_integer()) refuse("its manifest says no time");
        created_ = created.get<std::int64_t>();
        record_count_ = static_cast<std::size_t>(count_in(manifest, "records"));
        binary_count_ = static_cast<std::size_t>(count_in(manifest, "binaries"));
        if (manifest.contains("key")) {
            signer_ = PublicKey::parse(text_in(manifest, "key"));
            if (!signer_) refuse("the key that its manifest names is none");
        }
        const json& list = manifest.at("parts");
        if (!list.is_array() || list.empty() || list.size() > most_parts || list.size() - 1 != binary_count_)
            refuse("its manifest has another number of parts than it says");
        for (const json& part : list)
            parts.push_back({.name = text_in(part, "name"),
                             .offset = count_in(part, "offset"),
                             .size = count_in(part, "size"),
                             .sha256 = text_in(part, "sha256")});
    } catch (const Error& error) {
        if (std::string_view{error.what()}.starts_with("the bundle ")) throw;
        refuse(fmt::format("in its manifest {}", error.what()));
    }
}

void Bundle::check_parts(const std::vector<Part>& parts, std::span<const std::byte> bytes) {
    std::uint64_t end = 0;
    for (const Part& part : parts) {
        // End to end: nothing overlaps, nothing hides between.
        if (part.offset != end || part.size > bytes.size() - end)
            refuse(fmt::format("its part '{}' does not lie where it should", part.name));
        const auto content = bytes.subspan(static_cast<std::size_t>(end), static_cast<std::size_t>(part.size));
        end += part.size;
        if (sha256_hex(content) != part.sha256) refuse(fmt::format("its part '{}' is damaged", part.name));
        if (&part == &parts.front()) {
            if (part.name != records_part) refuse("its first part is not its records");
            records_ = content;
            continue;
        }
        const std::string key =
            part.name.starts_with(binary_prefix) ? part.name.substr(binary_prefix.size()) : std::string{};
        if (!is_binary_key(key)) refuse(fmt::format("'{}' is no name of a part", part.name));
        if (!binaries_.emplace(key, content).second) refuse(fmt::format("it has the part '{}' twice", part.name));
    }
    if (end != bytes.size()) refuse(fmt::format("{} bytes follow its last part", bytes.size() - end));
    const std::string_view lines = record_lines();
    if (!lines.empty() && lines.back() != '\n') refuse("its last record is cut off");
    if (static_cast<std::size_t>(std::ranges::count(lines, '\n')) != record_count_)
        refuse(fmt::format("it does not hold the {} records that it says", record_count_));
}

std::string_view Bundle::record_lines() const noexcept {
    return {reinterpret_cast<const char*>(records_.data()), records_.size()};
}

std::vector<Record> Bundle::records(const std::function<void(const std::string&)>& warn) const {
    std::vector<Record> out;
    std::size_t number = 0;
    for (std::string_view rest = record_lines(); !rest.empty();) {
        const std::size_t length = rest.find('\n');
        const std::string_view line = rest.substr(0, length);
        rest.remove_prefix(length + 1);
        ++number;
        try {
            if (line.size() > most_line_bytes) throw Error{Error::Kind::usage, "it is too long"};
            out.push_back(record_from_line(line));
        } catch (const Error& error) {
            if (warn) warn(fmt::format("record {} of the bundle '{}' is left out: {}", number, name_, error.what()));
        }
    }
    return out;
}

std::vector<std::string> Bundle::binary_keys() const {
    std::vector<std::string> keys;
    for (const auto& [key, bytes] : binaries_) keys.push_back(key);
    return keys;
}

std::optional<Binary> Bundle::binary(std::string_view key) const {
    const auto found = binaries_.find(key);
    if (found == binaries_.end()) return std::nullopt;
    std::optional<Binary> binary = decode_binary(found->second);
    return binary && binary->key == key ? binary : std::nullopt;
}

}  // namespace autotune

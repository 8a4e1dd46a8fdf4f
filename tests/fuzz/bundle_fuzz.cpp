// Goal: a bundle from anywhere is read or refused, never read out of bounds, and so are its binaries.
// Method: each input as it comes, and once more with all digests set right, so that what follows them is reached.
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "cache/sharing/bundle.h"
#include "cache/sharing/foreign_binaries.h"
#include "cache/store/json.h"
#include "tests/cache/sharing_samples.h"
#include "tests/fuzz/fuzzing.h"
#include "tuner/model/hashing.h"

namespace {

using namespace autotune;
using namespace autotune::fuzzing;
using nlohmann::json;

constexpr std::size_t manifest_at = 52, signature_size_at = 8, manifest_size_at = 12, digest_at = 20;

void read_bundle(std::span<const std::byte> bytes) {
    or_error([&] {
        const Bundle bundle = Bundle::view(bytes, "fuzz");
        require(bundle.records().size() <= bundle.record_count());
        for (const std::string& key : bundle.binary_keys()) {
            const auto binary = bundle.binary(key);
            require(!binary || binary->key == key);
            if (binary) objection(*binary);
        }
        judged_binaries(bundle, samples::shared_ops());
    });
}

/// Of its parts, as far as they lie within the bytes.
std::string with_digests(const std::string& manifest, std::span<const std::byte> parts) {
    json said = json::parse(manifest, nullptr, false);
    if (!said.is_object() || !said.contains("parts") || !said["parts"].is_array()) return manifest;
    for (json& part : said["parts"]) {
        if (!part.is_object() || !part.contains("size") || !part["size"].is_number_unsigned()) return manifest;
        const auto size = part["size"].get<std::uint64_t>();
        if (size > parts.size()) return manifest;
        part["sha256"] = sha256_hex(parts.first(static_cast<std::size_t>(size)));
        parts = parts.subspan(static_cast<std::size_t>(size));
    }
    return said.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto* begin = reinterpret_cast<const std::byte*>(data);
    const std::vector<std::byte> bytes{begin, begin + size};
    read_bundle(bytes);
    if (size < manifest_at) return 0;
    std::uint64_t manifest_size = 0;
    std::memcpy(&manifest_size, data + manifest_size_at, sizeof manifest_size);
    if (manifest_size > size - manifest_at) return 0;
    // Nobody can set a signature right.
    const std::string manifest{text_of({data + manifest_at, static_cast<std::size_t>(manifest_size)})};
    const auto parts = std::span{bytes}.subspan(manifest_at + manifest.size());
    const std::string sealed = with_digests(manifest, parts);
    std::vector<std::byte> out{bytes.begin(), bytes.begin() + manifest_at};
    std::memset(out.data() + signature_size_at, 0, 4);
    manifest_size = sealed.size();
    std::memcpy(out.data() + manifest_size_at, &manifest_size, sizeof manifest_size);
    const auto digest = from_hex(sha256_hex(sealed));
    std::memcpy(out.data() + digest_at, digest.data(), digest.size());
    const auto text = std::as_bytes(std::span{sealed});
    out.insert(out.end(), text.begin(), text.end());
    out.insert(out.end(), parts.begin(), parts.end());
    read_bundle(out);
    return 0;
}

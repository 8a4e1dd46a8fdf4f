// Goal: a bundle from anywhere is read or refused, never read out of bounds.
// Method: each input as it comes, and once more with the digest of its manifest set right, so that what follows the
// digest is reached.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "autotune/error.h"
#include "cache/sharing/bundle.h"
#include "cache/store/json.h"
#include "tuner/model/hashing.h"

namespace {

void read_bundle(std::span<const std::byte> bytes) {
    try {
        const autotune::Bundle bundle = autotune::Bundle::view(bytes, "fuzz");
        bundle.records();
        for (const std::string& key : bundle.binary_keys()) bundle.binary(key);
    } catch (const autotune::Error&) {
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::size_t head = 52, digest_at = 20;
    std::vector<std::byte> bytes(size);
    if (size) std::memcpy(bytes.data(), data, size);
    read_bundle(bytes);
    std::uint64_t manifest = 0;
    if (size < head) return 0;
    std::memcpy(&manifest, data + 12, sizeof manifest);
    if (manifest > size - head) return 0;
    const auto digest =
        autotune::from_hex(autotune::sha256_hex(std::span<const std::byte>{bytes}.subspan(head, manifest)));
    std::memcpy(bytes.data() + digest_at, digest.data(), digest.size());
    read_bundle(bytes);
    return 0;
}

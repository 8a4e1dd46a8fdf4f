// Goal: a file in a folder of binaries, whoever wrote it, is read or a miss.
// Method: each input as it comes, and once more with the digest at its end set right.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "cache/store/binaries.h"
#include "tuner/model/hashing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::size_t digest_size = 64;
    std::vector<std::byte> bytes(size);
    if (size) std::memcpy(bytes.data(), data, size);
    autotune::decode_binary(bytes);
    if (size < digest_size) return 0;
    const std::string digest = autotune::sha256_hex(std::span<const std::byte>{bytes}.first(size - digest_size));
    std::memcpy(bytes.data() + size - digest_size, digest.data(), digest_size);
    autotune::decode_binary(bytes);
    return 0;
}

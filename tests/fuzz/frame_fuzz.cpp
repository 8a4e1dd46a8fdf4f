// Goal: nothing a worker sends can crash its reader or make it allocate wildly.
// Method: the first byte cuts the input into pieces; frames come out, and their bodies are decoded.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>

#include "tuner/worker/frame.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace autotune;
    if (size == 0) return 0;
    const std::size_t piece = 1 + data[0];
    std::span<const std::byte> rest = std::as_bytes(std::span{data + 1, size - 1});
    FrameReader reader;
    try {
        while (!rest.empty()) {
            const std::size_t count = std::min(piece, rest.size());
            reader.take(rest.first(count));
            rest = rest.subspan(count);
            while (const std::optional<Frame> frame = reader.next()) (void)frame->json();
        }
    } catch (const FrameError&) {
    }
    try {
        (void)decode_cbor(std::as_bytes(std::span{data, size}));
    } catch (const FrameError&) {
    }
    return 0;
}

// Goal: a cubin from anywhere, damaged or made up, is read or refused, never read out of bounds.
#include <cstddef>
#include <cstdint>
#include <span>

#include "autotune/error.h"
#include "device/cubin.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        autotune::read_cubin(std::as_bytes(std::span{data, size}));
    } catch (const autotune::Error&) {
    }
    return 0;
}

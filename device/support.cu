// support: the device's side of filling, comparing and checking buffers
//
// Compiled by NVRTC once a worker and device (device/cuda_device.h). What decides a result stands in support_math.h,
// which the host compiles too; here is only how the work is spread over threads.
// launch  grid and block of any size, one-dimensional; every kernel strides over its elements
#include "device/support_math.h"

using namespace autotune::support;

namespace {

__device__ U64 first_index() { return static_cast<U64>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ U64 stride() { return static_cast<U64>(gridDim.x) * blockDim.x; }

/// As store_bits, in one access where the address allows it.
__device__ void store(unsigned char* address, int bytes, U64 bits) {
    if (reinterpret_cast<U64>(address) % static_cast<U64>(bytes) != 0) return store_bits(address, bytes, bits);
    switch (bytes) {
        case 8: *reinterpret_cast<U64*>(address) = bits; break;
        case 4: *reinterpret_cast<U32*>(address) = static_cast<U32>(bits); break;
        case 2: *reinterpret_cast<unsigned short*>(address) = static_cast<unsigned short>(bits); break;
        default: *address = static_cast<unsigned char>(bits);
    }
}

__device__ U64 load(const unsigned char* address, int bytes) {
    if (reinterpret_cast<U64>(address) % static_cast<U64>(bytes) != 0) return load_bits(address, bytes);
    switch (bytes) {
        case 8: return *reinterpret_cast<const U64*>(address);
        case 4: return *reinterpret_cast<const U32*>(address);
        case 2: return *reinterpret_cast<const unsigned short*>(address);
        default: return *address;
    }
}

/// lane[index % 4], without an array in memory.
__device__ U32 word_of(const Four& four, U64 index) {
    const U32 low = index & 1 ? four.lane[1] : four.lane[0], high = index & 1 ? four.lane[3] : four.lane[2];
    return index & 2 ? high : low;
}

}  // namespace

/// fill.elements elements at `out`. Each thread draws the four words of its element's block and takes one: four times
/// the integer work of sharing them, far below what the stores cost, and neighbours write side by side.
extern "C" __global__ void autotune_fill(unsigned char* out, Fill fill, const int* table) {
    const int bytes = bytes_of(fill.type);
    for (U64 index = first_index(); index < fill.elements; index += stride()) {
        const U32 bits = word_of(random_bits(fill.seed, fill.stream, index / 4), index);
        const U32 more =
            fill.type == f64 ? word_of(random_bits(fill.seed, fill.stream ^ finer_stream, index / 4), index) : 0;
        const double value = fill_value(fill, index, bits, more, table);
        store(out + index * static_cast<U64>(bytes), bytes, encode(value, fill.type));
    }
}

/// Judges `view.elements` elements; adds to *tally, which the host has cleared. magnitude may be null.
extern "C" __global__ void autotune_compare(const unsigned char* got, View view, const double* value,
                                            const double* magnitude, Limits limits, U32 poison, Tally* tally) {
    const int bytes = bytes_of(view.type);
    U64 poisoned = 0;
    for (int i = 0; i < bytes; ++i) poisoned |= static_cast<U64>(poison & 0xffU) << (8 * i);
    U64 bad = 0, still_poison = 0, not_finite = 0, first_bad = ~0ULL;
    double largest = 0;
    for (U64 i = first_index(); i < view.elements; i += stride()) {
        U64 rest = i;
        I64 offset = 0;
        for (int dimension = view.rank - 1; dimension > 0; --dimension) {
            const U64 extent = view.extent[dimension];
            offset += static_cast<I64>(rest % extent) * view.stride[dimension];
            rest /= extent;
        }
        if (view.rank > 0) offset += static_cast<I64>(rest) * view.stride[0];
        const U64 bits = load(got + offset * bytes, bytes);
        const double want = value[i];
        const double terms = magnitude ? magnitude[i] : magnitude_of(want);
        const Judgement judged = judge(decode(bits, view.type), want, terms, limits, view.type);
        if (judged.ratio > largest) largest = judged.ratio;
        if (judged.good) continue;
        ++bad;
        if (i < first_bad) first_bad = i;
        if (judged.not_finite) ++not_finite;
        if (bits == poisoned) ++still_poison;
    }
    // Every merge is of whole numbers, so the answer does not depend on its order. A ratio is never negative, and the
    // bits of such doubles are ordered as they are.
    if (largest > 0) atomicMax(&tally->largest_ratio_bits, bits_of(largest));
    if (bad == 0) return;
    atomicAdd(&tally->bad, bad);
    atomicMin(&tally->first_bad, first_bad);
    if (not_finite) atomicAdd(&tally->not_finite, not_finite);
    if (still_poison) atomicAdd(&tally->still_poison, still_poison);
}

/// Sets *different when any of the bytes differ.
extern "C" __global__ void autotune_equal(const unsigned char* a, const unsigned char* b, U64 bytes, U32* different) {
    bool differs = false;
    U64 done = 0;
    if ((reinterpret_cast<U64>(a) | reinterpret_cast<U64>(b)) % 8 == 0) {
        const U64 words = bytes / 8;
        for (U64 i = first_index(); i < words; i += stride())
            differs |= reinterpret_cast<const U64*>(a)[i] != reinterpret_cast<const U64*>(b)[i];
        done = words * 8;
    }
    for (U64 i = done + first_index(); i < bytes; i += stride()) differs |= a[i] != b[i];
    if (differs) *different = 1;
}

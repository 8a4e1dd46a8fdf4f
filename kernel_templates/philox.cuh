// philox: random bits that are a function of a counter and a key, and of nothing else
//
// Philox-4x32 of Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011. Ten rounds are their default, seven
// the fewest that pass BigCrush.
#ifndef AUTOTUNE_PHILOX_CUH
#define AUTOTUNE_PHILOX_CUH

#ifndef __CUDACC__  // a reference on the CPU
#define __device__
#define __forceinline__ inline
#endif

struct Philox {
    unsigned word[4];
};

/// Spelled out: of a product of 64-bit numbers the upper half of the constant is added, too, though it is 0.
__device__ __forceinline__ unsigned long long wide_product(unsigned a, unsigned b) {
#ifdef __CUDA_ARCH__
    unsigned long long product;
    asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b));
    return product;
#else
    return static_cast<unsigned long long>(a) * b;
#endif
}

template <int ROUNDS>
__device__ __forceinline__ Philox philox(Philox counter, unsigned key0, unsigned key1) {
    for (int round = 0; round < ROUNDS; ++round) {
        const unsigned long long a = wide_product(0xd2511f53u, counter.word[0]),
                                 b = wide_product(0xcd9e8d57u, counter.word[2]);
        counter = {{static_cast<unsigned>(b >> 32) ^ counter.word[1] ^ key0, static_cast<unsigned>(b),
                    static_cast<unsigned>(a >> 32) ^ counter.word[3] ^ key1, static_cast<unsigned>(a)}};
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
    return counter;
}

/// Of the eight elements from 8 * group on; `use` tells the dropouts of one chain apart.
__device__ __forceinline__ Philox random_bits(long long seed, unsigned offset, unsigned use, unsigned long long group) {
    return philox<7>({{static_cast<unsigned>(group), static_cast<unsigned>(group >> 32), offset, use}},
                     static_cast<unsigned>(seed), static_cast<unsigned>(static_cast<unsigned long long>(seed) >> 32));
}

/// Two neighbours share a word: the second has its halves exchanged. Each decides by 32 bits, and the two depend on
/// each other only where the first's upper half alone does not decide, once in 2^16.
__device__ __forceinline__ unsigned halves_exchanged(unsigned word) { return word << 16 | word >> 16; }

/// The bits of the element number `index`.
__device__ __forceinline__ unsigned random_bits_of(long long seed, unsigned offset, unsigned use,
                                                   unsigned long long index) {
    const unsigned word = random_bits(seed, offset, use, index / 8).word[index % 8 / 2];
    return index % 2 == 0 ? word : halves_exchanged(word);
}

/// Whether an element is 0 after a dropout: the lowest p * 2^32 values of its bits say so. In a kernel without a
/// branch: a conversion to unsigned ends at 0 there, for NaN too.
__device__ __forceinline__ bool dropped(float p, unsigned bits) {
#ifdef __CUDA_ARCH__
    return static_cast<int>(p >= 1.0f) | static_cast<int>(bits < __float2uint_rz(p * 4294967296.0f));
#else
    return p >= 1.0f || (p > 0.0f && bits < static_cast<unsigned>(p * 4294967296.0f));
#endif
}

#endif

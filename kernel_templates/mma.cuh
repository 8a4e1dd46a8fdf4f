// mma: the tensor-core building blocks below Hopper's: ldmatrix, mma.sync, swizzles.
//
// Each is one PTX instruction with a name. An instruction that an architecture lacks costs nothing until it is
// used: the m16n8k16 products need sm_80, ldmatrix and m16n8k8 on __half run from sm_75 on.
// Fragments, with g = lane / 4 and t = lane % 4 (PTX ISA, "matrix fragments for mma.m16n8k16"):
//   a[0] (row g, k 2t..)  a[1] (row g+8, k 2t..)  a[2] (row g, k 2t+8..)  a[3] (row g+8, k 2t+8..)
//   b[0] (k 2t.., col g)  b[1] (k 2t+8.., col g)    c[0], c[1] (row g, col 2t..)  c[2], c[3] (row g+8, col 2t..)
#ifndef AUTOTUNE_MMA_CUH
#define AUTOTUNE_MMA_CUH

#include "copies.cuh"

// ---- ldmatrix: 8x8 matrices of 16-bit elements; lanes 8i..8i+7 give the addresses of matrix i's rows.

__device__ __forceinline__ void ldmatrix_x4(unsigned (&r)[4], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}
__device__ __forceinline__ void ldmatrix_x4_trans(unsigned (&r)[4], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

// ---- c += a x b on one warp; float accumulators.

/// m16n8k16 (sm_80).
template <class T>
__device__ __forceinline__ void mma_16816(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1);
template <>
__device__ __forceinline__ void mma_16816<__half>(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
__device__ __forceinline__ void mma_16816<__nv_bfloat16>(float (&c)[4], const unsigned (&a)[4], unsigned b0,
                                                         unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// m16n8k8 on __half (sm_75): `a0`, `a1` and `b0` are the k 0..7 half of the fragments above.
__device__ __forceinline__ void mma_1688(float (&c)[4], unsigned a0, unsigned a1, unsigned b0) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(b0));
}

/// Two floats as a register of two T, `low` in the low half: the lower column of a fragment.
template <class T>
__device__ __forceinline__ unsigned pack_pair(float low, float high);
template <>
__device__ __forceinline__ unsigned pack_pair<__half>(float low, float high) {
    const __half2 pair = __floats2half2_rn(low, high);
    return reinterpret_cast<const unsigned&>(pair);
}
template <>
__device__ __forceinline__ unsigned pack_pair<__nv_bfloat16>(float low, float high) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const unsigned&>(pair);
}

/// The bytes after which rows of ROW_BYTES meet the banks in the same place again, 128 at most.
template <int ROW_BYTES>
constexpr int bank_period = (ROW_BYTES & -ROW_BYTES) < 128 ? ROW_BYTES & -ROW_BYTES : 128;

/// Byte offset of 16-byte chunk `chunk` of row `row` in a shared tile of ROW_BYTES (a multiple of 32) a row,
/// permuted so that the eight rows of an 8x8 matrix lie in eight different bank groups; for a power of two so do
/// the eight chunks of a copy. Rows whose length is no multiple of 128 bytes differ in their banks already, hence the
/// shift.
template <int ROW_BYTES>
__device__ __forceinline__ int swizzled(int row, int chunk) {
    static_assert(ROW_BYTES % 32 == 0, "whole 8x8 pairs of matrices a row");
    constexpr int rows_a_line = 128 / bank_period<ROW_BYTES>;
    constexpr int mask = 8 / rows_a_line - 1;
    return row * ROW_BYTES + 16 * (chunk ^ ((row / rows_a_line) & mask));
}

/// The address `pairs` pairs of chunks further along the row than `address`, which `swizzled` gave for chunk 0 or 1
/// of a tile that is aligned to 128 bytes. With a constant `pairs` this is at most one XOR and an immediate.
template <int ROW_BYTES>
__device__ __forceinline__ unsigned swizzled_step(unsigned address, int pairs) {
    constexpr int mask = bank_period<ROW_BYTES> - 1;
    return (address ^ ((32 * pairs) & mask)) + ((32 * pairs) & ~mask);
}

#endif

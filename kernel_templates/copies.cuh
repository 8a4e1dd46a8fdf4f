// copies: asynchronous copies from global to shared memory, which need sm_80 where they are used.
#ifndef AUTOTUNE_COPIES_CUH
#define AUTOTUNE_COPIES_CUH

#include "common.cuh"

/// The 32-bit address that PTX wants for shared memory.
__device__ __forceinline__ unsigned shared_address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

/// 16 bytes past L1; of them `valid` (0..16) are read and the rest become zeros. Both sides are 16-byte aligned.
/// `source` is a legal address even when `valid` is 0.
__device__ __forceinline__ void cp_async_16(unsigned destination, const void* source, int valid) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;\n" ::"r"(destination),
                 "l"(__cvta_generic_to_global(source)), "r"(valid)
                 : "memory");
}

/// As `cp_async_16`, for 4 or 8 bytes aligned to their size; these pass through L1.
template <int BYTES>
__device__ __forceinline__ void cp_async_small(unsigned destination, const void* source, int valid) {
    static_assert(BYTES == 4 || BYTES == 8, "cp.async copies 4, 8 or 16 bytes");
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;\n" ::"r"(destination),
                 "l"(__cvta_generic_to_global(source)), "n"(BYTES), "r"(valid)
                 : "memory");
}

__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

/// Until at most PENDING of this thread's newest groups are still under way.
template <int PENDING>
__device__ __forceinline__ void cp_async_wait() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(PENDING) : "memory");
}

/// As `shared_address`, without a part that is uniform in a warp: of a copy with a policy for L2 to one that has such a
/// part, ptxas 13.0 makes an instruction that an H200 refuses as illegal.
__device__ __forceinline__ unsigned address_without_uniform(const void* p) {
#if __CUDA_ARCH__ >= 900
    unsigned multiprocessor;
    asm("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
    return shared_address(p) ^ (multiprocessor >> 24);  // 0, which no compiler knows
#else
    return shared_address(p);
#endif
}

/// Where `has`, N elements at `from`, aligned to that, to `to`; 4, 8 or 16 bytes. Through the first-level cache, or
/// past it, as only 16 bytes can go. As `load_once`, of what is read once.
template <int N, bool THROUGH_L1, class T>
__device__ __forceinline__ void copy_async_if(bool has, T* to, const T* from) {
    constexpr int bytes = N * sizeof(T);
    static_assert(bytes == 4 || bytes == 8 || bytes == 16, "cp.async copies 4, 8 or 16 bytes");
    if constexpr (bytes == 16 && !THROUGH_L1)
        asm volatile(
            "{\n.reg .pred has;\nsetp.ne.s32 has, %2, 0;\n"
            "@has cp.async.cg.shared.global" L2_KEPT " [%0], [%1], 16" L2_OPERAND(3) ";\n}" ::"r"(
                address_without_uniform(to)),
            "l"(__cvta_generic_to_global(from)), "r"(static_cast<int>(has)) L2_POLICY
            : "memory");
    else
        asm volatile(
            "{\n.reg .pred has;\nsetp.ne.s32 has, %2, 0;\n"
            "@has cp.async.ca.shared.global" L2_KEPT " [%0], [%1], %3" L2_OPERAND(4) ";\n}" ::"r"(
                address_without_uniform(to)),
            "l"(__cvta_generic_to_global(from)), "r"(static_cast<int>(has)), "n"(bytes) L2_POLICY
            : "memory");
}

/// As `cp_async_wait` for a number that is not a constant, which is rounded down to 12, 8, 6 or 4 and less.
template <int PENDING = 12>
__device__ __forceinline__ void cp_async_wait_for(int pending) {
    if constexpr (PENDING > 0) {
        if (pending >= PENDING)
            cp_async_wait<PENDING>();
        else
            cp_async_wait_for<(PENDING > 8 ? 8 : PENDING > 4 ? PENDING - 2 : PENDING - 1)>(pending);
    } else {
        cp_async_wait<0>();
    }
}

#endif

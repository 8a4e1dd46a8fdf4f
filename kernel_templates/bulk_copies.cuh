// bulk_copies: copies of many bytes from global to shared memory by one instruction, and the mbarriers that count them
// and order the warps of a block. Code for less than sm_90 does nothing, where no kernel that needs them runs.
#ifndef AUTOTUNE_BULK_COPIES_CUH
#define AUTOTUNE_BULK_COPIES_CUH

#include "common.cuh"

/// In shared memory. Its phases end one after the other, when all have arrived and all expected bytes are there.
class PhaseBarrier {
public:
    /// By one thread; others may use it after `publish_all` there and a barrier of the block.
    __device__ __forceinline__ void init(int arrivals) {
#if __CUDA_ARCH__ >= 900
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address()), "r"(arrivals) : "memory");
#endif
    }
    static __device__ __forceinline__ void publish_all() {
#if __CUDA_ARCH__ >= 900
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
    }
    __device__ __forceinline__ void arrive() {
#if __CUDA_ARCH__ >= 900
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address()) : "memory");
#endif
    }
    /// Arrives, and copies `bytes`, a multiple of 16 as both addresses are, by which this phase waits. L2 is asked to
    /// keep them, as by `load_once`. What was read at `to` before is ordered by a phase that this thread has waited
    /// for.
    __device__ __forceinline__ void arrive_with_copy(void* to, const void* from, unsigned bytes) {
#if __CUDA_ARCH__ >= 900
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()), "r"(bytes) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes" L2_KEPT
                     " [%0], [%1], %2, [%3]" L2_OPERAND(4) ";" ::"r"(
                         static_cast<unsigned>(__cvta_generic_to_shared(to))),
                     "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(address()) L2_POLICY
                     : "memory");
#endif
    }
    /// Until the phase of that parity has ended; phases count from 0, and this must be the one under way or the last.
    __device__ __forceinline__ void await(unsigned parity) {
#if __CUDA_ARCH__ >= 900
        unsigned done = 0;
        while (done == 0)
            asm volatile(
                "{\n.reg .pred done;\nmbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\nselp.u32 %0, 1, 0, "
                "done;\n}"
                : "=r"(done)
                : "r"(address()), "r"(parity)
                : "memory");
#endif
    }

private:
    __device__ __forceinline__ unsigned address() const {
        return static_cast<unsigned>(__cvta_generic_to_shared(&word_));
    }

    unsigned long long word_;
};

#endif

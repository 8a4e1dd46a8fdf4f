// reduce, argreduce, last step: y[o] = fold over p of partial[p, o]
//
// partial  what reduce_rows.cu or reduce_columns.cu left, [parts, outputs]
// y        Y, [outputs]
// launch   grid = ceil(outputs / block.x), block = (outputs side by side, threads an output), 256 threads in all
#include "reduce.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef KIND
#define KIND sum
#endif
#ifndef Y
#define Y float
#endif

using Fold = FOLD(KIND);
using State = Fold::State;

template <class F>
__device__ __forceinline__ auto nothing(int) -> decltype(F::none_far()) {
    return F::none_far();
}
template <class F>
__device__ __forceinline__ auto nothing(long) -> decltype(F::none()) {
    return F::none();
}

extern "C" __global__ void __launch_bounds__(256)
    reduce_parts(const void* partial, Y* y, long long outputs, long long n, long long part, int parts) {
    __shared__ State slots[256];
    const long long output = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    State mine = nothing<Fold>(0);
    if (output < outputs) {
#pragma unroll 4
        for (int p = static_cast<int>(threadIdx.y); p < parts; p += static_cast<int>(blockDim.y))
            mine = Fold::join(mine,
                              Fold::unpack(static_cast<const Fold::Packed*>(partial)[p * outputs + output], p * part));
    }
    slots[threadIdx.y * blockDim.x + threadIdx.x] = mine;
    for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        State* const slot = slots + threadIdx.y * blockDim.x + threadIdx.x;
        if (threadIdx.y < half) *slot = Fold::join(*slot, slot[half * blockDim.x]);
    }
    if (threadIdx.y == 0 && output < outputs) put(y + output, Fold::finish(slots[threadIdx.x], n));
}

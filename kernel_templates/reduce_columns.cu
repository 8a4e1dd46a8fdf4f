// reduce, argreduce: y[o, i] = fold over k of x[o, k, i]
//
// A thread folds VEC neighbouring columns of every TY-th row of its part; the TY threads of a column join theirs.
// x        T, [outer, n, inner], packed
// y        Y, [outer, inner]; with more than one part it is `partial`, [parts, outer, inner], that is written
// launch   grid = outer * parts * ceil(inner / (TX * VEC)), block = (TX, TY), no dynamic shared memory
// needs    TY a power of two, TX * TY a multiple of a warp; inner % VEC == 0, x aligned to VEC elements; part <= 2^30
#include "reduce.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T __nv_bfloat16
#endif
#ifndef KIND
#define KIND sum
#endif
#ifndef Y
#define Y float
#endif
#ifndef TX
#define TX 32  // threads side by side
#endif
#ifndef TY
#define TY 8  // threads a column
#endif
#ifndef VEC
#define VEC 8  // columns a thread, elements a load
#endif
#ifndef UNROLL
#define UNROLL 4  // loads in flight
#endif

using Fold = FOLD(KIND);
using State = StateOf<Fold>;

extern "C" __global__ void __launch_bounds__(TX* TY)
    reduce_columns(const T* x, Y* y, void* partial, long long outer, long long n, long long inner, long long part,
                   int parts) {
    __shared__ State slots[TY][TX * VEC];
    const unsigned tiles = static_cast<unsigned>((inner + TX * VEC - 1) / (TX * VEC));
    const unsigned tile = blockIdx.x % tiles;
    const int number = static_cast<int>(blockIdx.x / tiles % parts);
    const long long o = blockIdx.x / tiles / parts;
    const long long first = number * part;
    const int length = static_cast<int>(min(part, n - first));
    const long long left = static_cast<long long>(tile) * TX * VEC;
    const long long column = left + threadIdx.x * VEC;
    const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);

    // 1. Down the columns, a batch of loads at a time.
    State mine[VEC];
#pragma unroll
    for (int j = 0; j < VEC; ++j) mine[j] = Fold::none();
    if (column < inner) {
        const T* from = x + (o * n + first + ty) * inner + column;
        for (int k = ty; k < length; k += UNROLL * TY, from += UNROLL * TY * inner) {
            Vec<T, VEC> raw[UNROLL];
#pragma unroll
            for (int i = 0; i < UNROLL; ++i)
                if (k + i * TY < length) raw[i] = load_once<VEC>(from + i * TY * inner);
#pragma unroll
            for (int i = 0; i < UNROLL; ++i) {
                if (k + i * TY >= length) break;
                float value[VEC];
                to_floats(raw[i], value);
#pragma unroll
                for (int j = 0; j < VEC; ++j) Fold::take(mine[j], value[j], k + i * TY);
            }
        }
    }

    // 2. The threads of a column join theirs, and its result is stored.
#pragma unroll
    for (int j = 0; j < VEC; ++j) slots[ty][tx * VEC + j] = mine[j];
#pragma unroll 1
    for (int half = TY / 2; half > 0; half /= 2) {
        __syncthreads();
        if (ty < half)
#pragma unroll
            for (int j = 0; j < VEC; ++j)
                slots[ty][tx * VEC + j] = Fold::join(slots[ty][tx * VEC + j], slots[ty + half][tx * VEC + j]);
    }
    __syncthreads();
    for (int c = ty * TX + tx; c < TX * VEC; c += TX * TY) {
        if (left + c >= inner) break;
        const State total = slots[0][c];
        const long long at = o * inner + left + c;
        if (parts == 1)
            put(y + at, Fold::finish(total, n));
        else
            static_cast<Fold::Packed*>(partial)[number * outer * inner + at] = Fold::pack(total);
    }
}

// reduce, argreduce: y[o] = fold of x[o, 0 .. n), of contiguous elements
//
// LANES threads fold a part of a row; several rows a block where these are short, several parts a row where few.
// x        T, [rows, n], packed, aligned anyhow
// y        Y, [rows]; with more than one part it is `partial`, [parts, rows], that is written
// launch   grid = parts * ceil(rows / ROWS), block = (LANES, ROWS), no dynamic shared memory
// needs    LANES a power of two, LANES * ROWS a multiple of a warp; part <= 2^30; parts > 1: ROWS == 1
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
#ifndef LANES
#define LANES 256  // threads a row
#endif
#ifndef ROWS
#define ROWS 1  // rows a block
#endif
#ifndef VEC
#define VEC 8  // elements a load
#endif
#ifndef UNROLL
#define UNROLL 4  // loads in flight
#endif

using Fold = FOLD(KIND);
using State = StateOf<Fold>;
constexpr int warp_lanes = LANES < 32 ? LANES : 32;
constexpr int warps = LANES / warp_lanes;  // a row
constexpr int step = LANES * VEC;

extern "C" __global__ void __launch_bounds__(LANES* ROWS)
    reduce_rows(const T* x, Y* y, void* partial, long long rows, long long n, long long part, int parts) {
    const long long row = static_cast<long long>(blockIdx.x / parts) * ROWS + threadIdx.y;
    const int number = static_cast<int>(blockIdx.x % parts);
    const long long first = number * part;
    const int length = row < rows ? static_cast<int>(min(part, n - first)) : 0;
    const T* const from = x + (row < rows ? row * n + first : 0);

    // 1. Each thread folds its vectors, a batch of loads at a time, and the elements outside of whole vectors.
    const RowParts split = row_parts<VEC>(from, length);
    const T* const body = from + split.head;
    VectorFold<Fold, T, VEC> vectors;
    State single = Fold::none();
    const int lane = static_cast<int>(threadIdx.x);
    for (int i = lane; i < split.head; i += LANES) Fold::take(single, to_float(from[i]), i);
    for (int c = lane * VEC; c < split.body; c += UNROLL * step) {
        Vec<T, VEC> raw[UNROLL];
#pragma unroll
        for (int i = 0; i < UNROLL; ++i)
            if (c + i * step < split.body) raw[i] = load_once<VEC>(body + c + i * step);
#pragma unroll
        for (int i = 0; i < UNROLL; ++i)
            if (c + i * step < split.body) vectors.take(raw[i], split.head + c + i * step);
    }
    for (int i = split.head + split.body + lane; i < length; i += LANES) Fold::take(single, to_float(from[i]), i);

    // 2. The row's threads join theirs.
    const State mine = Fold::join(vectors.value(from), single);
    State total = join_lanes<Fold, warp_lanes>(mine);
    if constexpr (warps > 1) {
        __shared__ State slots[ROWS][warps];
        if (threadIdx.x % 32 == 0) slots[threadIdx.y][threadIdx.x / 32] = total;
        __syncthreads();
        total = join_lanes<Fold, warps>(slots[threadIdx.y][threadIdx.x % warps]);
    }
    if (lane != 0 || row >= rows) return;
    if (parts == 1)
        put(y + row, Fold::finish(total, n));
    else
        static_cast<Fold::Packed*>(partial)[number * rows + row] = Fold::pack(total);
}

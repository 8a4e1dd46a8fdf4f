// copy: y[r, c] = x[r, c], rows that start and end anywhere
//
// x, y     bytes: `cols` of them a row, ldx and ldy from row to row; they do not overlap
// launch   grid = rows * ceil(cols / (THREADS * 16 * UNROLL)), block = THREADS, no dynamic shared memory
//
// Stores are whole vectors of 16 bytes at aligned addresses; a load has as many pieces as x's alignment to that asks
// for.
#include "common.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef THREADS
#define THREADS 512
#endif
#ifndef UNROLL
#define UNROLL 2  // vectors a thread
#endif
#ifndef PIECE
#define PIECE 16  // bytes a load where vectors of x are aligned to that; 1: where they may be aligned anyhow
#endif

using Bytes = unsigned char;
constexpr int chunk = THREADS * 16 * UNROLL;

template <int piece>
__device__ __forceinline__ Vec<Bytes, 16> load_pieces(const Bytes* from) {
    Vec<Bytes, 16> v;
#pragma unroll
    for (int i = 0; i < 16 / piece; ++i)
        reinterpret_cast<Vec<Bytes, piece>*>(&v)[i] = load_once<piece>(from + i * piece);
    return v;
}

/// Vectors `first`, `first` + THREADS, ... of a chunk's aligned part of `body` bytes.
template <int piece>
__device__ __forceinline__ void copy_vectors(const Bytes* from, Bytes* to, int body) {
    Vec<Bytes, 16> raw[UNROLL];
    const int first = static_cast<int>(threadIdx.x) * 16;
#pragma unroll
    for (int i = 0; i < UNROLL; ++i)
        if (first + i * THREADS * 16 < body) raw[i] = load_pieces<piece>(from + first + i * THREADS * 16);
#pragma unroll
    for (int i = 0; i < UNROLL; ++i)
        if (first + i * THREADS * 16 < body) store(to + first + i * THREADS * 16, raw[i]);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    copy(const Bytes* x, Bytes* y, long long cols, long long ldx, long long ldy) {
    const unsigned chunks = static_cast<unsigned>((cols + chunk - 1) / chunk);
    const long long row = blockIdx.x / chunks, first = static_cast<long long>(blockIdx.x % chunks) * chunk;
    const Bytes* from = x + row * ldx + first;
    Bytes* to = y + row * ldy + first;
    const int length = static_cast<int>(min(static_cast<long long>(chunk), cols - first));
    const RowParts parts = row_parts<16>(to, length);
    const int t = static_cast<int>(threadIdx.x);
    if (t < parts.head) to[t] = from[t];
    if (t < parts.tail) to[parts.head + parts.body + t] = from[parts.head + parts.body + t];
    from += parts.head;
    to += parts.head;
    if constexpr (PIECE == 16) {
        copy_vectors<16>(from, to, parts.body);
    } else {
        const auto past = reinterpret_cast<unsigned long long>(from) % 16;
        if (past == 0)
            copy_vectors<16>(from, to, parts.body);
        else if (past % 8 == 0)
            copy_vectors<8>(from, to, parts.body);
        else if (past % 4 == 0)
            copy_vectors<4>(from, to, parts.body);
        else if (past % 2 == 0)
            copy_vectors<2>(from, to, parts.body);
        else
            copy_vectors<1>(from, to, parts.body);
    }
}

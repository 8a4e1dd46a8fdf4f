// transpose: y[b, c, r] = x[b, r, c] through a tile in shared memory, rows that start and end anywhere
//
// x, y     units of UNIT bytes: x[b * x1 + r * xs + c], y[b * y1 + c * ys + r]; they do not overlap
// launch   grid = batches * ceil((rows + EDGE / UNIT - 1) / TILE_R) * ceil(cols / TILE_C), block = THREADS, no dynamic
//          shared memory
// needs    the columns of a pass, THREADS * wide / TILE_R, are a multiple of EDGE / UNIT; the rows of a load,
//          THREADS * wide / TILE_C, are one of wide
//
// Each row of x has vectors of 16 bytes of its own from its first aligned address on. They lie in the tile as they were
// loaded, so a unit's place there depends on its row's alignment. A tile is slanted: its part of each row of y is
// TILE_R units from an address on that is aligned to EDGE, for which it holds a few rows of x more than that. Units
// that a thread stores together lie in the same rows for all its columns, so their places are computed once.
#include "common.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef UNIT
#define UNIT 2  // bytes
#endif
#ifndef TILE_R
#define TILE_R 64  // rows of x a tile
#endif
#ifndef TILE_C
#define TILE_C 64  // columns of x a tile
#endif
#ifndef THREADS
#define THREADS 256
#endif
#ifndef EDGE
#define EDGE 16  // bytes that stores of a tile start at a multiple of
#endif
#ifndef DOWN
#define DOWN 1  // 1: neighbouring blocks take tiles below each other
#endif

using Unit = Word<UNIT>;
constexpr int wide = 16 / UNIT;  // units a vector
constexpr int edge = EDGE / UNIT;
constexpr int held = TILE_R + edge - 1;  // rows
// Loads of a tile: `across` threads a row, and the vector after, of which a row that starts within one has a part.
constexpr int across = TILE_C / wide, rows_at_once = THREADS / across;
constexpr int loads = (held + rows_at_once - 1) / rows_at_once, loads_after = (held + THREADS - 1) / THREADS;
constexpr int down = TILE_R / wide, columns = THREADS / down;
constexpr int grain = 8 * UNIT > 16 ? 8 * UNIT : 16;
constexpr int pitch = (TILE_C * UNIT + 16 + grain - 1) / grain * grain;
static_assert(rows_at_once % wide == 0, "places of a thread's rows are constants apart");

/// Where the row `l` of the tile starts: the same units of rows that are `wide` apart lie in different banks.
__device__ __forceinline__ int place(int l) { return l * pitch + (l * UNIT & ~15); }

/// The low half of an address, or of a stride, in bytes: all that alignment depends on.
__device__ __forceinline__ unsigned low(const Unit* p) {
    return static_cast<unsigned>(reinterpret_cast<unsigned long long>(p));
}
__device__ __forceinline__ unsigned low(long long stride) { return static_cast<unsigned>(stride) * UNIT; }

extern "C" __global__ void __launch_bounds__(THREADS)
    transpose_ragged(const Unit* x, Unit* y, long long rows, long long cols, long long xs, long long x1, long long ys,
                     long long y1) {
    __shared__ alignas(16) unsigned char tile[held * pitch + (held / wide + 1) * 16];
    const unsigned tiles_r = static_cast<unsigned>((rows + edge - 1 + TILE_R - 1) / TILE_R);
    const unsigned tiles_c = static_cast<unsigned>((cols + TILE_C - 1) / TILE_C);
    const unsigned inner = DOWN ? tiles_r : tiles_c, outer = DOWN ? tiles_c : tiles_r;
    unsigned line = blockIdx.x / inner, batch = 0;
    const unsigned at = blockIdx.x - line * inner;
    if (line >= outer) {
        batch = line / outer;
        line -= batch * outer;
    }
    const long long row = static_cast<long long>(DOWN ? at : line) * TILE_R;
    const long long col = static_cast<long long>(DOWN ? line : at) * TILE_C;
    x += batch * x1 + (row - (edge - 1)) * xs + col;
    y += batch * y1 + col * ys + row;
    const int width = static_cast<int>(min(static_cast<long long>(TILE_C), cols - col));
    // Rows of the tile that exist.
    const int top = row == 0 ? edge - 1 : 0;
    const int bottom = static_cast<int>(min(static_cast<long long>(held), rows - row + edge - 1));
    const int thread = static_cast<int>(threadIdx.x);

    // 1. A vector may reach into the tiles beside. Where it may not, beyond a row, its units are loaded one by one.
    if (col > 0 && cols - col >= TILE_C + wide && top == 0 && bottom == held) {
        const int l = thread / across, k = thread % across;
        const unsigned long long start = reinterpret_cast<unsigned long long>(x + l * xs) + k * 16;
        const auto aligned = [](unsigned long long p) { return reinterpret_cast<const Unit*>(p & ~15ull); };
        Vec<Unit, wide> raw[loads], after[loads_after];
#pragma unroll
        for (int i = 0; i < loads; ++i)
            if ((i + 1) * rows_at_once <= held || l + i * rows_at_once < held)
                raw[i] = load_once<wide>(aligned(start + i * (rows_at_once * xs * UNIT)));
#pragma unroll
        for (int i = 0; i < loads_after; ++i)
            if (thread + i * THREADS < held)
                after[i] = load_once<wide>(
                    aligned(reinterpret_cast<unsigned long long>(x + (thread + i * THREADS) * xs + TILE_C)));
        unsigned char* const to = tile + place(l) + k * 16;
#pragma unroll
        for (int i = 0; i < loads; ++i)
            if ((i + 1) * rows_at_once <= held || l + i * rows_at_once < held)
                *reinterpret_cast<Vec<Unit, wide>*>(to + i * place(rows_at_once)) = raw[i];
#pragma unroll
        for (int i = 0; i < loads_after; ++i)
            if (thread + i * THREADS < held)
                *reinterpret_cast<Vec<Unit, wide>*>(tile + place(thread + i * THREADS) + across * 16) = after[i];
    } else {
#pragma unroll 1
        for (int t = top * (across + 1) + thread; t < bottom * (across + 1); t += THREADS) {
            const int l = t / (across + 1), k = t % (across + 1);
            const Unit* const from = x + l * xs;
            const int c = k * wide - static_cast<int>(low(from) % 16 / UNIT);
            unsigned char* const to = tile + place(l) + k * 16;
            if (c + col >= 0 && c + wide <= cols - col) {
                *reinterpret_cast<Vec<Unit, wide>*>(to) = load_once<wide>(from + c);
            } else {
#pragma unroll 1
                for (int j = 0; j < wide; ++j)
                    if (c + j >= 0 && c + j < width) *reinterpret_cast<Unit*>(to + j * UNIT) = from[c + j];
            }
        }
    }
    __syncthreads();

    // 2. Down the columns.
    const int mine = thread / down;
    const int first =
        thread % down * wide + edge - 1 - static_cast<int>((low(y) + mine * low(ys)) % EDGE / UNIT);
    const unsigned past = low(x) + first * low(xs);
    int from[wide];
#pragma unroll
    for (int j = 0; j < wide; ++j)
        from[j] = first * pitch + mine * UNIT +
                  static_cast<int>(((first + j) * UNIT & ~15u) | ((past + j * low(xs)) & 15u));
    const bool whole = first >= top && first + wide <= bottom;
    y += mine * ys + first - (edge - 1);
#pragma unroll
    for (int i = 0; i < TILE_C / columns; ++i) {
        if (mine + i * columns >= width) break;
        Unit* const to = y + i * (columns * ys);
        const auto unit = [&](int j) {
            return *reinterpret_cast<const Unit*>(tile + from[j] + (j * pitch + i * columns * UNIT));
        };
        if (whole) {
            Vec<Unit, wide> v;
            if constexpr (UNIT == 1) {
#pragma unroll
                for (int k = 0; k < 4; ++k)
                    reinterpret_cast<unsigned*>(&v)[k] =
                        __byte_perm(__byte_perm(unit(4 * k), unit(4 * k + 1), 0x0040),
                                    __byte_perm(unit(4 * k + 2), unit(4 * k + 3), 0x0040), 0x5410);
            } else {
#pragma unroll
                for (int j = 0; j < wide; ++j) v.lane[j] = unit(j);
            }
            store(to, v);
        } else {
#pragma unroll
            for (int j = 0; j < wide; ++j)
                if (first + j >= top && first + j < bottom) to[j] = unit(j);
        }
    }
}

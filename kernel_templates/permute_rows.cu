// permute: y in the order of its elements, a run of `run` neighbours at a time; where s3 is 1 they are that in x, too
//
// x, y     units of UNIT bytes; y is packed, [e0, e1, e2, run], and x[i0 * s0 + i1 * s1 + i2 * s2 + c * s3]
// launch   grid = ceil(e0 * e1 * e2 / ROWS) * ceil(run / (LANES * VEC * UNROLL)), block = (LANES, ROWS)
// needs    VEC > 1: s3 == 1, run % VEC == 0, x and y and their strides aligned to VEC units; e0 * e1 * e2 < 2^31
#include "common.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef UNIT
#define UNIT 2  // bytes
#endif
#ifndef VEC
#define VEC 8  // units a load
#endif
#ifndef LANES
#define LANES 32  // threads a run
#endif
#ifndef ROWS
#define ROWS 8  // runs a block
#endif
#ifndef UNROLL
#define UNROLL 1  // loads a thread
#endif

using Unit = Word<UNIT>;
constexpr int step = LANES * VEC;

extern "C" __global__ void __launch_bounds__(LANES* ROWS)
    permute_rows(const Unit* x, Unit* y, unsigned rows, unsigned e1, unsigned e2, long long run, long long s0,
                 long long s1, long long s2, long long s3) {
    const unsigned pieces = static_cast<unsigned>((run + step * UNROLL - 1) / (step * UNROLL));
    const unsigned row = blockIdx.x / pieces * ROWS + threadIdx.y;
    if (row >= rows) return;
    const unsigned i2 = row % e2, i1 = row / e2 % e1, i0 = row / e2 / e1;
    const long long first = static_cast<long long>(blockIdx.x % pieces) * (step * UNROLL) + threadIdx.x * VEC;
    x += i0 * s0 + i1 * s1 + i2 * s2 + first * (VEC > 1 ? 1 : s3);
    y += row * run + first;
    Vec<Unit, VEC> raw[UNROLL];
#pragma unroll
    for (int i = 0; i < UNROLL; ++i)
        if (first + i * step < run) raw[i] = load_once<VEC>(x + i * step * (VEC > 1 ? 1 : s3));
#pragma unroll
    for (int i = 0; i < UNROLL; ++i)
        if (first + i * step < run) store_once(y + i * step, raw[i]);
}

// The backward pass of layernorm and rmsnorm, rows held in registers, weight gradients summed along the way
//
//     dx = rstd * (g - mean_k(g) - xhat * mean_k(g * xhat)) (+ dh)
//     with xhat = (x - mean) * rstd and g = dy * (weight + offset); rmsnorm: without mean_k(g), and mean is 0
//     dweight = sum of dy * xhat over rows, dbias = sum of dy
//
// x, dy, dx     T, row-major [rows, cols], ldx, lddy and lddx elements from row to row; dx may be x, dy or dh
// dh            T, [rows, cols], packed: what the residual branch adds, of DH
// weight        W, [cols]; mean, rstd: float, [rows], from the forward pass
// parts         float, [1 + BIAS, gridDim.x, cols]: each has the sums of a block's rows; norm_backward_sums adds them
//               up in their order, so that equal inputs give equal bits
// launch        grid = any, block = (LANES, ROWS); ROWS rows of a block go on at a time, each at its own pace
//               dynamic shared memory: STAGES rows of x, dy and dh for each of ROWS, then, where STAGES > 0, a float
//               for each of LANES * CHUNKS * VEC columns; or, if that is more and ROWS > 1, 1 + BIAS floats for each
// needs         cols <= LANES * CHUNKS * VEC, cols % VEC == 0 and rows aligned to VEC elements; LANES a power of two, a
//               multiple of a warp; ROWS < 16 where it is several; STAGES > 0: sm_80, loads of 4 bytes or more
// source        persistent blocks with weight gradients in registers: Dao-AILab/quack
#include "copies.cuh"
#include "rows.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T __nv_bfloat16
#endif
#ifndef W
#define W T  // of weight
#endif
#ifndef MEAN
#define MEAN 1  // 1: layernorm; 0: rmsnorm
#endif
#ifndef BIAS
#define BIAS 0  // 1: dbias is wanted
#endif
#ifndef DH
#define DH 0  // 1: dh is added
#endif
#ifndef LANES
#define LANES 128  // threads a row
#endif
#ifndef ROWS
#define ROWS 1  // rows a block at a time
#endif
#ifndef VEC
#define VEC 8  // elements a load
#endif
#ifndef CHUNKS
#define CHUNKS 4  // loads a thread
#endif
#ifndef STAGES
#define STAGES 0  // rows in shared memory, of which all but one are loaded ahead (sm_80); 0: none, rows go to registers
#endif
#ifndef BLOCKS
#define BLOCKS 1  // blocks that shall fit a multiprocessor: bounds the registers of a thread
#endif

using Part = RowPart<LANES, VEC, CHUNKS, false>;
enum Tensor { X, DY, DH_ };
constexpr int tensors = DH ? 3 : 2;
extern __shared__ uint4 shared[];

/// What a thread loads of a row: into registers, or into places of its own in shared memory, which no other thread
/// reads, so that it waits for its own copies alone.
struct Loads {
    using Vector = Vec<T, VEC>;
    static constexpr int threads = LANES * ROWS, stage_size = tensors * CHUNKS * threads;
    const Part part;
    Vector held[STAGES ? 1 : CHUNKS][tensors];
    Vector* const mine;
    Vector* stage;  // the one that is worked on

    __device__ __forceinline__ Loads(const T* x, int cols)
        : part{x, cols}, mine{reinterpret_cast<Vector*>(shared) + threadIdx.y * LANES + threadIdx.x}, stage{mine} {
        // Places beyond the row stay as they are.
#pragma unroll
        for (int k = 0; k < tensors * CHUNKS; ++k) {
            const int i = k % CHUNKS, tensor = k / CHUNKS;
            if constexpr (STAGES == 0) held[i][tensor] = splat<T, VEC>(0.0f);
            if (STAGES > 0 && !part.has(i))
                for (int s = 0; s < STAGES; ++s) *slot(mine + s * stage_size, tensor, i) = splat<T, VEC>(0.0f);
        }
    }
    static __device__ __forceinline__ Vector* slot(Vector* stage, int tensor, int i) {
        return stage + (tensor * CHUNKS + i) * threads;
    }
    __device__ __forceinline__ void turn() { stage = stage == last() ? mine : stage + stage_size; }
    __device__ __forceinline__ Vector* last() const { return mine + (STAGES - 1) * stage_size; }
    __device__ __forceinline__ Vector* before() const { return stage == mine ? last() : stage - stage_size; }
    __device__ __forceinline__ void fetch(Vector* to, Tensor tensor, const T* row, bool valid) {
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i) {
            if constexpr (STAGES == 0)
                load_once_if(valid && part.has(i), held[i][tensor], row + part.column(i));
            else
                copy_async_if<VEC, false>(valid && part.has(i), slot(to, tensor, i)->lane, row + part.column(i));
        }
    }
    /// In each PASS over a row; see `restate`.
    template <int PASS>
    __device__ __forceinline__ void read(float (&x)[VEC], int i, Tensor tensor, unsigned zero) {
        if constexpr (STAGES == 0) {
            if constexpr (PASS > 0) restate<PASS>(held[i][tensor], zero);
            to_floats(held[i][tensor], x);
        } else {
            to_floats(*slot(stage, tensor, i), x);
        }
    }
};

extern "C" __global__ void __launch_bounds__(LANES* ROWS, BLOCKS)
    norm_backward_rows(const T* x, const T* dy, const W* weight, const float* mean, const float* rstd, const T* dh,
                       T* dx, float* parts, long long rows, int cols, long long ldx, long long lddy, long long lddx,
                       float offset) {
    const long long step = static_cast<long long>(gridDim.x) * ROWS;
    const unsigned zero = cols >> 31;
    const float share = 1.0f / static_cast<float>(cols);
    Loads loads{x, cols};
    const Part& part = loads.part;
    const auto fetch = [&](Loads::Vector* to, long long row) {
        loads.fetch(to, X, x + row * ldx, row < rows);
        loads.fetch(to, DY, dy + row * lddy, row < rows);
        if (DH) loads.fetch(to, DH_, dh + row * cols, row < rows);
        if constexpr (STAGES > 0) cp_async_commit();
    };
    // Weight + offset, as floats in shared memory: a row then takes a seventh fewer instructions.
    constexpr int quad = VEC < 4 ? VEC : 4;
    Vec<float, quad>* const scales =
        reinterpret_cast<Vec<float, quad>*>(reinterpret_cast<Loads::Vector*>(shared) + STAGES * Loads::stage_size) +
        threadIdx.x;
    const auto read_scales = [&](float(&w)[VEC], int i) {
        if constexpr (STAGES > 0) {
#pragma unroll
            for (int j = 0; j < VEC; ++j) w[j] = scales[(i * (VEC / quad) + j / quad) * LANES].lane[j % quad];
        } else {
            load_shared_row<VEC>(part.has(i), w, weight + part.column(i), true);
#pragma unroll
            for (int j = 0; j < VEC; ++j) w[j] += offset;
        }
    };
    if constexpr (STAGES > 0) {
        if (threadIdx.y == 0) {
#pragma unroll
            for (int i = 0; i < CHUNKS; ++i) {
                float w[VEC];
                load_shared_row<VEC>(part.has(i), w, weight + part.column(i), true);
#pragma unroll
                for (int j = 0; j < VEC; ++j)
                    scales[(i * (VEC / quad) + j / quad) * LANES].lane[j % quad] = w[j] + offset;
            }
        }
        __syncthreads();
    }

    // 1. The first rows' loads. A row's mean and rstd are loaded while the row before it is worked on.
    float sum_weight[CHUNKS][VEC] = {}, sum_bias[BIAS ? CHUNKS : 1][VEC] = {};
    const long long start = static_cast<long long>(blockIdx.x) * ROWS;
    long long row = start + threadIdx.y;
#pragma unroll
    for (int s = 0; s + 1 < STAGES; ++s) fetch(loads.mine + s * Loads::stage_size, row + s * step);
    float next_mean = MEAN && row < rows ? mean[row] : 0.0f, next_rstd = row < rows ? rstd[row] : 0.0f;
    // All rows of a block take the same turns: a warp's branches are then seen to be its own.
    int turn = 0;
    for (long long first = start; first < rows; first += step, row += step, turn ^= 1) {
        // 2. The loads of the row that comes when those under way are done; or this row's.
        const float row_mean = next_mean, row_rstd = next_rstd;
        if (row + step < rows) {
            if (MEAN) next_mean = mean[row + step];
            next_rstd = rstd[row + step];
        }
        if constexpr (STAGES > 0) {
            fetch(loads.before(), row + (STAGES - 1) * step);
            cp_async_wait<STAGES - 1>();
        } else {
            fetch(nullptr, row);
        }

        // 3. The row's means of g * xhat and of g, and the sums over rows.
        float2 means = make_float2(0.0f, 0.0f);
        float a[VEC], b[VEC], w[VEC];
#pragma unroll
        for (int i = 0; i < CHUNKS && row < rows; ++i) {
            read_scales(w, i);
            loads.read<0>(a, i, X, zero);
            loads.read<0>(b, i, DY, zero);
#pragma unroll
            for (int j = 0; j < VEC; ++j) {
                const float along = b[j] * (a[j] - row_mean);
                sum_weight[i][j] = fmaf(along, row_rstd, sum_weight[i][j]);
                if (BIAS) sum_bias[BIAS ? i : 0][j] += b[j];
                means.x = fmaf(along, w[j], means.x);
                if (MEAN) means.y = fmaf(b[j], w[j], means.y);
            }
        }
        means = row_reduce<LANES, ROWS, 1, 0, SumLanes, 2, true>(means, 0, turn);
        const float along_x = -(means.x * row_rstd * share) * row_rstd * row_rstd;
        const float constant = MEAN ? -(means.y * share) * row_rstd : 0.0f;

        // 4. The row's gradients.
#pragma unroll
        for (int i = 0; i < CHUNKS && row < rows; ++i) {
            read_scales(w, i);
            loads.read<1>(a, i, X, zero);
            loads.read<1>(b, i, DY, zero);
#pragma unroll
            for (int j = 0; j < VEC; ++j) {
                const float rest = fmaf(a[j] - row_mean, along_x, constant);
                b[j] = fmaf(b[j], w[j] * row_rstd, rest);
            }
            if constexpr (DH) {
                loads.read<0>(a, i, DH_, zero);
#pragma unroll
                for (int j = 0; j < VEC; ++j) b[j] += a[j];
            }
            store_if(part.has(i), dx + row * lddx + part.column(i), from_floats<T>(b));
        }
        loads.turn();
    }

    // 5. The block's part of the sums: those of its first rows, to which the others' are added in their order.
    if constexpr (ROWS > 1) {
        float* const slots = reinterpret_cast<float*>(shared) + threadIdx.x;
        constexpr int count = CHUNKS * VEC;
        for (int r = 1; r < ROWS; ++r) {
            __syncthreads();
            if (threadIdx.y == r) {
#pragma unroll
                for (int k = 0; k < count; ++k) {
                    slots[k * LANES] = sum_weight[k / VEC][k % VEC];
                    if (BIAS) slots[(count + k) * LANES] = sum_bias[BIAS ? k / VEC : 0][k % VEC];
                }
            }
            __syncthreads();
            if (threadIdx.y == 0) {
#pragma unroll
                for (int k = 0; k < count; ++k) {
                    sum_weight[k / VEC][k % VEC] += slots[k * LANES];
                    if (BIAS) sum_bias[BIAS ? k / VEC : 0][k % VEC] += slots[(count + k) * LANES];
                }
            }
        }
        if (threadIdx.y != 0) return;
    }
    float* const to = parts + static_cast<long long>(blockIdx.x) * cols;
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) {
        if (!part.has(i)) continue;
#pragma unroll
        for (int j = 0; j < VEC; ++j) {
            to[part.column(i) + j] = sum_weight[i][j];
            if (BIAS) to[static_cast<long long>(gridDim.x) * cols + part.column(i) + j] = sum_bias[BIAS ? i : 0][j];
        }
    }
}

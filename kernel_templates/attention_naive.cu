// attention, as the formula reads: all scores to memory, a softmax over each row, then the weighted sum of v
//
// q, o    T [batch, q_heads, seq_q, head_dim] at any strides (in elements), rows contiguous
// k, v    T [batch, kv_heads, seq_k, head_dim] likewise; query head h reads key head h / (q_heads / kv_heads)
// scores  float [batch * q_heads, seq_q, seq_k], undefined at the start; only what a row sees is written or read
// CAUSAL  row i sees the keys j <= i + seq_k - seq_q; a row that sees none gives 0
// launch  attention_scores    grid = heads * ceil(seq_q / 16) * ceil(seq_k / 16), block = 16 x 16
//         attention_softmax   grid = heads * seq_q, block = SOFTMAX_THREADS
//         attention_weigh     grid = heads * ceil(seq_q / 16) * ceil(head_dim / 16), block = 16 x 16
//         with heads = batch * q_heads, and no dynamic shared memory
// needs   nothing: any size, any alignment, T __half or __nv_bfloat16 on sm_75 and later
#include "common.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T __nv_bfloat16
#endif
#ifndef CAUSAL
#define CAUSAL 1
#endif
#ifndef SOFTMAX_THREADS
#define SOFTMAX_THREADS 256
#endif

namespace {

constexpr int tile = 16;  // rows and columns a block computes, one element a thread

/// How many keys row `row` sees: the first so many.
__device__ __forceinline__ int seen(int row, int seq_q, int seq_k) {
    return CAUSAL ? max(0, min(seq_k, row + 1 + seq_k - seq_q)) : seq_k;
}

/// Combines a value of each thread of the block; every thread gets the result.
template <class Combine>
__device__ __forceinline__ float block_reduce(float mine, Combine combine) {
    __shared__ float partial[SOFTMAX_THREADS / 32];
    mine = warp_reduce(mine, combine);
    __syncthreads();
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = mine;
    __syncthreads();
    float all = partial[0];
    for (int warp = 1; warp < SOFTMAX_THREADS / 32; ++warp) all = combine(all, partial[warp]);
    return all;
}

}  // namespace

// 1. scores[head, i, j] = scale * q[i] . k[j]
extern "C" __global__ void __launch_bounds__(tile* tile)
    attention_scores(const T* q, const T* k, float* scores, int q_heads, int kv_heads, int seq_q, int seq_k,
                     int head_dim, long long q_batch, long long q_head, long long q_row, long long k_batch,
                     long long k_head, long long k_row, float scale) {
    __shared__ float q_part[tile][tile + 1];
    __shared__ float k_part[tile][tile + 1];
    const int key_tiles = (seq_k + tile - 1) / tile;
    const int row_tiles = (seq_q + tile - 1) / tile;
    const int head = blockIdx.x / (key_tiles * row_tiles);
    const int in_head = blockIdx.x % (key_tiles * row_tiles);
    const int first_row = in_head / key_tiles * tile, first_key = in_head % key_tiles * tile;
    const int row = first_row + threadIdx.y, key = first_key + threadIdx.x;
    if (first_key >= seen(first_row + tile - 1, seq_q, seq_k)) return;  // the whole block is hidden
    q += head / q_heads * q_batch + head % q_heads * q_head;
    k += head / q_heads * k_batch + head % q_heads / (q_heads / kv_heads) * k_head;

    float sum = 0.0f;
    for (int d = 0; d < head_dim; d += tile) {
        const bool in_dim = d + threadIdx.x < head_dim;
        q_part[threadIdx.y][threadIdx.x] = in_dim && row < seq_q ? to_float(q[row * q_row + d + threadIdx.x]) : 0.0f;
        const int key_here = first_key + threadIdx.y;
        k_part[threadIdx.y][threadIdx.x] =
            in_dim && key_here < seq_k ? to_float(k[key_here * k_row + d + threadIdx.x]) : 0.0f;
        __syncthreads();
        for (int e = 0; e < tile; ++e) sum += q_part[threadIdx.y][e] * k_part[threadIdx.x][e];
        __syncthreads();
    }
    if (row < seq_q && key < seen(row, seq_q, seq_k))
        scores[(static_cast<long long>(head) * seq_q + row) * seq_k + key] = scale * sum;
}

// 2. Each row of scores becomes its softmax, in place.
extern "C" __global__ void __launch_bounds__(SOFTMAX_THREADS) attention_softmax(float* scores, int seq_q, int seq_k) {
    const int keys = seen(blockIdx.x % seq_q, seq_q, seq_k);
    float* row = scores + static_cast<long long>(blockIdx.x) * seq_k;
    float most = minus_infinity;
    for (int key = threadIdx.x; key < keys; key += SOFTMAX_THREADS) most = fmaxf(most, row[key]);
    most = block_reduce(most, [](float a, float b) { return fmaxf(a, b); });
    float sum = 0.0f;
    for (int key = threadIdx.x; key < keys; key += SOFTMAX_THREADS) {
        row[key] = expf(row[key] - most);
        sum += row[key];
    }
    sum = block_reduce(sum, [](float a, float b) { return a + b; });
    for (int key = threadIdx.x; key < keys; key += SOFTMAX_THREADS) row[key] /= sum;
}

// 3. o[head, i] = sum over the keys that row i sees of p[j] * v[j]. A hidden key is left out, not weighed with 0, as
//    0 * NaN would be NaN.
extern "C" __global__ void __launch_bounds__(tile* tile)
    attention_weigh(const float* scores, const T* v, T* o, int q_heads, int kv_heads, int seq_q, int seq_k,
                    int head_dim, long long v_batch, long long v_head, long long v_row, long long o_batch,
                    long long o_head, long long o_row) {
    __shared__ float p_part[tile][tile + 1];
    __shared__ float v_part[tile][tile + 1];
    const int dim_tiles = (head_dim + tile - 1) / tile;
    const int row_tiles = (seq_q + tile - 1) / tile;
    const int head = blockIdx.x / (dim_tiles * row_tiles);
    const int in_head = blockIdx.x % (dim_tiles * row_tiles);
    const int first_row = in_head / dim_tiles * tile;
    const int row = first_row + threadIdx.y, dim = in_head % dim_tiles * tile + threadIdx.x;
    const int keys = row < seq_q ? seen(row, seq_q, seq_k) : 0;
    v += head / q_heads * v_batch + head % q_heads / (q_heads / kv_heads) * v_head;
    o += head / q_heads * o_batch + head % q_heads * o_head;
    const float* p = scores + (static_cast<long long>(head) * seq_q + row) * seq_k;

    float sum = 0.0f;
    const int last = seen(min(first_row + tile, seq_q) - 1, seq_q, seq_k);
    for (int key = 0; key < last; key += tile) {
        p_part[threadIdx.y][threadIdx.x] = key + threadIdx.x < keys ? p[key + threadIdx.x] : 0.0f;
        const int key_here = key + threadIdx.y;
        v_part[threadIdx.y][threadIdx.x] =
            key_here < seq_k && dim < head_dim ? to_float(v[key_here * v_row + dim]) : 0.0f;
        __syncthreads();
        for (int e = 0; e < min(tile, keys - key); ++e) sum += p_part[threadIdx.y][e] * v_part[e][threadIdx.x];
        __syncthreads();
    }
    if (row < seq_q && dim < head_dim) o[row * o_row + dim] = from_float<T>(sum);
}

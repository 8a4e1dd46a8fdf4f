// attention reference: the value and the magnitude of every element of o in double
//
// The same formulas as tuner/references/attention.cpp, where the magnitude is derived; for problems that a CPU is
// too slow for. Nothing is clever here: scores are computed twice, first for the row's maxima, then for the sums.
//
// q, k, v            T as in attention_flash.cu, any strides and alignment
// value, magnitude   double [batch, q_heads, seq_q, head_dim], contiguous
// launch  grid = (heads * ceil(seq_q / 16), ceil(head_dim / 128)) with heads = batch * q_heads, block = 128, no
//         dynamic shared memory
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

namespace {

constexpr int threads = 128;
constexpr int rows = 16;   // a block computes these rows, threads columns each
constexpr int keys = 32;   // a step
constexpr int depth = 32;  // of the scores, a part
constexpr int rows_a_thread = rows * keys / threads;

struct Score {
    double x;     // scale * q . k
    double size;  // |scale| * sum of |q| |k|
};

struct Shared {
    double q[rows][depth];
    float k[keys][depth + 1];
    Score score[rows][keys];
    double weight[rows][keys];        // p, before it is normalised
    double weight_error[rows][keys];  // p (e^delta - 1)
    double total[rows][3];            // the sums over a row of p, of that error and of p e^-delta
};

/// The rounding unit of T.
[[maybe_unused]] __device__ double unit_of(__half) { return 0x1p-11; }
[[maybe_unused]] __device__ double unit_of(__nv_bfloat16) { return 0x1p-8; }

/// The scores of 16 rows against 32 keys, into shared.score; each thread computes those of one key and four rows.
__device__ void score_tile(Shared& shared, const T* q, const T* k, int first_row, int first_key, int seq_q, int seq_k,
                           int head_dim, long long q_row, long long k_row, double scale) {
    const int key = threadIdx.x % keys, row0 = threadIdx.x / keys * rows_a_thread;
    double dot[rows_a_thread] = {}, size[rows_a_thread] = {};
    for (int d = 0; d < head_dim; d += depth) {
        __syncthreads();
        for (int at = threadIdx.x; at < rows * depth; at += threads) {
            const int row = first_row + at / depth, dim = d + at % depth;
            shared.q[at / depth][at % depth] =
                row < seq_q && dim < head_dim ? static_cast<double>(to_float(q[row * q_row + dim])) : 0.0;
        }
        for (int at = threadIdx.x; at < keys * depth; at += threads) {
            const int row = first_key + at / depth, dim = d + at % depth;
            shared.k[at / depth][at % depth] = row < seq_k && dim < head_dim ? to_float(k[row * k_row + dim]) : 0.0f;
        }
        __syncthreads();
        for (int e = 0; e < depth; ++e) {
            const double b = shared.k[key][e];
            for (int i = 0; i < rows_a_thread; ++i) {
                const double a = shared.q[row0 + i][e];
                dot[i] += a * b;
                size[i] += fabs(a) * fabs(b);
            }
        }
    }
    for (int i = 0; i < rows_a_thread; ++i) shared.score[row0 + i][key] = {scale * dot[i], fabs(scale) * size[i]};
    __syncthreads();
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
    attention_reference(const T* q, const T* k, const T* v, double* value, double* magnitude, int q_heads, int kv_heads,
                        int seq_q, int seq_k, int head_dim, long long q_batch, long long q_head, long long q_row,
                        long long k_batch, long long k_head, long long k_row, long long v_batch, long long v_head,
                        long long v_row, float scale_f32) {
    __shared__ Shared shared;
    const double scale = scale_f32;
    const int row_blocks = (seq_q + rows - 1) / rows;
    const int head = blockIdx.x / row_blocks;
    const int first_row = blockIdx.x % row_blocks * rows;
    const int kv_head = head % q_heads / (q_heads / kv_heads);
    q += head / q_heads * q_batch + head % q_heads * q_head;
    k += head / q_heads * k_batch + kv_head * k_head;
    v += head / q_heads * v_batch + kv_head * v_head;
    const auto seen = [&](int row) { return CAUSAL ? max(0, min(seq_k, row + 1 + seq_k - seq_q)) : seq_k; };
    const int last = seen(min(first_row + rows, seq_q) - 1);

    // 1. The largest score of each row, and the largest in absolute value; every thread keeps those of its own row.
    const int own_row = threadIdx.x / (threads / rows), part = threadIdx.x % (threads / rows);
    double most = minus_infinity, most_size = 0.0;
    for (int key = 0; key < last; key += keys) {
        score_tile(shared, q, k, first_row, key, seq_q, seq_k, head_dim, q_row, k_row, scale);
        for (int j = part; j < min(keys, seen(first_row + own_row) - key); j += threads / rows) {
            most = fmax(most, shared.score[own_row][j].x);
            most_size = fmax(most_size, fabs(shared.score[own_row][j].x));
        }
    }
    const auto larger = [](double a, double b) { return fmax(a, b); };
    most = warp_reduce<threads / rows>(most, larger);
    most_size = warp_reduce<threads / rows>(most_size, larger);

    // 2. The sums. A thread has a part of one row's weights, and one column of o for all rows.
    const double score_unit = ((head_dim + 7) / 8) * 0x1p-23;
    const int dim = blockIdx.y * threads + threadIdx.x;
    double total = 0.0, total_error = 0.0, total_low = 0.0;
    double sum[rows] = {}, sum_size[rows] = {}, sum_error[rows] = {};
    for (int key = 0; key < last; key += keys) {
        score_tile(shared, q, k, first_row, key, seq_q, seq_k, head_dim, q_row, k_row, scale);
        for (int j = part; j < keys; j += threads / rows) {
            const Score score = shared.score[own_row][j];
            const bool hidden = key + j >= seen(first_row + own_row);
            const double delta = score_unit * score.size + 0x1p-22 * (fabs(score.x) + most_size + 1.0);
            const double p = hidden ? 0.0 : exp(score.x - most);
            const double error = hidden ? 0.0 : p * expm1(delta);
            shared.weight[own_row][j] = p;
            shared.weight_error[own_row][j] = error;
            total += p;
            total_error += error;
            if (!hidden) total_low += p * exp(-delta);
        }
        __syncthreads();
        for (int j = 0; j < min(keys, last - key); ++j) {
            const double x = dim < head_dim ? static_cast<double>(to_float(v[(key + j) * v_row + dim])) : 0.0;
            for (int i = 0; i < rows; ++i) {
                if (key + j >= seen(first_row + i)) continue;
                const double p = shared.weight[i][j], error = shared.weight_error[i][j];
                sum[i] += p * x;
                sum_size[i] += p * fabs(x);
                sum_error[i] += error * fabs(x);
            }
        }
    }

    const auto add = [](double a, double b) { return a + b; };
    total = warp_reduce<threads / rows>(total, add);
    total_error = warp_reduce<threads / rows>(total_error, add);
    total_low = warp_reduce<threads / rows>(total_low, add);
    if (part == 0) {
        shared.total[own_row][0] = total;
        shared.total[own_row][1] = total_error;
        shared.total[own_row][2] = total_low;
    }
    __syncthreads();

    // 3. The value, and the magnitude in which the error of the scores is folded.
    const double unit = unit_of(T{}) + (seq_k + 15) / 16 * 0x1p-23;
    for (int i = 0; i < rows; ++i) {
        const int row = first_row + i;
        if (row >= seq_q || dim >= head_dim) continue;
        const bool none = seen(row) == 0;
        const double y = none ? 0.0 : sum[i] / shared.total[i][0];
        const double error = none ? 0.0 : (sum_error[i] + fabs(y) * shared.total[i][1]) / shared.total[i][2];
        const long long at = (static_cast<long long>(head) * seq_q + row) * head_dim + dim;
        value[at] = y;
        magnitude[at] = none ? 0.0 : sum_size[i] / shared.total[i][0] + error / unit;
    }
}

// rope: pairs of elements of each head turned by position * base^(-2i / rot), of q and k of a packed qkv taken apart
//
// x          T, [tokens, heads, DIM], ldx elements from token to token; heads = q_heads (+ 2 * kv_heads)
// q, k, v    T, packed, [tokens, q_heads or kv_heads, DIM]; without k and v q may be x
// positions  long long, [tokens]; table: float, [span, ROT], the cosines of a position and then its sines, or null
// step       -2 log2(base) / ROT as the sum of two floats
// launch     grid = ceil(tokens / TOKENS), block = THREADS, no dynamic shared memory
// needs      ROT <= DIM, both even; (ROT / 2) % VEC == 0 and (DIM / 2) % VEC == 0; HALF: (DIM - ROT) / 2 % VEC == 0;
//            x and ldx, q, k and v aligned to VEC elements
//
// HALF turns elements i and i + ROT / 2, as GPT-NeoX and Llama do it, else 2i and 2i + 1, as GPT-J does.
#include "common.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T __nv_bfloat16
#endif
#ifndef DIM
#define DIM 128  // elements a head
#endif
#ifndef ROT
#define ROT 128  // of which so many are turned
#endif
#ifndef CONVENTION
#define CONVENTION half
#endif
#ifndef VEC
#define VEC 8  // elements a load
#endif
#ifndef TOKENS
#define TOKENS 2  // a block
#endif
#ifndef THREADS
#define THREADS 256
#endif

enum class Convention { half, interleaved };
constexpr bool across = Convention::CONVENTION == Convention::half;  // whether two vectors make pairs, or neighbours do
constexpr int items = DIM / 2 / VEC;                                 // a head: pairs of vectors

/// Of a position and a pair i of a head. The angle is kept in turns, in double, and reduced to [-1/2, 1/2] of them.
__device__ __forceinline__ float2 turn(double position, double turns) {
    const double angle = position * turns;
    float sine, cosine;
    sincospif(2.0f * static_cast<float>(angle - rint(angle)), &sine, &cosine);
    return make_float2(cosine, sine);
}

__device__ __forceinline__ void rotate(float& a, float& b, float2 by) {
    const float turned = a * by.x - b * by.y;
    b = b * by.x + a * by.y;
    a = turned;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    rope(const T* x, T* q, T* k, T* v, const long long* positions, const float* table, long long tokens, int q_heads,
         int kv_heads, long long ldx, float step, float step_rest) {
    __shared__ float2 turns[TOKENS][ROT / 2];
    const long long first = static_cast<long long>(blockIdx.x) * TOKENS;
    const int count = static_cast<int>(min(static_cast<long long>(TOKENS), tokens - first));

    // 1. Cosines and sines, once for all heads of a token.
    for (int i = static_cast<int>(threadIdx.x); i < TOKENS * (ROT / 2); i += THREADS) {
        const int token = i / (ROT / 2), pair = i % (ROT / 2);
        if (token >= count) break;
        const long long position = positions[first + token];
        if (table) {
            const float* const row = table + position * ROT + pair;
            turns[token][pair] = make_float2(__ldg(row), __ldg(row + ROT / 2));
        } else {
            turns[token][pair] = turn(static_cast<double>(position),
                                      exp2((static_cast<double>(step) + step_rest) * pair) * 0.15915494309189535);
        }
    }
    __syncthreads();

    // 2. Pairs of vectors. Where two vectors make pairs, those of the part that is not turned are taken by halves, too.
    const int heads = q_heads + 2 * kv_heads, work = count * heads * items;
    for (int i = static_cast<int>(threadIdx.x); i < work; i += THREADS) {
        const int item = i % items, head = i / items % heads, token = i / items / heads;
        const int at = item * VEC;
        int a = at, b = at + DIM / 2;
        bool turned = true;
        if constexpr (across) {
            turned = at < ROT / 2;
            a = turned ? at : ROT / 2 + at;
            b = turned ? at + ROT / 2 : at + ROT / 2 + (DIM - ROT) / 2;
        } else if constexpr (VEC == 1) {
            a = 2 * at;
            b = a + 1;
            turned = a < ROT;
        }
        const T* const from = x + (first + token) * ldx + head * DIM;
        float one[VEC], two[VEC];
        to_floats(load_once<VEC>(from + a), one);
        to_floats(load_once<VEC>(from + b), two);
        if (head < q_heads + kv_heads) {
            if constexpr (across || VEC == 1) {
                if (turned) {
#pragma unroll
                    for (int j = 0; j < VEC; ++j) rotate(one[j], two[j], turns[token][at + j]);
                }
            } else {
#pragma unroll
                for (int j = 0; j < VEC; j += 2) {
                    if (a + j < ROT) rotate(one[j], one[j + 1], turns[token][(a + j) / 2]);
                    if (b + j < ROT) rotate(two[j], two[j + 1], turns[token][(b + j) / 2]);
                }
            }
        }
        T* to;
        if (head < q_heads)
            to = q + ((first + token) * q_heads + head) * DIM;
        else if (head < q_heads + kv_heads)
            to = k + ((first + token) * kv_heads + head - q_heads) * DIM;
        else
            to = v + ((first + token) * kv_heads + head - q_heads - kv_heads) * DIM;
        store(to + a, from_floats<T>(one));
        store(to + b, from_floats<T>(two));
    }
}

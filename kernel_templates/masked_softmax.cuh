// masked_softmax: what a row of scores becomes before the softmax
#ifndef AUTOTUNE_MASKED_SOFTMAX_CUH
#define AUTOTUNE_MASKED_SOFTMAX_CUH

#include "rows.cuh"

/// A 64-bit division takes some hundred instructions, a 32-bit one twenty.
__device__ __forceinline__ long long quotient(long long a, int b) {
    return a >> 32 == 0 ? static_cast<unsigned>(a) / static_cast<unsigned>(b) : a / b;
}

/// As the field `mask` names them: none, bytes that are not 0 where a score counts, or what is added to it.
enum class Mask { none, keep, add };

template <Mask mask, class T>
struct MoreOf {
    using Type = unsigned char;
};
template <class T>
struct MoreOf<Mask::add, T> {
    using Type = T;
};

/// The n-th row to be worked on, of [batch, heads, queries]; those beyond the last stay beyond. Where something is
/// added, the rows of all batches that share it come one after the other: it is read from memory once, not once a
/// batch.
template <Mask mask>
__device__ __forceinline__ long long row_in_order(long long n, long long rows, int batches, int heads, int queries) {
    if (mask != Mask::add || n >= rows) return n;
    const long long shared = quotient(n, batches);
    return (n - shared * batches) * heads * queries + shared;
}

/// The logits of one row, for powers of 2: log2(e) * (scale * x, + add), and -inf where a key is masked or beyond what
/// a causal row sees.
template <Mask mask, bool CAUSAL, class T>
struct MaskedRow {
    const unsigned char* keep = nullptr;
    const T* add = nullptr;
    int visible;  // keys that the row sees
    float scale;  // times log2(e)

    /// keep is [batch, queries, keys], add is [heads, queries, keys]; rows go over [batch, heads, queries].
    __device__ __forceinline__ MaskedRow(const void* from, long long row, int heads, int queries, int keys,
                                         float scale_)
        : visible{keys}, scale{scale_ * log2_e} {
        const long long block = quotient(row, queries);  // of batch and head
        const int query = static_cast<int>(row - block * queries);
        const long long batch = quotient(block, heads);
        if (CAUSAL) visible = max(0, min(keys, query + 1 + keys - queries));
        if (mask == Mask::keep) keep = static_cast<const unsigned char*>(from) + (batch * queries + query) * keys;
        if (mask == Mask::add) add = static_cast<const T*>(from) + ((block - batch * heads) * queries + query) * keys;
    }
    /// Whether the mask's vectors are aligned from column `head` on.
    template <int N>
    __device__ __forceinline__ bool fits(int head) const {
        return mask == Mask::keep ? is_aligned<N>(keep + head) : mask == Mask::none || is_aligned<N>(add + head);
    }
    /// What goes with N scores: bytes, or what is added. A word, as what is chosen between by elements stays apart.
    template <int N>
    using More = Word<N * sizeof(typename MoreOf<mask, T>::Type)>;
    /// Of the scores from column c on.
    template <int N>
    __device__ __forceinline__ More<N> load_more(int c, bool fits) const {
        More<N> more{};
        if (mask == Mask::none || c >= visible) return more;
        if constexpr (mask == Mask::keep) {
            const auto bytes = load_anywhere<N>(keep + c, fits);
            more = reinterpret_cast<const More<N>&>(bytes);
        } else if constexpr (mask == Mask::add) {
            const auto added = load_anywhere<N>(add + c, fits);
            more = reinterpret_cast<const More<N>&>(added);
        }
        return more;
    }
    /// A byte of a word is tested where it is, in one instruction.
    template <int N>
    static __device__ __forceinline__ bool is_kept(const More<N>& more, int j) {
        if constexpr (N % 4 == 0)
            return (reinterpret_cast<const unsigned*>(&more)[j / 4] & 255u << 8 * (j % 4)) != 0;
        else
            return reinterpret_cast<const unsigned char*>(&more)[j] != 0;
    }
    /// N scores from column c on, as logits.
    template <int N>
    __device__ __forceinline__ void apply(float (&score)[N], const More<N>& more, int c) const {
        if constexpr (mask == Mask::add) {
            float added[N];
            to_floats(reinterpret_cast<const Vec<T, N>&>(more), added);
#pragma unroll
            for (int j = 0; j < N; ++j) score[j] = fmaf(added[j], log2_e, score[j] * scale);
        } else {
#pragma unroll
            for (int j = 0; j < N; ++j) score[j] *= scale;
        }
        if constexpr (mask == Mask::keep) {
#pragma unroll
            for (int j = 0; j < N; ++j) score[j] = is_kept<N>(more, j) ? score[j] : minus_infinity;
        }
        if constexpr (CAUSAL) {
#pragma unroll
            for (int j = 0; j < N; ++j) score[j] = c + j < visible ? score[j] : minus_infinity;
        }
    }
    __device__ __forceinline__ float apply_single(float score, int c) const {
        float one[1] = {score};
        apply<1>(one, load_more<1>(c, true), c);
        return one[0];
    }
};

/// 1 / sum, and 0 of a row that sees nothing.
__device__ __forceinline__ float share_of(float sum) { return sum == 0.0f ? 0.0f : 1.0f / sum; }

#endif

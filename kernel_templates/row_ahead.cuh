// row_ahead: the rows that a block holds in registers one after the other, and those to come, which copies bring into
// shared memory meanwhile (sm_90; sm_80 where threads bring them and there are no clusters).
#ifndef AUTOTUNE_ROW_AHEAD_CUH
#define AUTOTUNE_ROW_AHEAD_CUH

#include "copies.cuh"
#include "rows.cuh"

// ---- Barriers that count arrivals and the bytes of copies.

__device__ __forceinline__ void open_barrier(unsigned long long* barrier, int arrivals) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
#endif
}
__device__ __forceinline__ void arrive_at(unsigned long long* barrier) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
#endif
}
/// Until the barrier's phase of this parity is complete; of a barrier that is new, the one before its first.
__device__ __forceinline__ void await_phase(unsigned long long* barrier, unsigned parity) {
#if __CUDA_ARCH__ >= 900
    unsigned done = 0;
    while (done == 0)
        asm volatile(
            "{\n.reg .pred done;\nmbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\nselp.u32 %0, 1, 0, done;\n}"
            : "=r"(done)
            : "r"(shared_address(barrier)), "r"(parity)
            : "memory");
#endif
}
/// `bytes` bytes, a multiple of 16, both sides aligned to that; they and one arrival complete the barrier's phase.
/// FIRST: they are the first to leave the second-level cache.
template <bool FIRST>
__device__ __forceinline__ void copy_bulk(void* to, const void* from, int bytes, unsigned long long* arrived) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(arrived)), "r"(bytes)
                 : "memory");
    if constexpr (FIRST) {
        constexpr unsigned long long evict_first = 0x12f0000000000000ull;  // as createpolicy makes it
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], "
            "%4;" ::"r"(shared_address(to)),
            "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(arrived)), "l"(evict_first)
            : "memory");
    } else {
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         shared_address(to)),
                     "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(arrived))
                     : "memory");
    }
#endif
}

/// Where `has`, 16 bytes, aligned to that, to `to`, through the first-level cache: past it, as other copies go, loads
/// of a kernel that writes too leave the memory in a slow state now and then.
__device__ __forceinline__ void copy_async_cached_if(bool has, void* to, const void* from) {
    asm volatile("{\n.reg .pred has;\nsetp.ne.s32 has, %2, 0;\n@has cp.async.ca.shared.global [%0], [%1], 16;\n}" ::"r"(
                     shared_address(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(static_cast<int>(has))
                 : "memory");
}

/// Who brings rows to come into shared memory: bulk copies, bulk copies of what is then the first to leave the
/// second-level cache, or each thread its own vectors.
enum class Feed { bulk, first, threads };

/// The blocks' rows are `first`, `first` + `step`, ... A chunk of a row, a vector of 16 bytes for each thread, is one
/// copy to one of `size` places, which are used in turns. A place is free as soon as all warps have taken its chunk
/// into registers, so copies go on while the row is reduced and stored; one thread, the feeder, starts them all.
template <Feed FEED, class T, int THREADS, int CHUNKS, bool RAGGED, int CLUSTER, int BLOCKS>
class RowAhead {
public:
    static constexpr int vec = 16 / sizeof(T);
    using Part = RowPart<THREADS, vec, CHUNKS, RAGGED, CLUSTER>;
    using Vector = Vec<T, vec>;
    static constexpr int groups = 0;  // of cp.async, that a thread commits a row
    /// In shared memory: how far the places are, and what the feeder copies next, which would be registers of all.
    struct State {
        static constexpr int places = 227 * 1024 / BLOCKS / (16 * THREADS);
        unsigned long long arrived[places], taken[places];
        const T* x;  // the row that is copied from
        long long row;
        int column, end;  // of its next chunk, and where its whole vectors end
        int place;
        unsigned parity;
    };

    /// Called by all threads; each block has a chunk of each row.
    __device__ __forceinline__ RowAhead(State& state, uint4* places, int size, const T* x, long long first,
                                        long long step, long long rows, long long ld, int cols, int rank)
        : state_{state},
          places_{reinterpret_cast<Vector*>(places)},
          step_{step},
          rows_{rows},
          ld_{ld},
          size_{size},
          cols_{cols},
          rank_{rank} {
        if (is_feeder()) {
            for (int k = 0; k < size; ++k) {
                open_barrier(&state.arrived[k], 1);
                open_barrier(&state.taken[k], THREADS / 32);
            }
#if __CUDA_ARCH__ >= 900
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
            state.x = x + first * ld;
            state.row = first;
            state.place = 0;
            state.parity = 0;
            start_row();
#pragma unroll 1
            for (int k = 0; k < size; ++k) feed();
        }
        __syncthreads();
    }

    /// A row comes now.
    __device__ __forceinline__ void start(long long) {}
    /// Takes chunk `i` of it, from the first to the last; where this thread has no vector there,
    /// `v` stays. A row's last chunk is given back by `done`.
    __device__ __forceinline__ void take(Vector& v, const Part& part, int i) {
        // The same in all threads of the block.
        if (part.head + (rank_ + i * CLUSTER) * THREADS * vec >= part.end) return;
        await_phase(&state_.arrived[place_], parity_);
        if (part.has(i)) v = load<vec>((places_ + threadIdx.x)[place_ * THREADS].lane);
        __syncwarp();
        if (threadIdx.x % 32 == 0) arrive_at(&state_.taken[place_]);
        if (++place_ == size_) {
            place_ = 0;
            parity_ ^= 1;
        }
        // What this warp has just taken others may not have: the feeder would wait for them.
        if (i > 0 && is_feeder()) feed();
    }
    /// Called once a row, behind a barrier.
    __device__ __forceinline__ void done() {
        if (is_feeder()) feed();
    }

private:
    static __device__ __forceinline__ bool is_feeder() { return threadIdx.x == 32; }

    __device__ __forceinline__ void start_row() {
        if (state_.row >= rows_) return;
        const Part part{state_.x, cols_, rank_};
        state_.column = part.head + rank_ * THREADS * vec;
        state_.end = part.end;
    }
    /// Copies the next chunk, if there is one, to its place as soon as that is free.
    __device__ __forceinline__ void feed() {
        State& state = state_;
        asm volatile("" ::: "memory");  // other threads have no business here, not even ahead of the branch
        if (state.row >= rows_) return;
        const int place = state.place;
        await_phase(&state.taken[place], state.parity ^ 1);
#if __CUDA_ARCH__ >= 900
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
        copy_bulk<FEED == Feed::first>(&places_[place * THREADS], state.x + state.column,
                                       min(THREADS * vec, state.end - state.column) * static_cast<int>(sizeof(T)),
                                       &state.arrived[place]);
        const bool last = place + 1 == size_;
        state.place = last ? 0 : place + 1;
        state.parity ^= last;
        state.column += CLUSTER * THREADS * vec;
        if (state.column >= state.end) {
            state.row += step_;
            state.x += step_ * ld_;
            start_row();
        }
    }

    State& state_;
    Vector* const places_;
    const long long step_, rows_, ld_;
    const int size_, cols_, rank_;
    int place_ = 0;  // of the next chunk to take
    unsigned parity_ = 0;
};

/// The same by each thread for itself, so that nobody waits for others. The places are for whole rows.
template <class T, int THREADS, int CHUNKS, bool RAGGED, int CLUSTER, int BLOCKS>
class RowAhead<Feed::threads, T, THREADS, CHUNKS, RAGGED, CLUSTER, BLOCKS> {
public:
    static constexpr int vec = 16 / sizeof(T);
    using Part = RowPart<THREADS, vec, CHUNKS, RAGGED, CLUSTER>;
    using Vector = Vec<T, vec>;
    static constexpr int groups = CHUNKS;
    struct State {};

    __device__ __forceinline__ RowAhead(State&, uint4* places, int size, const T* x, long long first, long long step,
                                        long long rows, long long ld, int cols, int rank)
        : mine_{reinterpret_cast<Vector*>(places) + threadIdx.x},
          x_{x},
          ahead_{size / CHUNKS * step},
          rows_{rows},
          ld_{ld},
          size_{size / CHUNKS * CHUNKS},
          cols_{cols},
          rank_{rank},
          coming_{x, cols, rank} {
#pragma unroll 1
        for (int k = 0; k < size_; ++k) {
            if (k % CHUNKS == 0) aim(first + k / CHUNKS * step);
            copy(k % CHUNKS, k);
        }
    }

    __device__ __forceinline__ void start(long long row) { aim(row + ahead_); }
    __device__ __forceinline__ void take(Vector& v, const Part& part, int i) {
        cp_async_wait_for(size_ - 1);
        if (part.has(i)) v = load<vec>(mine_[(from_ + i) * THREADS].lane);
        copy(i, from_ + i);
    }
    __device__ __forceinline__ void done() { from_ = from_ + CHUNKS == size_ ? 0 : from_ + CHUNKS; }

private:
    /// The row to copy from.
    __device__ __forceinline__ void aim(long long row) {
        comes_ = row < rows_;
        next_ = x_ + row * ld_;
        if (RAGGED && comes_) coming_ = Part{next_, cols_, rank_};
    }
    __device__ __forceinline__ void copy(int i, int place) {
        copy_async_cached_if(comes_ && coming_.has(i), &mine_[place * THREADS], next_ + coming_.column(i));
        cp_async_commit();
    }

    Vector* const mine_;
    const T* const x_;
    const long long ahead_, rows_, ld_;
    const int size_, cols_, rank_;
    Part coming_;
    const T* next_ = nullptr;
    bool comes_ = false;
    int from_ = 0;  // the first place of the row that comes now
};

/// Takes a row of logits into `raw`, -inf where it has ended: its maximum and the sum of the exponentials below it.
/// ONLINE: each 32 bytes are added when they have come, for one rescaling; else all are when the last has.
template <bool ONLINE, Feed FEED, class T, int THREADS, int CHUNKS, bool RAGGED, int CLUSTER, int BLOCKS>
__device__ __forceinline__ MaxSum take_exps(Vec<T, 16 / sizeof(T)> (&raw)[CHUNKS], float single, unsigned zero,
                                            RowAhead<FEED, T, THREADS, CHUNKS, RAGGED, CLUSTER, BLOCKS>& ahead,
                                            const RowPart<THREADS, 16 / sizeof(T), CHUNKS, RAGGED, CLUSTER>& part) {
    constexpr int VEC = 16 / sizeof(T), step = ONLINE ? 2 : CHUNKS;
    MaxSum mine;
#pragma unroll
    for (int from = 0; from < CHUNKS; from += step) {
        float max = mine.max;
#pragma unroll
        for (int i = from; i < from + step; ++i) {
            if (i >= CHUNKS) continue;
            raw[i] = splat<T, VEC>(minus_infinity);
            ahead.take(raw[i], part, i);
            if (ONLINE) max = greatest(max, raw[i]);
        }
        if (!ONLINE) return exps_of<RAGGED>(raw, single, zero);
        const ExpBelow below{max};
        float sum = 0.0f;
#pragma unroll
        for (int i = from; i < from + step; ++i) {
            if (i >= CHUNKS) continue;
            float value[VEC];
            restate<1>(raw[i], zero);
            to_floats(raw[i], value);
#pragma unroll
            for (int j = 0; j < VEC; ++j) sum += below.of(value[j]);
        }
        mine.sum = fmaf(mine.sum, exp_natural(mine.max - pivot(max)), sum * below.correction);
        mine.max = max;
    }
    return RAGGED ? with_one(mine, single) : mine;
}

#endif

// row_tiles: the tiles of a block's rows, for kernels that go over a row twice or more: from memory each time, or from
// a ring in shared memory, where the tiles of rows to come arrive meanwhile.
#ifndef AUTOTUNE_ROW_TILES_CUH
#define AUTOTUNE_ROW_TILES_CUH

#include "copies.cuh"
#include "rows.cuh"

/// The blocks' rows are `first`, `first` + `step`, ... Each is gone over tile by tile, from 0 on where there is a RING,
/// and released in the same order. A thread has its own places in the ring, so it waits for its own copies alone.
template <bool RING, class T, int THREADS, int VEC, int UNROLL, bool RAGGED, int CLUSTER, bool THROUGH_L1>
class RowTiles {
public:
    using Part = RowPart<THREADS, VEC, UNROLL, RAGGED, CLUSTER>;
    using Vector = Vec<T, VEC>;

    /// `ring` is a multiple of `size` tiles of THREADS * UNROLL vectors, of which this has the `number`-th part.
    __device__ __forceinline__ RowTiles(const T* x, long long first, long long step, long long rows, long long ld,
                                        int cols, int rank, uint4* ring, int size, int number = 0)
        : x_{x + first * ld},
          coming_{x_, cols, rank},
          stride_{step * ld},
          step_{step},
          row_{first},
          rows_{rows},
          cols_{cols},
          rank_{rank},
          size_{size},
          mine_{reinterpret_cast<Vector*>(ring) + number * size * places + threadIdx.x} {}

    /// Copies the next tile into the ring, if there is one.
    __device__ __forceinline__ void load_next() {
        if constexpr (RING) {
            if (row_ >= rows_) return;
#pragma unroll
            for (int i = 0; i < UNROLL; ++i)
                copy_async_if<VEC, THROUGH_L1>(coming_.has(i, tile_ * Part::tile),
                                               mine_[to_ * places + i * THREADS].lane,
                                               x_ + coming_.column(i, tile_ * Part::tile));
            cp_async_commit();
            ++ahead_;
            to_ = to_ + 1 == size_ ? 0 : to_ + 1;
            if (++tile_ == coming_.tiles()) {
                tile_ = 0;
                row_ += step_;
                x_ += stride_;
                if (RAGGED && row_ < rows_) coming_ = Part{x_, cols_, rank_};
            }
        }
    }

    /// The row that comes now; without a ring it is read there.
    __device__ __forceinline__ void start(const T* row) {
        if constexpr (RING)
            base_ = from_;
        else
            x_ = row;
    }
    /// Until tile `tile` of this row is there, of which none was released; and that of `together` - 1 others, which are
    /// filled and released in turns with this, which is the last of them.
    __device__ __forceinline__ void await(int tile, int together = 1) const {
        if constexpr (RING) cp_async_wait_for(together * (ahead_ - 1 - tile));
    }
    /// Vector `i` of a tile, where this thread has one; elsewhere `v` stays. Of a row in memory, `aligned` says whether
    /// its vectors are.
    __device__ __forceinline__ void read(Vector& v, const Part& part, int i, int tile, bool aligned = true) const {
        const bool has = part.has(i, tile * Part::tile);
        if constexpr (RING) {
            int place = base_ + tile;
            if (place >= size_) place -= size_;
            if (has) v = mine_[place * places + i * THREADS];
        } else if (has) {
            const T* const at = x_ + part.column(i, tile * Part::tile);
            v = aligned ? load<VEC>(at) : load_anywhere<VEC>(at, false);
        }
    }
    /// A whole tile as floats, `fill` where the row has ended.
    __device__ __forceinline__ void read(float (&value)[UNROLL][VEC], const Part& part, int tile, float fill,
                                         bool aligned = true) const {
        Vector raw[UNROLL];
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) {
            raw[i] = splat<T, VEC>(fill);
            read(raw[i], part, i, tile, aligned);
        }
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) to_floats(raw[i], value[i]);
    }
    /// The row's first tile that was not released is not read again: another takes its place.
    __device__ __forceinline__ void release() {
        if constexpr (RING) {
            from_ = from_ + 1 == size_ ? 0 : from_ + 1;
            --ahead_;
            load_next();
        }
    }
    /// Goes over a row for the last time: to[c] = of(x[c]) for what this thread has of it, `to` being another row, or
    /// this. Its `single` element was read before; `fill` is what `of` sees where the row has ended.
    template <class Of>
    __device__ __forceinline__ void rewrite(T* to, const Part& part, float single, float fill, Of of) {
        const bool aligned = part.fits(to);
        if (part.has_single) to[part.single] = from_float<T>(of(single));
        for (int k = 0; k < part.tiles(); ++k, release()) {
            const int tile = in_last_pass(k, part.tiles());
            float value[UNROLL][VEC];
            read(value, part, tile, fill);
#pragma unroll
            for (int i = 0; i < UNROLL; ++i) {
#pragma unroll
                for (int j = 0; j < VEC; ++j) value[i][j] = of(value[i][j]);
                store_anywhere_if(part.has(i, tile * Part::tile), to + part.column(i, tile * Part::tile), value[i],
                                  aligned);
            }
        }
    }
    /// The `k`-th tile of `count` in the last pass. What was read last is the likeliest to be in the cache still, where
    /// rows come from memory.
    static __device__ __forceinline__ int in_last_pass(int k, int count) { return RING ? k : count - 1 - k; }

private:
    static constexpr int places = UNROLL * THREADS;

    const T* x_;  // the row that tiles are copied from; without a ring: the row that is gone over
    Part coming_;
    const long long stride_, step_;
    long long row_;
    const long long rows_;
    const int cols_, rank_, size_;
    Vector* const mine_;
    int tile_ = 0, to_ = 0;     // of the row copied from, and of the ring
    int from_ = 0, ahead_ = 0;  // the ring's first tile in use, and how many are
    int base_ = 0;              // this row's first tile in the ring
};

/// Fills the rings of `count` tiles, before the first row; what is read together is copied in turns.
template <bool RING, class... Tiles>
__device__ __forceinline__ void fill_rings(int count, Tiles&... tiles) {
#pragma unroll 1
    for (int k = 0; RING && k < count; ++k) (tiles.load_next(), ...);
}

/// Adds the exponentials of a tile to `mine`, for one rescaling.
template <int UNROLL, int VEC>
__device__ __forceinline__ void add_tile(MaxSum& mine, const float (&value)[UNROLL][VEC]) {
    float max = mine.max;
#pragma unroll
    for (int i = 0; i < UNROLL * VEC; ++i) max = fmaxf(max, value[i / VEC][i % VEC]);
    const ExpBelow below{max};
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < UNROLL * VEC; ++i) sum += below.of(value[i / VEC][i % VEC]);
    mine.sum = fmaf(mine.sum, exp_natural(mine.max - pivot(max)), sum * below.correction);
    mine.max = max;
}

#endif

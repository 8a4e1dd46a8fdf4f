// scan: y[r, c] = sum of x[r, 0 .. c], or of x[r, 0 .. c - 1] where EXCLUSIVE
//
// x, y     T, packed, [rows, n]; y may be x. Floats are summed as floats, whole numbers wrap around
// launch   grid = as many blocks as are resident, or less, block = 32 * (2 * WARPS + SLOTS), SLOTS tiles of
//          WARPS * UNROLL * 512 bytes of dynamic shared memory; words: as RowWords has them, and one behind them;
//          tiles: of a row; all_tiles: of all rows
// needs    sm_90; rows start at multiples of 16 bytes
//
// Blocks take tiles in order and keep a ring of them in shared memory, so that tiles come from memory while others wait
// for the sums of those before them. Nobody waits for more than the one thing that comes next:
//   a slot's keeper    a warp a slot: takes a tile, has it copied, publishes its sum, and waits for the tiles before it
//   the summing warps  sum up tile after tile, as they come
//   the storing warps  read tile after tile, as what is before it is known, free the slot, and store
// A tile waits for sums of lower tiles only. These were taken by blocks that run, and are summed without waiting for
// any tile: a slot's next tile is taken when the storing warps have come to the last one, which they then finish at
// once. So there is always one that can go on, whichever blocks are resident.
#include "bulk_copies.cuh"
#include "scan.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T float
#endif
#ifndef EXCLUSIVE
#define EXCLUSIVE 0
#endif
#ifndef WARPS
#define WARPS 8  // warps that sum, and that store
#endif
#ifndef UNROLL
#define UNROLL 8  // 16-byte vectors a lane has of a tile
#endif
#ifndef SLOTS
#define SLOTS 7  // tiles in the ring
#endif
#ifndef BLOCKS
#define BLOCKS 1  // blocks a multiprocessor
#endif

using Sum = SumOf<T>;

constexpr int vec = 16 / sizeof(T);
constexpr int part_size = UNROLL * 32 * vec;  // of a warp
constexpr int tile_size = WARPS * part_size;
constexpr int threads = 32 * (2 * WARPS + SLOTS);
constexpr unsigned all_slots = SLOTS < 32 ? (1u << SLOTS % 32) - 1 : ~0u;

struct Slot {
    PhaseBarrier called;   // once: the slot before the last has its first tile
    PhaseBarrier filled;   // the tile is there, or there is none
    PhaseBarrier summed;   // and the sums of its warps' parts
    PhaseBarrier placed;   // and what is before these
    PhaseBarrier started;  // the storing warps have come to it
    PhaseBarrier read;     // and do not need the slot any more
    long long first;       // element of x
    int length;            // 0: there is no tile, and none will come
    Sum sums[WARPS], below[WARPS];
};

struct Shape {
    long long n;
    unsigned tiles, all_tiles;
};

/// Whether a warp's part of a tile of `length` elements is whole: its lanes need not look at each vector then.
__device__ __forceinline__ bool has_whole_part(int length, int warp) { return (warp + 1) * part_size <= length; }

/// A warp's part of the tile in a slot. The last vector of a row may be a part of one, which was not copied.
__device__ __forceinline__ void read_part(Vec<T, vec> (&raw)[UNROLL], const T* tile, const T* x, int length, int warp) {
    if (has_whole_part(length, warp)) {
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) raw[i] = load<vec>(tile + tile_column<vec, UNROLL>(i, warp));
        return;
    }
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
        const int c = tile_column<vec, UNROLL>(i, warp);
        if (c + vec <= length) {
            raw[i] = load<vec>(tile + c);
        } else {
#pragma unroll
            for (int j = 0; j < vec; ++j) raw[i].lane[j] = c + j < length ? x[c + j] : T{};
        }
    }
}

/// Goes over the tiles of the ring in turns, until there are none: `each(slot's number, slot, parity of its phase)`.
template <class Each>
__device__ __forceinline__ void each_tile(Slot* slots, Each each) {
    unsigned ended = 0;
    for (unsigned turn = 0; ended != all_slots; ++turn)
        for (int s = 0; s < SLOTS; ++s) {
            if (ended >> s & 1) continue;
            slots[s].filled.await(turn & 1);
            if (slots[s].length == 0)
                ended |= 1u << s;
            else
                each(s, slots[s], turn & 1);
        }
}

__device__ __forceinline__ void sum_tiles(Slot* slots, const T* ring, const T* x) {
    const int warp = static_cast<int>(threadIdx.x / 32) - WARPS;
    each_tile(slots, [&](int s, Slot& slot, unsigned) {
        Vec<T, vec> raw[UNROLL];
        read_part(raw, ring + s * tile_size, x + slot.first, slot.length, warp);
        Sum sum{};
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) {
            Sum x_of[vec];
            to_sums(raw[i], x_of);
#pragma unroll
            for (int j = 0; j < vec; ++j) sum += x_of[j];
        }
        sum = sum_of_lanes(sum);
        if (threadIdx.x % 32 == 0) {
            slot.sums[warp] = sum;
            slot.summed.arrive();
        }
    });
}

__device__ __forceinline__ void store_tiles(Slot* slots, const T* ring, const T* x, T* y) {
    const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
    each_tile(slots, [&](int s, Slot& slot, unsigned parity) {
        slot.placed.await(parity);
        if (threadIdx.x == 0) slot.started.arrive();
        const long long first = slot.first;
        const int length = slot.length;
        const Sum below = slot.below[warp];
        Vec<T, vec> raw[UNROLL];
        read_part(raw, ring + s * tile_size, x + first, length, warp);
        const PartScan<UNROLL, Sum> part = scan_part<T>(raw);
        __syncwarp();
        if (lane == 0) slot.read.arrive();
        T* const to = y + first;
        if (has_whole_part(length, warp)) {
#pragma unroll
            for (int i = 0; i < UNROLL; ++i)
                store_once(to + tile_column<vec, UNROLL>(i), sums_upon<EXCLUSIVE != 0>(raw[i], below + part.before[i]));
        } else {
#pragma unroll
            for (int i = 0; i < UNROLL; ++i)
                store_within(to, tile_column<vec, UNROLL>(i), length,
                             sums_upon<EXCLUSIVE != 0>(raw[i], below + part.before[i]));
        }
    });
}

__device__ __forceinline__ void keep_slot(Slot* slots, int slot_number, T* ring, const T* x, const Shape& shape,
                                          Published* words) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    Slot& slot = slots[slot_number];
    T* const tile_in_slot = ring + slot_number * tile_size;
    Published* const taken = RowWords{words, shape.tiles, shape.all_tiles / shape.tiles}.sums;  // behind all rows
    const auto take = [&] {
        unsigned tile = 0;
        if (lane == 0) tile = static_cast<unsigned>(atomicAdd(taken, 1ull));
        return __shfl_sync(all_lanes, tile, 0);
    };
    // The first tiles are taken two slots at a time, as those of later slots come later, too: else no block could store
    // before all of every ring has come.
    if (slot_number >= 2) slot.called.await(0);
    unsigned tile = take();
    if (slot_number + 2 < SLOTS && lane == 0) slots[slot_number + 2].called.arrive();
    for (unsigned turn = 0;; ++turn) {
        const unsigned parity = turn & 1;
        if (turn > 0) slot.read.await(parity ^ 1);
        const unsigned row = tile / shape.tiles, number = tile - row * shape.tiles;
        if (lane == 0) {
            const long long in_row = static_cast<long long>(number) * tile_size, first = row * shape.n + in_row;
            const int length =
                tile < shape.all_tiles ? static_cast<int>(min(static_cast<long long>(tile_size), shape.n - in_row)) : 0;
            slot.first = first;
            slot.length = length;
            if (length >= vec)
                slot.filled.arrive_with_copy(tile_in_slot, x + first, length / vec * 16);
            else
                slot.filled.arrive();
        }
        if (tile >= shape.all_tiles) return;
        slot.summed.await(parity);
        const LaneScan<Sum> parts = scan_lanes(lane < WARPS ? slot.sums[lane % WARPS] : Sum{});
        const Sum before = before_tile_in_warp(RowWords{words, shape.tiles, row}, number, parts.all);
        if (lane < WARPS) slot.below[lane] = before + parts.before;
        __syncwarp();
        if (lane == 0) slot.placed.arrive();
        slot.started.await(parity);
        tile = take();
    }
}

extern "C" __global__ void __launch_bounds__(threads, BLOCKS)
    scan_ring(const T* x, T* y, long long n, unsigned tiles, unsigned all_tiles, Published* words) {
    extern __shared__ uint4 shared_words[];
    __shared__ Slot slots[SLOTS];
    T* const ring = reinterpret_cast<T*>(shared_words);
    const int warp = static_cast<int>(threadIdx.x / 32);
    if (threadIdx.x < SLOTS) {
        Slot& slot = slots[threadIdx.x];
        slot.called.init(1);
        slot.filled.init(1);
        slot.summed.init(WARPS);
        slot.placed.init(1);
        slot.started.init(1);
        slot.read.init(WARPS);
        PhaseBarrier::publish_all();
    }
    __syncthreads();

    if (warp < WARPS)
        store_tiles(slots, ring, x, y);
    else if (warp < 2 * WARPS)
        sum_tiles(slots, ring, x);
    else
        keep_slot(slots, warp - 2 * WARPS, ring, x, Shape{n, tiles, all_tiles}, words);
}

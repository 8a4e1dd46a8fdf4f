#ifndef AUTOTUNE_TESTS_DEVICE_EMULATOR_HOPPER_KERNELS_H
#define AUTOTUNE_TESTS_DEVICE_EMULATOR_HOPPER_KERNELS_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "device/launch.h"

namespace autotune::hopper {

/// What kernels here share: thin covers of single instructions.
inline const char* const covers = R"(
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
typedef unsigned long long u64;
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void init(u64* b, unsigned n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(b)), "r"(n) : "memory"); }
__device__ void init_done() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ void inval(u64* b) { asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(at(b)) : "memory"); }
__device__ void arrive(u64* b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at(b)) : "memory"); }
__device__ void expect(u64* b, unsigned n) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at(b)), "r"(n) : "memory"); }
__device__ bool ready(u64* b, unsigned parity) { unsigned r; asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}" : "=r"(r) : "r"(at(b)), "r"(parity) : "memory"); return r; }
__device__ void wait(u64* b, unsigned parity) { while (!ready(b, parity)) {} }
__device__ void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ void load(void* to, const void* from, unsigned n, u64* b) { asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(at(to)), "l"(from), "r"(n), "r"(at(b)) : "memory"); }
__device__ void store(void* to, const void* from, unsigned n) { asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"(to), "r"(at(from)), "r"(n) : "memory"); }
__device__ void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ void wait_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
__device__ void load2(void* to, const TensorMap* m, int x, int y, u64* b) { asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" :: "r"(at(to)), "l"(m), "r"(x), "r"(y), "r"(at(b)) : "memory"); }
__device__ void load3(void* to, const TensorMap* m, int x, int y, int z, u64* b) { asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" :: "r"(at(to)), "l"(m), "r"(x), "r"(y), "r"(z), "r"(at(b)) : "memory"); }
__device__ void load2_all(void* to, const TensorMap* m, int x, int y, u64* b, unsigned short blocks) { asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" :: "r"(at(to)), "l"(m), "r"(x), "r"(y), "r"(at(b)), "h"(blocks) : "memory"); }
__device__ void store2(const TensorMap* m, int x, int y, const void* from) { asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" :: "l"(m), "r"(x), "r"(y), "r"(at(from)) : "memory"); }
__device__ void add2(const TensorMap* m, int x, int y, const void* from) { asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%1, %2}], [%3];" :: "l"(m), "r"(x), "r"(y), "r"(at(from)) : "memory"); }
__device__ unsigned rank() { unsigned r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
__device__ unsigned map(const void* p, unsigned rank) { unsigned r; asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(at(p)), "r"(rank)); return r; }
__device__ float far(unsigned p) { float r; asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(r) : "r"(p) : "memory"); return r; }
__device__ void meet() { asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory"); }
)";

inline std::string with_covers(const std::string& kernel) { return covers + kernel; }

inline std::vector<float> floats(std::size_t count) {
    std::vector<float> x(count);
    for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<float>(i * 37 % 101) - 50;
    return x;
}

inline Launch launch_of(Dim3 grid, Dim3 block, Dim3 cluster, std::vector<Argument> arguments,
                        std::uint32_t shared = 0) {
    Launch launch;
    launch.entry = "kernel";
    launch.grid = grid;
    launch.block = block;
    launch.cluster = cluster;
    launch.shared_bytes = shared;
    launch.arguments = std::move(arguments);
    return launch;
}

/// A ring of tiles that one warp loads and the others scale, with a ragged edge in both dimensions.
inline const char* const ring = R"(
extern "C" __global__ void kernel(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap out, int rows, int cols) {
    __shared__ alignas(1024) float tile[3][16 * 32];
    __shared__ alignas(8) u64 full[3], empty[3];
    if (threadIdx.x == 0) {
        for (int i = 0; i < 3; ++i) { init(full + i, 1); init(empty + i, 64); }
        init_done();
    }
    __syncthreads();
    const int across = (cols + 31) / 32, tiles = across * ((rows + 15) / 16);
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0)
            for (int t = 0; t < tiles; ++t) {
                const int slot = t % 3, turn = t / 3;
                wait(empty + slot, (turn & 1) ^ 1);
                expect(full + slot, 16 * 32 * 4);
                load2(tile[slot], &in, t % across * 32, t / across * 16, full + slot);
            }
    } else {
        const int i = threadIdx.x - 32;
        for (int t = 0; t < tiles; ++t) {
            const int slot = t % 3, turn = t / 3;
            wait(full + slot, turn & 1);
            for (int k = i; k < 16 * 32; k += 64) tile[slot][k] = tile[slot][k] * 2 + 1;
            fence_async();
            asm volatile("bar.sync 1, 64;" ::: "memory");
            if (i == 0) { store2(&out, t % across * 32, t / across * 16, tile[slot]); commit(); wait_read(); }
            asm volatile("bar.sync 1, 64;" ::: "memory");
            arrive(empty + slot);
        }
    }
})";

inline TensorMapArgument tensor(std::uint32_t buffer, std::vector<std::uint64_t> extents,
                                std::vector<std::uint64_t> strides, std::vector<std::uint32_t> box,
                                std::uint32_t swizzle = 0, DType dtype = DType::f32) {
    TensorMapArgument map;
    map.buffer = buffer;
    map.dtype = dtype;
    map.extents = std::move(extents);
    map.strides_bytes = std::move(strides);
    map.box = std::move(box);
    map.swizzle_bytes = swizzle;
    return map;
}

// ---- wgmma: 64 x 64 x 64, for each swizzle and each orientation, from registers and from shared memory.

inline const char* const product = R"(
__device__ u64 place(const void* p, unsigned leading, unsigned stride, u64 layout) {
    return (u64)(at(p) >> 4 & 0x3fff) | (u64)(leading >> 4) << 16 | (u64)(stride >> 4) << 32 | layout << 62;
}
#define D8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define REGISTERS "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
__device__ void multiply(float (&d)[32], u64 a, u64 b, int keep) {
    asm volatile("{.reg .pred p; setp.ne.b32 p, %34, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32." TYPE "." TYPE " " REGISTERS ", %32, %33, p, 1, 1, %35, %36;}"
        : D8(0), D8(8), D8(16), D8(24) : "l"(a), "l"(b), "r"(keep), "n"(TURNED_A), "n"(TURNED_B));
}
__device__ void multiply(float (&d)[32], const unsigned (&a)[4], u64 b, int keep) {
    asm volatile("{.reg .pred p; setp.ne.b32 p, %37, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32." TYPE "." TYPE " " REGISTERS ", {%32, %33, %34, %35}, %36, p, 1, 1, %38;}"
        : D8(0), D8(8), D8(16), D8(24) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(keep), "n"(TURNED_B));
}
__device__ void begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void close() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
__device__ void finish() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }
// Tiles as tensor maps bring them: SPAN bytes wide, so that a matrix of 64 x 64 takes 128 / SPAN of them.
extern "C" __global__ void kernel(const __grid_constant__ TensorMap ma, const __grid_constant__ TensorMap mb, float* c) {
    __shared__ alignas(1024) unsigned short a[64 * 64], b[64 * 64];
    __shared__ alignas(8) u64 full;
    if (threadIdx.x == 0) { init(&full, 1); init_done(); }
    __syncthreads();
    constexpr int parts = 128 / SPAN, wide = 64 / parts;
    if (threadIdx.x == 0) {
        expect(&full, 2 * 8192);
        for (int i = 0; i < parts; ++i) { load2(a + i * 64 * wide, &ma, i * wide, 0, &full); load2(b + i * 64 * wide, &mb, i * wide, 0, &full); }
    }
    wait(&full, 0);
    float d[32];
    const u64 layout = SPAN == 128 ? 1 : SPAN == 64 ? 2 : SPAN == 32 ? 3 : 0;
    begin();
    for (int k = 0; k < 64; k += 16) {
        // Along k: 32 bytes on, in the tile that has them. Across: 16 rows on.
        const auto spot = [&](const unsigned short* m, bool turned) {
            if (SPAN == 16) return turned ? place(m + k * wide, 128, 1024, layout) : place(m + k / wide * 64 * wide, 1024, 128, layout);
            return turned ? place(m + k * wide, 64 * SPAN, 8 * SPAN, layout) : place(m + k / wide * 64 * wide + k % wide, 0, 8 * SPAN, layout);
        };
#ifdef FROM_REGISTERS
        const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
        unsigned r[4];
        for (int i = 0; i < 4; ++i) {
            // Swizzled as the tile is.
            const int line = row + 8 * (i % 2), depth = k + 2 * (lane % 4) + 8 * (i / 2);
            unsigned byte = depth / wide * 64 * SPAN + line * SPAN + depth % wide * 2;
            byte ^= byte >> 3 & (SPAN - 16);
            r[i] = *(const unsigned*)((const char*)a + byte);
        }
        begin();
        multiply(d, r, spot(b, TURNED_B), k > 0);
        close();
        finish();
#else
        multiply(d, spot(a, TURNED_A), spot(b, TURNED_B), k > 0);
#endif
    }
    close();
    finish();
    for (int j = 0; j < 32; ++j) {
        const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + j / 2 % 2 * 8, column = j / 4 * 8 + threadIdx.x % 4 * 2 + j % 2;
        c[row * 64 + column] = d[j];
    }
}
)";

}  // namespace autotune::hopper
#endif

#include "device/emulator/bulk_copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "device/emulator/accesses.h"
#include "device/emulator/atomics.h"
#include "device/emulator/block_trace.h"
#include "device/emulator/cluster.h"
#include "device/emulator/fault.h"
#include "device/emulator/tensor_record.h"

namespace autotune::emulator {
namespace {

using Way = BulkForm::Way;
constexpr std::uint32_t chunk = 16;

/// One lane's copy, as far as it is known.
struct Transfer {
    Warp& w;
    const Op& op;
    const BulkForm& form;
    int lane;
    std::vector<std::pair<Block*, std::uint32_t>> targets;  ///< blocks, and where in their shared memory
    std::uint64_t other = 0;                                ///< offset in global memory, or in the cluster's shared
    std::uint32_t bytes = 0;                                ///< that are moved, those out of bounds too
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges;  ///< of shared memory, from 0 at the target
};

BulkForm bulk_form(const Warp& w, const Op& op) {
    BulkForm form;
    std::memcpy(static_cast<void*>(&form), w.extra + op.extra, sizeof form);
    return form;
}

/// Looks at the states of a range, quickly where nothing is wrong.
void examine(const Transfer& t, Space space, std::uint64_t at, std::uint32_t bytes, Access access) {
    const std::uint8_t* const states = t.w.views[static_cast<int>(space)].states;
    if (!t.w.checked || !states || bytes == 0) return;
    const auto right = static_cast<std::uint8_t>(ByteState::initialised);
    if (std::all_of(states + at, states + at + bytes, [&](std::uint8_t state) { return state == right; })) return;
    std::uint64_t all[lanes]{};
    all[t.lane] = at;
    check_states(t.w, t.op, 1u << t.lane, space, all, bytes, access);
}

[[noreturn]] void outside(const Transfer& t, Space space, std::uint64_t at, std::uint32_t bytes, Access access) {
    std::uint64_t all[lanes]{};
    all[t.lane] = at;
    bad_access(t.w, t.op, 1u << t.lane, space, all, bytes, access);
}

/// An address of shared memory, own or of the cluster, with `bytes` behind it.
std::pair<Block*, std::uint32_t> shared_at(const Transfer& t, std::int32_t row, std::int64_t offset, bool wide,
                                           std::uint32_t align, std::uint32_t bytes, Access access) {
    std::uint64_t at[lanes];
    const Space space =
        resolve(t.w, t.op, 1u << t.lane, row, offset, Space::shared, wide, at, std::min(align, chunk), access);
    const std::uint64_t found = at[t.lane];
    const std::uint32_t step = t.w.block->cluster->step, size = t.w.block->launch->shared_bytes;
    Block* const block = space == Space::shared ? t.w.block : t.w.block->cluster->blocks[found / step].get();
    const auto from = static_cast<std::uint32_t>(space == Space::shared ? found : found % step);
    if (bytes > size - from) outside(t, space, found, bytes, access);
    if (from % align != 0)
        fail(t.w, t.op, t.lane, DeviceFault::Kind::invalid_access,
             fmt::format("a bulk copy's place at byte {} of shared memory is misaligned: it takes a multiple of {}",
                         from, align));
    return {block, from};
}

/// Offset in global memory with `bytes` behind it.
std::uint64_t global_at(const Transfer& t, std::uint32_t bytes, Access access) {
    std::uint64_t at[lanes];
    resolve(t.w, t.op, 1u << t.lane, t.form.other, t.form.other_offset, Space::global, t.form.other_wide != 0, at,
            chunk, access);
    if (bytes > t.w.views[static_cast<int>(Space::global)].size - at[t.lane])
        outside(t, Space::global, at[t.lane], bytes, access);
    return at[t.lane];
}

TensorRecord record_at(const Transfer& t) {
    const LaunchState& launch = *t.w.block->launch;
    const std::uint64_t address =
        t.w.row<std::uint64_t>(t.form.other)[t.lane] + static_cast<std::uint64_t>(std::int64_t{t.form.other_offset});
    TensorRecord record;
    const std::byte* from = nullptr;
    if (space_of(t.w, address) == Space::param && address - param_window + sizeof record <= launch.parameters.size()) {
        from = launch.parameters.data() + (address - param_window);
    } else if (space_of(t.w, address) == Space::global) {
        const SpaceView& view = t.w.views[static_cast<int>(Space::global)];
        const std::uint64_t at = address - view.start;
        if (at >= view.size || sizeof record > view.size - at) outside(t, Space::global, at, 128, Access::load);
        from = view.base + at;
    }
    if (from) std::memcpy(static_cast<void*>(&record), from, sizeof record);
    if (!from || !record.is_sound())
        fail(t.w, t.op, t.lane, DeviceFault::Kind::invalid_access,
             fmt::format("there is no tensor map at {:#x},", address), {}, address);
    if (record.rank != t.form.dimensions)
        fail(t.w, t.op, t.lane, DeviceFault::Kind::invalid_access,
             fmt::format("a copy of {} dimensions takes a tensor map of {}", t.form.dimensions, record.rank));
    if (address % 64 != 0)
        fail(t.w, t.op, t.lane, DeviceFault::Kind::invalid_access, "a tensor map is not aligned to 64 bytes", {},
             address);
    return record;
}

PtxType type_of_dtype(DType dtype) {
    switch (dtype) {
        case DType::f64:
            return PtxType::f64;
        case DType::f32:
            return PtxType::f32;
        case DType::f16:
            return PtxType::f16;
        case DType::bf16:
            return PtxType::bf16;
        case DType::i64:
            return PtxType::s64;
        case DType::i32:
            return PtxType::s32;
        case DType::u32:
            return PtxType::u32;
        default:
            return PtxType::none;
    }
}

/// To global memory: a copy, or element by element a reduction.
void put_global(const Transfer& t, std::uint64_t at, const std::byte* from, std::uint32_t bytes, PtxType type) {
    const SpaceView& view = t.w.views[static_cast<int>(Space::global)];
    std::byte* const to = view.base + at;
    if (t.w.trace) t.w.trace->bulk(view.start + at, bytes, Access::store);
    examine(t, Space::global, at, bytes, t.form.reduction < 0 ? Access::store : Access::atomic);
    if (t.form.reduction < 0) {
        std::memcpy(to, from, bytes);
        return;
    }
    const auto size = static_cast<std::uint32_t>(bytes_of(type));
    if (size < 2 || size > 8)
        fail(t.w, t.op, t.lane, DeviceFault::Kind::not_emulated, "not emulated: a reduction of elements of that type");
    for (std::uint32_t i = 0; i + size <= bytes; i += size) {
        std::uint64_t old = 0, with = 0;
        std::memcpy(&old, to + i, size);
        std::memcpy(&with, from + i, size);
        const std::uint64_t made = combined(static_cast<AtomicOperation>(t.form.reduction), type, old, with);
        std::memcpy(to + i, &made, size);
    }
}

/// Calls f(offset of the row in shared memory, its first byte in global memory, bytes of the row before and in bounds).
template <class F>
void each_row(const Transfer& t, const TensorRecord& record, F f) {
    std::int64_t from[tensor_map_dimensions]{};
    for (std::size_t i = 0; i < record.rank; ++i)
        from[i] = static_cast<std::int32_t>(t.w.row<std::uint32_t>(t.form.coordinates[i])[t.lane]);
    const std::int64_t first = std::clamp<std::int64_t>(-from[0], 0, record.box[0]),
                       last = std::clamp<std::int64_t>(record.extents[0] - from[0], first, record.box[0]);
    const std::uint32_t rows = record.rows();
    for (std::uint32_t row = 0; row < rows; ++row) {
        std::uint64_t at = record.base + static_cast<std::uint64_t>((from[0] + first) * record.element_bytes);
        bool inside = first < last;
        std::uint32_t rest = row;
        for (std::size_t i = 1; i < record.rank; ++i) {
            const std::int64_t where = from[i] + rest % record.box[i];
            rest /= record.box[i];
            inside = inside && where >= 0 && where < record.extents[i];
            at += static_cast<std::uint64_t>(where) * record.strides[i - 1];
        }
        f(row * record.pitch(), at, static_cast<std::uint32_t>(first) * record.element_bytes,
          inside ? static_cast<std::uint32_t>(last - first) * record.element_bytes : 0);
    }
}

std::uint64_t checked_row(const Transfer& t, std::uint64_t address, std::uint32_t bytes, Access access) {
    const SpaceView& view = t.w.views[static_cast<int>(Space::global)];
    const std::uint64_t at = address - view.start;
    if (at >= view.size || bytes > view.size - at) outside(t, Space::global, at, bytes, access);
    if (access == Access::load) examine(t, Space::global, at, bytes, access);
    return at;
}

void load_tensor(Transfer& t, const TensorRecord& record) {
    const std::uint32_t inner = record.inner_bytes();
    std::vector<std::byte> row(inner);
    each_row(t, record, [&](std::uint32_t to, std::uint64_t address, std::uint32_t before, std::uint32_t inside) {
        std::fill(row.begin(), row.end(), std::byte{});
        if (inside > 0) {
            const std::uint64_t at = checked_row(t, address, inside, Access::load);
            if (t.w.trace) t.w.trace->bulk(address, inside, Access::load);
            std::memcpy(row.data() + before, t.w.views[static_cast<int>(Space::global)].base + at, inside);
        }
        for (std::uint32_t k = 0; k < inner; k += chunk)
            for (const auto& [block, start] : t.targets)
                std::memcpy(block->shared + swizzled(start + to + k, record.swizzle_bytes), row.data() + k, chunk);
    });
}

void store_tensor(const Transfer& t, const TensorRecord& record) {
    const std::uint32_t inner = record.inner_bytes();
    std::vector<std::byte> row(inner);
    const auto& [block, start] = t.targets.front();
    each_row(t, record, [&](std::uint32_t from, std::uint64_t address, std::uint32_t before, std::uint32_t inside) {
        if (inside == 0) return;
        for (std::uint32_t k = 0; k < inner; k += chunk)
            std::memcpy(row.data() + k, block->shared + swizzled(start + from + k, record.swizzle_bytes), chunk);
        const std::uint64_t at = checked_row(t, address, inside, Access::store);
        put_global(t, at, row.data() + before, inside, type_of_dtype(record.dtype));
    });
}

/// Shared memory that a box takes, from its start on: whole, or the pieces of narrow rows under a wide swizzle.
std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges_of(const TensorRecord& record, std::uint32_t start) {
    if (record.pitch() == record.inner_bytes()) return {{0, record.rows() * record.pitch()}};
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges;
    for (std::uint32_t row = 0; row < record.rows(); ++row)
        for (std::uint32_t k = 0; k < record.inner_bytes(); k += chunk)
            ranges.emplace_back(swizzled(start + row * record.pitch() + k, record.swizzle_bytes) - start, chunk);
    return ranges;
}

/// The blocks of a multicast, all with the same place in shared memory.
void spread(Transfer& t) {
    if (t.form.blocks == 0) return;
    const std::uint32_t wanted = t.w.row<std::uint32_t>(t.form.blocks)[t.lane] & 0xffff;
    Cluster& cluster = *t.w.block->cluster;
    const std::uint32_t from = t.targets.front().second;
    if (wanted == 0 || wanted >> cluster.blocks.size() != 0)
        fail(t.w, t.op, t.lane, DeviceFault::Kind::invalid_access,
             fmt::format("a multicast to blocks {:#x} of a cluster of {}", wanted, cluster.blocks.size()));
    t.targets.clear();
    for (std::uint32_t rank = 0; rank < cluster.blocks.size(); ++rank) {
        if (!(wanted >> rank & 1)) continue;
        Block& block = *cluster.blocks[rank];
        if (!block.started || block.live_threads == 0)
            fail(t.w, t.op, t.lane, block.started ? DeviceFault::Kind::invalid_access : DeviceFault::Kind::race,
                 fmt::format("a multicast reaches block {} of its cluster, which {}", rank,
                             block.started ? "has exited" : "need not have started without a cluster barrier,"));
        t.targets.emplace_back(&block, from);
    }
}

/// What lands in shared memory is pending until somebody waits for its mbarrier.
void depart(Transfer& t) {
    const bool wide = t.form.barrier_wide != 0;
    const auto [home, barrier] = shared_at(t, t.form.barrier, t.form.barrier_offset, wide, 8, 8, Access::atomic);
    for (const auto& [block, start] : t.targets) {
        if (t.form.blocks == 0 && block != home)
            fail(t.w, t.op, t.lane, DeviceFault::Kind::barrier_misuse,
                 "a bulk copy into one block reports to an mbarrier of another");
        phase_barrier_at(t.w, t.op, t.lane, *block, barrier);
        BulkFlight flight{.barrier = barrier,
                          .bytes = t.bytes,
                          .ranges = t.ranges,
                          .foreign = block != t.w.block,
                          .warp = t.w.index,
                          .time = 0,
                          .op = &t.op};
        for (auto& [from, bytes] : flight.ranges) {
            from += start;
            const std::uint64_t at = std::uint64_t{block->rank} * block->cluster->step + from;
            examine(t, Space::cluster, at, bytes, Access::store);
            if (t.w.races && block == t.w.block) {
                std::uint32_t all[lanes]{};
                all[t.lane] = from;
                t.w.races->write(t.w, t.op, 1u << t.lane, all, bytes);
            }
            if (t.w.races && block->shared_states)
                std::memset(block->shared_states + from, static_cast<int>(ByteState::pending), bytes);
        }
        if (t.w.races) flight.time = t.w.races->stamp();
        if (t.w.trace) t.w.trace->lands(*block, barrier, t.bytes);
        block->flights.push_back(std::move(flight));
    }
}

/// What leaves shared memory must not be overwritten until it was read.
void hold_source(Transfer& t) {
    const std::uint32_t start = t.targets.front().second;
    BulkRead read{.lane = t.lane, .group = t.w.bulk_groups[t.lane], .op = &t.op, .ranges = t.ranges};
    for (auto& [from, bytes] : read.ranges) {
        from += start;
        examine(t, Space::shared, from, bytes, Access::load);
        if (!t.w.races) continue;
        t.w.races->read_async(t.w, t.op, t.lane, from, bytes);
        if (t.w.block->shared_states)
            std::memset(t.w.block->shared_states + from, static_cast<int>(ByteState::reading), bytes);
    }
    if (t.w.races) t.w.bulk_reads.push_back(std::move(read));
}

void plain_copy(Transfer& t) {
    const std::uint32_t bytes = t.w.row<std::uint32_t>(t.form.bytes)[t.lane];
    if (bytes == 0) return;
    if (bytes % chunk != 0)
        fail(t.w, t.op, t.lane, DeviceFault::Kind::invalid_access,
             fmt::format("a bulk copy of {} bytes, no multiple of 16,", bytes));
    t.bytes = bytes;
    t.ranges = {{0, bytes}};
    const bool out = t.form.way == Way::out;
    t.targets = {shared_at(t, t.form.shared, t.form.shared_offset, t.form.shared_wide != 0, chunk, bytes,
                           out ? Access::load : Access::store)};
    std::byte* const shared = t.targets.front().first->shared + t.targets.front().second;
    if (out) {
        const std::uint64_t at = global_at(t, bytes, Access::store);
        hold_source(t);
        return put_global(t, at, shared, bytes, static_cast<PtxType>(t.form.type));
    }
    const std::byte* from = nullptr;
    if (t.form.way == Way::in) {
        const std::uint64_t at = global_at(t, bytes, Access::load);
        examine(t, Space::global, at, bytes, Access::load);
        const SpaceView& view = t.w.views[static_cast<int>(Space::global)];
        from = view.base + at;
        if (t.w.trace) t.w.trace->bulk(view.start + at, bytes, Access::load);
    } else {
        const auto [block, at] =
            shared_at(t, t.form.other, t.form.other_offset, t.form.other_wide != 0, chunk, bytes, Access::load);
        examine(t, Space::cluster, std::uint64_t{block->rank} * block->cluster->step + at, bytes, Access::load);
        if (t.w.races && block == t.w.block) t.w.races->read_async(t.w, t.op, t.lane, at, bytes);
        from = block->shared + at;
    }
    spread(t);
    depart(t);
    for (const auto& [block, start] : t.targets) std::memmove(block->shared + start, from, bytes);
}

void tensor_copy(Transfer& t) {
    const TensorRecord record = record_at(t);
    const std::uint32_t taken = record.rows() * record.pitch();
    t.bytes = record.rows() * record.inner_bytes();
    const bool out = t.form.way == Way::out;
    constexpr std::uint32_t align = 128;
    t.targets = {shared_at(t, t.form.shared, t.form.shared_offset, t.form.shared_wide != 0, align, taken,
                           out ? Access::load : Access::store)};
    t.ranges = ranges_of(record, t.targets.front().second);
    if (out) {
        hold_source(t);
        return store_tensor(t, record);
    }
    spread(t);
    depart(t);
    load_tensor(t, record);
}

}  // namespace

void bulk_copy(Warp& w, const Op& op, std::uint32_t m) {
    const BulkForm form = bulk_form(w, op);
    for (std::uint32_t left = m; left; left &= left - 1) {
        Transfer t{.w = w, .op = op, .form = form, .lane = __builtin_ctz(left), .targets = {}, .ranges = {}};
        if (form.dimensions > 0)
            tensor_copy(t);
        else
            plain_copy(t);
        if (!w.counted) continue;
        Counters& counters = *w.block->launch->counters;
        if (form.way == Way::in) {
            counters.async_bytes += t.bytes;
            ++counters.global_load_requests;
            counters.global_load_sectors += (t.bytes + 31) / 32;
            counters.global_load_bytes += t.bytes;
        } else if (form.way == Way::out) {
            ++counters.global_store_requests;
            counters.global_store_sectors += (t.bytes + 31) / 32;
            counters.global_store_bytes += t.bytes;
        }
    }
}

void bulk_commit(Warp& w, const Op&, std::uint32_t m) {
    for (int i = 0; i < lanes; ++i) w.bulk_groups[i] += m >> i & 1;
}

void bulk_wait(Warp& w, const Op& op, std::uint32_t m) {
    std::erase_if(w.bulk_reads, [&](const BulkRead& read) {
        if (!(m >> read.lane & 1) ||
            std::uint64_t{read.group} + static_cast<std::uint64_t>(op.imm) >= w.bulk_groups[read.lane])
            return false;
        for (const auto& [from, bytes] : read.ranges) {
            if (w.races) w.races->read_async(w, *read.op, read.lane, from, bytes);
            if (w.block->shared_states)
                std::memset(w.block->shared_states + from, static_cast<int>(ByteState::initialised), bytes);
        }
        return true;
    });
}

void proxy_fence(Warp& w, const Op&, std::uint32_t) {
    if (w.races) w.races->fence(w.index);
}

}  // namespace autotune::emulator

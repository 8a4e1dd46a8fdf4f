#include "device/emulator/wgmma.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "device/emulator/accesses.h"
#include "device/emulator/cluster.h"
#include "device/emulator/control.h"
#include "device/emulator/fault.h"
#include "device/emulator/numbers.h"
#include "device/emulator/rows.h"
#include "device/emulator/tensor_record.h"

namespace autotune::emulator {
namespace {

constexpr int group_rows = 64, warp_rows = 16, group_warps = 4, piece = 16;  // a piece: bytes that stay together

WgmmaForm wgmma_form(const Warp& w, const Op& op) {
    WgmmaForm form;
    std::memcpy(static_cast<void*>(&form), w.extra + op.extra, sizeof form);
    return form;
}
const std::int32_t* wgmma_rows(const Warp& w, const Op& op) { return w.extra + op.extra + wgmma_numbers; }

/// Columns inside of eight stand in the order 0, 2, 4, 6, 1, 3, 5, 7: as registers hold them.
int column_place(int n) { return n / 8 * 8 + n % 2 * 4 + n % 8 / 2; }

int wgmma_element_bytes(PtxType type) { return type == PtxType::tf32 ? 4 : bytes_of(type); }

float wgmma_element(const std::byte* from, PtxType type) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, from, static_cast<std::size_t>(wgmma_element_bytes(type)));
    switch (type) {
        case PtxType::f16:
            return float_of_half(static_cast<std::uint16_t>(bits));
        case PtxType::bf16:
            return float_of_bf16(static_cast<std::uint16_t>(bits));
        case PtxType::tf32:
            return float_of(bits & 0xffffe000u);
        case PtxType::s8:
            return static_cast<std::int8_t>(bits);
        case PtxType::u8:
            return static_cast<std::uint8_t>(bits);
        default:
            return float_of_fp8(static_cast<std::uint8_t>(bits), type == PtxType::e4m3);
    }
}

/// The descriptor of a matrix in shared memory.
struct MatrixPlace {
    std::uint32_t start, leading, stride, swizzle;

    /// Where a piece begins: `line` counts along m or n, `depth` along k in bytes; turned: `line` in bytes.
    std::uint32_t along_k(std::uint32_t line, std::uint32_t depth) const noexcept {
        const std::uint32_t at = start + line / 8 * stride +
                                 (swizzle ? line % 8 * swizzle + depth : line % 8 * piece + depth / piece * leading);
        return swizzled(at, swizzle);
    }
    std::uint32_t along_line(std::uint32_t line, std::uint32_t k) const noexcept {
        const std::uint32_t at =
            swizzle ? start + line / swizzle * leading + k / 8 * stride + k % 8 * swizzle + line % swizzle
                    : start + line / piece * stride + k / 8 * leading + k % 8 * piece;
        return swizzled(at, swizzle);
    }
};

MatrixPlace matrix_place(Warp& w, const Op& op, std::uint64_t descriptor) {
    constexpr std::uint32_t swizzles[] = {0, 128, 64, 32};
    const auto field = [&](int from) { return static_cast<std::uint32_t>(descriptor >> from & 0x3fff) << 4; };
    if (descriptor >> 49 & 7)
        fail(w, op, 0, DeviceFault::Kind::not_emulated, "not emulated: a matrix descriptor with a base offset");
    return {field(0), field(16), field(32), swizzles[descriptor >> 62]};
}

/// Calls f(piece's place, first line, first k) for all pieces of a matrix of `lines` x `k`.
template <class F>
void each_piece(const MatrixPlace& place, int lines, int k, int size, bool turned, F f) {
    const int many = piece / size;
    if (turned) {
        for (int j = 0; j < k; ++j)
            for (int i = 0; i < lines; i += many)
                f(place.along_line(static_cast<std::uint32_t>(i * size), static_cast<std::uint32_t>(j)), i, j);
    } else {
        for (int i = 0; i < lines; ++i)
            for (int j = 0; j < k; j += many)
                f(place.along_k(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(j * size)), i, j);
    }
}

/// Checks a piece, and notes that it is read.
void examine_piece(Warp& w, const Op& op, std::uint32_t at) {
    const SpaceView& view = w.views[static_cast<int>(Space::shared)];
    std::uint64_t all[lanes]{};
    all[0] = at;
    if (at >= view.size || piece > view.size - at) bad_access(w, op, 1, Space::shared, all, piece, Access::load);
    if (!w.checked) return;
    const auto right = static_cast<std::uint8_t>(ByteState::initialised),
               held = static_cast<std::uint8_t>(ByteState::reading);
    for (int i = 0; i < piece; ++i)
        if (view.states[at + static_cast<std::uint32_t>(i)] != right &&
            view.states[at + static_cast<std::uint32_t>(i)] != held)
            return check_states(w, op, 1, Space::shared, all, piece, Access::load);
}

/// A matrix as floats: to(line, k) is where an element goes.
template <class To>
void fetch(Warp& w, const Op& op, std::uint64_t descriptor, int lines, int k, PtxType type, bool turned, bool negate,
           WgmmaFlight& flight, To to) {
    const MatrixPlace place = matrix_place(w, op, descriptor);
    const int size = wgmma_element_bytes(type), many = piece / size;
    const std::byte* const shared = w.views[static_cast<int>(Space::shared)].base;
    each_piece(place, lines, k, size, turned, [&](std::uint32_t at, int line, int depth) {
        examine_piece(w, op, at);
        if (!flight.ranges.empty() && flight.ranges.back().first + flight.ranges.back().second == at)
            flight.ranges.back().second += piece;
        else
            flight.ranges.emplace_back(at, piece);
        for (int e = 0; e < many; ++e) {
            const float x = wgmma_element(shared + at + e * size, type);
            *(turned ? to(line + e, depth) : to(line, depth + e)) = negate ? -x : x;
        }
    });
}

/// The part of a that a warp holds in registers, laid out as for mma.m16n8k16 and its like.
void fetch_registers(Warp& w, const std::int32_t* rows, int first, int k, PtxType type, bool negate, float* a) {
    const int size = wgmma_element_bytes(type), per = 4 / size;
    for (int r = 0; r < 4; ++r)
        for (int i = 0; i < lanes; ++i)
            for (int e = 0; e < per; ++e) {
                const int row = first + i / 4 + 8 * (r % 2), depth = per * (i % 4) + 4 * per * (r / 2) + e;
                const float x = wgmma_element(w.row<std::byte>(rows[r]) + 4 * i + e * size, type);
                a[row * k + depth] = negate ? -x : x;
            }
}

/// Accumulators of a warp to and from rows of the product.
void move_sums(Warp& w, const WgmmaForm& form, const std::int32_t* rows, float* c, bool out) {
    const bool half = static_cast<PtxType>(form.sum) == PtxType::f16,
               integers = static_cast<PtxType>(form.sum) == PtxType::s32;
    for (int j = 0; j < form.n / 8; ++j)
        for (int h = 0; h < 2; ++h)
            for (int i = 0; i < lanes; ++i) {
                float* const pair = c + (i / 4 + 8 * h) * form.n + 8 * j + i % 4;  // even column; the odd one 4 behind
                if (half) {
                    std::uint32_t& word = w.row<std::uint32_t>(rows[2 * j + h])[i];
                    if (out) {
                        word = std::uint32_t{half_of_float(pair[4])} << 16 | half_of_float(pair[0]);
                    } else {
                        pair[0] = float_of_half(static_cast<std::uint16_t>(word));
                        pair[4] = float_of_half(static_cast<std::uint16_t>(word >> 16));
                    }
                    continue;
                }
                for (int e = 0; e < 2; ++e) {
                    const std::int32_t row = rows[4 * j + 2 * h + e];
                    if (integers)
                        std::memcpy(out ? static_cast<void*>(w.row<float>(row) + i) : pair + 4 * e,
                                    out ? static_cast<const void*>(pair + 4 * e) : w.row<float>(row) + i, 4);
                    else if (out)
                        w.row<float>(row)[i] = pair[4 * e];
                    else
                        pair[4 * e] = w.row<float>(row)[i];
                }
            }
}

/// Whole numbers in place of floats: sums wrap.
void multiply_whole(const float* a, const float* b, float* c, int m, int n, int k) {
    std::vector<std::uint32_t> sums(static_cast<std::size_t>(n));
    for (int i = 0; i < m; ++i) {
        std::memcpy(sums.data(), c + i * n, sums.size() * 4);
        for (int p = 0; p < k; ++p)
            for (int j = 0; j < n; ++j)
                sums[static_cast<std::size_t>(j)] += static_cast<std::uint32_t>(
                    static_cast<std::int32_t>(a[i * k + p]) * static_cast<std::int32_t>(b[p * n + j]));
        std::memcpy(c + i * n, sums.data(), sums.size() * 4);
    }
}

void rebuild_watch(Block& block, const Warpgroup& group, Warp& w) {
    const std::size_t slot = w.index % group_warps;
    std::fill(w.watched.begin(), w.watched.end(), std::uint8_t{0});
    bool any = false;
    for (const WgmmaFlight& flight : group.flights) {
        if (!(flight.waiting >> slot & 1)) continue;
        const WgmmaForm form = wgmma_form(w, *flight.op);
        const std::int32_t* const rows = wgmma_rows(w, *flight.op);
        w.watched.resize(block.launch->program.register_bytes / 64 + 1);
        for (int i = 0; i < form.sums; ++i) w.watched[static_cast<std::size_t>(rows[i]) / 64] = 1;
        any = true;
    }
    w.watching = any;
}

/// Holds what a product reads, and watches what it writes.
void hold(Warp& w, Warpgroup& group, WgmmaFlight flight) {
    Block& block = *w.block;
    if (!block.launch->checks.races) return;
    for (const auto& [from, bytes] : flight.ranges) {
        block.races.read_async(w, *flight.op, 0, from, bytes);
        if (block.shared_states) std::memset(block.shared_states + from, static_cast<int>(ByteState::reading), bytes);
    }
    flight.read.emplace_back(w.index, block.races.stamp());
    for (std::size_t i = 0; i < group_warps; ++i) flight.batch[i] = group.committed[i];
    group.flights.push_back(std::move(flight));
    for (std::uint32_t i = 0; i < group_warps; ++i)
        rebuild_watch(block, group, block.warps[w.index / group_warps * group_warps + i]);
}

void multiply_now(Warp& w, const Op& op, Warpgroup& group) {
    const WgmmaForm form = wgmma_form(w, op);
    const std::int32_t* const rows = wgmma_rows(w, op);
    const auto type = static_cast<PtxType>(form.type);
    const int k = 32 / wgmma_element_bytes(type), n = form.n;
    std::vector<float> a(static_cast<std::size_t>(group_rows * k)), b(static_cast<std::size_t>(k * n)),
        c(static_cast<std::size_t>(group_rows * n));
    WgmmaFlight flight{.op = &op, .ranges = {}, .read = {}};
    for (int i = 1; i < group_warps; ++i)
        if (group.b[i] != group.b[0] || group.a[i] != group.a[0])
            fail(w, op, 0, DeviceFault::Kind::barrier_misuse, "the warps of a warpgroup give different descriptors");
    if (form.a)
        fetch(w, op, group.a[0], group_rows, k, type, form.turned_a != 0, form.negate_a != 0, flight,
              [&](int line, int depth) { return &a[static_cast<std::size_t>(line * k + depth)]; });
    fetch(w, op, group.b[0], n, k, type, form.turned_b != 0, form.negate_b != 0, flight,
          [&](int line, int depth) { return &b[static_cast<std::size_t>(depth * n + column_place(line))]; });
    const std::uint32_t first = w.index / group_warps * group_warps;
    for (std::uint32_t i = 0; i < group_warps; ++i) {
        Warp& one = w.block->warps[first + i];
        const int top = static_cast<int>(i) * warp_rows;
        if (!form.a) fetch_registers(one, rows + form.sums, top, k, type, form.negate_a != 0, a.data());
        const std::uint32_t keep = one.predicate(form.keep) ^ static_cast<std::uint32_t>(form.keep_flip);
        if (keep & 1) move_sums(one, form, rows, c.data() + top * n, false);
    }
    if (static_cast<PtxType>(form.sum) == PtxType::s32)
        multiply_whole(a.data(), b.data(), c.data(), group_rows, n, k);
    else
        row_build().multiply(a.data(), b.data(), c.data(), group_rows, n, k);
    for (std::uint32_t i = 0; i < group_warps; ++i)
        move_sums(w.block->warps[first + i], form, rows, c.data() + static_cast<int>(i) * warp_rows * n, true);
    hold(w, group, std::move(flight));
}

Warpgroup& warpgroup_of(Warp& w, const Op& op) {
    Block& block = *w.block;
    const std::size_t number = w.index / group_warps;
    if ((number + 1) * group_warps > block.warps.size())
        fail(w, op, 0, DeviceFault::Kind::barrier_misuse, "a warpgroup has fewer than four warps");
    if (block.warpgroups.size() <= number) block.warpgroups.resize(number + 1);
    return block.warpgroups[number];
}

/// The loop that looks at registers has to run the warp from now on, or needs to no more.
void change_loop(Warp& w) {
    w.turned = true;
    w.stop = true;
}

}  // namespace

void wgmma_multiply(Warp& w, const Op& op, std::uint32_t m) {
    if (m == 0) return go_on(w, w.pc + 1);
    if (m != all_lanes) incomplete_warp(w, op, m);
    Warpgroup& group = warpgroup_of(w, op);
    if (group.arrived != 0 && group.op != &op)
        fail(w, op, 0, DeviceFault::Kind::barrier_misuse, "the warps of a warpgroup run different wgmma instructions",
             ", here and", 0, group.op);
    const WgmmaForm form = wgmma_form(w, op);
    const std::uint32_t slot = w.index % group_warps;
    group.op = &op;
    group.arrived |= 1u << slot;
    group.a[slot] = form.a ? w.row<std::uint64_t>(form.a)[0] : 0;
    group.b[slot] = w.row<std::uint64_t>(form.b)[0];
    const std::uint32_t meeting = warpgroup_meeting + w.index / group_warps;
    if (group.arrived != 0xf) {
        w.others.push_back({.pc = w.pc + 1, .mask = m, .wait = Fragment::Wait::barrier, .at = &op, .barrier = meeting});
        return next_fragment(w);
    }
    group.arrived = 0;
    multiply_now(w, op, group);
    go_on(w, w.pc + 1);
    for (std::uint32_t i = 0; i < group_warps; ++i)
        if (Warp& other = w.block->warps[w.index / group_warps * group_warps + i]; &other != &w)
            release(other, meeting);
    if (w.watching) change_loop(w);
}

void wgmma_commit(Warp& w, const Op& op, std::uint32_t m) {
    if (m != all_lanes) incomplete_warp(w, op, m);
    ++warpgroup_of(w, op).committed[w.index % group_warps];
}

void wgmma_wait(Warp& w, const Op& op, std::uint32_t m) {
    if (m == 0) return go_on(w, w.pc + 1);
    if (m != all_lanes) incomplete_warp(w, op, m);
    Warpgroup& group = warpgroup_of(w, op);
    const std::uint32_t slot = w.index % group_warps;
    Block& block = *w.block;
    bool freed = false;
    for (WgmmaFlight& flight : group.flights) {
        if (!(flight.waiting >> slot & 1) ||
            std::uint64_t{flight.batch[slot]} + static_cast<std::uint64_t>(op.imm) >= group.committed[slot])
            continue;
        // The operands are read until here; by whichever warp is the first to know.
        if (flight.waiting == 0xf) {
            for (const auto& [from, bytes] : flight.ranges) {
                block.races.read_async(w, *flight.op, 0, from, bytes);
                if (block.shared_states)
                    std::memset(block.shared_states + from, static_cast<int>(ByteState::initialised), bytes);
            }
            flight.read.emplace_back(w.index, block.races.stamp());
            freed = true;
        }
        for (const auto& [by, time] : flight.read)
            if (by != w.index) block.races.learn(w.index, by, time);
        flight.waiting &= ~(1u << slot);
    }
    std::erase_if(group.flights, [](const WgmmaFlight& flight) { return flight.waiting == 0; });
    if (freed && block.shared_states)  // what others still read
        for (const WgmmaFlight& flight : group.flights)
            if (flight.waiting == 0xf)
                for (const auto& [from, bytes] : flight.ranges)
                    std::memset(block.shared_states + from, static_cast<int>(ByteState::reading), bytes);
    const bool watched = w.watching;
    rebuild_watch(block, group, w);
    go_on(w, w.pc + 1);
    if (watched && !w.watching) change_loop(w);
}

void watch_registers(Warp& w, const Op& op, std::uint32_t m) {
    const std::string_view name = w.program->names[op.instruction];
    // A copy reads what is there already, and the compiler makes them as it likes.
    if (m == 0 || name.starts_with("wgmma") || name.starts_with("mov")) return;
    const auto& [first, count] = w.program->operand_rows[op.instruction];
    for (std::uint32_t i = first; i < first + count; ++i) {
        const auto at = static_cast<std::size_t>(w.program->operand_list[i]) / 64;
        if (at < w.watched.size() && w.watched[at])
            fail(w, op, __builtin_ctz(m), DeviceFault::Kind::race,
                 fmt::format("{} touches an accumulator of a wgmma that was not waited for,", name));
    }
}

}  // namespace autotune::emulator

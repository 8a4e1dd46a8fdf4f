#include <algorithm>
#include <bit>
#include <string>

#include "device/emulator/block.h"
#include "device/emulator/control.h"
#include "device/emulator/fault.h"

namespace autotune::emulator {
namespace {

/// The mask that a lane names; all lanes of one op have to name the same, and themselves.
std::uint32_t named_lanes(Warp& w, const Op& op, std::uint32_t m, std::int32_t row) {
    const std::uint32_t* const masks = w.row<std::uint32_t>(row);
    const int first = __builtin_ctz(m);
    const std::uint32_t named = masks[first];
    if (!w.block->launch->checks.sync) return named | m;
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        if (!(masks[i] >> i & 1))
            fail(w, op, i, DeviceFault::Kind::barrier_misuse, "a lane is not in the mask of its own collective");
    }
    return named;
}

/// Lanes that name other masks than the first one form collectives of their own.
std::uint32_t same_mask(Warp& w, std::uint32_t m, std::int32_t row, std::uint32_t named) {
    const std::uint32_t* const masks = w.row<std::uint32_t>(row);
    std::uint32_t same = 0;
    for (int i = 0; i < lanes; ++i)
        if (m >> i & 1 && masks[i] == named) same |= 1u << i;
    return same;
}

/// The lanes that take part now, or 0 where the fragment was parked. Others of it wait at the op.
std::uint32_t joined(Warp& w, const Op& op, std::uint32_t m, std::int32_t row) {
    const std::uint32_t named = named_lanes(w, op, m, row);
    if (named == all_lanes && m == w.live) return m;
    const std::uint32_t same = w.block->launch->checks.sync ? same_mask(w, m, row, named) : m;
    if (same != m && (named & w.live & ~same) == 0) {
        split_off(w, m & ~same, w.pc);
        return same;
    }
    return gather(w, op, same, named) ? same : 0;
}

/// Behind the op, for the lanes that took part and those whose guard was false.
void done(Warp& w, std::uint32_t m) {
    const std::uint32_t pc = w.pc + 1;
    (void)m;
    w.forced = false;
    ++w.sync_count;
    if (!w.others.empty())
        for (Fragment& other : w.others) other.tried = false;
    go_on(w, pc);
}

bool begins(Warp& w, std::uint32_t m) {
    if (m == 0) {
        go_on(w, w.pc + 1);
        return false;
    }
    if (w.mask & ~m) split_off(w, w.mask & ~m, w.pc + 1);
    return true;
}

[[noreturn]] void absent_source(Warp& w, const Op& op, int lane, int source) {
    fail(w, op, lane, DeviceFault::Kind::barrier_misuse,
         "a shuffle reads from lane " + std::to_string(source) + ", which does not take part");
}

}  // namespace

bool gather(Warp& w, const Op& op, std::uint32_t m, std::uint32_t named) {
    if ((named & w.live & ~m) == 0 || w.forced) return true;
    park(w, Fragment::Wait::sync, op, w.pc);
    return false;
}

void incomplete_warp(Warp& w, const Op& op, std::uint32_t m) {
    fail(w, op, m ? __builtin_ctz(m) : 0, DeviceFault::Kind::barrier_misuse,
         "an instruction that takes a whole warp is run by " + std::to_string(__builtin_popcount(m)) + " lanes");
}

void warp_barrier(Warp& w, const Op& op, std::uint32_t m) {
    if (!begins(w, m)) return;
    const std::uint32_t named = named_lanes(w, op, m, op.c);
    if ((named & w.live & ~m) == 0 || w.forced) return done(w, m);
    // Lanes may meet from several places.
    std::uint32_t waiting = m;
    for (const Fragment& other : w.others)
        if (other.wait == Fragment::Wait::sync && other.at->run == warp_barrier) waiting |= other.mask;
    if (named & w.live & ~waiting) {
        park(w, Fragment::Wait::sync, op, w.pc);
        return;
    }
    for (Fragment& other : w.others)
        if (other.wait == Fragment::Wait::sync && other.at->run == warp_barrier && (other.mask & named)) {
            other.wait = Fragment::Wait::none;
            ++other.pc;
        }
    done(w, m);
}

void shuffle(Warp& w, const Op& op, std::uint32_t m) {
    if (!begins(w, m)) return;
    m = joined(w, op, m, w.extra[op.extra + 1]);
    if (m == 0) return;
    const std::uint32_t* const b = w.row<std::uint32_t>(op.b);
    const std::uint32_t* const clamps = w.row<std::uint32_t>(w.extra[op.extra]);
    std::uint32_t a[lanes];
    std::copy_n(w.row<std::uint32_t>(op.a), lanes, a);
    std::uint32_t* const d = op.d ? w.row<std::uint32_t>(op.d) : nullptr;
    std::uint32_t inside = 0;
    const bool checked = w.block->launch->checks.sync;
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        const int by = static_cast<int>(b[i] & 31), clamp = static_cast<int>(clamps[i] & 31),
                  segment = static_cast<int>(clamps[i] >> 8 & 31);
        const int lowest = i & segment, highest = lowest | (clamp & ~segment);
        int from = i;
        bool valid = false;
        switch (op.small) {
            case 0:
                from = i - by, valid = from >= highest;
                break;  // up: the clamp is the lowest lane
            case 1:
                from = i + by, valid = from <= highest;
                break;
            case 2:
                from = i ^ by, valid = from <= highest;
                break;
            default:
                from = lowest | (by & ~segment), valid = from <= highest;
                break;
        }
        if (!valid) from = i;
        if (checked && !(m >> from & 1)) absent_source(w, op, i, from);
        if (d) d[i] = a[from];
        inside |= static_cast<std::uint32_t>(valid) << i;
    }
    if (op.imm) {
        std::uint32_t& p = w.predicate(static_cast<std::int32_t>(op.imm));
        p = (p & ~m) | (inside & m);
    }
    done(w, m);
}

void vote(Warp& w, const Op& op, std::uint32_t m) {
    if (!begins(w, m)) return;
    m = joined(w, op, m, op.c);
    if (m == 0) return;
    const std::uint32_t p = (w.predicate(op.a) ^ (op.small & 4 ? all_lanes : 0)) & m;
    const int kind = op.small & 3;
    if (kind == 3) {
        for (std::uint32_t left = m; left; left &= left - 1) w.row<std::uint32_t>(op.d)[__builtin_ctz(left)] = p;
    } else {
        const bool yes = kind == 0 ? p == m : kind == 1 ? p != 0 : p == 0 || p == m;
        std::uint32_t& d = w.predicate(op.d);
        d = yes ? d | m : d & ~m;
    }
    done(w, m);
}

void match(Warp& w, const Op& op, std::uint32_t m) {
    if (!begins(w, m)) return;
    m = joined(w, op, m, op.c);
    if (m == 0) return;
    const bool wide = (op.small & 2) != 0;
    const auto value = [&](int i) {
        return wide ? w.row<std::uint64_t>(op.a)[i] : std::uint64_t{w.row<std::uint32_t>(op.a)[i]};
    };
    std::uint32_t found[lanes]{};
    for (int i = 0; i < lanes; ++i)
        for (int j = 0; j < lanes; ++j)
            if (m >> i & 1 && m >> j & 1 && value(i) == value(j)) found[i] |= 1u << j;
    const bool all = found[__builtin_ctz(m)] == m;
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        if (op.d) w.row<std::uint32_t>(op.d)[i] = op.small & 1 ? (all ? m : 0) : found[i];
    }
    if (op.imm) {
        std::uint32_t& p = w.predicate(static_cast<std::int32_t>(op.imm));
        p = all ? p | m : p & ~m;
    }
    done(w, m);
}

void redux(Warp& w, const Op& op, std::uint32_t m) {
    if (!begins(w, m)) return;
    m = joined(w, op, m, op.c);
    if (m == 0) return;
    const std::uint32_t* const a = w.row<std::uint32_t>(op.a);
    std::uint32_t made = a[__builtin_ctz(m)];
    for (std::uint32_t left = m & (m - 1); left; left &= left - 1) {
        const std::uint32_t x = a[__builtin_ctz(left)];
        const auto sx = static_cast<std::int32_t>(x), sm = static_cast<std::int32_t>(made);
        switch (op.small) {
            case 0:
            case 8:
                made += x;
                break;
            case 1:
                made = std::min(made, x);
                break;
            case 2:
                made = std::max(made, x);
                break;
            case 9:
                made = static_cast<std::uint32_t>(std::min(sm, sx));
                break;
            case 10:
                made = static_cast<std::uint32_t>(std::max(sm, sx));
                break;
            case 3:
                made &= x;
                break;
            case 4:
                made |= x;
                break;
            default:
                made ^= x;
                break;
        }
    }
    for (std::uint32_t left = m; left; left &= left - 1) w.row<std::uint32_t>(op.d)[__builtin_ctz(left)] = made;
    done(w, m);
}

void elect(Warp& w, const Op& op, std::uint32_t m) {
    if (!begins(w, m)) return;
    m = joined(w, op, m, op.c);
    if (m == 0) return;
    const int leader = __builtin_ctz(m);
    if (op.d)
        for (std::uint32_t left = m; left; left &= left - 1)
            w.row<std::uint32_t>(op.d)[__builtin_ctz(left)] = static_cast<std::uint32_t>(leader);
    if (op.imm) {
        std::uint32_t& p = w.predicate(static_cast<std::int32_t>(op.imm));
        p = (p & ~m) | 1u << leader;
    }
    done(w, m);
}

void active_mask(Warp& w, const Op& op, std::uint32_t m) {
    for (std::uint32_t left = m; left; left &= left - 1) w.row<std::uint32_t>(op.d)[__builtin_ctz(left)] = m;
}

}  // namespace autotune::emulator

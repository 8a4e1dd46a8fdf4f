#include "device/emulator/control.h"

#include <algorithm>
#include <cstring>

#include "device/emulator/cluster.h"
#include "device/emulator/fault.h"
#include "device/emulator/print.h"

namespace autotune::emulator {
namespace {

/// Branches in a row after which the others of the warp get a turn, and the length of that turn.
constexpr std::uint32_t branches_a_turn = 4000, branches_ahead = 2000;
constexpr std::uint32_t deepest_call = 64;

void find_meeting(Warp& w) {
    w.meet = no_pc;
    for (const Fragment& other : w.others)
        if (!waits_outside(other) && other.pc > w.pc) w.meet = std::min(w.meet, other.pc);
}

void merge_here(Warp& w) {
    std::erase_if(w.others, [&](const Fragment& other) {
        const bool here = other.pc == w.pc && !waits_outside(other);
        if (here) w.mask |= other.mask;
        return here;
    });
}

/// The runnable fragment at the lowest place, or others.end().
auto lowest_runnable(Warp& w) {
    auto best = w.others.end();
    for (auto i = w.others.begin(); i != w.others.end(); ++i)
        if (i->wait == Fragment::Wait::none && (best == w.others.end() || i->pc < best->pc)) best = i;
    return best;
}

void settle(Warp& w) {
    merge_here(w);
    if (w.ahead == 0) {
        const auto lowest = lowest_runnable(w);
        if (lowest != w.others.end() && lowest->pc < w.pc) {
            std::swap(lowest->pc, w.pc);
            std::swap(lowest->mask, w.mask);
            w.turn = 0;
            merge_here(w);
        }
    }
    find_meeting(w);
}

void take(Warp& w, std::vector<Fragment>::iterator which) {
    w.pc = which->pc;
    w.mask = which->mask;
    w.others.erase(which);
    w.turn = 0;
    w.ahead = 0;
    settle(w);
}

/// Nothing of the warp can run, and nothing waits for other warps.
[[noreturn]] void stuck(Warp& w) {
    const Fragment* first = &w.others.front();
    for (const Fragment& other : w.others)
        if (other.pc < first->pc) first = &other;
    const Fragment* second = nullptr;
    for (const Fragment& other : w.others)
        if (&other != first) second = &other;
    const int lane = __builtin_ctz(first->mask);
    const bool barrier = first->wait == Fragment::Wait::aligned;
    const char* const what = barrier ? "only a part of a warp arrives at a barrier"
                                     : "lanes that the mask names do not arrive at a collective";
    fail(w, *first->at, lane, DeviceFault::Kind::barrier_misuse, what,
         second ? ", while thread " +
                      std::to_string(w.index * lanes + static_cast<unsigned>(__builtin_ctz(second->mask))) + " waits"
                : std::string{},
         0, second ? second->at : nullptr);
}

/// The next fragment that can run, one that waited for lanes and may find them there now, or a stop.
void choose(Warp& w) {
    w.mask = 0;
    w.meet = no_pc;
    if (const auto lowest = lowest_runnable(w); lowest != w.others.end()) return take(w, lowest);
    auto untried = w.others.end();
    bool at_barrier = false;
    for (auto i = w.others.begin(); i != w.others.end(); ++i) {
        at_barrier |= waits_outside(*i);
        if (!waits_outside(*i) && !i->tried && (untried == w.others.end() || i->pc < untried->pc)) untried = i;
    }
    if (untried != w.others.end()) {
        untried->tried = true;
        w.pc = untried->pc;
        w.mask = untried->mask;
        w.others.erase(untried);
        return find_meeting(w);
    }
    if (!at_barrier && !w.others.empty()) {
        if (w.block->launch->checks.sync) stuck(w);
        w.forced = true;
        auto first = w.others.begin();
        for (auto i = first; i != w.others.end(); ++i)
            if (i->pc < first->pc) first = i;
        return take(w, first);
    }
    w.stop = true;
}

/// A loop that goes on for long while others of the warp wait gives way.
void count_branch(Warp& w) {
    if (w.ahead > 0) {
        if (--w.ahead == 0) settle(w);
        return;
    }
    if (++w.turn < branches_a_turn) return;
    w.turn = 0;
    auto next = w.others.end();
    for (auto i = w.others.begin(); i != w.others.end(); ++i)
        if (i->wait == Fragment::Wait::none && (next == w.others.end() || i->pc < next->pc)) next = i;
    if (next == w.others.end()) return;
    std::swap(next->pc, w.pc);
    std::swap(next->mask, w.mask);
    w.ahead = branches_ahead;
    settle(w);
}

}  // namespace

void meet_others(Warp& w) { settle(w); }

void go_on(Warp& w, std::uint32_t pc) {
    w.pc = pc;
    if (w.others.empty()) return;
    settle(w);
}

void park(Warp& w, Fragment::Wait wait, const Op& op, std::uint32_t pc) {
    const bool tried =
        wait != Fragment::Wait::barrier &&
        std::none_of(w.others.begin(), w.others.end(), [](const auto& f) { return f.wait == Fragment::Wait::none; });
    w.others.push_back({.pc = pc, .mask = w.mask, .wait = wait, .at = &op, .tried = tried});
    choose(w);
}

void next_fragment(Warp& w) { choose(w); }

void split_off(Warp& w, std::uint32_t going, std::uint32_t pc) {
    w.others.push_back({.pc = pc, .mask = going});
    w.mask &= ~going;
}

void release(Warp& w, std::uint32_t barrier) { wake(w, Fragment::Wait::barrier, barrier); }

void wake(Warp& w, Fragment::Wait wait, std::uint32_t barrier) {
    bool any = false;
    for (Fragment& other : w.others) {
        if (other.wait != wait || (other.barrier != barrier && other.barrier != no_pc && barrier != no_pc)) continue;
        other.wait = Fragment::Wait::none;
        any = true;
    }
    if (!any) return;
    if (w.mask != 0) return find_meeting(w);
    w.stop = false;
    choose(w);
}

void yield_lanes(Warp& w) {
    if (!w.others.empty()) w.turn += branches_a_turn / 8;
}

void branch(Warp& w, const Op& op, std::uint32_t m) {
    const auto target = static_cast<std::uint32_t>(op.imm);
    if (m == w.mask) {
        go_on(w, target);
    } else if (m == 0) {
        go_on(w, w.pc + 1);
    } else {
        ++w.divergent;
        const std::uint32_t next = w.pc + 1;
        split_off(w, m, target);
        go_on(w, next);
    }
    if (!w.others.empty()) count_branch(w);
}

void indexed_branch(Warp& w, const Op& op, std::uint32_t m) {
    if (m == 0) return go_on(w, w.pc + 1);
    const std::uint32_t pc = w.pc;
    if (m != w.mask) split_off(w, w.mask & ~m, pc + 1);
    const std::uint32_t* const index = w.row<std::uint32_t>(op.a);
    const std::uint32_t first = index[__builtin_ctz(m)];
    if (first >= op.small)
        fail(w, op, __builtin_ctz(m), DeviceFault::Kind::invalid_access, "an indexed branch goes beyond its list");
    std::uint32_t same = 0;
    for (int i = 0; i < lanes; ++i)
        if (m >> i & 1 && index[i] == first) same |= 1u << i;
    if (same != m) split_off(w, m & ~same, pc);
    go_on(w, static_cast<std::uint32_t>(w.extra[op.extra + first]));
    if (!w.others.empty()) count_branch(w);
}

namespace {

std::byte* local_of(Warp& w, int lane) {
    return w.local.get() + static_cast<std::size_t>(lane) * w.program->local_bytes;
}

void pass(Warp& w, std::uint32_t m, const CallSite::Move& move, const Formal& formal) {
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        std::byte* const memory = local_of(w, i);
        if (move.bytes < 0) {
            const std::size_t size = std::min<std::size_t>(static_cast<std::size_t>(-move.bytes), formal.bytes);
            std::memcpy(
                memory + formal.offset,
                w.row<std::byte>(move.row) + static_cast<std::size_t>(-move.bytes) * static_cast<std::size_t>(i), size);
        } else {
            std::memmove(memory + formal.offset, memory + move.from,
                         std::min<std::size_t>(static_cast<std::size_t>(move.bytes), formal.bytes));
        }
    }
}

void enter(Warp& w, const Op& op, std::uint32_t m, std::uint32_t number, const CallSite& site) {
    const DecodedFunction& callee = w.program->functions[number];
    const int lane = __builtin_ctz(m);
    if (site.arguments.size() != callee.parameters.size() || callee.entry)
        fail(w, op, lane, DeviceFault::Kind::invalid_access, "a call does not fit the function that it reaches");
    if (w.active.size() < w.program->functions.size()) w.active.resize(w.program->functions.size());
    if (w.active[number] & m) fail(w, op, lane, DeviceFault::Kind::not_emulated, "not emulated: a recursive call");
    for (std::size_t i = 0; i < site.arguments.size(); ++i) pass(w, m, site.arguments[i], callee.parameters[i]);
    w.active[number] |= m;
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        if (w.depth[i] >= deepest_call)
            fail(w, op, i, DeviceFault::Kind::not_emulated, "not emulated: calls nested so deeply");
        const std::size_t at = std::size_t{w.depth[i]++} * lanes + static_cast<std::size_t>(i);
        if (w.returns.size() <= at) w.returns.resize(at + lanes);
        w.returns[at] = w.pc + 1;
    }
    go_on(w, callee.first);
}

}  // namespace

void call(Warp& w, const Op& op, std::uint32_t m) {
    if (m == 0) return go_on(w, w.pc + 1);
    const std::uint32_t pc = w.pc;
    if (m != w.mask) split_off(w, w.mask & ~m, pc + 1);
    const CallSite& site = w.program->calls[static_cast<std::size_t>(op.imm)];
    switch (site.callee) {
        case call_vprintf:
            print(w, op, m, site);
            return go_on(w, pc + 1);
        case call_assertfail:
            assertion_failed(w, op, m, site);
        case call_unknown:
            not_emulated(w, op, m);
        case -1:
            break;
        default:
            return enter(w, op, m, static_cast<std::uint32_t>(site.callee), site);
    }
    const std::uint64_t* const target = w.row<std::uint64_t>(op.a);
    const std::uint64_t first = target[__builtin_ctz(m)];
    std::uint32_t same = 0;
    for (int i = 0; i < lanes; ++i)
        if (m >> i & 1 && target[i] == first) same |= 1u << i;
    if (same != m) split_off(w, m & ~same, pc);
    const std::uint64_t number = (first - code_window) / 16;
    if (first < code_window || number >= w.program->functions.size() || first % 16 != 0)
        fail(w, op, __builtin_ctz(same), DeviceFault::Kind::invalid_access, "a call goes to what is no function", {},
             first);
    enter(w, op, same, static_cast<std::uint32_t>(number), site);
}

void collect(Warp& w, const Op& op, std::uint32_t m) {
    const CallSite& site = w.program->calls[static_cast<std::size_t>(op.imm)];
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        std::byte* const memory = local_of(w, i);
        if (site.callee < -1) continue;
        const DecodedFunction& callee = w.program->functions[w.returned_from[i]];
        for (std::size_t k = 0; k < site.results.size() && k < callee.results.size(); ++k) {
            const CallSite::Move& move = site.results[k];
            const Formal& formal = callee.results[k];
            if (move.bytes < 0) {
                const auto size = static_cast<std::size_t>(-move.bytes);
                std::memcpy(w.row<std::byte>(move.row) + size * static_cast<std::size_t>(i), memory + formal.offset,
                            std::min<std::size_t>(size, formal.bytes));
            } else {
                std::memmove(memory + move.from, memory + formal.offset,
                             std::min<std::size_t>(static_cast<std::size_t>(move.bytes), formal.bytes));
            }
        }
    }
}

void leave(Warp& w, const Op& op, std::uint32_t m) {
    std::uint32_t top = 0;
    for (int i = 0; i < lanes; ++i)
        if (m >> i & 1 && w.depth[i] == 0) top |= 1u << i;
    if (top == m) return leave_kernel(w, op, m);
    const std::uint32_t pc = w.pc;
    const auto number = static_cast<std::size_t>(op.imm);
    if (w.mask & ~m) split_off(w, w.mask & ~m, pc + 1);
    if (top) split_off(w, top, pc);
    std::uint32_t leaving = m & ~top;
    w.active[number] &= ~leaving;
    std::uint32_t next = no_pc;
    std::uint32_t first_lanes = 0;
    while (leaving) {
        const int lane = __builtin_ctz(leaving);
        std::uint32_t same = 0;
        const std::uint32_t to = w.returns[std::size_t{w.depth[lane] - 1} * lanes + static_cast<std::size_t>(lane)];
        for (std::uint32_t left = leaving; left; left &= left - 1) {
            const int i = __builtin_ctz(left);
            if (w.returns[std::size_t{w.depth[i] - 1} * lanes + static_cast<std::size_t>(i)] == to) same |= 1u << i;
        }
        for (std::uint32_t left = same; left; left &= left - 1) {
            const int i = __builtin_ctz(left);
            --w.depth[i];
            w.returned_from[i] = static_cast<std::uint32_t>(number);
        }
        leaving &= ~same;
        if (next == no_pc) {
            next = to;
            first_lanes = same;
        } else {
            w.others.push_back({.pc = to, .mask = same});
        }
    }
    w.mask = first_lanes;
    go_on(w, next);
}

void leave_kernel(Warp& w, const Op&, std::uint32_t m) {
    if (m == 0) return go_on(w, w.pc + 1);
    for (const BulkRead& read : w.bulk_reads)
        if (m >> read.lane & 1)
            fail(w, *read.op, read.lane, DeviceFault::Kind::race,
                 "a thread exits, and has not waited for a bulk copy out of its shared memory,");
    const std::uint32_t staying = w.mask & ~m, pc = w.pc;
    w.live &= ~m;
    w.block->live_threads -= static_cast<std::uint32_t>(__builtin_popcount(m));
    for (Fragment& other : w.others) other.tried = false;
    if (staying) {
        w.mask = staying;
        go_on(w, pc + 1);
    } else {
        choose(w);
    }
    leave_cluster(w, m);
    settle_barriers(*w.block);
}

void trap(Warp& w, const Op& op, std::uint32_t m) {
    if (m == 0) return go_on(w, w.pc + 1);
    fail(w, op, __builtin_ctz(m), DeviceFault::Kind::crashed, "the kernel stops itself with a trap");
}

void sleep(Warp& w, const Op& op, std::uint32_t m) {
    std::uint32_t longest = 0;
    for (std::uint32_t left = m; left; left &= left - 1)
        longest = std::max(longest, w.row<std::uint32_t>(op.a)[__builtin_ctz(left)]);
    yield_lanes(w);
    go_on(w, w.pc + 1);
    if (!w.others.empty()) count_branch(w);
    if (m == 0 || w.stop) return;
    w.slept += longest;
    w.asleep = w.stop = true;
}

}  // namespace autotune::emulator

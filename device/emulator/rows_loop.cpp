// Choosing handlers, and the loop that calls them.
#include "device/emulator/block_trace.h"
#include "device/emulator/control.h"
#include "device/emulator/rows_map.h"
#include "device/emulator/wgmma.h"

namespace autotune::emulator::AUTOTUNE_ROWS {
namespace {

Handler select(const Selector& s) {
    switch (s.operation) {
        case Operation::load:
        case Operation::store:
        case Operation::ldmatrix:
        case Operation::stmatrix:
            return select_memory(s);
        case Operation::mma:
            return select_mma(s);
        case Operation::setp:
        case Operation::set:
        case Operation::selp:
        case Operation::slct:
            return select_compare(s);
        case Operation::cvt:
        case Operation::cvt_pack:
            return select_convert(s);
        case Operation::mov:
        case Operation::mov_pred:
        case Operation::pack:
        case Operation::unpack:
        case Operation::pred_logic:
        case Operation::offset_window:
            return select_integer(s);
        default:
            break;
    }
    switch (s.type) {
        case PtxType::f32:
            return select_f32(s);
        case PtxType::f64:
            return select_f64(s);
        case PtxType::f16:
        case PtxType::f16x2:
        case PtxType::bf16:
        case PtxType::bf16x2:
            return select_half(s);
        default:
            return select_integer(s);
    }
}

template <bool counted, bool watched, bool traced>
Stop run_loop(Warp& w, std::uint64_t steps) {
    const Op* const ops = w.ops;
    std::uint32_t pc = w.pc;
    std::uint64_t left = steps;
    while (left > 0) {
        --left;
        const Op& op = ops[pc];
        const std::uint32_t m = w.mask & (w.predicate(op.guard) ^ op.guard_flip);
        if (watched) watch_registers(w, op, m);
        if (traced) w.trace->issue(w, op, m);
        if (counted && m) {
            ++w.tally[pc].warps;
            w.tally[pc].lanes += static_cast<std::uint64_t>(__builtin_popcount(m));
        }
        if (__builtin_expect(!op.control, 1)) {
            if (m) op.run(w, op, m);
            ++pc;
            if (__builtin_expect(pc == w.meet, 0)) {
                w.pc = pc;
                meet_others(w);
            }
        } else {
            w.pc = pc;
            op.run(w, op, m);
            pc = w.pc;
            if (w.stop) break;
        }
    }
    w.pc = pc;
    w.steps += steps - left;
    if (!w.stop) return Stop::turn_over;
    return w.live == 0 ? Stop::exited : Stop::blocked;
}

Stop run(Warp& w, std::uint64_t steps) {
    const std::uint64_t end = w.steps + steps;
    while (true) {
        const std::uint64_t left = end - w.steps;
        Stop stop;
        if (w.trace)
            stop = w.watching ? run_loop<true, true, true>(w, left) : run_loop<true, false, true>(w, left);
        else if (w.watching)
            stop = w.counted ? run_loop<true, true, false>(w, left) : run_loop<false, true, false>(w, left);
        else
            stop = w.counted ? run_loop<true, false, false>(w, left) : run_loop<false, false, false>(w, left);
        if (w.asleep) {
            w.asleep = w.stop = false;
            return Stop::turn_over;
        }
        if (!w.turned) return stop;
        w.turned = w.stop = false;
    }
}

}  // namespace
}  // namespace autotune::emulator::AUTOTUNE_ROWS

namespace autotune::emulator {

#define AUTOTUNE_ROWS_STRING_OF(x) #x
#define AUTOTUNE_ROWS_STRING(x) AUTOTUNE_ROWS_STRING_OF(x)
#define AUTOTUNE_ROWS_JOIN_OF(a, b) a##b
#define AUTOTUNE_ROWS_JOIN(a, b) AUTOTUNE_ROWS_JOIN_OF(a, b)
const RowBuild AUTOTUNE_ROWS_JOIN(AUTOTUNE_ROWS, _rows) = {AUTOTUNE_ROWS_STRING(AUTOTUNE_ROWS), AUTOTUNE_ROWS::select,
                                                           AUTOTUNE_ROWS::run, AUTOTUNE_ROWS::multiply_rows};

}  // namespace autotune::emulator

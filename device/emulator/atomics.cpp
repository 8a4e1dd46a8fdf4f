#include "device/emulator/atomics.h"

#include <algorithm>
#include <cstring>

#include "device/emulator/accesses.h"
#include "device/emulator/block.h"
#include "device/emulator/control.h"
#include "device/emulator/fault.h"
#include "device/emulator/numbers.h"

namespace autotune::emulator {
namespace {

template <class T>
T as(std::uint64_t bits) {
    T x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
template <class T>
std::uint64_t bits(T x) {
    std::uint64_t made = 0;
    std::memcpy(&made, &x, sizeof x);
    return made;
}

template <class T>
std::uint64_t ordered(AtomicOperation what, std::uint64_t old, std::uint64_t with) {
    const T a = as<T>(old), b = as<T>(with);
    switch (what) {
        case AtomicOperation::add:
            return bits(static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b)));
        case AtomicOperation::min:
            return bits(std::min(a, b));
        default:
            return bits(std::max(a, b));
    }
}

std::uint16_t half_updated(AtomicOperation what, std::uint16_t old, std::uint16_t with, bool brain) {
    const float a = brain ? float_of_bf16(old) : float_of_half(old),
                b = brain ? float_of_bf16(with) : float_of_half(with);
    const float made = what == AtomicOperation::add   ? a + b
                       : what == AtomicOperation::min ? lesser<false>(a, b)
                                                      : greater<false>(a, b);
    return brain ? bf16_of_float(made) : half_of_float(made);
}
std::uint64_t pair_updated(AtomicOperation what, std::uint64_t old, std::uint64_t with, bool brain) {
    const auto part = [&](int shift) {
        return std::uint64_t{half_updated(what, static_cast<std::uint16_t>(old >> shift),
                                          static_cast<std::uint16_t>(with >> shift), brain)}
               << shift;
    };
    return part(0) | part(16);
}

std::uint64_t updated(AtomicOperation what, PtxType type, std::uint64_t old, std::uint64_t with, std::uint64_t swap) {
    switch (what) {
        case AtomicOperation::and_:
            return old & with;
        case AtomicOperation::or_:
            return old | with;
        case AtomicOperation::xor_:
            return old ^ with;
        case AtomicOperation::exch:
            return with;
        case AtomicOperation::cas:
            return old == with ? swap : old;
        case AtomicOperation::inc:
            return old >= with ? 0 : old + 1;
        case AtomicOperation::dec:
            return old == 0 || old > with ? with : old - 1;
        default:
            break;
    }
    switch (type) {
        case PtxType::u32:
        case PtxType::b32:
            return ordered<std::uint32_t>(what, old, with);
        case PtxType::s32:
            return ordered<std::int32_t>(what, old, with);
        case PtxType::u64:
        case PtxType::b64:
            return ordered<std::uint64_t>(what, old, with);
        case PtxType::s64:
            return ordered<std::int64_t>(what, old, with);
        case PtxType::f32:
            return bits(what == AtomicOperation::add   ? as<float>(old) + as<float>(with)
                        : what == AtomicOperation::min ? lesser<false>(as<float>(old), as<float>(with))
                                                       : greater<false>(as<float>(old), as<float>(with)));
        case PtxType::f64:
            return bits(as<double>(old) + as<double>(with));
        case PtxType::f16:
            return half_updated(what, static_cast<std::uint16_t>(old), static_cast<std::uint16_t>(with), false);
        case PtxType::bf16:
            return half_updated(what, static_cast<std::uint16_t>(old), static_cast<std::uint16_t>(with), true);
        case PtxType::f16x2:
            return pair_updated(what, old, with, false);
        default:
            return pair_updated(what, old, with, true);
    }
}

}  // namespace

std::uint64_t combined(AtomicOperation what, PtxType type, std::uint64_t old, std::uint64_t with) {
    return updated(what, type, old, with, 0);
}

void atomic(Warp& w, const Op& op, std::uint32_t m) {
    if (m == 0) return go_on(w, w.pc + 1);
    const auto what = static_cast<AtomicOperation>(op.small & 0xff);
    const auto type = static_cast<PtxType>(op.small >> 8);
    const auto size = static_cast<std::uint32_t>(bytes_of(type));
    const int count = w.extra[op.extra];
    const std::uint32_t bytes = size * static_cast<std::uint32_t>(count);
    std::uint64_t at[lanes];
    const Space space = resolve(w, op, m, op.a, op.imm, op.space, op.wide_address, at, bytes, Access::atomic);
    const SpaceView& view = w.views[static_cast<int>(space)];
    if (w.checked && view.states) {
        check_states(w, op, m, space, at, bytes, Access::atomic);
        if (space == Space::shared && w.races) {
            std::uint32_t narrow[lanes];
            for (int i = 0; i < lanes; ++i) narrow[i] = static_cast<std::uint32_t>(at[i]);
            w.races->update(w, op, m, narrow, bytes);
        }
    }
    if (space == Space::global) w.block->in_touch = true;
    if (w.counted) count_access(w, m, space, at, bytes, Access::atomic);
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        for (int k = 0; k < count; ++k) {
            const std::int32_t d = count == 1 ? op.d : w.extra[op.extra + 1 + static_cast<std::uint32_t>(k)];
            const std::int32_t b = count == 1 ? op.b : w.extra[op.extra + 1 + static_cast<std::uint32_t>(count + k)];
            std::byte* const memory = view.base + at[i] + static_cast<std::uint64_t>(i) * view.lane_stride +
                                      size * static_cast<std::uint32_t>(k);
            std::uint64_t old = 0, with = 0, swap = 0;
            std::memcpy(&old, memory, size);
            std::memcpy(&with, w.row<std::byte>(b) + size * static_cast<std::uint32_t>(i), size);
            if (what == AtomicOperation::cas)
                std::memcpy(&swap, w.row<std::byte>(op.c) + size * static_cast<std::uint32_t>(i), size);
            const std::uint64_t made = updated(what, type, old, with, swap);
            std::memcpy(memory, &made, size);
            if (d) std::memcpy(w.row<std::byte>(d) + size * static_cast<std::uint32_t>(i), &old, size);
        }
    }
    yield_lanes(w);
    go_on(w, w.pc + 1);
}

}  // namespace autotune::emulator

#ifndef AUTOTUNE_DEVICE_EMULATOR_OP_H
#define AUTOTUNE_DEVICE_EMULATOR_OP_H

#include <cstdint>

#include "device/emulator/ptx_type.h"

namespace autotune::emulator {

struct Warp;
struct Op;

/// Runs an op for the lanes of `mask`, which is never empty unless the op is a control op.
using Handler = void (*)(Warp& warp, const Op& op, std::uint32_t mask);

/// What an op is to counters: static, one for each op.
enum class OpClass : std::uint8_t {
    other,
    integer,
    fp32,
    fp64,
    fp16,
    special,
    convert,
    move,
    predicate,
    load,
    store,
    atomic,
    copy_async,
    mma,
    collective,
    barrier,
    branch
};
inline constexpr int op_classes = 17;

/// `cluster`: shared memory of all blocks of a cluster; accesses to `shared` that lie elsewhere lead there.
enum class Space : std::uint8_t { generic, global, shared, local, param, cluster };
inline constexpr int space_count = 6;

/// A decoded instruction. Operands are byte offsets into a warp's registers; negative ones lead into the constants
/// (`offset - INT32_MIN`). What does not fit lies in Program::extra from `extra` on.
struct Op {
    Handler run = nullptr;
    std::int32_t d = 0, a = 0, b = 0, c = 0;
    std::int64_t imm = 0;
    std::int32_t guard = 0;        ///< of the predicate; the one at 0 is always true
    std::uint32_t guard_flip = 0;  ///< all ones: negated
    std::uint32_t extra = 0;
    std::uint16_t small = 0;  ///< of use to the handler
    Space space = Space::generic;
    bool control = false;      ///< may change pc and fragments
    bool wide_address = true;  ///< address registers have 64 bits
    OpClass kind = OpClass::other;
    std::uint16_t flops = 0;  ///< a lane; of an mma: a warp, divided by 32
    std::uint32_t location = 0;
    std::uint32_t instruction = 0;  ///< number in Program::names
};

// ---- What decides which handler an op gets.

enum class Operation : std::uint8_t {
    add,
    sub,
    mul_lo,
    mul_hi,
    mul_wide,
    mad_lo,
    mad_hi,
    mad_wide,
    div,
    rem,
    abs,
    neg,
    min,
    max,
    and_,
    or_,
    xor_,
    not_,
    cnot,
    shl,
    shr,
    shf,
    bfe,
    bfi,
    bfind,
    brev,
    clz,
    popc,
    prmt,
    sad,
    dp4a,
    dp2a,
    lop3,
    mul24,
    mad24,
    fmul,
    fma,
    fdiv,
    rcp,
    sqrt,
    rsqrt,
    ex2,
    lg2,
    sin,
    cos,
    tanh,
    copysign,
    testp,
    setp,
    set,
    selp,
    slct,
    cvt,
    cvt_pack,
    mov,
    mov_pred,
    pack,
    unpack,
    pred_logic,
    add_carry,
    sub_carry,
    load,
    store,
    ldmatrix,
    stmatrix,
    mma,
    cp_async,
    offset_window,
    min3,
    max3
};

enum class Compare : std::uint8_t { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };
enum class Logic : std::uint8_t { none, and_, or_, xor_ };
enum class Rounding : std::uint8_t { none, rn, rz, rm, rp, rna, rni, rzi, rmi, rpi, rs };

struct Selector {
    Operation operation{};
    PtxType type = PtxType::none;  ///< of the result where they differ
    PtxType from = PtxType::none;
    Compare compare = Compare::eq;
    Logic logic = Logic::none;
    Rounding rounding = Rounding::none;
    bool ftz = false, sat = false, approx = false, relu = false, nan = false, xorsign = false;
    std::uint8_t vector = 1;          ///< elements of a load or store
    std::uint8_t register_bytes = 4;  ///< of the registers that are loaded or stored
    PtxType from_b = PtxType::none;   ///< of an mma: the second matrix's
    std::uint8_t a_registers = 0, b_registers = 0;
    bool half_sum = false;  ///< of an mma: accumulators are pairs of f16
};

}  // namespace autotune::emulator
#endif

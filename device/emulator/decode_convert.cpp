#include <algorithm>
#include <array>

#include "device/emulator/decode_parts.h"
#include "device/emulator/rounded.h"

namespace autotune::emulator {
namespace {

bool is_integer(PtxType type) { return type >= PtxType::u8 && type <= PtxType::s64; }

/// cvt.rn.bf16x2.f32 d, a, b and its kin: pairs.
void convert_pair(Decoder& d, const Instruction& in, Op op, Selector s) {
    s.operation = Operation::cvt_pack;
    op.d = d.target(in.operands[0], bytes_of(s.type));
    if (op.d == 0) throw Refused{};
    if (s.from == PtxType::f32) {
        if (in.operands.size() != 3) throw Refused{};
        op.a = d.source(in.operands[1], PtxType::f32);
        op.b = d.source(in.operands[2], PtxType::f32);
    } else {
        const bool to_half = s.type == PtxType::f16x2 && (s.from == PtxType::e4m3x2 || s.from == PtxType::e5m2x2);
        const bool to_byte = s.from == PtxType::f16x2 && (s.type == PtxType::e4m3x2 || s.type == PtxType::e5m2x2);
        if (in.operands.size() != 2 || !(to_half || to_byte)) throw Refused{};
        op.a = d.source(in.operands[1], s.from);
    }
    op.run = d.select(s);
    d.emit(op);
}

}  // namespace

void decode_convert(Decoder& d, const Instruction& in, Op op, Modifiers& mods) {
    Selector s{.operation = Operation::cvt};
    s.rounding = mods.rounding();
    s.ftz = mods.take("ftz");
    s.sat = mods.take("sat");
    s.relu = mods.take("relu");
    const bool finite = mods.take("satfinite");
    s.type = mods.type();
    s.from = mods.type();
    if (!mods.empty() || in.operands.size() < 2 || s.from == PtxType::none) throw Refused{};
    op.kind = OpClass::convert;
    op.small = static_cast<std::uint16_t>(static_cast<int>(s.rounding) | s.ftz << 8 | (s.from == PtxType::bf16) << 9 |
                                          s.sat << 10 | finite << 11 | s.relu << 12);
    switch (s.type) {
        case PtxType::f16x2:
        case PtxType::bf16x2:
        case PtxType::e4m3x2:
        case PtxType::e5m2x2:
            return convert_pair(d, in, op, s);
        default:
            break;
    }
    if (in.operands.size() != 2) throw Refused{};
    const int target_bytes = d.register_bytes(in.operands[0]);
    const int wanted = std::max(2, bytes_of(s.type));
    op.d = d.target(in.operands[0], target_bytes);
    if (op.d == 0 || target_bytes < wanted || target_bytes > 8) throw Refused{};
    s.register_bytes = static_cast<std::uint8_t>(target_bytes);
    const bool free_target = is_integer(s.type) && (is_integer(s.from) || bytes_of(s.type) == 1);
    if (target_bytes != wanted && !free_target) throw Refused{};
    if (is_integer(s.from) && in.operands[1].kind == Operand::Kind::reg) {
        const int bytes = d.register_bytes(in.operands[1]);
        if (bytes < bytes_of(s.from) || bytes > 8) throw Refused{};
        s.vector = static_cast<std::uint8_t>(bytes);
        op.a = d.source(in.operands[1], bytes == 2 ? PtxType::b16 : bytes == 4 ? PtxType::b32 : PtxType::b64);
    } else {
        s.vector = static_cast<std::uint8_t>(std::max(2, bytes_of(s.from)));
        op.a = d.source(in.operands[1], s.from);
    }
    if (s.type == PtxType::tf32 && s.from != PtxType::f32) throw Refused{};
    if (is_integer(s.type) && is_integer(s.from)) op.small = s.sat ? 1 : 0;
    if (target_bytes == 8 && bytes_of(s.type) == 1 && !is_integer(s.from)) throw Refused{};
    const bool directed = s.rounding == Rounding::rz || s.rounding == Rounding::rm || s.rounding == Rounding::rp;
    const bool narrow = is_integer(s.from) && bytes_of(s.from) < 4;
    if (directed && (s.type == PtxType::f32 || s.type == PtxType::f64) && !narrow && s.from != PtxType::f16 &&
        s.from != PtxType::bf16 && !(s.from == PtxType::f32)) {
        if (s.vector > bytes_of(s.from)) throw Refused{};
        op.run = select_rounded(s);
        op.small = static_cast<std::uint16_t>(static_cast<int>(s.operation) | static_cast<int>(s.rounding) << 8 |
                                              s.ftz << 12 | s.sat << 13);
        if (!op.run) throw Refused{};
    } else if ((s.rounding == Rounding::rm || s.rounding == Rounding::rp) &&
               (s.type == PtxType::f16 || s.type == PtxType::bf16)) {
        throw Refused{};
    } else {
        op.run = d.select(s);
    }
    d.emit(op);
}

}  // namespace autotune::emulator

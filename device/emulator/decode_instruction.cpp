#include <algorithm>
#include <array>

#include "device/emulator/control.h"
#include "device/emulator/decode_parts.h"
#include "device/emulator/decoder.h"
#include "device/emulator/modifiers.h"
#include "device/emulator/rounded.h"

namespace autotune::emulator {
namespace {

bool is_half(PtxType type) {
    return type == PtxType::f16 || type == PtxType::f16x2 || type == PtxType::bf16 || type == PtxType::bf16x2;
}
bool is_real(PtxType type) { return is_half(type) || type == PtxType::f32 || type == PtxType::f64; }

OpClass class_of(PtxType type) {
    if (type == PtxType::f32) return OpClass::fp32;
    if (type == PtxType::f64) return OpClass::fp64;
    return is_half(type) ? OpClass::fp16 : OpClass::integer;
}

struct Row {
    std::string_view base;
    Operation integer, real;  ///< by the type of the instruction
    int operands;             ///< sources
    bool special = false;     ///< a function unit
};
constexpr Operation no_operation = static_cast<Operation>(255);

/// What maps rows to a row, all of one type.
constexpr std::array arithmetic_rows{
    Row{"add", Operation::add, Operation::add, 2},       Row{"sub", Operation::sub, Operation::sub, 2},
    Row{"mul", Operation::mul_lo, Operation::fmul, 2},   Row{"fma", no_operation, Operation::fma, 3},
    Row{"mad", Operation::mad_lo, Operation::fma, 3},    Row{"div", Operation::div, Operation::fdiv, 2},
    Row{"rem", Operation::rem, no_operation, 2},         Row{"abs", Operation::abs, Operation::abs, 1},
    Row{"neg", Operation::neg, Operation::neg, 1},       Row{"min", Operation::min, Operation::min, 2},
    Row{"max", Operation::max, Operation::max, 2},       Row{"rcp", no_operation, Operation::rcp, 1, true},
    Row{"sqrt", no_operation, Operation::sqrt, 1, true}, Row{"rsqrt", no_operation, Operation::rsqrt, 1, true},
    Row{"ex2", no_operation, Operation::ex2, 1, true},   Row{"lg2", no_operation, Operation::lg2, 1, true},
    Row{"sin", no_operation, Operation::sin, 1, true},   Row{"cos", no_operation, Operation::cos, 1, true},
    Row{"tanh", no_operation, Operation::tanh, 1, true}, Row{"copysign", no_operation, Operation::copysign, 2},
    Row{"and", Operation::and_, no_operation, 2},        Row{"or", Operation::or_, no_operation, 2},
    Row{"xor", Operation::xor_, no_operation, 2},        Row{"not", Operation::not_, no_operation, 1},
    Row{"cnot", Operation::cnot, no_operation, 1},       Row{"sad", Operation::sad, no_operation, 3},
    Row{"brev", Operation::brev, no_operation, 1},
};

/// add.f32 and all that look like it.
void arithmetic(Decoder& d, const Instruction& in, Op op, Modifiers& mods, const Row& row) {
    Selector s{.operation = row.integer};
    s.rounding = mods.rounding();
    s.ftz = mods.take("ftz");
    s.sat = mods.take("sat");
    s.nan = mods.take("NaN");
    s.relu = mods.take("relu");
    s.approx = mods.take("approx") || mods.take("full");
    mods.take("noftz");
    mods.take("uni");
    const bool wide = mods.take("wide"), high = mods.take("hi"), carry = mods.take("cc");
    mods.take("lo");
    s.type = mods.type();
    if (!mods.empty() || in.operands.size() < 2) throw Refused{};
    if (s.type == PtxType::pred) {
        op.small = row.base == "and" ? 0 : row.base == "or" ? 1 : row.base == "xor" ? 2 : row.base == "not" ? 3 : 9;
        if (op.small == 9 || in.operands.size() != static_cast<std::size_t>(row.operands) + 1) throw Refused{};
        op.d = d.predicate(in.operands[0]);
        if (op.d == 0) throw Refused{};
        op.a = d.predicate_source(in.operands[1]);
        if (op.small != 3) op.b = d.predicate_source(in.operands[2]);
        s.operation = Operation::pred_logic;
        op.run = d.select(s);
        op.kind = OpClass::predicate;
        return d.emit(op);
    }
    int operands = row.operands;
    const bool real = is_real(s.type);
    if (real) {
        s.operation = row.real;
        op.flops = static_cast<std::uint16_t>(row.real == Operation::fma ? 2 : row.operands == 2 ? 1 : 0);
        if (s.type == PtxType::f16x2 || s.type == PtxType::bf16x2) op.flops = static_cast<std::uint16_t>(op.flops * 2);
        if ((row.base == "min" || row.base == "max") && in.operands.size() == 4) {
            s.operation = row.base == "min" ? Operation::min3 : Operation::max3;
            operands = 3;
        }
    }
    if (s.operation == no_operation || in.operands.size() != static_cast<std::size_t>(operands) + 1) throw Refused{};
    if (is_half(s.type)) {
        op.small = static_cast<std::uint16_t>(s.ftz | s.sat << 1 | s.relu << 2 | s.nan << 3);
    } else if (s.relu) {
        throw Refused{};
    }
    int bytes = std::max(2, bytes_of(s.type));
    PtxType third = s.type;
    if (!real && (row.base == "mul" || row.base == "mad")) {
        const bool with_addend = row.base == "mad";
        if (wide) {
            s.operation = with_addend ? Operation::mad_wide : Operation::mul_wide;
            bytes *= 2;
            third = bytes == 4 ? PtxType::b32 : PtxType::b64;
            if (bytes > 8) throw Refused{};
        } else if (high) {
            s.operation = with_addend ? Operation::mad_hi : Operation::mul_hi;
        }
    } else if (wide || high) {
        throw Refused{};
    }
    if (carry) {
        s.operation = row.base == "add"   ? Operation::add_carry
                      : row.base == "sub" ? Operation::sub_carry
                                          : no_operation;
        op.small = 1;
        if (s.operation == no_operation) throw Refused{};
    }
    op.d = d.target(in.operands[0], bytes);
    if (op.d == 0) throw Refused{};
    op.a = d.source(in.operands[1], s.type);
    op.b = operands > 1 ? d.source(in.operands[2], s.type) : op.a;
    op.c = operands > 2 ? d.source(in.operands[3], third) : op.a;
    const bool directed = s.rounding == Rounding::rz || s.rounding == Rounding::rm || s.rounding == Rounding::rp;
    if (directed && (s.type == PtxType::f32 || s.type == PtxType::f64)) {
        op.run = select_rounded(s);
        op.small = static_cast<std::uint16_t>(static_cast<int>(s.operation) | static_cast<int>(s.rounding) << 8 |
                                              s.ftz << 12 | s.sat << 13);
        if (!op.run) throw Refused{};
    } else if (directed) {
        throw Refused{};
    } else {
        op.run = d.select(s);
    }
    op.kind = row.special ? OpClass::special : class_of(s.type);
    d.emit(op);
}

/// addc and subc: with the carry of before.
void with_carry(Decoder& d, const Instruction& in, Op op, Modifiers& mods) {
    Selector s{.operation = mods.base() == "addc" ? Operation::add_carry : Operation::sub_carry};
    op.small = static_cast<std::uint16_t>(2 | (mods.take("cc") ? 1 : 0));
    s.type = mods.type();
    if (!mods.empty() || in.operands.size() != 3 || bytes_of(s.type) < 4) throw Refused{};
    op.d = d.target(in.operands[0], bytes_of(s.type));
    if (op.d == 0) throw Refused{};
    op.a = d.source(in.operands[1], s.type);
    op.b = d.source(in.operands[2], s.type);
    op.run = d.select(s);
    op.kind = OpClass::integer;
    d.emit(op);
}

/// Operations on bits whose operands have types of their own.
void bits(Decoder& d, const Instruction& in, Op op, Modifiers& mods) {
    const std::string_view base = mods.base();
    Selector s;
    op.kind = OpClass::integer;
    const auto operand = [&](std::size_t i) -> const Operand& {
        if (i >= in.operands.size()) throw Refused{};
        return in.operands[i];
    };
    int result = 4;
    if (base == "shl" || base == "shr") {
        s.operation = base == "shl" ? Operation::shl : Operation::shr;
        s.type = mods.type();
        result = bytes_of(s.type);
        op.a = d.source(operand(1), s.type);
        op.b = d.source(operand(2), PtxType::b32);
    } else if (base == "shf") {
        s.operation = Operation::shf;
        if (mods.take("r"))
            op.small = 1;
        else if (!mods.take("l"))
            throw Refused{};
        if (mods.take("clamp")) op.small |= 2;
        mods.take("wrap");
        s.type = mods.type();
        op.a = d.source(operand(1), PtxType::b32);
        op.b = d.source(operand(2), PtxType::b32);
        op.c = d.source(operand(3), PtxType::b32);
    } else if (base == "bfe") {
        s.operation = Operation::bfe;
        s.type = mods.type();
        result = bytes_of(s.type);
        op.a = d.source(operand(1), s.type);
        op.b = d.source(operand(2), PtxType::b32);
        op.c = d.source(operand(3), PtxType::b32);
    } else if (base == "bfi") {
        s.operation = Operation::bfi;
        s.type = mods.type();
        result = bytes_of(s.type);
        op.a = d.source(operand(1), s.type);
        op.b = d.source(operand(2), s.type);
        op.c = d.source(operand(3), PtxType::b32);
        op.imm = d.source(operand(4), PtxType::b32);
    } else if (base == "bfind" || base == "clz" || base == "popc") {
        s.operation = base == "bfind" ? Operation::bfind : base == "clz" ? Operation::clz : Operation::popc;
        op.small = mods.take("shiftamt") ? 1 : 0;
        s.type = mods.type();
        op.a = d.source(operand(1), s.type);
    } else if (base == "prmt") {
        constexpr std::array<std::string_view, 6> modes{"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
        s.operation = Operation::prmt;
        s.type = mods.type();
        op.small = static_cast<std::uint16_t>(mods.take_any(modes) + 1);
        op.a = d.source(operand(1), PtxType::b32);
        op.b = d.source(operand(2), PtxType::b32);
        op.c = d.source(operand(3), PtxType::b32);
    } else if (base == "lop3") {
        s.operation = Operation::lop3;
        s.type = mods.type();
        op.a = d.source(operand(1), PtxType::b32);
        op.b = d.source(operand(2), PtxType::b32);
        op.c = d.source(operand(3), PtxType::b32);
        op.small = static_cast<std::uint16_t>(d.immediate(operand(4)) & 0xff);
    } else if (base == "mul24" || base == "mad24") {
        s.operation = base == "mul24" ? Operation::mul24 : Operation::mad24;
        op.small = mods.take("hi") ? 1 : 0;
        mods.take("lo");
        s.type = mods.type();
        op.a = d.source(operand(1), PtxType::b32);
        op.b = d.source(operand(2), PtxType::b32);
        if (base == "mad24") op.c = d.source(operand(3), PtxType::b32);
    } else {  // dp4a, dp2a
        s.operation = base == "dp4a" ? Operation::dp4a : Operation::dp2a;
        if (mods.take("hi")) op.small = 4;
        mods.take("lo");
        s.type = mods.type();
        if (is_signed(s.type)) op.small |= 1;
        if (is_signed(mods.type())) op.small |= 2;
        op.a = d.source(operand(1), PtxType::b32);
        op.b = d.source(operand(2), PtxType::b32);
        op.c = d.source(operand(3), PtxType::b32);
    }
    if (!mods.empty() || bytes_of(s.type) < 2) throw Refused{};
    op.d = d.target(operand(0), result);
    if (op.d == 0) throw Refused{};
    op.run = d.select(s);
    d.emit(op);
}

/// The combination of a comparison with a predicate: .and and its operand.
Logic logic_of(Modifiers& mods) {
    constexpr std::array<std::string_view, 3> names{"and", "or", "xor"};
    return static_cast<Logic>(mods.take_any(names) + 1);
}

void comparison(Decoder& d, const Instruction& in, Op op, Modifiers& mods) {
    const bool set = mods.base() == "set";
    Selector s{.operation = set ? Operation::set : Operation::setp};
    bool found = false;
    s.compare = mods.compare(found);
    const Logic logic = logic_of(mods);
    s.ftz = mods.take("ftz");
    if (set) s.type = mods.type();
    s.from = mods.type();
    if (!found || !mods.empty() || in.operands.size() != (logic == Logic::none ? 3u : 4u) || bytes_of(s.from) < 2)
        throw Refused{};
    if (set) {
        const bool packed = s.from == PtxType::f16x2 || s.from == PtxType::bf16x2;
        const bool one = is_real(s.type);
        if (packed && one && s.type != s.from) throw Refused{};
        if (packed)
            op.imm = one ? (s.from == PtxType::f16x2 ? 0x3c00 : 0x3f80) : 0xffff;
        else
            op.imm = s.type == PtxType::f32;
        op.d = d.target(in.operands[0], 4);
        if (op.d == 0) throw Refused{};
    } else if (in.operands[0].kind == Operand::Kind::pair) {
        op.d = d.predicate(in.operands[0].parts[0]);
        op.imm = d.predicate(in.operands[0].parts[1]);
    } else {
        op.d = d.predicate(in.operands[0]);
    }
    op.a = d.source(in.operands[1], s.from);
    op.b = d.source(in.operands[2], s.from);
    if (logic != Logic::none) {
        op.c = d.predicate_source(in.operands[3]);
        op.small = static_cast<std::uint16_t>(static_cast<int>(logic) | (in.operands[3].negated ? 4 : 0));
    }
    op.run = d.select(s);
    op.kind = OpClass::predicate;
    d.emit(op);
}

void choice(Decoder& d, const Instruction& in, Op op, Modifiers& mods) {
    const bool by_predicate = mods.base() == "selp";
    Selector s{.operation = by_predicate ? Operation::selp : Operation::slct};
    s.ftz = mods.take("ftz");
    s.type = mods.type();
    if (!by_predicate) s.from = mods.type();
    if (!mods.empty() || in.operands.size() != 4 || bytes_of(s.type) < 2) throw Refused{};
    op.d = d.target(in.operands[0], bytes_of(s.type));
    if (op.d == 0) throw Refused{};
    op.a = d.source(in.operands[1], s.type);
    op.b = d.source(in.operands[2], s.type);
    if (by_predicate) {
        op.c = d.predicate_source(in.operands[3]);
        op.small = in.operands[3].negated ? 1 : 0;
    } else {
        op.c = d.source(in.operands[3], s.from);
        if (bytes_of(s.from) != 4) throw Refused{};
    }
    op.run = d.select(s);
    op.kind = OpClass::integer;
    d.emit(op);
}

void test_property(Decoder& d, const Instruction& in, Op op, Modifiers& mods) {
    constexpr std::array<std::string_view, 6> names{"finite",     "infinite", "number",
                                                    "notanumber", "normal",   "subnormal"};
    const int which = mods.take_any(names);
    Selector s{.operation = Operation::testp, .type = mods.type()};
    if (which < 0 || !mods.empty() || in.operands.size() != 2) throw Refused{};
    op.small = static_cast<std::uint16_t>(which);
    op.d = d.predicate(in.operands[0]);
    if (op.d == 0) throw Refused{};
    op.a = d.source(in.operands[1], s.type);
    op.run = d.select(s);
    op.kind = OpClass::predicate;
    d.emit(op);
}

/// createpolicy: what caches keep has no effect on results, so any policy is 0.
void decode_policy(Decoder& d, const Instruction& in, Op op, Modifiers&) {
    if (in.operands.empty()) throw Refused{};
    op.d = d.target(in.operands[0], 8);
    if (op.d == 0) throw Refused{};
    op.a = d.source({.kind = Operand::Kind::integer}, PtxType::b64);
    op.run = d.select({.operation = Operation::mov, .type = PtxType::b64});
    op.kind = OpClass::move;
    d.emit(op);
}

struct Entry {
    std::string_view base;
    void (*decode)(Decoder&, const Instruction&, Op, Modifiers&);
};
constexpr std::array entries{
    Entry{"addc", with_carry},
    Entry{"subc", with_carry},
    Entry{"shl", bits},
    Entry{"shr", bits},
    Entry{"shf", bits},
    Entry{"bfe", bits},
    Entry{"bfi", bits},
    Entry{"bfind", bits},
    Entry{"clz", bits},
    Entry{"popc", bits},
    Entry{"prmt", bits},
    Entry{"lop3", bits},
    Entry{"mul24", bits},
    Entry{"mad24", bits},
    Entry{"dp4a", bits},
    Entry{"dp2a", bits},
    Entry{"setp", comparison},
    Entry{"set", comparison},
    Entry{"selp", choice},
    Entry{"slct", choice},
    Entry{"testp", test_property},
    Entry{"cvt", decode_convert},
    Entry{"mov", decode_move},
    Entry{"cvta", decode_cvta},
    Entry{"isspacep", decode_isspacep},
    Entry{"ld", decode_load},
    Entry{"ldu", decode_load},
    Entry{"st", decode_store},
    Entry{"atom", decode_atomic},
    Entry{"red", decode_atomic},
    Entry{"cp", decode_copy},
    Entry{"ldmatrix", decode_matrix},
    Entry{"stmatrix", decode_matrix},
    Entry{"mma", decode_mma},
    Entry{"wmma", decode_wmma},
    Entry{"createpolicy", decode_policy},
    Entry{"membar", decode_nothing},
    Entry{"fence", decode_nothing},
    Entry{"prefetch", decode_nothing},
    Entry{"prefetchu", decode_nothing},
    Entry{"setmaxnreg", decode_nothing},
    Entry{"griddepcontrol", decode_nothing},
    Entry{"pmevent", decode_nothing},
    Entry{"brkpt", decode_nothing},
    Entry{"applypriority", decode_nothing},
    Entry{"discard", decode_nothing},
    Entry{"mbarrier", decode_phase},
    Entry{"wgmma", decode_wgmma},
    Entry{"mapa", decode_cluster_address},
    Entry{"getctarank", decode_cluster_address},
    Entry{"bra", decode_branch},
    Entry{"brx", decode_branch},
    Entry{"call", decode_branch},
    Entry{"ret", decode_branch},
    Entry{"exit", decode_branch},
    Entry{"trap", decode_branch},
    Entry{"nanosleep", decode_branch},
    Entry{"bar", decode_barrier},
    Entry{"barrier", decode_barrier},
    Entry{"shfl", decode_collective},
    Entry{"vote", decode_collective},
    Entry{"match", decode_collective},
    Entry{"redux", decode_collective},
    Entry{"elect", decode_collective},
    Entry{"activemask", decode_collective},
};

}  // namespace

void decode_instruction(Decoder& decoder, const Instruction& instruction, const Op& base) {
    Modifiers mods{instruction.opcode};
    for (const Row& row : arithmetic_rows)
        if (row.base == mods.base()) return arithmetic(decoder, instruction, base, mods, row);
    for (const Entry& entry : entries)
        if (entry.base == mods.base()) return entry.decode(decoder, instruction, base, mods);
    throw Refused{};
}

}  // namespace autotune::emulator

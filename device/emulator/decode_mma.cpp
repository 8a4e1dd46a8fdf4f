#include <algorithm>
#include <array>
#include <charconv>

#include "device/emulator/decode_parts.h"
#include "device/emulator/wmma.h"

namespace autotune::emulator {
namespace {

/// "m16n8k32" as numbers; zeros for what is no shape.
std::array<int, 3> shape_of(std::string_view name) {
    std::array<int, 3> shape{};
    const char* at = name.data();
    const char* const end = at + name.size();
    for (std::size_t i = 0; i < 3; ++i) {
        if (at == end || *at != "mnk"[i]) return {};
        const auto [next, error] = std::from_chars(at + 1, end, shape[i]);
        if (error != std::errc{} || shape[i] <= 0 || shape[i] > 256) return {};
        at = next;
    }
    return shape;
}

std::span<const Operand> parts_of(const Operand& operand) {
    return operand.kind == Operand::Kind::vector ? std::span{operand.parts} : std::span{&operand, 1};
}

/// Elements that a register of 32 bits holds.
int per_register(PtxType type) {
    switch (type) {
        case PtxType::f16:
        case PtxType::bf16:
            return 2;
        case PtxType::tf32:
            return 1;
        case PtxType::e4m3:
        case PtxType::e5m2:
        case PtxType::s8:
        case PtxType::u8:
            return 4;
        case PtxType::s4:
        case PtxType::u4:
            return 8;
        default:
            return 0;
    }
}

PtxType row_type(PtxType type) { return type == PtxType::f64 ? PtxType::f64 : PtxType::b32; }

}  // namespace

void decode_mma(Decoder& d, const Instruction& in, Op op, Modifiers& mods) {
    mods.take("sync");
    mods.take("aligned");
    mods.take("row");
    if (!mods.take("col") || mods.take("col") || op.guard != 0) throw Refused{};
    const std::array shape = shape_of(mods.take_prefix("m"));
    if (mods.take("satfinite") || in.operands.size() != 4) throw Refused{};
    const PtxType sum = mods.type(), a = mods.type(), b = mods.type(), c = mods.type();
    if (!mods.empty() || sum != c) throw Refused{};
    Selector s{.operation = Operation::mma, .type = sum, .from = a};
    s.from_b = b;
    s.half_sum = sum == PtxType::f16;
    std::vector<std::int32_t> rows;
    for (std::size_t i = 0; i < 4; ++i)
        for (const Operand& part : parts_of(in.operands[i])) {
            rows.push_back(i == 0 ? d.target(part, bytes_of(row_type(sum))) : d.source(part, row_type(a)));
            if (rows.back() == 0) throw Refused{};
        }
    const std::size_t sums = parts_of(in.operands[0]).size();
    s.a_registers = static_cast<std::uint8_t>(parts_of(in.operands[1]).size());
    s.b_registers = static_cast<std::uint8_t>(parts_of(in.operands[2]).size());
    if (a == PtxType::f64) {
        if (shape != std::array{8, 8, 4} || rows.size() != 6 || b != a || sum != a) throw Refused{};
    } else {
        const int per = per_register(a);
        const bool integer = sum == PtxType::s32;
        const bool small_float = a == PtxType::e4m3 || a == PtxType::e5m2;
        if (per == 0 || shape[0] != 16 || shape[1] != 8 || shape[2] * 2 != per * 4 * s.a_registers ||
            sums != (s.half_sum ? 2u : 4u) || parts_of(in.operands[3]).size() != sums ||
            s.b_registers * 2 != s.a_registers || per_register(b) != per || (!(integer || small_float) && a != b) ||
            integer != (per >= 4 && !small_float) || (!integer && sum != PtxType::f32 && sum != PtxType::f16))
            throw Refused{};
        if (s.half_sum && a != PtxType::f16 && !small_float) throw Refused{};
    }
    op.extra = d.extra(rows);
    op.run = d.select(s);
    op.kind = OpClass::mma;
    op.flops = static_cast<std::uint16_t>(2 * shape[0] * shape[1] * shape[2] / 32);
    d.emit(op);
}

void decode_wmma(Decoder& d, const Instruction& in, Op op, Modifiers& mods) {
    WmmaForm form;
    const bool load = mods.take("load"), store = !load && mods.take("store");
    if (!load && !store && !mods.take("mma")) throw Refused{};
    if (op.guard != 0) throw Refused{};
    const char which = load                      ? (mods.take("a")   ? 'a'
                                                    : mods.take("b") ? 'b'
                                                    : mods.take("c") ? 'c'
                                                                     : '\0')
                       : store && mods.take("d") ? 'd'
                                                 : '\0';
    if ((load || store) && which == '\0') throw Refused{};
    mods.take("sync");
    mods.take("aligned");
    const bool row = mods.take("row"), column = mods.take("col");
    mods.take("row");
    mods.take("col");
    const std::array shape = shape_of(mods.take_prefix("m"));
    if (shape[0] == 0 || mods.take("satfinite")) throw Refused{};
    form.m = shape[0], form.n = shape[1], form.k = shape[2];
    Space space = Space::generic;
    if (mods.take("global")) space = Space::global;
    if (mods.take("shared") || mods.take("shared::cta")) space = Space::shared;
    std::vector<std::int32_t> rows;
    const auto add = [&](const Operand& operand, bool written, PtxType type) {
        for (const Operand& part : parts_of(operand)) {
            rows.push_back(written ? d.target(part, bytes_of(row_type(type))) : d.source(part, row_type(type)));
            if (rows.back() == 0) throw Refused{};
        }
        return static_cast<int>(parts_of(operand).size());
    };
    op.kind = load ? OpClass::load : store ? OpClass::store : OpClass::mma;
    if (load || store) {
        if (row == column) throw Refused{};
        form.which = which;
        form.column = column;
        form.type = mods.type();
        const std::size_t at = load ? 1 : 0;
        if (!mods.empty() || in.operands.size() < 2 || !wmma_type(form.type)) throw Refused{};
        form.registers = add(in.operands[load ? 0 : 1], load, form.type);
        d.address(op, in.operands[at], space);
        const int rows_of = form.which == 'b' ? form.k : form.m, columns_of = form.which == 'a' ? form.k : form.n;
        op.c = in.operands.size() > 2 ? d.source(in.operands[2], PtxType::b32)
                                      : d.constant(static_cast<std::uint64_t>(column ? rows_of : columns_of), 4);
        if (!wmma_fits(form)) throw Refused{};
        op.run = load ? wmma_load : wmma_store;
    } else {
        if (in.operands.size() != 4) throw Refused{};
        std::vector<PtxType> types;
        while (true) {
            const PtxType type = mods.type();
            if (type == PtxType::none) break;
            types.push_back(type);
        }
        if (!mods.empty() || (types.size() != 2 && types.size() != 4)) throw Refused{};
        form.type = types.front();
        form.a = types.size() == 4 ? types[1] : PtxType::f16;
        form.b = types.size() == 4 ? types[2] : PtxType::f16;
        form.c = types.back();
        for (const PtxType type : {form.type, form.a, form.b, form.c})
            if (!wmma_type(type)) throw Refused{};
        form.registers = add(in.operands[0], true, form.type);
        form.a_registers = add(in.operands[1], false, form.a);
        form.b_registers = add(in.operands[2], false, form.b);
        form.c_registers = add(in.operands[3], false, form.c);
        if (!wmma_fits(form)) throw Refused{};
        op.flops = static_cast<std::uint16_t>(2 * form.m * form.n * form.k / 32);
        op.run = wmma_multiply;
    }
    for (const int number :
         {form.m, form.n, form.k, static_cast<int>(form.which), static_cast<int>(form.column),
          static_cast<int>(form.type), static_cast<int>(form.a), static_cast<int>(form.b), static_cast<int>(form.c),
          form.registers, form.a_registers, form.b_registers, form.c_registers})
        rows.push_back(number);
    // Numbers first, then rows.
    std::rotate(rows.begin(), rows.end() - wmma_numbers, rows.end());
    op.extra = d.extra(rows);
    d.emit(op);
}

}  // namespace autotune::emulator

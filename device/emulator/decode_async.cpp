#include <array>
#include <charconv>
#include <cstring>
#include <span>

#include "device/emulator/atomics.h"
#include "device/emulator/bulk_copies.h"
#include "device/emulator/decode_parts.h"
#include "device/emulator/phase_barriers.h"
#include "device/emulator/wgmma.h"

namespace autotune::emulator {
namespace {

void drop_order(Modifiers& mods) {
    for (const std::string_view name : {"acquire", "release", "relaxed", "cta", "cluster"}) mods.take(name);
}

Space phase_space(Modifiers& mods) {
    return mods.take("shared") || mods.take("shared::cta") || mods.take("shared::cluster") ? Space::shared
                                                                                           : Space::generic;
}

}  // namespace

void decode_phase(Decoder& d, const Instruction& in, Op op, Modifiers& mods) {
    const auto operand = [&](std::size_t i) -> const Operand& {
        if (i >= in.operands.size()) throw Refused{};
        return in.operands[i];
    };
    drop_order(mods);
    op.kind = OpClass::barrier;
    op.control = true;
    d.partial_barrier();
    if (mods.take("pending_count")) {
        op.d = d.target(operand(0), 4);
        op.a = d.source(operand(1), PtxType::b64);
        if (mods.type() != PtxType::b64 || op.d == 0) throw Refused{};
        op.run = phase_pending_count;
        op.control = false;
        return d.emit(op);
    }
    const bool attempt = mods.take("try_wait");
    if (attempt || mods.take("test_wait")) {
        const bool parity = mods.take("parity");
        const Space space = phase_space(mods);
        if (mods.type() != PtxType::b64 || !mods.empty() || in.operands.size() < 3) throw Refused{};
        op.small = parity ? 1 : 0;
        op.d = d.predicate(operand(0));
        if (op.d == 0) throw Refused{};
        op.b = d.source(operand(2), parity ? PtxType::b32 : PtxType::b64);
        d.address(op, operand(1), space);
        op.run = phase_wait;
        return d.emit(op);
    }
    PhaseAction action = PhaseAction::arrive;
    const bool arrive = mods.take("arrive"), drop = !arrive && mods.take("arrive_drop");
    const bool expects = mods.take("expect_tx");
    if (!arrive && !drop)
        action = expects                    ? PhaseAction::expect
                 : mods.take("init")        ? PhaseAction::init
                 : mods.take("inval")       ? PhaseAction::invalidate
                 : mods.take("complete_tx") ? PhaseAction::complete
                                            : PhaseAction::async_arrive;
    if (action == PhaseAction::async_arrive) throw Refused{};
    mods.take("noComplete");
    const Space space = phase_space(mods);
    if (mods.type() != PtxType::b64 || !mods.empty()) throw Refused{};
    const bool counts = action == PhaseAction::arrive;
    op.small = static_cast<std::uint16_t>(static_cast<int>(action) | (counts && expects ? phase_expects : 0) |
                                          (drop ? phase_drops : 0));
    std::size_t next = 0;
    // The state may be left out where nobody wants it.
    if (counts && operand(0).kind != Operand::Kind::address) op.d = d.target(operand(next++), 8);
    d.address(op, operand(next++), space);
    if (next < in.operands.size())
        op.b = d.source(operand(next), PtxType::b32);
    else if (action != PhaseAction::invalidate && (!counts || expects))
        throw Refused{};
    op.run = phase_update;
    d.emit(op);
}

void decode_async_arrive(Decoder& d, const Instruction& in, Op op, Modifiers& mods) {
    mods.take("arrive");
    const bool expected = mods.take("noinc");
    const Space space = phase_space(mods);
    if (mods.type() != PtxType::b64 || !mods.empty() || in.operands.size() != 1) throw Refused{};
    op.small = static_cast<std::uint16_t>(static_cast<int>(PhaseAction::async_arrive) | (expected ? 0 : phase_adds));
    op.kind = OpClass::barrier;
    op.control = true;
    d.partial_barrier();
    d.address(op, in.operands[0], space);
    op.run = phase_update;
    d.emit(op);
}

namespace {

/// A row, whether it has 64 bits, and an offset.
void bulk_address(Decoder& d, const Operand& operand, Space space, std::int32_t* to) {
    std::int64_t offset = 0;
    bool wide = true;
    to[0] = d.address_row(operand, offset, wide, space);
    if (offset > INT32_MAX || offset < INT32_MIN) throw Refused{};
    to[1] = wide ? 1 : 0;
    to[2] = static_cast<std::int32_t>(offset);
}

/// [map, {coordinates}]
void tensor_place(Decoder& d, const Operand& operand, BulkForm& form) {
    if (operand.kind != Operand::Kind::address || operand.parts.size() != 2) throw Refused{};
    const Operand& places = operand.parts[1];
    const std::span<const Operand> parts =
        places.kind == Operand::Kind::vector ? std::span{places.parts} : std::span{&places, 1};
    if (parts.size() != static_cast<std::size_t>(form.dimensions)) throw Refused{};
    for (std::size_t i = 0; i < parts.size(); ++i) form.coordinates[i] = d.source(parts[i], PtxType::b32);
    bulk_address(d, operand, Space::generic, &form.other);
    if (form.other_wide == 0) throw Refused{};
}

}  // namespace

void decode_bulk(Decoder& d, const Instruction& in, Op op, Modifiers& mods) {
    op.kind = OpClass::copy_async;
    d.partial_barrier();
    if (mods.take("commit_group")) {
        op.run = bulk_commit;
        if (!mods.empty()) throw Refused{};
        return d.emit(op);
    }
    if (mods.take("wait_group")) {
        mods.take("read");
        op.run = bulk_wait;
        op.imm = in.operands.size() == 1 ? d.immediate(in.operands[0]) : 0;
        if (!mods.empty() || op.imm < 0) throw Refused{};
        return d.emit(op);
    }
    if (mods.take("prefetch")) return decode_nothing(d, in, op, mods);
    BulkForm form;
    if (mods.take("tensor")) {
        constexpr std::array<std::string_view, 5> names{"1d", "2d", "3d", "4d", "5d"};
        form.dimensions = mods.take_any(names) + 1;
        mods.take("tile");
        if (form.dimensions == 0) throw Refused{};
    }
    if (mods.base() == "cp" && mods.take("reduce")) {
        constexpr std::array<std::string_view, 8> names{"add", "min", "max", "inc", "dec", "and", "or", "xor"};
        form.reduction = mods.take_any(names);
        mods.take("noftz");
        if (form.reduction < 0) throw Refused{};
        if (form.dimensions == 0) form.type = static_cast<std::int32_t>(mods.type());
    }
    const bool groups = mods.take("bulk_group"), counts = mods.take("mbarrier::complete_tx::bytes");
    const bool multicast = mods.take("multicast::cluster"), hint = mods.take("L2::cache_hint");
    const bool cluster = mods.take("shared::cluster"), own = mods.take("shared::cta"), global = mods.take("global");
    if (!mods.empty() || groups == counts || (counts && form.reduction >= 0)) throw Refused{};
    form.way = groups ? BulkForm::Way::out : global ? BulkForm::Way::in : BulkForm::Way::across;
    if (!(cluster || own) || (groups && !global)) throw Refused{};
    const std::size_t fixed = form.dimensions > 0 ? (groups ? 2u : 3u) : (groups ? 3u : 4u);
    if (in.operands.size() != fixed + (multicast ? 1 : 0) + (hint ? 1 : 0)) throw Refused{};
    const Operand &shared = in.operands[groups ? 1 : 0], &other = in.operands[groups ? 0 : 1];
    bulk_address(d, shared, Space::shared, &form.shared);
    if (form.dimensions > 0)
        tensor_place(d, other, form);
    else
        bulk_address(d, other, form.way == BulkForm::Way::across ? Space::shared : Space::global, &form.other);
    if (form.dimensions == 0) form.bytes = d.source(in.operands[2], PtxType::b32);
    if (counts) bulk_address(d, in.operands[fixed - 1], Space::shared, &form.barrier);
    if (multicast) {
        const Operand& blocks = in.operands[fixed];
        if (d.register_bytes(blocks) == 2) {
            Op widened = op;
            form.blocks = d.spare(4);
            widened.d = form.blocks;
            widened.a = d.source(blocks, PtxType::b16);
            widened.run = d.select({.operation = Operation::cvt, .type = PtxType::u32, .from = PtxType::u16});
            widened.kind = OpClass::convert;
            d.emit(widened);
        } else {
            form.blocks = d.source(blocks, PtxType::b32);
        }
    }
    std::array<std::int32_t, bulk_numbers> numbers;
    std::memcpy(numbers.data(), &form, sizeof form);
    op.extra = d.extra(numbers);
    op.run = bulk_copy;
    d.emit(op);
}

void decode_wgmma(Decoder& d, const Instruction& in, Op op, Modifiers& mods) {
    d.partial_barrier();
    const bool fence = mods.take("fence"), commit = mods.take("commit_group"), wait = mods.take("wait_group");
    const bool multiply = mods.take("mma_async");
    if (!mods.take("sync") || !mods.take("aligned") || op.guard != 0) throw Refused{};
    if (fence) return decode_nothing(d, in, op, mods);
    op.kind = OpClass::mma;
    if (commit || wait) {
        op.run = commit ? wgmma_commit : wgmma_wait;
        op.control = wait;
        if (wait) op.imm = in.operands.size() == 1 ? d.immediate(in.operands[0]) : -1;
        if (!mods.empty() || op.imm < 0) throw Refused{};
        return d.emit(op);
    }
    if (!multiply || in.operands.size() < 4) throw Refused{};
    const std::string_view shape = mods.take_prefix("m64n");
    WgmmaForm form;
    int depth = 0;
    const char* const end = shape.data() + shape.size();
    if (shape.size() < 7) throw Refused{};
    const auto columns = std::from_chars(shape.data() + 4, end, form.n);
    if (columns.ec != std::errc{} || columns.ptr == end || *columns.ptr != 'k') throw Refused{};
    if (std::from_chars(columns.ptr + 1, end, depth).ptr != end) throw Refused{};
    if (form.n < 8 || form.n > 256 || form.n % 8 != 0 || mods.take("satfinite")) throw Refused{};
    const PtxType sum = mods.type(), a = mods.type(), b = mods.type();
    const bool wide = a == PtxType::f16 || a == PtxType::bf16, small = a == PtxType::e4m3 || a == PtxType::e5m2,
               whole = a == PtxType::s8 || a == PtxType::u8;
    const int size = a == PtxType::tf32 ? 4 : bytes_of(a);
    if (!mods.empty() || a != b || !(wide || small || whole || a == PtxType::tf32) || depth * size != 32)
        throw Refused{};
    const bool half = sum == PtxType::f16;
    if (whole != (sum == PtxType::s32) || (!whole && sum != PtxType::f32 && !half) ||
        (half && a != PtxType::f16 && !small))
        throw Refused{};
    form.type = static_cast<std::int32_t>(a);
    form.sum = static_cast<std::int32_t>(sum);
    const auto each_part = [](const Operand& operand) {
        return operand.kind == Operand::Kind::vector ? std::span{operand.parts} : std::span{&operand, 1};
    };
    std::vector<std::int32_t> rows(wgmma_numbers);
    for (const Operand& part : each_part(in.operands[0])) {
        rows.push_back(d.target(part, 4));
        if (rows.back() == 0) throw Refused{};
    }
    form.sums = static_cast<std::int32_t>(rows.size()) - wgmma_numbers;
    if (form.sums != form.n / (half ? 4 : 2)) throw Refused{};
    const bool registers = in.operands[1].kind == Operand::Kind::vector;
    if (registers) {
        for (const Operand& part : in.operands[1].parts) rows.push_back(d.source(part, PtxType::b32));
        if (in.operands[1].parts.size() != 4) throw Refused{};
    } else {
        form.a = d.source(in.operands[1], PtxType::b64);
    }
    form.b = d.source(in.operands[2], PtxType::b64);
    form.keep = d.predicate_source(in.operands[3]);
    form.keep_flip = in.operands[3].negated ? 1 : 0;
    const std::size_t signs = whole ? 0 : 2, turns = wide ? (registers ? 1 : 2) : 0;
    if (in.operands.size() != 4 + signs + turns) throw Refused{};
    if (signs) {
        form.negate_a = d.immediate(in.operands[4]) < 0 ? 1 : 0;
        form.negate_b = d.immediate(in.operands[5]) < 0 ? 1 : 0;
    }
    if (turns == 2) form.turned_a = d.immediate(in.operands[6]) != 0 ? 1 : 0;
    if (turns > 0) form.turned_b = d.immediate(in.operands[5 + turns]) != 0 ? 1 : 0;
    std::memcpy(rows.data(), &form, sizeof form);
    op.extra = d.extra(rows);
    op.flops = static_cast<std::uint16_t>(2 * 16 * form.n * depth / 32);
    op.run = wgmma_multiply;
    op.control = true;
    d.emit(op);
}

}  // namespace autotune::emulator

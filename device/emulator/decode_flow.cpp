#include <algorithm>
#include <array>

#include "device/emulator/accesses.h"
#include "device/emulator/bulk_copies.h"
#include "device/emulator/cluster.h"
#include "device/emulator/control.h"
#include "device/emulator/decode_parts.h"

namespace autotune::emulator {
namespace {

void do_nothing(Warp&, const Op&, std::uint32_t) {}

/// %clock and its kin: steps of the warp, so that runs are the same.
void read_clock(Warp& w, const Op& op, std::uint32_t m) {
    ++w.clock;
    const std::uint64_t now = w.steps + 16 * w.clock;
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        if (op.small == 8)
            w.row<std::uint64_t>(op.d)[i] = now;
        else
            w.row<std::uint32_t>(op.d)[i] = static_cast<std::uint32_t>(now);
    }
}

/// small: the Space that is asked for; of generic addresses.
void is_space(Warp& w, const Op& op, std::uint32_t m) {
    std::uint32_t yes = 0;
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        if (space_of(w, w.row<std::uint64_t>(op.a)[i]) == static_cast<Space>(op.small)) yes |= 1u << i;
    }
    std::uint32_t& p = w.predicate(op.d);
    p = (p & ~m) | yes;
}

Space named_space(Modifiers& mods) {
    if (mods.take("global") || mods.take("const")) return Space::global;
    if (mods.take("shared") || mods.take("shared::cta") || mods.take("shared::cluster")) return Space::shared;
    if (mods.take("local")) return Space::local;
    if (mods.take("param") || mods.take("param::entry")) return Space::param;
    throw Refused{};
}

void move_parts(Decoder& d, const Instruction& in, Op op, PtxType type) {
    const bool pack = in.operands[1].kind == Operand::Kind::vector;
    const Operand& whole = in.operands[pack ? 0 : 1];
    const std::vector<Operand>& parts = in.operands[pack ? 1 : 0].parts;
    if (whole.kind == Operand::Kind::vector) throw Refused{};
    if (parts.size() != 2 && parts.size() != 4) throw Refused{};
    const int each = bytes_of(type) / static_cast<int>(parts.size());
    if (each < 2 || bytes_of(type) > 8) throw Refused{};
    std::vector<std::int32_t> rows;
    for (const Operand& part : parts) {
        // What nobody wants goes to a place of its own.
        const bool sink = part.kind == Operand::Kind::sink;
        rows.push_back(pack ? d.source(part, word_of(each)) : sink ? d.spare(each) : d.target(part, each));
    }
    op.extra = d.extra(rows);
    op.small = static_cast<std::uint16_t>(parts.size());
    if (pack) {
        op.d = d.target(whole, bytes_of(type));
        if (op.d == 0) throw Refused{};
    } else {
        op.a = d.source(whole, type);
    }
    Selector s{.operation = pack ? Operation::pack : Operation::unpack, .type = type};
    s.register_bytes = static_cast<std::uint8_t>(each);
    op.run = d.select(s);
    d.emit(op);
}

}  // namespace

void decode_nothing(Decoder& d, const Instruction& in, Op op, Modifiers& mods) {
    (void)in;
    if (mods.base() == "fence" && mods.take("proxy") && mods.take("async")) {
        op.run = proxy_fence;
        op.kind = OpClass::other;
        return d.emit(op);
    }
    op.run = do_nothing;
    op.kind = OpClass::other;
    d.emit(op);
}

void decode_move(Decoder& d, const Instruction& in, Op op, Modifiers& mods) {
    const PtxType type = mods.type();
    if (!mods.empty() || in.operands.size() != 2) throw Refused{};
    op.kind = OpClass::move;
    const Operand& from = in.operands[1];
    if (type == PtxType::pred) {
        op.d = d.predicate(in.operands[0]);
        if (op.d == 0) throw Refused{};
        op.a = d.predicate_source(from);
        op.run = d.select({.operation = Operation::mov_pred});
        return d.emit(op);
    }
    if (bytes_of(type) < 2) throw Refused{};
    if (from.kind == Operand::Kind::vector || in.operands[0].kind == Operand::Kind::vector)
        return move_parts(d, in, op, type);
    op.d = d.target(in.operands[0], bytes_of(type));
    if (op.d == 0) throw Refused{};
    if (from.kind == Operand::Kind::special &&
        (from.name.starts_with("%clock") || from.name.starts_with("%globaltimer"))) {
        op.small = static_cast<std::uint16_t>(bytes_of(type));
        op.run = read_clock;
        return d.emit(op);
    }
    op.a = d.source(from, type);
    op.run = d.select({.operation = Operation::mov, .type = type});
    d.emit(op);
}

void decode_cvta(Decoder& d, const Instruction& in, Op op, Modifiers& mods) {
    const bool to = mods.take("to");
    const Space space = named_space(mods);
    const PtxType type = mods.type();
    if (!mods.empty() || in.operands.size() != 2 || bytes_of(type) != 8) throw Refused{};
    op.d = d.target(in.operands[0], 8);
    if (op.d == 0) throw Refused{};
    op.a = d.source(in.operands[1], PtxType::b64);
    const std::uint64_t window = window_of(space);
    op.imm = static_cast<std::int64_t>(to ? 0 - window : window);
    op.run = window == 0 ? d.select({.operation = Operation::mov, .type = PtxType::b64})
                         : d.select({.operation = Operation::offset_window});
    op.kind = OpClass::move;
    d.emit(op);
}

void decode_isspacep(Decoder& d, const Instruction& in, Op op, Modifiers& mods) {
    op.small = static_cast<std::uint16_t>(named_space(mods));
    if (!mods.empty() || in.operands.size() != 2) throw Refused{};
    op.d = d.predicate(in.operands[0]);
    if (op.d == 0) throw Refused{};
    op.a = d.source(in.operands[1], PtxType::b64);
    op.run = is_space;
    d.emit(op);
}

/// mapa and getctarank.
void decode_cluster_address(Decoder& d, const Instruction& in, Op op, Modifiers& mods) {
    const bool map = mods.base() == "mapa";
    const bool shared = mods.take("shared::cluster");
    const PtxType type = mods.type();
    const int bytes = bytes_of(type);
    if (!mods.empty() || in.operands.size() != (map ? 3u : 2u) || bytes < 4) throw Refused{};
    op.small = static_cast<std::uint16_t>(bytes);
    op.imm = shared ? 0 : static_cast<std::int64_t>(shared_window);
    if (!shared && bytes != 8) throw Refused{};
    op.d = d.target(in.operands[0], map ? bytes : 4);
    if (op.d == 0) throw Refused{};
    op.a = d.source(in.operands[1], word_of(bytes));
    if (map) op.b = d.source(in.operands[2], PtxType::b32);
    op.run = map ? map_address : rank_of_address;
    op.kind = OpClass::move;
    d.emit(op);
}

void decode_branch(Decoder& d, const Instruction& in, Op op, Modifiers& mods) {
    op.control = true;
    op.kind = OpClass::branch;
    mods.take("uni");
    const std::string_view base = mods.base();
    if (base == "bra") {
        if (in.operands.size() != 1 || in.operands[0].kind != Operand::Kind::symbol) throw Refused{};
        d.branch_to(in.operands[0].name, in.scope);
        op.run = branch;
    } else if (base == "brx") {
        if (!mods.take("idx") || in.operands.size() != 2 || in.operands[1].kind != Operand::Kind::symbol)
            throw Refused{};
        op.a = d.source(in.operands[0], PtxType::b32);
        d.indexed_branch_to(op, in.operands[1].name, in.scope);
        op.run = indexed_branch;
    } else if (base == "call") {
        return d.decode_call(op, in);
    } else if (base == "ret") {
        op.run = leave;
        op.imm = d.function_number();
    } else if (base == "exit") {
        op.run = leave_kernel;
    } else if (base == "trap") {
        op.run = trap;
    } else {
        if (in.operands.size() != 1) throw Refused{};
        op.a = d.source(in.operands[0], PtxType::b32);
        op.run = sleep;
    }
    if (!mods.empty() && base != "nanosleep") throw Refused{};
    d.emit(op);
}

void decode_barrier(Decoder& d, const Instruction& in, Op op, Modifiers& mods) {
    op.control = true;
    op.kind = OpClass::barrier;
    std::span<const Operand> operands{in.operands};
    if (mods.take("warp")) {
        mods.take("sync");
        if (!mods.empty() || operands.size() != 1) throw Refused{};
        op.c = d.source(operands[0], PtxType::b32);
        op.run = warp_barrier;
        op.kind = OpClass::collective;
        return d.emit(op);
    }
    if (mods.take("cluster")) {
        for (const std::string_view order : {"release", "relaxed", "acquire"}) mods.take(order);
        const bool arrive = mods.take("arrive");
        if (!arrive && !mods.take("wait")) throw Refused{};
        op.small = mods.take("aligned") ? 1 : 0;
        if (!mods.empty() || !operands.empty()) throw Refused{};
        op.run = arrive ? cluster_arrive : cluster_wait;
        d.partial_barrier();
        return d.emit(op);
    }
    mods.take("cta");
    const bool aligned = mods.take("aligned") || mods.base() == "bar";
    op.small = aligned ? 1 : 0;
    const bool red = mods.take("red");
    if (mods.take("arrive")) {
        op.small |= 2;
        d.partial_barrier();
    } else if (!red && !mods.take("sync")) {
        throw Refused{};
    }
    if (red) {
        const int kind = mods.take("popc") ? 1 : mods.take("and") ? 2 : mods.take("or") ? 3 : 0;
        mods.type();
        if (kind == 0 || operands.size() < 3) throw Refused{};
        op.small = static_cast<std::uint16_t>(op.small | kind << 2);
        op.d = kind == 1 ? d.target(operands[0], 4) : d.predicate(operands[0]);
        if (op.d == 0) throw Refused{};
        const Operand& p = operands.back();
        op.c = d.predicate_source(p);
        if (p.negated) op.small |= 16;
        operands = operands.subspan(1, operands.size() - 2);
    }
    if (!mods.empty() || operands.empty() || operands.size() > 2) throw Refused{};
    op.a = d.source(operands[0], PtxType::b32);
    const bool first = operands[0].kind == Operand::Kind::integer && operands[0].value == 0;
    if (operands.size() == 2) op.b = d.source(operands[1], PtxType::b32);
    if (!first || op.b) d.partial_barrier();
    op.run = block_barrier;
    d.emit(op);
}

void decode_collective(Decoder& d, const Instruction& in, Op op, Modifiers& mods) {
    const std::string_view base = mods.base();
    op.control = true;
    op.kind = OpClass::collective;
    const auto operand = [&](std::size_t i) -> const Operand& {
        if (i >= in.operands.size()) throw Refused{};
        return in.operands[i];
    };
    if (base == "activemask") {
        mods.type();
        op.d = d.target(operand(0), 4);
        if (op.d == 0 || !mods.empty()) throw Refused{};
        op.run = active_mask;
        op.control = false;
        return d.emit(op);
    }
    if (!mods.take("sync")) throw Refused{};  // without: gone since sm_70
    const auto target_and_predicate = [&] {
        const Operand& first = operand(0);
        if (first.kind == Operand::Kind::pair) {
            op.d = d.target(first.parts[0], 4);
            op.imm = d.predicate(first.parts[1]);
        } else {
            op.d = d.target(first, 4);
        }
    };
    if (base == "shfl") {
        constexpr std::array<std::string_view, 4> modes{"up", "down", "bfly", "idx"};
        const int mode = mods.take_any(modes);
        mods.type();
        if (mode < 0) throw Refused{};
        op.small = static_cast<std::uint16_t>(mode);
        target_and_predicate();
        op.a = d.source(operand(1), PtxType::b32);
        op.b = d.source(operand(2), PtxType::b32);
        const std::array rows{d.source(operand(3), PtxType::b32), d.source(operand(4), PtxType::b32)};
        op.extra = d.extra(rows);
        op.run = shuffle;
    } else if (base == "vote") {
        constexpr std::array<std::string_view, 4> modes{"all", "any", "uni", "ballot"};
        const int mode = mods.take_any(modes);
        mods.type();
        if (mode < 0) throw Refused{};
        op.small = static_cast<std::uint16_t>(mode | (operand(1).negated ? 4 : 0));
        op.d = mode == 3 ? d.target(operand(0), 4) : d.predicate(operand(0));
        if (op.d == 0) throw Refused{};
        op.a = d.predicate_source(operand(1));
        op.c = d.source(operand(2), PtxType::b32);
        op.run = vote;
    } else if (base == "match") {
        op.small = mods.take("all") ? 1 : 0;
        mods.take("any");
        const PtxType type = mods.type();
        if (bytes_of(type) == 8) op.small |= 2;
        target_and_predicate();
        op.a = d.source(operand(1), type);
        if (bytes_of(type) < 4) throw Refused{};
        op.c = d.source(operand(2), PtxType::b32);
        op.run = match;
    } else if (base == "redux") {
        constexpr std::array<std::string_view, 6> modes{"add", "min", "max", "and", "or", "xor"};
        const int mode = mods.take_any(modes);
        const PtxType type = mods.type();
        if (mode < 0 || bytes_of(type) != 4 || type == PtxType::f32) throw Refused{};
        op.small = static_cast<std::uint16_t>(mode | (is_signed(type) && mode < 3 ? 8 : 0));
        op.d = d.target(operand(0), 4);
        if (op.d == 0) throw Refused{};
        op.a = d.source(operand(1), PtxType::b32);
        op.c = d.source(operand(2), PtxType::b32);
        op.run = redux;
    } else {
        target_and_predicate();
        op.c = d.source(operand(1), PtxType::b32);
        op.run = elect;
    }
    if (!mods.empty()) throw Refused{};
    d.emit(op);
}

}  // namespace autotune::emulator

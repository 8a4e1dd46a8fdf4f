#include <algorithm>
#include <array>

#include "device/emulator/atomics.h"
#include "device/emulator/block_races.h"
#include "device/emulator/control.h"
#include "device/emulator/copies.h"
#include "device/emulator/decode_parts.h"

namespace autotune::emulator {
namespace {

/// What orders or caches an access has no effect on its result here. Whether it may order blocks.
bool drop_hints(Modifiers& mods) {
    bool strong = false;
    for (const std::string_view name : {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio", "cv", "wt"})
        strong |= mods.take(name);
    for (const std::string_view name :
         {"weak", "cta", "cluster", "gpu", "sys", "ca", "cg", "cs", "lu", "wb", "nc", "unified", "noftz"})
        mods.take(name);
    mods.drop_prefix("L1::");
    mods.drop_prefix("L2::");
    mods.drop_prefix("level::");
    return strong;
}

Space space_taken(Modifiers& mods) {
    if (mods.take("global") || mods.take("const")) return Space::global;
    if (mods.take("shared") || mods.take("shared::cta") || mods.take("shared::cluster")) return Space::shared;
    if (mods.take("local")) return Space::local;
    if (mods.take("param") || mods.take("param::entry") || mods.take("param::func")) return Space::param;
    return Space::generic;
}

int vector_taken(Modifiers& mods) { return mods.take("v2") ? 2 : mods.take("v4") ? 4 : 1; }

/// The registers of a load or store: one, or as many as the vector has.
std::span<const Operand> elements(const Operand& operand, int vector) {
    if (vector == 1) {
        // {r} is written for one, too.
        return operand.kind == Operand::Kind::vector ? std::span{operand.parts} : std::span{&operand, 1};
    }
    if (operand.kind != Operand::Kind::vector || operand.parts.size() != static_cast<std::size_t>(vector))
        throw Refused{};
    return operand.parts;
}

}  // namespace

void decode_load(Decoder& d, const Instruction& in, Op op, Modifiers& mods) {
    Selector s{.operation = Operation::load};
    if (drop_hints(mods)) op.small = BlockRaces::strong;
    const Space space = space_taken(mods);
    s.vector = static_cast<std::uint8_t>(vector_taken(mods));
    s.type = mods.type();
    if (!mods.empty() || in.operands.size() < 2 || bytes_of(s.type) == 0) throw Refused{};
    const auto parts = elements(in.operands[0], s.vector);
    if (parts.size() != s.vector) throw Refused{};
    int bytes = 0;
    for (const Operand& part : parts) bytes = std::max(bytes, d.register_bytes(part));
    if (bytes < std::max(2, bytes_of(s.type))) throw Refused{};
    s.register_bytes = static_cast<std::uint8_t>(bytes);
    std::array<std::int32_t, 4> rows{};
    for (std::size_t i = 0; i < parts.size(); ++i) rows[i] = d.target(parts[i], bytes);
    op.d = rows[0];
    if (s.vector > 1) op.extra = d.extra(std::span{rows}.first(s.vector));
    d.address(op, in.operands[1], space);
    op.run = d.select(s);
    op.kind = OpClass::load;
    if (space == Space::param) op.kind = OpClass::move;
    d.emit(op);
}

void decode_store(Decoder& d, const Instruction& in, Op op, Modifiers& mods) {
    if (mods.take("async")) throw Refused{};
    Selector s{.operation = Operation::store};
    if (drop_hints(mods)) op.small = BlockRaces::strong;
    const Space space = space_taken(mods);
    s.vector = static_cast<std::uint8_t>(vector_taken(mods));
    s.type = mods.type();
    if (!mods.empty() || in.operands.size() < 2 || bytes_of(s.type) == 0) throw Refused{};
    const auto parts = elements(in.operands[1], s.vector);
    if (parts.size() != s.vector) throw Refused{};
    int bytes = 0;
    for (const Operand& part : parts) bytes = std::max(bytes, d.register_bytes(part));
    if (bytes == 0) bytes = std::max(2, bytes_of(s.type));  // constants only
    if (bytes < std::max(2, bytes_of(s.type)) || bytes > 8) throw Refused{};
    s.register_bytes = static_cast<std::uint8_t>(bytes);
    std::array<std::int32_t, 4> rows{};
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const bool real = parts[i].kind == Operand::Kind::real;
        rows[i] = d.source(parts[i], real ? (bytes == 8 ? PtxType::f64 : PtxType::f32) : word_of(bytes));
    }
    op.b = rows[0];
    if (s.vector > 1) op.extra = d.extra(std::span{rows}.first(s.vector));
    d.address(op, in.operands[0], space);
    if (op.space == Space::param) throw Refused{};  // an entry does not write its parameters
    op.run = d.select(s);
    op.kind = space == Space::param ? OpClass::move : OpClass::store;
    d.emit(op);
}

void decode_atomic(Decoder& d, const Instruction& in, Op op, Modifiers& mods) {
    if (mods.take("async")) throw Refused{};
    constexpr std::array<std::string_view, 10> names{"add", "min", "max", "inc",  "dec",
                                                     "and", "or",  "xor", "exch", "cas"};
    drop_hints(mods);
    const Space space = space_taken(mods);
    const int what = mods.take_any(names), vector = vector_taken(mods);
    const PtxType type = mods.type();
    if (what < 0 || !mods.empty() || bytes_of(type) < 2) throw Refused{};
    const auto operation = static_cast<AtomicOperation>(what);
    const bool known = type != PtxType::b128 && (bytes_of(type) != 2 || operation == AtomicOperation::cas ||
                                                 type == PtxType::f16 || type == PtxType::bf16);
    const bool real = type == PtxType::f64 && operation != AtomicOperation::add;
    if (!known || real) throw Refused{};
    const bool answers = mods.base() == "atom";
    const std::size_t first = answers ? 1 : 0;
    if (in.operands.size() < first + (operation == AtomicOperation::cas ? 3 : 2)) throw Refused{};
    op.small = static_cast<std::uint16_t>(what | static_cast<int>(type) << 8);
    std::vector<std::int32_t> rows{vector};
    if (answers)
        for (const Operand& part : elements(in.operands[0], vector)) rows.push_back(d.target(part, bytes_of(type)));
    else
        rows.resize(1 + static_cast<std::size_t>(vector));
    for (const Operand& part : elements(in.operands[first + 1], vector)) rows.push_back(d.source(part, type));
    if (rows.size() != 1 + 2 * static_cast<std::size_t>(vector)) throw Refused{};
    op.d = rows[1];
    op.b = rows[1 + static_cast<std::size_t>(vector)];
    op.extra = d.extra(rows);
    if (operation == AtomicOperation::cas) op.c = d.source(in.operands[first + 2], type);
    d.address(op, in.operands[first], space);
    op.run = atomic;
    op.control = true;
    op.kind = OpClass::atomic;
    d.emit(op);
}

void decode_copy(Decoder& d, const Instruction& in, Op op, Modifiers& mods) {
    if (!mods.take("async")) throw Refused{};
    if (mods.take("mbarrier")) return decode_async_arrive(d, in, op, mods);
    if (mods.take("bulk")) return decode_bulk(d, in, op, mods);
    op.kind = OpClass::copy_async;
    if (mods.take("commit_group")) {
        op.run = commit_copies;
        if (!mods.empty()) throw Refused{};
        return d.emit(op);
    }
    if (const bool all = mods.take("wait_all"); all || mods.take("wait_group")) {
        op.run = wait_copies;
        op.imm = all ? -1 : in.operands.size() == 1 ? d.immediate(in.operands[0]) : 0;
        if (!mods.empty()) throw Refused{};
        return d.emit(op);
    }
    drop_hints(mods);
    mods.take("shared");
    mods.take("shared::cta");
    mods.take("global");
    if (!mods.empty() || in.operands.size() < 3) throw Refused{};
    const std::int64_t bytes = d.immediate(in.operands[2]);
    if (bytes != 4 && bytes != 8 && bytes != 16) throw Refused{};
    op.small = static_cast<std::uint16_t>(bytes);
    d.address(op, in.operands[0], Space::shared);
    std::int64_t offset = 0;
    bool wide = true;
    Space space = Space::global;
    op.b = d.address_row(in.operands[1], offset, wide, space);
    if (!wide || offset > INT32_MAX || offset < INT32_MIN) throw Refused{};
    const std::array rows{static_cast<std::int32_t>(offset)};
    op.extra = d.extra(rows);
    if (in.operands.size() > 3 &&
        (in.operands[3].kind == Operand::Kind::integer || d.register_bytes(in.operands[3]) == 4))
        op.c = d.source(in.operands[3], PtxType::b32);
    op.run = copy_async;
    d.emit(op);
}

void decode_matrix(Decoder& d, const Instruction& in, Op op, Modifiers& mods) {
    const bool load = mods.base() == "ldmatrix";
    mods.take("sync");
    mods.take("aligned");
    mods.take("m8n8");
    mods.take("shared");
    mods.take("shared::cta");
    const int count = mods.take("x1") ? 1 : mods.take("x2") ? 2 : mods.take("x4") ? 4 : 0;
    op.c = mods.take("trans") ? 1 : 0;
    if (mods.type() != PtxType::b16 || !mods.empty() || count == 0 || in.operands.size() != 2 || op.guard != 0)
        throw Refused{};
    const Operand& fragment = in.operands[load ? 0 : 1];
    const auto parts = fragment.kind == Operand::Kind::vector ? std::span{fragment.parts} : std::span{&fragment, 1};
    if (parts.size() != static_cast<std::size_t>(count)) throw Refused{};
    std::vector<std::int32_t> rows;
    for (const Operand& part : parts) {
        rows.push_back(load ? d.target(part, 4) : d.source(part, PtxType::b32));
        if (rows.back() == 0) throw Refused{};
    }
    op.small = static_cast<std::uint16_t>(count);
    op.extra = d.extra(rows);
    d.address(op, in.operands[load ? 1 : 0], Space::shared);
    op.run = d.select({.operation = load ? Operation::ldmatrix : Operation::stmatrix});
    op.kind = load ? OpClass::load : OpClass::store;
    d.emit(op);
}

}  // namespace autotune::emulator

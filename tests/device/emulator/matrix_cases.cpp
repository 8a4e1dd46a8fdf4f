// Goal: each shape and type of mma.sync and wgmma, and each atomic operation, gives what the PTX manual says.
// Method: hand-written PTX, one instruction a kernel, whose operands are registers that the test fills; references are
// loops over the fragments' layouts as the manual draws them. No NVRTC is needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "tests/device/emulator/kernel_cases.h"

namespace autotune {
namespace matrices {
namespace {

using Word = std::uint32_t;

Word random_word(Word& state) {
    state = state * 1664525u + 1013904223u;
    return state >> 4 ^ state << 20;
}

/// A number of a small float format by the book: sign, `exponent` and `fraction` bits.
double small_value(Word bits, int exponent, int fraction) {
    const int bias = (1 << (exponent - 1)) - 1, field = static_cast<int>(bits >> fraction & ((1u << exponent) - 1));
    const double rest = std::ldexp(bits & ((1u << fraction) - 1), -fraction);
    const double size = field ? std::ldexp(1 + rest, field - bias) : std::ldexp(rest, 1 - bias);
    return bits >> (exponent + fraction) & 1 ? -size : size;
}

struct Element {
    const char* name;
    int bits;
    bool whole;
    std::function<double(Word)> value;
    Word mask = ~0u;  ///< keeps numbers small, so that sums are exact
};

const Element half{"f16", 16, false, [](Word x) { return small_value(x & 0xffff, 5, 10); }, 0xcfc0};
const Element brain{"bf16", 16, false, [](Word x) { return small_value(x & 0xffff, 8, 7); }, 0};
const Element tf32{"tf32", 32, false, [](Word x) { return static_cast<double>(std::bit_cast<float>(x & 0xffffe000u)); },
                   0};
const Element e4m3{"e4m3", 8, false, [](Word x) { return small_value(x & 0xff, 4, 3); }, 0xb7};
const Element e5m2{"e5m2", 8, false, [](Word x) { return small_value(x & 0xff, 5, 2); }, 0xbf};
const Element s8{"s8", 8, true, [](Word x) { return static_cast<double>(static_cast<std::int8_t>(x)); }};
const Element u8{"u8", 8, true, [](Word x) { return static_cast<double>(x & 0xff); }};
const Element s4{"s4", 4, true, [](Word x) { return static_cast<double>(static_cast<std::int32_t>(x << 28) >> 28); }};
const Element u4{"u4", 4, true, [](Word x) { return static_cast<double>(x & 15); }};

/// An element's bits: small whole numbers where a format is wide.
Word made(const Element& element, Word& state) {
    const Word x = random_word(state);
    const float small = static_cast<float>(static_cast<int>(x % 33) - 16) / 4;
    if (element.bits == 32) return std::bit_cast<Word>(small) | (x >> 20 & 0xfff);  // low bits do not count
    if (element.mask == 0) return std::bit_cast<Word>(small) >> 16;
    return x & element.mask & (element.bits == 32 ? ~0u : (1u << element.bits) - 1);
}

/// What tensor cores may lose: they align the terms of a sum with the largest and cut off what lies beyond 13 bits
/// of it where factors have 8 bits (the silicon's own, not documented), and beyond 23 otherwise.
double lost_in_alignment(const Element& element, int terms, double largest) {
    return element.whole ? 0 : terms * 2 * largest * (element.bits == 8 ? 0x1p-13 : 0x1p-23);
}

struct Shape {
    Element a, b;
    int k;
    bool half_sum = false;
};

std::string registers(const char* prefix, int count) {
    std::string text = "{";
    for (int i = 0; i < count; ++i) text += (i ? ", %" : "%") + std::string{prefix} + std::to_string(i);
    return text + "}";
}

/// A kernel that loads `in` words a lane from the first buffer to %x, runs `text`, and stores %d to the second.
std::string lane_kernel(int in, int out, const std::string& declarations, const std::string& text) {
    std::string made =
        ".version 8.4\n.target sm_90a\n.address_size 64\n.visible .entry kernel(.param .u64 from, .param .u64 to)\n{\n"
        ".reg .b32 %x<" +
        std::to_string(in) + ">, %d<" + std::to_string(out) + ">, %r<8>;\n.reg .b64 %rd<8>;\n" + declarations +
        "ld.param.u64 %rd0, [from];\nld.param.u64 %rd1, [to];\nmov.u32 %r0, %tid.x;\n"
        "mul.wide.u32 %rd2, %r0, " +
        std::to_string(4 * in) +
        ";\nadd.s64 %rd2, %rd2, %rd0;\n"
        "mul.wide.u32 %rd3, %r0, " +
        std::to_string(4 * out) + ";\nadd.s64 %rd3, %rd3, %rd1;\n";
    for (int i = 0; i < in; ++i)
        made += "ld.global.b32 %x" + std::to_string(i) + ", [%rd2+" + std::to_string(4 * i) + "];\n";
    made += text;
    for (int i = 0; i < out; ++i)
        made += "st.global.b32 [%rd3+" + std::to_string(4 * i) + "], %d" + std::to_string(i) + ";\n";
    return made + "ret;\n}\n";
}

/// The registers' words from a matrix of elements, by the layout of m16n8k*: see the manual's figures.
Word packed(const std::vector<Word>& matrix, int k, int bits, int line, int first) {
    Word word = 0;
    for (int e = 0; e < 32 / bits; ++e) {
        const Word element = matrix[static_cast<std::size_t>(line * k + first + e)];
        word |= (bits == 32 ? element : element & ((1u << bits) - 1)) << (bits == 32 ? 0 : bits * e);
    }
    return word;
}

void multiply_by_warps(const Ground& ground) {
    const std::vector<Shape> shapes{
        {half, half, 8},    {half, half, 16}, {half, half, 8, true}, {half, half, 16, true}, {brain, brain, 8},
        {brain, brain, 16}, {tf32, tf32, 4},  {tf32, tf32, 8},       {e4m3, e4m3, 32},       {e4m3, e5m2, 32},
        {e5m2, e4m3, 32},   {e5m2, e5m2, 32}, {s8, s8, 16},          {s8, u8, 32},           {u8, s8, 16},
        {u8, u8, 32},       {s4, s4, 32},     {s4, u4, 64},          {u4, s4, 64},           {u4, u4, 32}};
    Word state = 7;
    for (const Shape& shape : shapes) {
        const int bits = shape.a.bits, per = 32 / bits, blocks = shape.k / (4 * per), sums = shape.half_sum ? 2 : 4;
        const std::string sum = shape.a.whole ? "s32" : shape.half_sum ? "f16" : "f32";
        const std::string opcode = "mma.sync.aligned.m16n8k" + std::to_string(shape.k) + ".row.col." + sum + "." +
                                   shape.a.name + "." + shape.b.name + "." + sum;
        std::vector<Word> a(static_cast<std::size_t>(16 * shape.k)), b(static_cast<std::size_t>(8 * shape.k));
        for (Word& x : a) x = made(shape.a, state);
        for (Word& x : b) x = made(shape.b, state);
        const int in = 3 * blocks + sums;
        std::vector<Word> words;
        for (int lane = 0; lane < 32; ++lane) {
            const int g = lane / 4, t = lane % 4;
            for (int r = 0; r < 2 * blocks; ++r)
                words.push_back(packed(a, shape.k, bits, g + 8 * (r % 2), per * t + 4 * per * (r / 2)));
            for (int r = 0; r < blocks; ++r) words.push_back(packed(b, shape.k, bits, g, per * t + 4 * per * r));
            for (int r = 0; r < sums; ++r)
                words.push_back(shape.a.whole    ? static_cast<Word>(lane - r)
                                : shape.half_sum ? 0x3c003c00u
                                                 : std::bit_cast<Word>(static_cast<float>(lane - r)));
        }
        const auto list = [&](int first, int count) {
            std::string text = "{";
            for (int i = 0; i < count; ++i) text += (i ? ", %x" : "%x") + std::to_string(first + i);
            return text + "}";
        };
        // One register alone stands without braces as well as with them.
        KernelOn<Device> kernel =
            ground.load(ptx_only(lane_kernel(in, sums, "",
                                             opcode + " " + registers("d", sums) + ", " + list(0, 2 * blocks) + ", " +
                                                 list(2 * blocks, blocks) + ", " + list(3 * blocks, sums) + ";\n")));
        kernel.buffer(words);
        kernel.empty(static_cast<std::uint64_t>(32 * sums) * 4);
        kernel.run("kernel", {1}, {32}, {BufferArgument{0}, BufferArgument{1}});
        const std::vector<Word> d = kernel.contents<Word>(1);
        int wrong = 0;
        for (int lane = 0; lane < 32 && wrong < 3; ++lane)
            for (int r = 0; r < 4; ++r) {
                const int row = lane / 4 + 8 * (r / 2), column = 2 * (lane % 4) + r % 2;
                double want = shape.half_sum ? 1 : lane - r, magnitude = std::fabs(want), largest = magnitude;
                for (int k = 0; k < shape.k; ++k) {
                    const double term = shape.a.value(a[static_cast<std::size_t>(row * shape.k + k)]) *
                                        shape.b.value(b[static_cast<std::size_t>(column * shape.k + k)]);
                    want += term;
                    magnitude += std::fabs(term);
                    largest = std::max(largest, std::fabs(term));
                }
                const Word word = d[static_cast<std::size_t>(lane * sums + (shape.half_sum ? r / 2 : r))];
                const double got = shape.a.whole    ? static_cast<double>(static_cast<std::int32_t>(word))
                                   : shape.half_sum ? small_value(word >> (16 * (r % 2)) & 0xffff, 5, 10)
                                                    : static_cast<double>(std::bit_cast<float>(word));
                double bound = shape.a.whole ? 0 : magnitude * (shape.half_sum ? 0x1p-10 : 0x1p-20);
                if (ground.hardware) bound += lost_in_alignment(shape.a, shape.k + 1, largest);
                if (std::fabs(got - want) <= bound) continue;
                ++wrong;
                ADD_FAILURE() << opcode << ", lane " << lane << ", register " << r << ": " << got << ", should be "
                              << want;
            }
    }
}

// ---- wgmma of the types that hopper_test.cpp has no kernel for: 64 x N x 32 bytes, both operands without swizzle.

struct Wgmma {
    Element type;
    int n;
    bool half_sum = false;
};

void multiply_by_warpgroups(const Ground& ground) {
    const std::vector<Wgmma> all{{half, 8},  {half, 64, true}, {brain, 256}, {tf32, 24},
                                 {e4m3, 32}, {e5m2, 16, true}, {s8, 128},    {u8, 8}};
    Word state = 11;
    for (const Wgmma& one : all) {
        const int bits = one.type.bits, per = 32 / bits, k = 8 * per, sums = one.n / (one.half_sum ? 4 : 2);
        const std::string sum = one.type.whole ? "s32" : one.half_sum ? "f16" : "f32";
        const std::string opcode = "wgmma.mma_async.sync.aligned.m64n" + std::to_string(one.n) + "k" +
                                   std::to_string(k) + "." + sum + "." + one.type.name + "." + one.type.name;
        std::vector<Word> a(static_cast<std::size_t>(64 * k)), b(static_cast<std::size_t>(one.n * k));
        for (Word& x : a) x = made(one.type, state);
        for (Word& x : b) x = made(one.type, state);
        // Core matrices of 8 lines by 16 bytes: two along k, then the next 8 lines. Each thread stores its share.
        const int lines = 64 + one.n, each = (lines * 8 + 127) / 128;
        std::vector<Word> words(static_cast<std::size_t>(128 * each));
        for (int line = 0; line < lines; ++line)
            for (int word = 0; word < 8; ++word) {
                const bool first = line < 64;
                const int at = line / 8 * 64 + word / 4 * 32 + line % 8 * 4 + word % 4;
                words[static_cast<std::size_t>(at)] =
                    packed(first ? a : b, k, bits, first ? line : line - 64, word * per);
            }
        std::string text = "shl.b32 %r1, %r0, 2;\nmul.lo.u32 %r1, %r1, " + std::to_string(each) +
                           ";\nmov.u32 %r2, tile;\nadd.u32 %r1, %r1, %r2;\n";
        for (int i = 0; i < each; ++i)
            text += "st.shared.b32 [%r1+" + std::to_string(4 * i) + "], %x" + std::to_string(i) + ";\n";
        text +=
            "fence.proxy.async;\nbar.sync 0;\nshr.u32 %r3, %r2, 4;\ncvt.u64.u32 %rd4, %r3;\n"
            "or.b64 %rd4, %rd4, " +
            std::to_string(std::uint64_t{8} << 16 | std::uint64_t{16} << 32) + ";\nadd.s64 %rd5, %rd4, " +
            std::to_string(64 * 32 / 16) + ";\n";
        for (int i = 0; i < sums; ++i) text += "mov.b32 %d" + std::to_string(i) + ", 0;\n";
        const bool wide = bits == 16;
        const std::string tail = one.type.whole ? "" : wide ? ", 1, -1, 0, 0" : ", 1, -1";
        text += "setp.ne.s32 %p0, %r2, %r2;\nwgmma.fence.sync.aligned;\n" + opcode + " " + registers("d", sums) +
                ", %rd4, %rd5, %p0" + tail + ";\n" + opcode + " " + registers("d", sums) + ", %rd4, %rd5, !%p0" + tail +
                ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
        KernelOn<Device> kernel = ground.load(ptx_only(lane_kernel(
            each, sums, ".reg .pred %p<2>;\n.shared .align 128 .b8 tile[" + std::to_string(512 * each) + "];\n",
            text)));
        kernel.buffer(words);
        kernel.empty(static_cast<std::uint64_t>(128 * sums) * 4);
        kernel.run("kernel", {1}, {128}, {BufferArgument{0}, BufferArgument{1}});
        const std::vector<Word> d = kernel.contents<Word>(1);
        const double sign = one.type.whole ? 2 : -2;  // twice, the second factor negated
        int wrong = 0;
        for (int row = 0; row < 64; ++row)
            for (int column = 0; column < one.n && wrong < 3; ++column) {
                double want = 0, magnitude = 0, largest = 0;
                for (int j = 0; j < k; ++j) {
                    const double term = one.type.value(a[static_cast<std::size_t>(row * k + j)]) *
                                        one.type.value(b[static_cast<std::size_t>(column * k + j)]);
                    want += sign * term;
                    magnitude += 2 * std::fabs(term);
                    largest = std::max(largest, std::fabs(term));
                }
                const int thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2, h = row % 16 / 8, e = column % 2;
                const Word word = d[static_cast<std::size_t>(
                    thread * sums + (one.half_sum ? column / 8 * 2 + h : column / 8 * 4 + 2 * h + e))];
                const double got = one.type.whole ? static_cast<double>(static_cast<std::int32_t>(word))
                                   : one.half_sum ? small_value(word >> (16 * e) & 0xffff, 5, 10)
                                                  : static_cast<double>(std::bit_cast<float>(word));
                double bound = one.type.whole ? 0 : magnitude * (one.half_sum ? 0x1p-9 : 0x1p-20);
                if (ground.hardware) bound += lost_in_alignment(one.type, 2 * k + 1, std::max(largest, magnitude / 2));
                if (std::fabs(got - want) <= bound) continue;
                ++wrong;
                ADD_FAILURE() << opcode << " at " << row << ", " << column << ": " << got << ", should be " << want;
            }
    }
}

// ---- Atomics: the emulator's lanes come in their order.

struct Atomic {
    const char* opcode;
    std::function<Word(Word, Word)> step;
};

float number(Word x) { return std::bit_cast<float>(x); }
std::int32_t whole(Word x) { return static_cast<std::int32_t>(x); }

void step_atomically(const Ground& ground) {
    const std::vector<Atomic> all{
        {"add.u32", [](Word a, Word b) { return a + b; }},
        {"add.s32", [](Word a, Word b) { return a + b; }},
        {"add.f32", [](Word a, Word b) { return std::bit_cast<Word>(number(a) + number(b)); }},
        {"min.u32", [](Word a, Word b) { return std::min(a, b); }},
        {"max.u32", [](Word a, Word b) { return std::max(a, b); }},
        {"min.s32", [](Word a, Word b) { return static_cast<Word>(std::min(whole(a), whole(b))); }},
        {"max.s32", [](Word a, Word b) { return static_cast<Word>(std::max(whole(a), whole(b))); }},
        {"inc.u32", [](Word a, Word b) { return a >= b ? 0 : a + 1; }},
        {"dec.u32", [](Word a, Word b) { return a == 0 || a > b ? b : a - 1; }},
        {"and.b32", [](Word a, Word b) { return a & b; }},
        {"or.b32", [](Word a, Word b) { return a | b; }},
        {"xor.b32", [](Word a, Word b) { return a ^ b; }},
        {"exch.b32", [](Word, Word b) { return b; }},
        {"cas.b32", [](Word a, Word b) { return a == b ? b + 1 : a; }},
    };
    for (const Atomic& one : all) {
        const bool real = std::string{one.opcode} == "add.f32", swap = std::string{one.opcode} == "cas.b32";
        std::vector<Word> x(32);
        Word state = 3;
        for (std::size_t i = 0; i < 32; ++i)
            x[i] = real   ? std::bit_cast<Word>(static_cast<float>(i) - 7.5f)
                   : swap ? static_cast<Word>(i * 2)
                          : random_word(state) % (i % 3 ? 0xffffffffu : 9);
        const std::vector<std::string> spaces{"global", "shared"};
        for (const std::string& space : spaces) {
            const std::string at = space == "global" ? "[%rd4]" : "[cell]";
            std::string text = "add.s64 %rd4, %rd1, 128;\n";
            if (space == "shared")
                text += "setp.eq.u32 %p0, %r0, 0;\n@%p0 st.shared.b32 [cell], 5;\nbar.warp.sync -1;\n";
            else
                text += "setp.eq.u32 %p0, %r0, 0;\n@%p0 st.global.b32 [%rd4], 5;\nbar.warp.sync -1;\n";
            text += "add.u32 %r1, %x0, 1;\natom." + space + "." + one.opcode + " %d0, " + at + ", %x0" +
                    (swap ? ", %r1" : "") + ";\nbar.warp.sync -1;\nld." + space + ".b32 %r2, " + at +
                    ";\nst.global.b32 [%rd1+128], %r2;\n";
            KernelOn<Device> kernel =
                ground.load(ptx_only(lane_kernel(1, 1, ".reg .pred %p<2>;\n.shared .align 4 .b8 cell[4];\n", text)));
            kernel.buffer(x);
            kernel.empty(132);
            kernel.run("kernel", {1}, {32}, {BufferArgument{0}, BufferArgument{1}});
            const std::vector<Word> y = kernel.contents<Word>(1);
            if (ground.hardware) {  // some order: each step but the first starts from what another left
                std::vector<Word> found(y.begin(), y.end()), left{5};
                for (std::size_t i = 0; i < 32; ++i) left.push_back(one.step(y[i], x[i]));
                std::ranges::sort(found);
                std::ranges::sort(left);
                EXPECT_EQ(found, left) << one.opcode << " of " << space;
                continue;
            }
            Word now = 5;
            for (std::size_t i = 0; i < 32; ++i) {
                EXPECT_EQ(y[i], now) << one.opcode << " of " << space << ", lane " << i;
                now = one.step(now, x[i]);
            }
            EXPECT_EQ(y[32], now) << one.opcode;
        }
    }
}

}  // namespace
}  // namespace matrices

std::vector<KernelCase> matrix_cases() {
    return {{"Mma", matrices::multiply_by_warps},
            {"WarpgroupMma", matrices::multiply_by_warpgroups},
            {"Atomics", matrices::step_atomically}};
}

}  // namespace autotune

#include "device/emulator/wmma.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "device/emulator/accesses.h"
#include "device/emulator/block.h"
#include "device/emulator/fault.h"
#include "device/emulator/numbers.h"

namespace autotune::emulator {
namespace {

constexpr int most_elements = 32 * 32;

int element_bytes(PtxType type) { return type == PtxType::tf32 ? 4 : bytes_of(type); }
int register_bytes(PtxType type) { return type == PtxType::f64 ? 8 : 4; }

WmmaForm form_of(const Warp& w, const Op& op) {
    const std::int32_t* const n = w.extra + op.extra;
    return {.m = n[0],
            .n = n[1],
            .k = n[2],
            .which = static_cast<char>(n[3]),
            .column = n[4] != 0,
            .type = static_cast<PtxType>(n[5]),
            .a = static_cast<PtxType>(n[6]),
            .b = static_cast<PtxType>(n[7]),
            .c = static_cast<PtxType>(n[8]),
            .registers = n[9],
            .a_registers = n[10],
            .b_registers = n[11],
            .c_registers = n[12]};
}

int rows_of(const WmmaForm& form) { return form.which == 'b' ? form.k : form.m; }
int columns_of(const WmmaForm& form) { return form.which == 'a' ? form.k : form.n; }

/// The bytes of slot `slot` of a lane.
std::byte* slot_at(Warp& w, const std::int32_t* rows, PtxType type, int lane, int slot) {
    const int size = element_bytes(type), wide = register_bytes(type), per = wide / size;
    return w.row<std::byte>(rows[slot / per]) + wide * lane + size * (slot % per);
}

int slots(PtxType type, int registers) { return registers * register_bytes(type) / element_bytes(type); }

double value_of(const std::byte* at, PtxType type) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, at, static_cast<std::size_t>(element_bytes(type)));
    switch (type) {
        case PtxType::f16:
            return static_cast<double>(float_of_half(static_cast<std::uint16_t>(bits)));
        case PtxType::bf16:
            return static_cast<double>(float_of_bf16(static_cast<std::uint16_t>(bits)));
        case PtxType::tf32:
            return static_cast<double>(float_of(static_cast<std::uint32_t>(bits) & 0xffffe000u));
        case PtxType::f32:
            return static_cast<double>(float_of(static_cast<std::uint32_t>(bits)));
        case PtxType::f64:
            return double_of(bits);
        case PtxType::s8:
            return static_cast<std::int8_t>(bits);
        case PtxType::u8:
            return static_cast<std::uint8_t>(bits);
        default:
            return static_cast<std::int32_t>(bits);
    }
}

/// A matrix of a fragment, row by row.
void matrix_of(Warp& w, const std::int32_t* rows, PtxType type, int registers, int elements, double* to) {
    const int per_lane = slots(type, registers);
    for (int lane = 0; lane < lanes && lane * per_lane < elements; ++lane)
        for (int slot = 0; slot < per_lane; ++slot)
            if (lane * per_lane + slot < elements)
                to[lane * per_lane + slot] = value_of(slot_at(w, rows, type, lane, slot), type);
}

void put(std::byte* to, PtxType type, double value) {
    if (type == PtxType::f16) {
        const std::uint16_t bits = half_of_float(static_cast<float>(value));
        std::memcpy(to, &bits, 2);
    } else if (type == PtxType::f32) {
        const auto x = static_cast<float>(value);
        std::memcpy(to, &x, 4);
    } else if (type == PtxType::f64) {
        std::memcpy(to, &value, 8);
    } else {
        const auto x = static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::int64_t>(value)));
        std::memcpy(to, &x, 4);
    }
}

/// Moves a matrix between memory and a fragment, a row or column of the memory's order at a time for the checks.
void move(Warp& w, const Op& op, std::uint32_t m, bool load) {
    if (m != all_lanes) incomplete_warp(w, op, m);
    const WmmaForm form = form_of(w, op);
    const std::int32_t* const rows = w.extra + op.extra + wmma_numbers;
    const auto size = static_cast<std::uint32_t>(element_bytes(form.type));
    const int elements = rows_of(form) * columns_of(form), per_lane = slots(form.type, form.registers);
    const std::int64_t stride = static_cast<std::int32_t>(w.row<std::uint32_t>(op.c)[0]);
    const Access access = load ? Access::load : Access::store;
    std::uint64_t base[lanes];
    const Space space = resolve(w, op, 1, op.a, op.imm, op.space, op.wide_address, base, size, access);
    const SpaceView& view = w.views[static_cast<int>(space)];
    const int total = per_lane * lanes;
    for (int first = 0; first < (load ? total : elements); first += lanes) {
        std::uint64_t at[lanes]{};
        std::uint32_t taking = 0;
        for (int i = 0; i < lanes && first + i < (load ? total : elements); ++i) {
            const int element = (first + i) % elements, r = element / columns_of(form), c = element % columns_of(form);
            const std::int64_t index = form.column ? c * stride + r : r * stride + c;
            at[i] = base[0] + static_cast<std::uint64_t>(index) * size;
            taking |= 1u << i;
            if (at[i] >= view.size || size > view.size - at[i]) bad_access(w, op, 1u << i, space, at, size, access);
        }
        if (w.checked && view.states) check_states(w, op, taking, space, at, size, access);
        if (w.checked && space == Space::shared && w.races) {
            std::uint32_t narrow[lanes];
            for (int i = 0; i < lanes; ++i) narrow[i] = static_cast<std::uint32_t>(at[i]);
            if (load)
                w.races->read(w, op, taking, narrow, size);
            else
                w.races->write(w, op, taking, narrow, size);
        }
        if (w.counted) count_access(w, taking, space, at, size, access);
        for (std::uint32_t left = taking; left; left &= left - 1) {
            const int i = __builtin_ctz(left), slot = first + i;
            std::byte* const in = slot_at(w, rows, form.type, slot / per_lane, slot % per_lane);
            std::byte* const out = view.base + at[i];
            if (load)
                std::memcpy(in, out, size);
            else
                std::memcpy(out, in, size);
        }
    }
}

}  // namespace

bool wmma_type(PtxType type) noexcept {
    switch (type) {
        case PtxType::f16:
        case PtxType::bf16:
        case PtxType::tf32:
        case PtxType::f32:
        case PtxType::f64:
        case PtxType::s8:
        case PtxType::u8:
        case PtxType::s32:
            return true;
        default:
            return false;
    }
}

bool wmma_fits(const WmmaForm& form) noexcept {
    const auto holds = [](PtxType type, int registers, int elements) {
        const int total = slots(type, registers) * lanes;
        return elements > 0 && elements <= most_elements && registers > 0 && registers <= 16 && total >= elements &&
               total % elements == 0;
    };
    if (form.a == PtxType::none) return holds(form.type, form.registers, rows_of(form) * columns_of(form));
    return holds(form.type, form.registers, form.m * form.n) && holds(form.a, form.a_registers, form.m * form.k) &&
           holds(form.b, form.b_registers, form.k * form.n) && holds(form.c, form.c_registers, form.m * form.n);
}

void wmma_load(Warp& w, const Op& op, std::uint32_t m) { move(w, op, m, true); }
void wmma_store(Warp& w, const Op& op, std::uint32_t m) { move(w, op, m, false); }

void wmma_multiply(Warp& w, const Op& op, std::uint32_t m) {
    if (m != all_lanes) incomplete_warp(w, op, m);
    const WmmaForm form = form_of(w, op);
    const std::int32_t* const d = w.extra + op.extra + wmma_numbers;
    const std::int32_t* const a_rows = d + form.registers;
    const std::int32_t* const b_rows = a_rows + form.a_registers;
    const std::int32_t* const c_rows = b_rows + form.b_registers;
    double a[most_elements], b[most_elements], c[most_elements];
    matrix_of(w, a_rows, form.a, form.a_registers, form.m * form.k, a);
    matrix_of(w, b_rows, form.b, form.b_registers, form.k * form.n, b);
    matrix_of(w, c_rows, form.c, form.c_registers, form.m * form.n, c);
    const bool single = form.type == PtxType::f32 || form.type == PtxType::f16;
    for (int i = 0; i < form.m; ++i)
        for (int k = 0; k < form.k; ++k)
            for (int j = 0; j < form.n; ++j) {
                double& sum = c[i * form.n + j];
                sum += a[i * form.k + k] * b[k * form.n + j];
                if (single) sum = static_cast<double>(static_cast<float>(sum));
            }
    const int elements = form.m * form.n, per_lane = slots(form.type, form.registers);
    for (int slot = 0; slot < per_lane * lanes; ++slot)
        put(slot_at(w, d, form.type, slot / per_lane, slot % per_lane), form.type, c[slot % elements]);
}

}  // namespace autotune::emulator

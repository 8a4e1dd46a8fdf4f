#ifndef AUTOTUNE_DEVICE_EMULATOR_PTX_TYPE_H
#define AUTOTUNE_DEVICE_EMULATOR_PTX_TYPE_H

#include <array>
#include <cstdint>
#include <string_view>

namespace autotune::emulator {

/// A type of PTX as it stands in an instruction or a declaration; `none` where there is none.
enum class PtxType : std::uint8_t {
    none,
    pred,
    b1,
    b8,
    b16,
    b32,
    b64,
    b128,
    u4,
    s4,
    u8,
    u16,
    u32,
    u64,
    s8,
    s16,
    s32,
    s64,
    f16,
    f16x2,
    bf16,
    bf16x2,
    tf32,
    f32,
    f64,
    e4m3,
    e5m2,
    e4m3x2,
    e5m2x2
};

struct PtxTypeInfo {
    PtxType type;
    std::string_view name;
    int bytes;  ///< in memory; 0 for those that have no place there
};

inline constexpr std::array<PtxTypeInfo, 29> ptx_types{{
    {PtxType::none, "", 0},         {PtxType::pred, "pred", 0},     {PtxType::b1, "b1", 0},
    {PtxType::b8, "b8", 1},         {PtxType::b16, "b16", 2},       {PtxType::b32, "b32", 4},
    {PtxType::b64, "b64", 8},       {PtxType::b128, "b128", 16},    {PtxType::u4, "u4", 0},
    {PtxType::s4, "s4", 0},         {PtxType::u8, "u8", 1},         {PtxType::u16, "u16", 2},
    {PtxType::u32, "u32", 4},       {PtxType::u64, "u64", 8},       {PtxType::s8, "s8", 1},
    {PtxType::s16, "s16", 2},       {PtxType::s32, "s32", 4},       {PtxType::s64, "s64", 8},
    {PtxType::f16, "f16", 2},       {PtxType::f16x2, "f16x2", 4},   {PtxType::bf16, "bf16", 2},
    {PtxType::bf16x2, "bf16x2", 4}, {PtxType::tf32, "tf32", 4},     {PtxType::f32, "f32", 4},
    {PtxType::f64, "f64", 8},       {PtxType::e4m3, "e4m3", 1},     {PtxType::e5m2, "e5m2", 1},
    {PtxType::e4m3x2, "e4m3x2", 2}, {PtxType::e5m2x2, "e5m2x2", 2},
}};

constexpr int bytes_of(PtxType type) noexcept { return ptx_types[static_cast<std::size_t>(type)].bytes; }

/// The type of that name, without its dot; `none` where there is no such type.
constexpr PtxType ptx_type_named(std::string_view name) noexcept {
    if (name.empty()) return PtxType::none;
    for (const PtxTypeInfo& row : ptx_types)
        if (row.name == name) return row.type;
    return PtxType::none;
}

constexpr bool is_signed(PtxType type) noexcept {
    return type == PtxType::s8 || type == PtxType::s16 || type == PtxType::s32 || type == PtxType::s64;
}

}  // namespace autotune::emulator
#endif

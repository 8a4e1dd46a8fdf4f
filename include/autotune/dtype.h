#ifndef AUTOTUNE_DTYPE_H
#define AUTOTUNE_DTYPE_H

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace autotune {

/// Element types; the order is that of `autotune_dtype` in reference.h.
enum class DType { f64, f32, f16, bf16, f8e4m3, f8e5m2, i64, i32, i16, i8, u8, u32, boolean };

struct DTypeInfo {
    DType dtype;
    std::string_view name;      ///< in op files, keys and messages
    std::string_view c_name;    ///< what a `define`d dtype pastes as in a template
    std::size_t bytes;
    bool floating;
    double unit_roundoff;       ///< half the distance from 1 to the next larger number; 0 for integers
    double smallest_subnormal;  ///< 0 for integers
};

/// One row a type, in enum order.
inline constexpr std::array<DTypeInfo, 13> dtypes{{
    {DType::f64, "f64", "double", 8, true, 0x1p-53, 0x1p-1074},
    {DType::f32, "f32", "float", 4, true, 0x1p-24, 0x1p-149},
    {DType::f16, "f16", "__half", 2, true, 0x1p-11, 0x1p-24},
    {DType::bf16, "bf16", "__nv_bfloat16", 2, true, 0x1p-8, 0x1p-133},
    {DType::f8e4m3, "f8e4m3", "__nv_fp8_e4m3", 1, true, 0x1p-4, 0x1p-9},
    {DType::f8e5m2, "f8e5m2", "__nv_fp8_e5m2", 1, true, 0x1p-3, 0x1p-16},
    {DType::i64, "i64", "long long", 8, false, 0, 0},
    {DType::i32, "i32", "int", 4, false, 0, 0},
    {DType::i16, "i16", "short", 2, false, 0, 0},
    {DType::i8, "i8", "signed char", 1, false, 0, 0},
    {DType::u8, "u8", "unsigned char", 1, false, 0, 0},
    {DType::u32, "u32", "unsigned int", 4, false, 0, 0},
    {DType::boolean, "bool", "bool", 1, false, 0, 0},
}};

constexpr const DTypeInfo& info(DType dtype) noexcept { return dtypes[static_cast<std::size_t>(dtype)]; }
constexpr std::size_t size_of(DType dtype) noexcept { return info(dtype).bytes; }
constexpr std::string_view name_of(DType dtype) noexcept { return info(dtype).name; }

constexpr std::optional<DType> dtype_named(std::string_view name) noexcept {
    for (const DTypeInfo& row : dtypes)
        if (row.name == name) return row.dtype;
    return std::nullopt;
}

}  // namespace autotune
#endif

#include "device/tensor_map.h"

#include <algorithm>
#include <array>

namespace autotune {
namespace {

constexpr std::size_t most_dimensions = 5;

CUtensorMapDataType type_of(DType dtype) noexcept {
    switch (dtype) {
        case DType::f64:
            return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
        case DType::f32:
            return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
        case DType::f16:
            return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
        case DType::bf16:
            return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
        case DType::i64:
            return CU_TENSOR_MAP_DATA_TYPE_INT64;
        case DType::i32:
            return CU_TENSOR_MAP_DATA_TYPE_INT32;
        case DType::u32:
            return CU_TENSOR_MAP_DATA_TYPE_UINT32;
        case DType::i16:
            return CU_TENSOR_MAP_DATA_TYPE_UINT16;
        default:
            return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    }
}

CUtensorMapSwizzle swizzle_of(std::uint32_t bytes) noexcept {
    switch (bytes) {
        case 32:
            return CU_TENSOR_MAP_SWIZZLE_32B;
        case 64:
            return CU_TENSOR_MAP_SWIZZLE_64B;
        case 128:
            return CU_TENSOR_MAP_SWIZZLE_128B;
        default:
            return CU_TENSOR_MAP_SWIZZLE_NONE;
    }
}

}  // namespace

CUresult encode_tensor_map(const DriverCalls& calls, const TensorMapArgument& map, std::uint64_t address,
                           CUtensorMap& out) noexcept {
    if (!calls.cuTensorMapEncodeTiled) return CUDA_ERROR_NOT_SUPPORTED;
    const std::size_t rank = map.extents.size();
    if (rank == 0 || rank > most_dimensions || map.strides_bytes.size() + 1 != rank || map.box.size() != rank)
        return CUDA_ERROR_INVALID_VALUE;
    std::array<cuuint64_t, most_dimensions> extents{}, strides{};
    std::array<cuuint32_t, most_dimensions> box{}, steps{};
    std::ranges::copy(map.extents, extents.begin());
    std::ranges::copy(map.strides_bytes, strides.begin());
    std::ranges::copy(map.box, box.begin());
    steps.fill(1);
    return calls.cuTensorMapEncodeTiled(&out, type_of(map.dtype), static_cast<cuuint32_t>(rank),
                                        reinterpret_cast<void*>(address), extents.data(), strides.data(), box.data(),
                                        steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(map.swizzle_bytes),
                                        CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

}  // namespace autotune

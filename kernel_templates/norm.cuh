// norm: what the kernels of layernorm and rmsnorm say of a y that is quantised.
#ifndef AUTOTUNE_NORM_CUH
#define AUTOTUNE_NORM_CUH

#include "narrow.cuh"

/// As the field `out` names them: as x, or narrow, with a scale a row.
enum class Out { same, e4m3, int8 };
template <Out out>
constexpr Format format_of = out == Out::int8 ? Format::int8 : Format::e4m3;

/// The scale of a row whose largest magnitude has these bits. A NaN is its own.
template <Format format>
__device__ __forceinline__ float row_scale(unsigned bits) {
    return bits > 0x7f800000u ? __uint_as_float(bits) : scale_of<format>(__uint_as_float(bits));
}

#endif

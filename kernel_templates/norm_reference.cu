// layernorm and rmsnorm in double: what stands in for the CPU references where those would take seconds
//
// plain and _off    double, packed: values and magnitudes, as tuner/references/norm.h says
// launch            grid = any, block = 256; a block takes a row at a time
#include "norm.cuh"
#include "reference.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T __nv_bfloat16
#endif
#ifndef W
#define W T
#endif
#ifndef RESIDUAL
#define RESIDUAL 0
#endif
#ifndef BIAS
#define BIAS 0
#endif
#ifndef STATS
#define STATS 0
#endif
#ifndef OUT
#define OUT same
#endif

constexpr bool quantised = Out::OUT != Out::same;

/// Half a unit in the last place of 1, in units of 2^-23.
__device__ double rounding(float) { return 0.5; }
__device__ double rounding(__half) { return 4096.0; }
__device__ double rounding(__nv_bfloat16) { return 32768.0; }

extern "C" __global__ void __launch_bounds__(256)
    norm_reference(const T* x, const T* residual, const W* weight, const W* bias, double* sum, double* sum_off,
                   double* y, double* y_off, double* scales, double* scales_off, double* mean_out, double* mean_out_off,
                   double* rstd_out, double* rstd_out_off, long long rows, int cols, long long ldx, float eps,
                   float offset, int centred) {
    const double n = cols, root = sqrt(n), limit = limit_of<format_of<Out::OUT>>;
    const double stored = RESIDUAL ? rounding(T{}) : 0.0;
    for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
        const auto h = [=](long long c) {
            const double plain = to_float(x[row * ldx + c]);
            return RESIDUAL ? plain + to_float(residual[row * cols + c]) : plain;
        };
        const double mean = centred ? block_sum(cols, [=](long long c) { return h(c) / n; }) : 0.0;
        const double size = block_sum(cols, [=](long long c) { return fabs(h(c)) / n; });
        const double squares = block_sum(cols, [=](long long c) { return (h(c) - mean) * (h(c) - mean) / n; });
        const double spread = block_sum(cols, [=](long long c) { return fabs((h(c) - mean) * h(c)) / n; });
        const double rstd = 1.0 / sqrt(squares + eps);
        const double mean_off = centred ? (1.0 + root + stored) * size : 0.0;
        const double rstd_off =
            4.0 + 0.5 * root + stored * spread * rstd * rstd + 0.5 * mean_off * mean_off * 0x1p-23 * rstd * rstd;
        if (STATS && threadIdx.x == 0) {
            if (centred) {
                mean_out[row] = mean;
                mean_out_off[row] = mean_off;
            }
            rstd_out[row] = rstd;
            rstd_out_off[row] = rstd * rstd_off;
        }
        const auto value = [=](long long c) {
            return (h(c) - mean) * rstd * (static_cast<double>(to_float(weight[c])) + offset) +
                   (BIAS ? static_cast<double>(to_float(bias[c])) : 0.0);
        };
        const auto off = [=](long long c) {
            return fabs(static_cast<double>(to_float(weight[c])) + offset) * rstd *
                       (mean_off + stored * fabs(h(c)) + fabs(h(c) - mean) * (rstd_off + 2.0)) +
                   fabs(value(c));
        };
        double scale = 1.0, largest_off = 0.0;
        if (quantised) {
            const double largest = block_max(cols, [=](long long c) { return fabs(value(c)); });
            const double any_nan = block_sum(cols, [=](long long c) { return isnan(value(c)) ? value(c) : 0.0; });
            largest_off = block_max(cols, off);
            scale = fmax(largest, 0x1p-96) / limit + any_nan;
            scales[row] = scale;
            scales_off[row] = largest_off / limit + 2.0 * scale;
        }
        for (int c = threadIdx.x; c < cols; c += 256) {
            if (RESIDUAL) {
                sum[row * cols + c] = h(c);
                sum_off[row * cols + c] = fabs(h(c));
            }
            const double q = Out::OUT == Out::int8 && isnan(scale) ? 0.0 : value(c) / scale;
            const double step = Out::OUT == Out::int8 ? 0.5 * 0x1p23 : 0.0;
            y[row * cols + c] = quantised ? q : value(c);
            y_off[row * cols + c] =
                quantised ? (off(c) + fabs(q) / limit * largest_off) / scale + 3.0 * fabs(q) + step : off(c);
        }
    }
}

// cross_entropy in double: what stands in for the CPU reference where that would take seconds
//
// x                    T, row-major [rows, cols], ldx elements from row to row
// loss, dx and _size   double, packed: values and magnitudes, as tuner/references/cross_entropy.cpp derives them
// launch               grid = any, block = 256; a block takes a row at a time
#include "reference.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T __nv_bfloat16
#endif
#ifndef LABEL
#define LABEL int
#endif
#ifndef GRADIENT
#define GRADIENT 1
#endif

extern "C" __global__ void __launch_bounds__(256)
    cross_entropy_reference(const T* x, const LABEL* label, double* loss, double* loss_size, double* dx,
                            double* dx_size, long long rows, int cols, long long ldx, long long ignore, float smoothing,
                            float scale) {
    const double n = cols, common = 8.0 + 0.25 * sqrt(n);
    for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
        const T* from = x + row * ldx;
        const long long target = label[row];
        if (target == ignore || target < 0 || target >= cols) {
            const double everywhere = target == ignore ? 0.0 : __longlong_as_double(0x7fffffffffffffffll);
            loss[row] = everywhere;
            loss_size[row] = 0.0;
            for (int c = threadIdx.x; GRADIENT && c < cols; c += 256) {
                dx[row * cols + c] = everywhere;
                dx_size[row * cols + c] = 0.0;
            }
            continue;
        }
        const auto at = [=](long long c) { return static_cast<double>(to_float(from[c])); };
        const auto [max, sum, far] = block_exps(cols, at);
        const double mean = block_sum(cols, at) / n;
        const double size = block_sum(cols, [=](long long c) { return fabs(at(c)); }) / n;
        const double away = max - at(target);
        const double smooth = smoothing == 0.0f ? 0.0 : smoothing * (max - mean);
        const double smooth_size =
            smoothing == 0.0f ? 0.0 : smoothing * ((1.0 + sqrt(n)) * size + fabs(max) + fabs(max - mean));
        loss[row] = log(sum) + (1.0 - smoothing) * away + smooth;
        loss_size[row] = common + 1.25 * far / sum + 2.0 * log(sum) + 3.0 * (isfinite(away) ? away : 0.0) + smooth_size;
        for (int c = threadIdx.x; GRADIENT && c < cols; c += 256) {
            const double distance = max - at(c), p = exp(-distance) / sum;
            const double share = (c == target ? 1.0 - smoothing : 0.0) + smoothing / n;
            dx[row * cols + c] = scale * (p - share);
            dx_size[row * cols + c] =
                fabs(static_cast<double>(scale)) * (p * (common + 2.0 + 1.25 * fmin(distance, 1000.0)) + 3.0 * share);
        }
    }
}

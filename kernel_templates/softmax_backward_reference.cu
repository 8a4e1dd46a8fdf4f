// softmax_backward in double: what stands in for the CPU reference where that would take seconds
//
// y, dy             T, row-major [rows, cols], ldy and lddy elements from row to row
// value, magnitude  double, [rows, cols], packed: as tuner/references/softmax_backward.cpp derives them
// launch            grid = any, block = 256; a block takes a row at a time
#include "reference.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T __nv_bfloat16
#endif
#ifndef LOG
#define LOG 0
#endif

extern "C" __global__ void __launch_bounds__(256)
    softmax_backward_reference(const T* y, const T* dy, double* value, double* magnitude, long long rows, int cols,
                               long long ldy, long long lddy) {
    const double common = 2.0 + sqrt(static_cast<double>(cols));
    for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
        const T* from_y = y + row * ldy;
        const T* from_dy = dy + row * lddy;
        const auto y_at = [=](long long c) { return static_cast<double>(to_float(from_y[c])); };
        const auto dy_at = [=](long long c) { return static_cast<double>(to_float(from_dy[c])); };
        const auto term = [=](long long c) { return LOG ? dy_at(c) : y_at(c) * dy_at(c); };
        const double sum = block_sum(cols, term);
        const double size = block_sum(cols, [=](long long c) { return fabs(term(c)); });
        for (int c = threadIdx.x; c < cols; c += 256) {
            const double a = y_at(c), b = dy_at(c), p = LOG ? exp(a) : a;
            const double far = LOG ? (3.0 + 1.25 * fmin(fabs(a), 1000.0)) * fabs(sum) : fabs(b) + fabs(sum);
            value[row * cols + c] = LOG ? b - p * sum : a * (b - sum);
            magnitude[row * cols + c] = fabs(p) * (common * size + far) + (LOG ? fabs(b) : 0.0);
        }
    }
}

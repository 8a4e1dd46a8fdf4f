// layernorm_backward and rmsnorm_backward in double: what stands in for the CPU references where those take seconds
//
// value and _off  double, packed: as tuner/references/norm.h derives them
// launch          norm_backward_reference: grid = any, block = 256, a block takes a row at a time;
//                 norm_backward_columns_reference: grid = ceil(cols / 32), block = 256
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
#ifndef BIAS
#define BIAS 0
#endif
#ifndef DH
#define DH 0
#endif

extern "C" __global__ void __launch_bounds__(256)
    norm_backward_reference(const T* x, const T* dy, const W* weight, const float* mean, const float* rstd, const T* dh,
                            double* dx, double* dx_off, long long rows, int cols, long long ldx, long long lddy,
                            float offset, int centred) {
    const double n = cols, off = 3.0 + sqrt(n);
    for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
        const double row_mean = centred ? mean[row] : 0.0, row_rstd = rstd[row];
        const auto xhat = [=](long long c) { return (to_float(x[row * ldx + c]) - row_mean) * row_rstd; };
        const auto g = [=](long long c) {
            return to_float(dy[row * lddy + c]) * (static_cast<double>(to_float(weight[c])) + offset);
        };
        const double along = block_sum(cols, [=](long long c) { return g(c) * xhat(c) / n; });
        const double along_size = block_sum(cols, [=](long long c) { return fabs(g(c) * xhat(c)) / n; });
        const double plain = centred ? block_sum(cols, [=](long long c) { return g(c) / n; }) : 0.0;
        const double plain_size = centred ? block_sum(cols, [=](long long c) { return fabs(g(c)) / n; }) : 0.0;
        for (int c = threadIdx.x; c < cols; c += 256) {
            const double added = DH ? to_float(dh[row * cols + c]) : 0.0;
            dx[row * cols + c] = row_rstd * (g(c) - plain - xhat(c) * along) + added;
            dx_off[row * cols + c] =
                fabs(row_rstd) * (3.0 * fabs(g(c)) + off * (plain_size + fabs(xhat(c)) * along_size)) + fabs(added);
        }
    }
}

// A block takes 32 columns, so that what it reads is side by side; 8 threads share a column.
extern "C" __global__ void __launch_bounds__(256)
    norm_backward_columns_reference(const T* x, const T* dy, const float* mean, const float* rstd, double* dweight,
                                    double* dweight_off, double* dbias, double* dbias_off, long long rows, int cols,
                                    long long ldx, long long lddy, int centred) {
    __shared__ double slots[4][8][32];
    const double down = 3.0 + sqrt(static_cast<double>(rows));
    const int lane = threadIdx.x % 32, part = threadIdx.x / 32;
    const long long c = static_cast<long long>(blockIdx.x) * 32 + lane;
    double sums[4] = {};
    for (long long row = part; c < cols && row < rows; row += 8) {
        const double b = to_float(dy[row * lddy + c]);
        const double term = b * ((to_float(x[row * ldx + c]) - (centred ? mean[row] : 0.0)) * rstd[row]);
        sums[0] += term;
        sums[1] += fabs(term);
        sums[2] += b;
        sums[3] += fabs(b);
    }
    for (int i = 0; i < 4; ++i) slots[i][part][lane] = sums[i];
    __syncthreads();
    if (part != 0 || c >= cols) return;
    for (int i = 0; i < 4; ++i)
        for (int p = 1; p < 8; ++p) sums[i] += slots[i][p][lane];
    dweight[c] = sums[0];
    dweight_off[c] = down * sums[1];
    if (BIAS) {
        dbias[c] = sums[2];
        dbias_off[c] = down * sums[3];
    }
}

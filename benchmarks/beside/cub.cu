// CUB's device-wide algorithms as plain functions, for benchmarks/rowops.py: each says with temp = nullptr how many
// bytes it needs, and returns a cudaError_t.
//
// build  nvcc -O3 -std=c++17 -arch=native -shared -Xcompiler -fPIC cub.cu -o libbeside_cub.so
#include <cuda_bf16.h>

#include <cstddef>
#include <cstdint>
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

namespace {

struct Plus {
    __host__ __device__ float operator()(float a, float b) const { return a + b; }
};
struct AsFloat {
    __host__ __device__ float operator()(__nv_bfloat16 x) const { return __bfloat162float(x); }
};

}  // namespace

extern "C" {

int cub_sum_f32(void* temp, std::size_t* bytes, const float* x, float* y, std::int64_t n, cudaStream_t stream) {
    return cub::DeviceReduce::Sum(temp, *bytes, x, y, n, stream);
}

int cub_sum_bf16(void* temp, std::size_t* bytes, const __nv_bfloat16* x, float* y, std::int64_t n,
                 cudaStream_t stream) {
    return cub::DeviceReduce::TransformReduce(temp, *bytes, x, y, n, Plus{}, AsFloat{}, 0.0f, stream);
}

int cub_scan_f32(void* temp, std::size_t* bytes, const float* x, float* y, std::int64_t n, cudaStream_t stream) {
    return cub::DeviceScan::InclusiveSum(temp, *bytes, x, y, n, stream);
}

int cub_scan_i32(void* temp, std::size_t* bytes, const std::int32_t* x, std::int32_t* y, std::int64_t n,
                 cudaStream_t stream) {
    return cub::DeviceScan::InclusiveSum(temp, *bytes, x, y, n, stream);
}

int cub_histogram_f32(void* temp, std::size_t* bytes, const float* x, std::int32_t* counts, int bins, float low,
                      float high, std::int64_t n, cudaStream_t stream) {
    return cub::DeviceHistogram::HistogramEven(temp, *bytes, x, counts, bins + 1, low, high, n, stream);
}

int cub_histogram_u8(void* temp, std::size_t* bytes, const std::uint8_t* x, std::int32_t* counts, int bins,
                     std::int64_t n, cudaStream_t stream) {
    return cub::DeviceHistogram::HistogramEven(temp, *bytes, x, counts, bins + 1, 0, bins, n, stream);
}

int cub_unique_i32(void* temp, std::size_t* bytes, const std::int32_t* x, std::int32_t* y, std::int64_t* count,
                   std::int64_t n, cudaStream_t stream) {
    return cub::DeviceSelect::Unique(temp, *bytes, x, y, count, n, stream);
}

}  // extern "C"

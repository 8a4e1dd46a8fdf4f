// A source for tests of the loader: it has the entries that gemm.toml names and computes nothing.
#include "tile.cuh"

extern "C" __global__ void gemm_part(const T* a, const T* b, float* partial, const T* bias, int m, int n, int k,
                                     long long lda, float alpha, float beta) {}
extern "C" __global__ void gemm_sum(const float* partial, T* c, const T* bias, int splits, int m, int n, float alpha,
                                    float beta) {}

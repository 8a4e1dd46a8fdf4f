extern "C" __global__ void gemm_naive(const T* a, const T* b, T* c, const T* bias, int m, int n, int k, long long lda,
                                      float alpha, float beta) {}

extern "C" __global__ void paged_attention(const T* q, const T* keys, const T* vals, const int* lens, const int* pages,
                                           T* o, int kv_heads, int blocks, float scale) {}

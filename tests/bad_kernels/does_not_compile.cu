extern "C" __global__ void does_not_compile(const float* x, float* y, int n) {
    half16 v = x[0];
    y[0] = v;
}

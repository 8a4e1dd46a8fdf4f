#include <nowhere/to_be_found.h>
extern "C" __global__ void missing_header(const float* x, float* y, int n) { y[0] = 2 * x[0]; }

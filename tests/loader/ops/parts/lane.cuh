#pragma once
__device__ inline int lane() { return static_cast<int>(threadIdx.x % 32); }

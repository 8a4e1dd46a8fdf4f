#pragma once
#include "parts/lane.cuh"
#include "cuda_fp16.h"

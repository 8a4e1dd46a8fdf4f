// Made by autotune db export --as cpp: hand the table to Dispatcher::Options::embedded_records.
#pragma once

#include <autotune/embedded_records.h>

inline constexpr autotune::EmbeddedDevice sample_records_gpu_1{
    .fp = "f8364dd29fcc13e7934b96b824c9a39feb580a58448b0db5530f5d3725e31281",
    .name = "NVIDIA H200",
    .cc = 90,
    .sm_count = 132,
    .bandwidth_gbs = 4890,
    .max_threads = 1024,
    .max_shared = 232448,
    .shared_per_sm = 0,
    .registers_per_sm = 65536,
    .threads_per_sm = 0};

inline constexpr autotune::EmbeddedRecord sample_records[] = {
    {.op = "scale",
     .variant = "vector",
     .config = "THREADS=64 VEC=1 MODE=plain",
     .problem_key = {"\001\000\000\000\000\000\000\000\005\000\000\000\000\000\000\000scale\004\000\000\000\000\000\000\000\005\000\000\000\000\000\000\000dtype\003\003\000\000\000\000\000\000\000f32\001\000\000\000\000\000\000\000n\001\000\004\000\000\000\000\000\000\007\000\000\000\000\000\000\000y.align\001\020\000\000\000\000\000\000\000\010\000\000\000\000\000\000\000y.layout\003\012\000\000\000\000\000\000\000contiguous", 131},
     .device = sample_records_gpu_1,
     .source_hash = "78c13291bdab7c94d4dcc58fcc450e0df9f9b27523cce736d940132ab7d0e998",
     .space_hash = "d909c104ae582e4fc7b31a85bb9c9b82b3747638c5fa1c9bb21c64253aca0c12",
     .abi = 1,
     .nvrtc_major = 13,
     .nvrtc_minor = 0,
     .time_ns = 10000,
     .default_ns = 100000,
     .tuned_at = 1700000060,
     .effort = 2,
     .verified = 2},
    {.op = "scale",
     .variant = "vector",
     .config = "THREADS=128 VEC=2 MODE=plain",
     .problem_key = {"\001\000\000\000\000\000\000\000\005\000\000\000\000\000\000\000scale\004\000\000\000\000\000\000\000\005\000\000\000\000\000\000\000dtype\003\003\000\000\000\000\000\000\000f32\001\000\000\000\000\000\000\000n\001\000\004\000\000\000\000\000\000\007\000\000\000\000\000\000\000y.align\001\020\000\000\000\000\000\000\000\010\000\000\000\000\000\000\000y.layout\003\012\000\000\000\000\000\000\000contiguous", 131},
     .device = sample_records_gpu_1,
     .source_hash = "78c13291bdab7c94d4dcc58fcc450e0df9f9b27523cce736d940132ab7d0e998",
     .space_hash = "d909c104ae582e4fc7b31a85bb9c9b82b3747638c5fa1c9bb21c64253aca0c12",
     .abi = 1,
     .nvrtc_major = 13,
     .nvrtc_minor = 0,
     .time_ns = 10100,
     .default_ns = 100000,
     .tuned_at = 1700000060,
     .effort = 2,
     .verified = 2},
};

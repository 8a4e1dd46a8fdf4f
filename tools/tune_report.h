#ifndef AUTOTUNE_TOOLS_TUNE_REPORT_H
#define AUTOTUNE_TOOLS_TUNE_REPORT_H

#include <optional>
#include <string>
#include <string_view>

#include "tuner/tune.h"

namespace autotune {

// What a search says, as text: pure functions, so that tests compare them.

/// `gpu 0: NVIDIA H200, sm_90, 132 SMs, driver 580.159, NVRTC 13.0`
std::string device_line(int ordinal, const DeviceIdentity& device, std::string_view nvrtc);

/// `softmax rows=32768 cols=4096 dtype=bf16: 412 valid of 1120 configs, 3 variants; reference: CPU, fp64`
std::string problem_line(const Instance& instance, const Space& space, const Preparation& preparation);

/// `prior: 112 of 128 configs predicted as on NVIDIA H200 in 6.1 s; the best 16 of them are tried first`
std::string prior_line(const PriorUse& prior, const DeviceIdentity& device);

/// `3192 GB/s, 0.76 of copy bandwidth` or `812 TFLOP/s`; empty when the op says nothing of its work.
std::string throughput(const Instance& instance, double time_us, double copy_bandwidth_gbs);

/// `new best  168.2 us   3192 GB/s  1.41x default   warp_row THREADS=256 VEC=8   (trial 57)`
std::string new_best_line(const Instance& instance, const Trial& trial, double default_us, bool of_default);

/// `trial 31 left out, wrong result: y[36,225] is 85.3, reference 0.05, bound 0.01`; for -v.
std::string trial_line(const Trial& trial);

struct Stored {
    std::string path;  ///< where the records went; empty: nowhere (--db none)
    std::size_t records = 0;
    bool kept_better = false;
    std::string nowhere{};        ///< why, where the path is empty
    std::string lost{};           ///< why they went nowhere after all; empty: they are there
    std::string same_flags = {};  ///< what a suggested command needs of this one's flags
};

/// Why a search left nothing in the database; empty: something of it, or better, is there.
std::string why_not_stored(const Tuning& tuning, const Stored& stored);

/// The block at the end of a search that found something.
std::string summary(const Instance& instance, const DeviceIdentity& device, const Tuning& tuning, const Stored& stored);

/// Why a search found nothing: reasons grouped, commonest first, each with its first example. For exit code 2.
std::string failure_summary(const Instance& instance, const Tuning& tuning, const Stored& stored);

}  // namespace autotune
#endif

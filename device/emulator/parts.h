#ifndef AUTOTUNE_DEVICE_EMULATOR_PARTS_H
#define AUTOTUNE_DEVICE_EMULATOR_PARTS_H

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "device/device.h"

namespace autotune {

/// What an emulated device says of itself; nullopt where the text is not `emulated:` and a part or a capability of one.
std::optional<DeviceIdentity> emulated_device(std::string_view text);

/// The emulated device, as `emulated:a100`, that comes closest to a GPU of its capability: what stands in for the GPU
/// where the emulator works beside it. nullopt where the capability is not emulated.
std::optional<std::string> emulated_like(const DeviceIdentity& gpu);

namespace emulator {

/// Of the modelled times: predictions of another version are not compared with these.
inline constexpr int model_version = 2;

/// A GPU on the market, from its data sheet.
struct Part {
    std::string_view key;   ///< after `emulated:`
    std::string_view name;  ///< as its driver calls it
    int cc;
    int sm_count;
    int core_mhz;  ///< boost clock
    int memory_mhz;
    int bandwidth_gbs;
    int l2_kib;
    int memory_gib;
};

/// The first part of a capability stands for it.
inline constexpr std::array<Part, 11> parts{{
    {"t4", "Tesla T4", 75, 40, 1590, 5001, 320, 4096, 16},
    {"rtx2080ti", "NVIDIA GeForce RTX 2080 Ti", 75, 68, 1545, 7000, 616, 5632, 11},
    {"a100", "NVIDIA A100-SXM4-40GB", 80, 108, 1410, 1215, 1555, 40960, 40},
    {"a6000", "NVIDIA RTX A6000", 86, 84, 1800, 8001, 768, 6144, 48},
    {"a10", "NVIDIA A10", 86, 72, 1695, 6251, 600, 6144, 24},
    {"rtx3090", "NVIDIA GeForce RTX 3090", 86, 82, 1695, 9751, 936, 6144, 24},
    {"a4000", "NVIDIA RTX A4000", 86, 48, 1560, 7001, 448, 4096, 16},
    {"rtx4090", "NVIDIA GeForce RTX 4090", 89, 128, 2520, 10501, 1008, 73728, 24},
    {"l40s", "NVIDIA L40S", 89, 142, 2520, 9001, 864, 98304, 48},
    {"h100", "NVIDIA H100 80GB HBM3", 90, 132, 1980, 2619, 3350, 51200, 80},
    {"h200", "NVIDIA H200", 90, 132, 1980, 3201, 4800, 51200, 141},
}};

/// A part by its key, or the first of a capability ("sm_86", "sm_90a"); null where there is none.
const Part* part_named(std::string_view name) noexcept;

/// What the emulated device says it is.
DeviceIdentity identity_of(const Part& part);

}  // namespace emulator
}  // namespace autotune
#endif

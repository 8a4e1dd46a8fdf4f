#include "device/emulator/parts.h"

#include <fmt/format.h>

#include "device/identity.h"
#include "device/occupancy.h"

namespace autotune::emulator {

const Part* part_named(std::string_view name) noexcept {
    for (const Part& one : parts)
        if (one.key == name) return &one;
    if (!name.starts_with("sm_")) return nullptr;
    name.remove_prefix(3);
    if (name.ends_with('a')) name.remove_suffix(1);
    for (const Part& one : parts)
        if (fmt::format("{}", one.cc) == name) return &one;
    return nullptr;
}

DeviceIdentity identity_of(const Part& part) {
    DeviceIdentity identity;
    identity.name = part.name;
    identity.bandwidth_gbs = part.bandwidth_gbs / 10 * 10;
    identity.core_khz = part.core_mhz * 1000;
    identity.memory_khz = part.memory_mhz * 1000;
    identity.limits = *limits_of_capability(part.cc);
    identity.limits.sm_count = part.sm_count;
    identity.limits.l2_bytes = std::int64_t{part.l2_kib} << 10;
    identity.limits.memory_bytes = std::int64_t{part.memory_gib} << 30;
    identity.emulated = true;
    identity.fp = fingerprint(identity);
    return identity;
}

}  // namespace autotune::emulator

namespace autotune {

std::optional<DeviceIdentity> emulated_device(std::string_view text) {
    constexpr std::string_view prefix = "emulated:";
    if (!text.starts_with(prefix)) return std::nullopt;
    const emulator::Part* const part = emulator::part_named(text.substr(prefix.size()));
    return part ? std::optional{emulator::identity_of(*part)} : std::nullopt;
}

std::optional<std::string> emulated_like(const DeviceIdentity& gpu) {
    const emulator::Part* closest = nullptr;
    double least = 0;
    for (const emulator::Part& part : emulator::parts) {
        if (part.cc != gpu.limits.cc) continue;
        const double distance = unlikeness(emulator::identity_of(part), gpu);
        if (closest && distance >= least) continue;
        closest = &part;
        least = distance;
    }
    return closest ? std::optional{fmt::format("emulated:{}", closest->key)} : std::nullopt;
}

}  // namespace autotune

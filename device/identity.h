#ifndef AUTOTUNE_DEVICE_IDENTITY_H
#define AUTOTUNE_DEVICE_IDENTITY_H

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"

namespace autotune {

/// What decides a kernel's speed, hashed: SHA-256 over vendor, capability, SM count (which tells a MIG slice),
/// bandwidth rounded to 10 GB/s, L2, shared memory a block and an SM, registers and threads an SM. All of it comes from
/// the driver's device attributes, so it is the same inside and outside a container; nothing that has a name, an
/// address or a setting is part of it. returns  64 hex digits
std::string fingerprint(const DeviceIdentity& identity);

/// The GPUs here, in the driver's order; empty without a driver or without GPUs. Makes no context.
std::vector<DeviceIdentity> present_devices();

/// One GPU. throws Error{device} when there is none of that ordinal
DeviceIdentity identify(int ordinal);

/// How much a decision for one device says about another: cache keys by similarity.
enum class Similarity {
    same,     ///< same fingerprint
    sibling,  ///< same capability and limits, SM counts within 10 %: PCIe and SXM, memory variants
    family,   ///< same capability major, and the other's limits are not smaller
    none,
};
/// of: the device that was measured; here: the one at hand
Similarity similarity(const DeviceIdentity& of, const DeviceIdentity& here) noexcept;

/// How far apart two GPUs of one capability are, by processors and bandwidth; 0: not at all, as far as both are known.
double unlikeness(const DeviceIdentity& one, const DeviceIdentity& other) noexcept;

/// "sm_86".
std::string arch_name(int cc);

/// 32 lower-case hex digits for 16 raw bytes, zero bytes included.
std::string hex_of(std::span<const unsigned char> bytes);

}  // namespace autotune
#endif

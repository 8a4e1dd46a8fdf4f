#include "device/identity.h"

#include <fmt/format.h>
#include <sodium.h>

#include <array>
#include <cmath>

#include "autotune/error.h"
#include "device/driver.h"
#include "device/nvml.h"

namespace autotune {
namespace {

int attribute(CUdevice device, CUdevice_attribute which) {
    int value = 0;
    check(driver().cuDeviceGetAttribute(&value, which, device), "reading device attribute {}", static_cast<int>(which));
    return value;
}

DeviceLimits read_limits(CUdevice device) {
    const auto read = [&](CUdevice_attribute which) { return attribute(device, which); };
    DeviceLimits limits;
    limits.cc =
        read(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 + read(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    limits.sm_count = read(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    limits.warp = read(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    limits.max_threads = read(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    limits.max_shared = read(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    limits.shared_per_sm = read(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    limits.reserved_shared = read(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    limits.registers_per_sm = read(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
    limits.threads_per_sm = read(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    limits.blocks_per_sm_limit = read(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    limits.l2_bytes = read(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    limits.max_grid_x = static_cast<std::uint32_t>(read(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X));
    limits.max_grid_y = static_cast<std::uint32_t>(read(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y));
    limits.max_grid_z = static_cast<std::uint32_t>(read(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z));
    std::size_t memory = 0;
    check(driver().cuDeviceTotalMem(&memory, device), "reading the device's memory size");
    limits.memory_bytes = static_cast<std::int64_t>(memory);
    return limits;
}

/// Both edges of the clock, over the bus's width: what data sheets call bandwidth.
int bandwidth_gbs(int memory_khz, int bus_bits) {
    const double gbs = 2.0 * memory_khz * 1000.0 * bus_bits / 8.0 / 1e9;
    return static_cast<int>(std::lround(gbs / 10.0)) * 10;
}

DeviceIdentity read_identity(CUdevice device) {
    DeviceIdentity identity;
    identity.limits = read_limits(device);
    std::array<char, 256> text{};
    check(driver().cuDeviceGetName(text.data(), static_cast<int>(text.size()), device), "reading the device's name");
    identity.name = text.data();
    check(driver().cuDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), device),
          "reading the device's PCI id");
    identity.pci_id = text.data();
    CUuuid uuid{};
    check(driver().cuDeviceGetUuid(&uuid, device), "reading the device's UUID");
    identity.uuid = hex_of({reinterpret_cast<const unsigned char*>(uuid.bytes), sizeof uuid.bytes});
    identity.core_khz = attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    identity.memory_khz = attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
    identity.bandwidth_gbs =
        bandwidth_gbs(identity.memory_khz, attribute(device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH));
    identity.ecc = attribute(device, CU_DEVICE_ATTRIBUTE_ECC_ENABLED) != 0;
    check(driver().cuDriverGetVersion(&identity.driver_version), "reading the driver's version");
    identity.driver = nvml_driver_version();
    // A slice's name carries its profile: "NVIDIA A100-SXM4-40GB MIG 1g.5gb".
    if (const std::size_t at = identity.name.find(" MIG "); at != std::string::npos)
        identity.mig = identity.name.substr(at + 5);
    identity.fp = fingerprint(identity);
    return identity;
}

bool no_smaller(const DeviceLimits& a, const DeviceLimits& b) {
    return a.max_threads >= b.max_threads && a.max_shared >= b.max_shared && a.shared_per_sm >= b.shared_per_sm &&
           a.registers_per_sm >= b.registers_per_sm && a.threads_per_sm >= b.threads_per_sm && a.cc >= b.cc;
}

}  // namespace

std::string hex_of(std::span<const unsigned char> bytes) {
    std::string text;
    for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
    return text;
}

std::string fingerprint(const DeviceIdentity& identity) {
    const DeviceLimits& limits = identity.limits;
    const std::string text = fmt::format(
        "autotune device 1|{}|cc={}|sm={}|gbs={}|l2={}|shared_block={}|shared_sm={}|registers_sm={}|threads_sm={}",
        identity.vendor, limits.cc, limits.sm_count, identity.bandwidth_gbs, limits.l2_bytes, limits.max_shared,
        limits.shared_per_sm, limits.registers_per_sm, limits.threads_per_sm);
    std::array<unsigned char, crypto_hash_sha256_BYTES> hash{};
    crypto_hash_sha256(hash.data(), reinterpret_cast<const unsigned char*>(text.data()), text.size());
    return hex_of(hash);
}

std::vector<DeviceIdentity> present_devices() {
    std::vector<DeviceIdentity> found;
    const DriverCalls* calls = driver_if_present();
    int count = 0;
    if (!calls || calls->cuDeviceGetCount(&count) != CUDA_SUCCESS) return found;
    for (int ordinal = 0; ordinal < count; ++ordinal) found.push_back(identify(ordinal));
    return found;
}

DeviceIdentity identify(int ordinal) {
    int count = 0;
    check(driver().cuDeviceGetCount(&count), "counting the GPUs");
    if (ordinal < 0 || ordinal >= count)
        throw Error{Error::Kind::device,
                    count == 0 ? "there is no GPU here"
                               : fmt::format("there is no GPU {}; the {} here are numbered from 0", ordinal, count),
                    "autotune doctor"};
    CUdevice device = 0;
    check(driver().cuDeviceGet(&device, ordinal), "opening GPU {}", ordinal);
    return read_identity(device);
}

Similarity similarity(const DeviceIdentity& of, const DeviceIdentity& here) noexcept {
    if (of.fp == here.fp) return Similarity::same;
    if (of.vendor != here.vendor || of.limits.cc / 10 != here.limits.cc / 10) return Similarity::none;
    const DeviceLimits &a = of.limits, &b = here.limits;
    const int difference = std::abs(a.sm_count - b.sm_count);
    const bool same_limits = a.cc == b.cc && no_smaller(a, b) && no_smaller(b, a);
    if (same_limits && difference * 10 <= std::max(a.sm_count, b.sm_count)) return Similarity::sibling;
    return no_smaller(b, a) ? Similarity::family : Similarity::none;
}

double unlikeness(const DeviceIdentity& one, const DeviceIdentity& other) noexcept {
    const auto apart = [](double a, double b) { return a > 0 && b > 0 ? std::abs(std::log(a / b)) : 0; };
    return apart(one.limits.sm_count, other.limits.sm_count) + apart(one.bandwidth_gbs, other.bandwidth_gbs);
}

std::string arch_name(int cc) { return fmt::format("sm_{}", cc); }

}  // namespace autotune

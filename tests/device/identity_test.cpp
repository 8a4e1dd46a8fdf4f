#include "device/identity.h"

#include <gtest/gtest.h>

#include <cstring>

#include "autotune/error.h"
#include "device/driver.h"
#include "device/nvml.h"
#include "device/occupancy.h"

namespace autotune {
namespace {

DeviceIdentity h200() {
    DeviceIdentity identity;
    identity.limits = *limits_of_capability(90);
    identity.limits.sm_count = 132;
    identity.limits.l2_bytes = 60 << 20;
    identity.bandwidth_gbs = 4920;
    identity.fp = fingerprint(identity);
    return identity;
}

TEST(Identity, FingerprintIgnoresLabelsAndSettings) {
    DeviceIdentity other = h200();
    other.name = "another label";
    other.pci_id = "0000:01:00.0";
    other.uuid = "00";
    other.ecc = true;
    other.core_khz = other.memory_khz = 1;
    other.driver = "1.2";
    other.limits.memory_bytes = 5;
    EXPECT_EQ(fingerprint(other), h200().fp);
    EXPECT_EQ(h200().fp.size(), 64U);
}

TEST(Identity, FingerprintChangesWithWhatDecidesSpeed) {
    const auto changed = [](auto change) {
        DeviceIdentity other = h200();
        change(other);
        return fingerprint(other) != h200().fp;
    };
    EXPECT_TRUE(changed([](DeviceIdentity& d) { d.limits.sm_count = 114; }));
    EXPECT_TRUE(changed([](DeviceIdentity& d) { d.bandwidth_gbs = 3350; }));
    EXPECT_TRUE(changed([](DeviceIdentity& d) { d.limits.l2_bytes /= 2; }));
    EXPECT_TRUE(changed([](DeviceIdentity& d) { d.limits.cc = 100; }));
    EXPECT_TRUE(changed([](DeviceIdentity& d) { d.vendor = "other"; }));
}

// The stored databases of everyone hang on it: a new text needs a new number in it and a migration.
TEST(Identity, FingerprintIsWhatItWas) {
    EXPECT_EQ(h200().fp, "f676268c1d17eecaedd7334fb7fe280ddf15d2c5d4dc32adfd93dc6c7819afdc");
}

TEST(Identity, SimilarityBorrowsFromSiblingsAndNeverAcrossGenerations) {
    const auto varied = [](auto change) {
        DeviceIdentity other = h200();
        change(other);
        other.fp = fingerprint(other);
        return other;
    };
    const DeviceIdentity here = h200();
    EXPECT_EQ(similarity(here, here), Similarity::same);
    EXPECT_EQ(similarity(varied([](DeviceIdentity& d) { d.bandwidth_gbs = 3350; }), here), Similarity::sibling);
    EXPECT_EQ(similarity(varied([](DeviceIdentity& d) { d.limits.sm_count = 120; }), here), Similarity::sibling);
    EXPECT_EQ(similarity(varied([](DeviceIdentity& d) { d.limits.sm_count = 78; }), here), Similarity::family);
    const DeviceIdentity larger = varied([](DeviceIdentity& d) { d.limits.max_shared += 1024; });
    EXPECT_EQ(similarity(here, larger), Similarity::family);
    EXPECT_EQ(similarity(larger, here), Similarity::none);
    EXPECT_EQ(similarity(varied([](DeviceIdentity& d) { d.limits.cc = 86; }), here), Similarity::none);
}

TEST(Identity, UuidWithZeroBytesIsWhole) {
    const std::array<unsigned char, 4> raw{0, 0xab, 0, 1};
    EXPECT_EQ(hex_of(raw), "00ab0001");
}

TEST(Identity, ArchNamesFollowTheCapability) { EXPECT_EQ(arch_name(86), "sm_86"); }

/// A driver of one made-up GPU.
DriverCalls stub_driver() {
    DriverCalls calls;
    calls.cuDeviceGetCount = [](int* count) { return *count = 1, CUDA_SUCCESS; };
    calls.cuDeviceGet = [](CUdevice* device, int) { return *device = 0, CUDA_SUCCESS; };
    calls.cuDeviceGetName = [](char* text, int, CUdevice) {
        return std::strcpy(text, "NVIDIA A100 MIG 1g.5gb"), CUDA_SUCCESS;
    };
    calls.cuDeviceGetPCIBusId = [](char* text, int, CUdevice) {
        return std::strcpy(text, "0000:65:00.0"), CUDA_SUCCESS;
    };
    calls.cuDeviceGetUuid = [](CUuuid* uuid, CUdevice) {
        std::memset(uuid, 0, sizeof *uuid);
        uuid->bytes[15] = 0x7f;
        return CUDA_SUCCESS;
    };
    calls.cuDeviceTotalMem = [](std::size_t* bytes, CUdevice) { return *bytes = 5'000'000'000, CUDA_SUCCESS; };
    calls.cuDriverGetVersion = [](int* version) { return *version = 12040, CUDA_SUCCESS; };
    calls.cuDeviceGetAttribute = [](int* value, CUdevice_attribute which, CUdevice) {
        switch (which) {
            case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
                *value = 8;
                break;
            case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
                *value = 0;
                break;
            case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
                *value = 14;
                break;
            case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
                *value = 1215000;
                break;
            case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
                *value = 5120;
                break;
            default:
                *value = 1;
                break;
        }
        return CUDA_SUCCESS;
    };
    return calls;
}

TEST(Identity, ComesFromTheDriversAttributes) {
    const DriverReplacement replaced{stub_driver()};
    const std::vector<DeviceIdentity> found = present_devices();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].limits.cc, 80);
    EXPECT_EQ(found[0].limits.sm_count, 14);
    EXPECT_EQ(found[0].bandwidth_gbs, 1560);  // 1555.2, rounded to 10
    EXPECT_EQ(found[0].uuid, "0000000000000000000000000000007f");
    EXPECT_EQ(found[0].mig, "1g.5gb");
    EXPECT_EQ(found[0].fp, fingerprint(found[0]));
    EXPECT_THROW(identify(1), Error);
}

TEST(Nvml, TellsSlowdownsFromThePowerCap) {
    EXPECT_TRUE(power_capped(0x4));
    EXPECT_FALSE(slowdown(0x4));
    EXPECT_TRUE(slowdown(0x20));
    EXPECT_TRUE(slowdown(0x48));
    EXPECT_FALSE(slowdown(0));
}

TEST(Nvml, IsOptional) {
    if (driver_if_present()) GTEST_SKIP() << "a driver is present";
    EXPECT_EQ(GpuMonitor::open("0000:65:00.0"), nullptr);
    EXPECT_EQ(nvml_driver_version(), "");
}

}  // namespace
}  // namespace autotune

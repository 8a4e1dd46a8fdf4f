#include "device/emulator/lazy_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <vector>

#include "device/emulator/emulated_device.h"
#include "device/fill.h"

namespace autotune::emulator {
namespace {

constexpr std::size_t size = 1 << 20;

class LazyPagesTest : public testing::Test {
protected:
    void SetUp() override {
        void* const at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(at, MAP_FAILED);
        memory = static_cast<std::byte*>(at);
    }
    void TearDown() override { munmap(memory, size); }
    /// Each byte is its place, as far as one goes into it.
    static void count(std::span<std::byte> out, std::uint64_t offset) {
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>((offset + i) % 251);
    }

    std::byte* memory = nullptr;
};

TEST_F(LazyPagesTest, WhatIsTouchedIsMadeAndNothingElse) {
    LazyPages pages{{memory + 100, size - 300}, count};
    const std::uint64_t ends = pages.made_bytes();
    EXPECT_LT(ends, 2 * 4096u);
    EXPECT_EQ(memory[100], std::byte{0});
    EXPECT_EQ(memory[500'000], static_cast<std::byte>((500'000 - 100) % 251));
    EXPECT_EQ(memory[500'001], static_cast<std::byte>((500'001 - 100) % 251));
    EXPECT_EQ(pages.made_bytes(), ends + (64 << 10));
}

TEST_F(LazyPagesTest, AWriteStaysAndTheRestOfItsPlaceIsMade) {
    LazyPages pages{{memory, size}, count};
    memory[70'000] = std::byte{0xAA};
    EXPECT_EQ(memory[70'000], std::byte{0xAA});
    EXPECT_EQ(memory[70'001], static_cast<std::byte>(70'001 % 251));
}

TEST_F(LazyPagesTest, AfterItsEndMemoryIsAsItWasLeft) {
    { const LazyPages pages{{memory, size}, count}; }
    EXPECT_EQ(memory[300'000], std::byte{0});
    memory[300'000] = std::byte{7};
    EXPECT_EQ(memory[300'000], std::byte{7});
}

// Method: tensors of 20 GB in all, which no machine of the tests holds twice; what is read there is what a fill gives.
TEST(EmulatedDevice, ReservesWhatNoMachineHoldsAndFillsWhereItIsTouched) {
    EmulatorOptions options;
    options.memory_bytes = std::uint64_t{1} << 36;
    const auto device = make_emulated_device("h200", options);
    const FillSpec spec{.kind = FillSpec::Kind::normal, .seed = 3, .stream = 1};
    const std::uint64_t elements = std::uint64_t{5} << 29;
    const Buffer buffer = device->reserve(4 * elements, 4, DType::f32, &spec);
    const Buffer zeros = device->reserve(std::uint64_t{1} << 33, 0, DType::u8, nullptr);
    for (const std::uint64_t first : {std::uint64_t{0}, elements / 2 + 1, elements - 100}) {
        std::vector<float> got(100), want(100);
        device->read(buffer, 4 * first, std::as_writable_bytes(std::span{got}));
        fill_on_host(std::as_writable_bytes(std::span{want}), DType::f32, first, elements, spec);
        EXPECT_EQ(got, want) << first;
    }
    std::vector<std::byte> read(64, std::byte{1});
    device->read(zeros, std::uint64_t{1} << 32, read);
    EXPECT_EQ(read, std::vector<std::byte>(64));
    device->release(buffer);
    device->release(zeros);
    EXPECT_EQ(device->free_bytes(), std::int64_t{1} << 36);
}

}  // namespace
}  // namespace autotune::emulator

#include "device/cubin.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "autotune/error.h"

namespace autotune {
namespace {

/// Writes small ELF files by hand: what a toolkit would make of one kernel "k".
struct ElfWriter {
    std::vector<std::byte> bytes = std::vector<std::byte>(64);

    template <class T>
    void put(std::size_t at, T value) {
        if (bytes.size() < at + sizeof value) bytes.resize(at + sizeof value);
        std::memcpy(bytes.data() + at, &value, sizeof value);
    }
    std::size_t append(std::string_view text) {
        const std::size_t at = bytes.size();
        bytes.resize(at + text.size());
        std::memcpy(bytes.data() + at, text.data(), text.size());
        return at;
    }
    void section(std::size_t header, std::uint32_t name, std::uint32_t type, std::uint64_t offset, std::uint64_t size,
                 std::uint32_t link = 0) {
        put(header, name);
        put(header + 4, type);
        put(header + 0x18, offset);
        put(header + 0x20, size);
        put(header + 0x28, link);
        put(header + 63, std::uint8_t{0});
    }
};

using namespace std::string_view_literals;

std::vector<std::byte> one_kernel(std::uint32_t flags = 90 << 8, std::uint8_t abi = 8) {
    ElfWriter elf;
    elf.put<std::uint32_t>(0, 0x464c457f);
    elf.put<std::uint8_t>(4, 2);
    elf.put<std::uint8_t>(5, 1);
    elf.put<std::uint8_t>(8, abi);
    elf.put<std::uint16_t>(0x12, 190);
    elf.put<std::uint32_t>(0x30, flags);
    constexpr auto names = "\0.shstrtab\0.strtab\0.symtab\0.nv.info\0.nv.info.k\0.nv.shared.k\0k\0"sv;
    const auto name = [&](std::string_view of) { return static_cast<std::uint32_t>(names.find(of)); };
    const std::size_t strings = elf.append(names);
    const std::size_t symbols = elf.append(std::string(24, '\0'));
    const std::size_t symbol = elf.append(std::string(24, '\0'));
    elf.put(symbol, static_cast<std::uint32_t>(names.find("\0k\0"sv) + 1));
    elf.put<std::uint8_t>(symbol + 4, 0x12);
    elf.put<std::uint8_t>(symbol + 5, 0x10);
    elf.put<std::uint64_t>(symbol + 16, 640);
    const std::size_t info = elf.append("\x04\x2f\x08\x00\x01\x00\x00\x00\x2a\x00\x00\x00"sv);
    const std::size_t own =
        elf.append("\x02\x4c\x03\x00\x04\x05\x0c\x00\x80\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00"sv);
    const std::size_t headers = elf.bytes.size();
    elf.section(headers, 0, 0, 0, 0);
    elf.section(headers + 64, name(".shstrtab"), 3, strings, names.size());
    elf.section(headers + 128, name(".symtab"), 2, symbols, 48, 1);
    elf.section(headers + 192, name(".nv.info\0"sv), 1, info, 12);
    elf.section(headers + 256, name(".nv.info.k"), 1, own, 20);
    elf.section(headers + 320, name(".nv.shared.k"), 8, 0, 1024 + 96);
    elf.put<std::uint64_t>(0x28, headers);
    elf.put<std::uint16_t>(0x3a, 64);
    elf.put<std::uint16_t>(0x3c, 6);
    elf.put<std::uint16_t>(0x3e, 1);
    return elf.bytes;
}

TEST(Cubin, TellsWhatAKernelNeeds) {
    const Cubin cubin = read_cubin(one_kernel());
    EXPECT_EQ(cubin.cc, 90);
    ASSERT_EQ(cubin.kernels.size(), 1U);
    const CubinKernel& kernel = cubin.kernels[0];
    EXPECT_EQ(kernel.symbol, "k");
    EXPECT_EQ(kernel.registers, 42);
    EXPECT_EQ(kernel.barriers, 3);
    EXPECT_EQ(kernel.static_shared_bytes, 96);
    EXPECT_EQ(kernel.code_bytes, 640U);
    EXPECT_EQ(kernel_info(kernel).max_threads, 256);
}

TEST(Cubin, SharedMemoryIsWholeBelowNinePointZero) {
    EXPECT_EQ(read_cubin(one_kernel(86 << 8)).kernels[0].static_shared_bytes, 1120);
}

TEST(Cubin, CapabilityOfToolkitTwelveStandsOneByteLower) { EXPECT_EQ(read_cubin(one_kernel(86, 7)).cc, 86); }

TEST(Cubin, TruncatedFileIsRefusedAtEveryLength) {
    const std::vector<std::byte> whole = one_kernel();
    for (std::size_t size = 0; size < whole.size(); ++size)
        EXPECT_THROW(read_cubin(std::span{whole}.first(size)), Error) << size;
}

// Goal: bytes from anywhere are answered or refused, never read out of bounds (the address sanitizer's build sees it).
// Method: every byte in turn becomes an extreme one, then many at random.
TEST(Cubin, DamagedFileIsReadOrRefused) {
    const std::vector<std::byte> whole = one_kernel();
    const auto try_read = [](std::span<const std::byte> bytes) {
        try {
            read_cubin(bytes);
        } catch (const Error&) {
        }
    };
    for (std::size_t at = 0; at < whole.size(); ++at)
        for (const int value : {0, 1, 0x7f, 0x80, 0xff}) {
            std::vector<std::byte> damaged = whole;
            damaged[at] = static_cast<std::byte>(value);
            try_read(damaged);
        }
    std::mt19937 random{1};
    for (int round = 0; round < 2000; ++round) {
        std::vector<std::byte> damaged = whole;
        for (int hit = 0; hit < 6; ++hit) damaged[random() % damaged.size()] = static_cast<std::byte>(random());
        try_read(damaged);
    }
}

TEST(Cubin, OtherFilesAreRefused) {
    EXPECT_THROW(read_cubin({}), Error);
    std::vector<std::byte> other = one_kernel();
    other[0x12] = std::byte{62};  // x86-64
    EXPECT_THROW(read_cubin(other), Error);
}

}  // namespace
}  // namespace autotune

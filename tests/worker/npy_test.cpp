#include "tuner/worker/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>

#include "autotune/error.h"

namespace autotune {
namespace {

using testing::HasSubstr;

std::filesystem::path write_npy(const std::string& descr, const std::string& shape, std::string_view data) {
    const std::filesystem::path file = std::filesystem::path{testing::TempDir()} / "golden.npy";
    std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + shape + "), }";
    while ((header.size() + 11) % 64) header += ' ';
    header += '\n';
    std::ofstream out{file, std::ios::binary};
    out << "\x93NUMPY" << '\x01' << '\0' << static_cast<char>(header.size()) << '\0' << header << data;
    return file;
}

TEST(Npy, ReadsFloatsAndIntegersAsDoubles) {
    const std::array<float, 4> floats{1.5f, -2.0f, 0.0f, 1e20f};
    const std::string_view bytes{reinterpret_cast<const char*>(floats.data()), sizeof floats};
    const std::array<std::int64_t, 2> shape{2, 2};
    EXPECT_THAT(read_npy(write_npy("<f4", "2, 2", bytes), shape),
                testing::ElementsAre(1.5, -2.0, 0.0, static_cast<double>(1e20f)));
    const std::array<std::int64_t, 1> three{3};
    EXPECT_THAT(read_npy(write_npy("|i1", "3,", std::string_view{"\x01\xff\x80", 3}), three),
                testing::ElementsAre(1, -1, -128));
}

TEST(Npy, WhatDoesNotFitIsRefusedByName) {
    const std::array<std::int64_t, 1> three{3};
    const auto message = [&](const std::filesystem::path& file) -> std::string {
        try {
            read_npy(file, three);
            return "it was read";
        } catch (const Error& e) {
            return e.what();
        }
    };
    EXPECT_THAT(message(write_npy("|i1", "4,", "abcd")), HasSubstr("has the shape (4), and the tensor (3)"));
    EXPECT_THAT(message(write_npy("|i1", "3,", "ab")), HasSubstr("ends before its last element"));
    EXPECT_THAT(message(write_npy(">f4", "3,", "abcdabcdabcd")), HasSubstr("'>f4'"));
    EXPECT_THAT(message("/nowhere/golden.npy"), HasSubstr("is no .npy file"));
}

}  // namespace
}  // namespace autotune

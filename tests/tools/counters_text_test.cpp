#include "tools/counters_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "device/occupancy.h"
#include "tools/format.h"

namespace autotune {
namespace {

using emulator::CountedLaunch;
using emulator::Counters;
using testing::HasSubstr;
using testing::Not;

DeviceLimits a6000() {
    DeviceLimits limits = *limits_of_capability(86);
    limits.sm_count = 84;
    return limits;
}

/// 1000 blocks; all but the last do twice what the last does.
CountedLaunch sample() {
    CountedLaunch launch{.entry = "softmax_rows",
                         .grid = {1000},
                         .block = {256},
                         .shared_bytes = 1024,
                         .resources = {.name = "softmax_rows", .registers = 40, .static_shared_bytes = 512},
                         .blocks = 1000};
    const auto counted = [](std::uint64_t times) {
        Counters counters;
        counters.blocks = 1;
        counters.instructions = 400 * times;
        counters.lane_instructions = 6400 * times;
        counters.classes[static_cast<std::size_t>(emulator::OpClass::fp32)] = {100 * times, 1600 * times};
        counters.flops = 3200 * times;
        counters.global_load_requests = 10 * times;
        counters.global_load_sectors = 40 * times;
        counters.global_load_bytes = 1280 * times;
        counters.barriers = 8 * times;
        return counters;
    };
    launch.interior = counted(2);
    launch.edge = counted(1);
    return launch;
}

/// The cells of the row with this label.
std::vector<std::string> cells(const std::string& text, const std::string& label) {
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("    " + label + " ")) continue;
        std::istringstream rest{line.substr(4 + label.size())};
        std::vector<std::string> found;
        for (std::string word; rest >> word;) found.push_back(word);
        return found;
    }
    return {};
}

using Cells = std::vector<std::string>;

TEST(CountersText, ShowsABlockTheLastAndWhatBothSayOfTheLaunch) {
    const std::string text = counters_text(std::vector{sample()}, a6000());
    EXPECT_EQ(cells(text, "warp instructions"), (Cells{"800", "400", "799600"}));
    EXPECT_EQ(cells(text, "  fp32 (25 %)"), (Cells{"200", "100", "199900"}));
    EXPECT_EQ(cells(text, "lanes an instruction"), (Cells{"16.00", "16.00", "16.00"}));
    EXPECT_EQ(cells(text, "flops"), (Cells{"6400", "3200", "6.40", "M"}));
    EXPECT_EQ(cells(text, "  sectors a request"), (Cells{"4.00", "4.00", "4.00"}));
    EXPECT_EQ(cells(text, "  memory efficiency"), (Cells{"100", "%", "100", "%", "100", "%"}));
    EXPECT_EQ(cells(text, "warps at barriers"), (Cells{"16", "8", "15992"}));
    EXPECT_THAT(text, HasSubstr("counted on the emulator over 2 of its 1000 blocks"));
}

TEST(CountersText, TellsResourcesOccupancyAndWhatLimitsIt) {
    const std::string text = counters_text(std::vector{sample()}, a6000());
    EXPECT_THAT(text, HasSubstr("40 registers a thread, none spilled, 1.50 KiB of shared memory a block"));
    // 48 warps an SM, 8 a block; 65,536 registers hold 48 warps of 40.
    EXPECT_THAT(text,
                HasSubstr("occupancy 1.00: 6 blocks an SM, 48 of 48 warps, limited by warps; 1.98 waves on 84 SMs"));
    EXPECT_THAT(text, HasSubstr("achieved occupancy 0.99 with the last wave"));
}

TEST(CountersText, NamesSharedMemoryWhereItLimitsAndWhereNoBlockFits) {
    CountedLaunch launch = sample();
    launch.shared_bytes = 48 << 10;
    EXPECT_THAT(counters_text(std::vector{launch}, a6000()),
                HasSubstr("occupancy 0.33: 2 blocks an SM, 16 of 48 warps, "
                          "limited by shared memory"));
    launch.shared_bytes = 200 << 10;
    EXPECT_THAT(counters_text(std::vector{launch}, a6000()), HasSubstr("not one block fits an SM: shared memory"));
}

TEST(CountersText, ClaimsNoOccupancyWithoutACubin) {
    CountedLaunch launch = sample();
    launch.resources = {};
    const std::string text = counters_text(std::vector{launch}, a6000());
    EXPECT_THAT(text, HasSubstr("registers and occupancy are not known"));
    EXPECT_THAT(text, Not(HasSubstr("waves")));
}

TEST(CountersText, ShowsZeroConflictsWhereSharedMemoryIsUsedAndNoRowWhereItIsNot) {
    CountedLaunch launch = sample();
    EXPECT_EQ(cells(counters_text(std::vector{launch}, a6000()), "bank conflicts"), Cells{});
    launch.interior.shared_load_requests = launch.interior.shared_load_wavefronts = 4;
    const std::string text = counters_text(std::vector{launch}, a6000());
    EXPECT_EQ(cells(text, "bank conflicts"), (Cells{"0", "0", "0"}));
    EXPECT_EQ(cells(text, "  wavefronts a request"), (Cells{"1.00", "-", "1.00"})) << "the last block has no request";
    EXPECT_EQ(cells(text, "divergent branches"), (Cells{"0", "0", "0"}));
}

TEST(CountersText, OfOneBlockHasOneColumn) {
    CountedLaunch launch = sample();
    launch.interior = {};
    launch.grid = {1};
    launch.blocks = 1;
    const std::string text = counters_text(std::vector{launch}, a6000());
    EXPECT_EQ(cells(text, "warp instructions"), Cells{"400"});
    EXPECT_THAT(text, HasSubstr("counted on the emulator over its one block"));
}

TEST(CountersText, CountsBlocksAndNotTheClustersThatTheyBring) {
    CountedLaunch launch = sample();
    launch.interior.blocks = 4;
    launch.edge.blocks = 2;
    const std::string text = counters_text(std::vector{launch}, a6000());
    EXPECT_EQ(cells(text, "warp instructions"), (Cells{"200", "200", "200000"})) << "998 / 4 * 800 + 400";
    EXPECT_THAT(text, HasSubstr("counted on the emulator over 6 of its 1000 blocks"));
    launch.interior = {};
    launch.edge.blocks = launch.blocks = 8;
    launch.grid = {8};
    EXPECT_EQ(cells(counters_text(std::vector{launch}, a6000()), "warp instructions"), (Cells{"50", "400"}));
}

TEST(CountersText, OfAnEmptyGridHasNoTable) {
    CountedLaunch launch{.entry = "nothing", .grid = {0}, .block = {32}};
    const std::string text = counters_text(std::vector{launch}, a6000());
    EXPECT_THAT(text, HasSubstr("no block runs"));
    EXPECT_THAT(text, Not(HasSubstr("warp instructions")));
}

TEST(CountersText, HoldsTheLargestGridsWithoutOverflowOrLongLines) {
    CountedLaunch launch = sample();
    launch.grid = {2147483647, 65535, 65535};
    launch.repeat = 4;
    launch.entry = "gemm<" + std::string(200, 'x') + ">";
    launch.blocks = std::uint64_t{2147483647} * 65535 * 65535 / 4;
    launch.interior.instructions = std::uint64_t{1} << 33;
    launch.interior.global_load_bytes = std::uint64_t{1} << 40;
    std::istringstream lines{counters_text(std::vector{launch, sample()}, a6000())};
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(columns(line), 100u) << line;
    EXPECT_GT(count, 20u);
}

}  // namespace
}  // namespace autotune

// What it costs to build spaces and to move in them, on one core.
//
//     space_bench            made-up spaces, of 10^6 to 10^17 raw configs
//     space_bench FOLDER     recorded spaces with published constraints
//
// One line a space: raw and valid size, the median of seven times it is built, the memory it then takes, and the
// medians of a row, a number and the neighbours of a config drawn uniformly. Times are those of the core.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <functional>
#include <random>
#include <vector>

#include "tests/model/published_spaces.h"
#include "tuner/model/space.h"

namespace {

using namespace autotune;

Op made_up(const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& parameters,
           const std::vector<std::string>& constraints) {
    Op op;
    op.name = "made_up";
    Variant variant;
    variant.name = "only";
    for (const auto& [name, values] : parameters) {
        Parameter parameter{.name = name, .values = {}, .fallback = {}, .about = {}};
        for (const std::int64_t value : values) parameter.values.emplace_back(value);
        parameter.fallback = Expression::constant(parameter.values.front());
        variant.parameters.push_back(std::move(parameter));
    }
    for (const std::string& constraint : constraints)
        variant.constraints.push_back({constraint, Expression::parse(constraint)});
    op.variants.push_back(std::move(variant));
    return op;
}

std::vector<std::int64_t> powers(std::int64_t from, std::int64_t to) {
    std::vector<std::int64_t> out;
    for (std::int64_t value = from; value <= to; value *= 2) out.push_back(value);
    return out;
}

std::vector<std::int64_t> steps(std::int64_t from, std::int64_t to, std::int64_t by) {
    std::vector<std::int64_t> out;
    for (std::int64_t value = from; value <= to; value += by) out.push_back(value);
    return out;
}

/// Time of this process on a core, which others on the machine do not add to.
double now_us() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

/// Of one of `at_once` runs.
double median_us(int repeats, int at_once, const std::function<void()>& run) {
    std::vector<double> took;
    for (int i = 0; i < repeats; ++i) {
        const double begin = now_us();
        for (int j = 0; j < at_once; ++j) run();
        took.push_back((now_us() - begin) / at_once);
    }
    std::ranges::nth_element(took, took.begin() + static_cast<std::ptrdiff_t>(took.size() / 2));
    return took[took.size() / 2];
}

std::size_t taken() {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

void measure(const std::string& name, const Op& op) {
    const Instance instance = Instance::make(op, {}, DeviceLimits{});
    const std::size_t before = taken();
    const Space space = Space::make(instance);
    const std::size_t bytes = taken() - before;
    const double built = median_us(7, 1, [&] { Space::make(instance); });
    fmt::print("{:<34}{:>10.3g}{:>18}{:>10.3f}{:>10.1f}", name, space.raw_size(), space.size(), built / 1000,
               static_cast<double>(bytes) / 1024);
    if (space.size() == 0) return fmt::print("\n");
    std::mt19937_64 random{1};
    std::size_t sum = 0;
    const auto drawn = [&] { return static_cast<std::size_t>(random()) % space.size(); };
    const double row = median_us(101, 50, [&] { sum += space.row(drawn())[0]; });
    const Space::Row some = space.row(drawn());
    const double number = median_us(101, 50, [&] { sum += *space.number_of(0, some); });
    const auto near = [&](Space::Neighbourhood kind) {
        return median_us(101, 5, [&] { sum += space.neighbours(drawn(), kind, 1000).size(); });
    };
    fmt::print("{:>10.2f}{:>10.2f}{:>10.1f}{:>10.1f}{}\n", row, number, near(Space::Neighbourhood::hamming),
               near(Space::Neighbourhood::strictly_adjacent), sum == 0 ? " " : "");
}

}  // namespace

int main(int count, char** arguments) {
    if (count == 2 && !std::filesystem::is_directory(arguments[1])) {
        fmt::print(stderr, "error: '{}' is no folder of recorded spaces\n", arguments[1]);
        return 1;
    }
    fmt::print("{:<34}{:>10}{:>18}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}\n", "space", "raw", "valid", "build ms", "KiB",
               "row us", "number us", "hamming", "adjacent");
    if (count == 2) {
        for (const test::PublishedSpace& space : test::published_spaces(arguments[1])) measure(space.name, space.op);
        return 0;
    }
    const std::vector<std::string> gemm{"MWG % (MDIMC * VWM) == 0",
                                        "NWG % (NDIMC * VWN) == 0",
                                        "MWG % (MDIMA * VWM) == 0",
                                        "NWG % (NDIMB * VWN) == 0",
                                        "KWG % ((MDIMC * NDIMC) / MDIMA) == 0",
                                        "KWG % ((MDIMC * NDIMC) / NDIMB) == 0",
                                        "MDIMC * NDIMC <= 1024",
                                        "4 * KWG * (SA * MWG + SB * NWG) <= 49152"};
    measure("gemm", made_up({{"MWG", powers(16, 128)},
                             {"NWG", powers(16, 128)},
                             {"KWG", powers(16, 32)},
                             {"MDIMC", powers(8, 32)},
                             {"NDIMC", powers(8, 32)},
                             {"MDIMA", powers(8, 32)},
                             {"NDIMB", powers(8, 32)},
                             {"KWI", {2, 8}},
                             {"VWM", powers(1, 8)},
                             {"VWN", powers(1, 8)},
                             {"STRM", {0, 1}},
                             {"STRN", {0, 1}},
                             {"SA", {0, 1}},
                             {"SB", {0, 1}}},
                            gemm));
    measure("gemm, wider", made_up({{"MWG", powers(8, 256)},
                                    {"NWG", powers(8, 256)},
                                    {"KWG", powers(8, 128)},
                                    {"MDIMC", powers(4, 32)},
                                    {"NDIMC", powers(4, 32)},
                                    {"MDIMA", powers(4, 32)},
                                    {"NDIMB", powers(4, 32)},
                                    {"KWI", powers(1, 32)},
                                    {"VWM", powers(1, 16)},
                                    {"VWN", powers(1, 16)},
                                    {"STRM", {0, 1}},
                                    {"STRN", {0, 1}},
                                    {"SA", {0, 1}},
                                    {"SB", {0, 1}}},
                                   gemm));
    measure("stencil", made_up({{"bx", steps(16, 512, 16)},
                                {"by", powers(1, 32)},
                                {"bz", powers(1, 8)},
                                {"tx", steps(1, 8, 1)},
                                {"ty", steps(1, 8, 1)},
                                {"tz", steps(1, 4, 1)},
                                {"shared", {0, 1}},
                                {"pad", {0, 1}},
                                {"unroll", steps(1, 16, 1)},
                                {"order", steps(0, 5, 1)},
                                {"vec", powers(1, 4)}},
                               {"32 <= bx * by * bz <= 1024",
                                "shared == 0 or 4 * (bx * tx + 2 + pad) * (by * ty + 2) * "
                                "(bz * tz + 2) <= 49152",
                                "pad == 0 or shared == 1", "tx % vec == 0", "(tx * ty * tz) % unroll == 0",
                                "order < 3 or bz > 1"}));
    std::vector<std::int64_t> widths{1, 2, 4, 8, 16};
    for (const std::int64_t width : steps(32, 1024, 32)) widths.push_back(width);
    measure("hotspot",
            made_up({{"block_size_x", widths},
                     {"block_size_y", powers(1, 32)},
                     {"tile_size_x", steps(1, 10, 1)},
                     {"tile_size_y", steps(1, 10, 1)},
                     {"temporal_tiling_factor", steps(1, 10, 1)},
                     {"loop_unroll_factor_t", steps(1, 10, 1)},
                     {"sh_power", {0, 1}}},
                    {"block_size_x * block_size_y >= 32", "temporal_tiling_factor % loop_unroll_factor_t == 0",
                     "block_size_x * block_size_y <= 1024",
                     "(block_size_x * tile_size_x + temporal_tiling_factor * 2) * (block_size_y * tile_size_y + "
                     "temporal_tiling_factor * 2) * (2 + sh_power) * 4 <= 49152"}));
    std::vector<std::pair<std::string, std::vector<std::int64_t>>> pairs;
    std::vector<std::string> ordered;
    for (int i = 0; i < 24; ++i) pairs.emplace_back(fmt::format("P{}", i), steps(1, 5, 1));
    for (int i = 0; i < 12; ++i) ordered.push_back(fmt::format("P{} <= P{}", i, i + 12));
    measure("12 pairs", made_up(pairs, ordered));
    std::string sum = "P0";
    for (int i = 1; i < 24; ++i) sum += fmt::format(" + P{}", i);
    measure("a sum of 24", made_up(pairs, {sum + " <= 60"}));
    measure("contradiction", made_up(pairs, {"P0 < P1", "P1 < P2", "P2 < P0", sum + " <= 60"}));
}

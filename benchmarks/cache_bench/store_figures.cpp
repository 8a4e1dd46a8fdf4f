// Rows going in, and the room that they take.
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "benchmarks/cache_bench/figure.h"
#include "cache/store/upkeep.h"
#include "tests/cache/samples.h"

namespace autotune::cache_bench {

namespace {

using namespace samples;
namespace fs = std::filesystem;

constexpr std::size_t batch = 50'000;

void fill(const fs::path& path, const std::vector<Record>& records) {
    Store store = Store::open({.path = path});
    for (std::size_t at = 0; at < records.size(); at += batch)
        store.put(std::span{records}.subspan(at, std::min(batch, records.size() - at)));
}

Measured bulk_insert(bool own_runs) {
    const std::vector<Record> records = winners(100'000, own_runs);
    Times times;
    for (int round = 0; round < 3; ++round) {
        const Folder folder;
        const Stopwatch watch;
        fill(folder / "tune.db", records);
        times.add(watch);
    }
    return rates_of(times, static_cast<double>(records.size()),
                    fmt::format("100 000 rows, {}, 50 000 a commit", own_runs ? "a run each" : "of one run"));
}

/// Of a million winners, scaled from `count` where that is less.
double mib_of(std::int64_t count, const fs::path& path) {
    fill(path, winners(count, true));
    Store store = Store::open({.path = path});
    Upkeep{store}.compact();
    return static_cast<double>(fs::file_size(path)) / (1 << 20) * 1e6 / static_cast<double>(count);
}

Measured size_of_a_million(std::int64_t count) {
    const Folder folder;
    const double mib = mib_of(count, folder / "tune.db");
    return {.median = mib,
            .best = mib,
            .state = fmt::format("{:.0f} bytes a row with provenance, a run each{}", mib * (1 << 20) / 1e6,
                                 count < 1'000'000 ? fmt::format(", scaled from {} rows", count) : "")};
}

/// The bytes that come out of a command line; nullopt: it failed.
std::optional<std::uint64_t> output_bytes(const std::string& command) {
    std::FILE* pipe = ::popen(command.c_str(), "r");
    if (!pipe) return std::nullopt;
    std::uint64_t bytes = 0;
    std::vector<char> buffer(1 << 16);
    while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) bytes += got;
    return ::pclose(pipe) == 0 && bytes > 0 ? std::optional{bytes} : std::nullopt;
}

Measured compressed_size(std::int64_t count) {
    const Folder folder;
    const fs::path path = folder / "tune.db";
    mib_of(count, path);
    for (const std::string program : {"zstd -q -3", "xz -1"})
        if (const auto bytes = output_bytes(fmt::format("{} -c '{}' 2>/dev/null", program, path.string()))) {
            const double mib = static_cast<double>(*bytes) / (1 << 20) * 1e6 / static_cast<double>(count);
            return {.median = mib,
                    .best = mib,
                    .state = program + (count < 1'000'000 ? fmt::format(", scaled from {} rows", count) : "")};
        }
    return {.state = "neither zstd nor xz is here"};
}

}  // namespace

std::vector<Figure> store_figures() {
    constexpr auto higher = Figure::Better::higher;
    return {
        {.name = "insert",
         .what = "bulk insert",
         .unit = "rows/s",
         .better = higher,
         .target = 300'000,
         .measure = [] { return bulk_insert(false); }},
        {.name = "insert-runs",
         .what = "bulk insert, each of a search of its own",
         .unit = "rows/s",
         .better = higher,
         .target = 300'000,
         .measure = [] { return bulk_insert(true); }},
        {.name = "size",
         .what = "a million winners",
         .unit = "MiB",
         .target = 120,
         .measure = [] { return size_of_a_million(100'000); }},
        {.name = "size-packed",
         .what = "a million winners, compressed",
         .unit = "MiB",
         .target = 40,
         .measure = [] { return compressed_size(100'000); }},
        {.name = "size-1m",
         .what = "a million winners, all of them",
         .unit = "MiB",
         .target = 120,
         .full = true,
         .measure = [] { return size_of_a_million(1'000'000); }},
    };
}

}  // namespace autotune::cache_bench

// Records of elsewhere coming in.
#include <fmt/core.h>

#include <fstream>

#include "benchmarks/cache_bench/figure.h"
#include "cache/sharing/exports.h"
#include "tests/cache/sharing_samples.h"

namespace autotune::cache_bench {

namespace {

using namespace samples;
namespace fs = std::filesystem;

constexpr std::int64_t imported_rows = 50'000;

std::vector<Record> records_of_elsewhere() {
    std::vector<Record> records;
    for (std::int64_t n = 1; n <= imported_rows; ++n)
        records.push_back(shared_record(n, 10.0 + static_cast<double>(n % 7)));
    return records;
}

/// The file, taken into an empty database.
Measured rate_of_import(const fs::path& file, std::string state, Trust trust = Trust::elsewhere) {
    Times times;
    for (int round = 0; round < 7; ++round) {
        const Folder folder;
        Store store = Store::open({.path = folder / "tune.db"});
        const Stopwatch watch;
        const std::vector<TakenIn> taken = take_in(store, {file}, {.ops = &shared_ops(), .trust = trust});
        times.add(watch);
        if (taken.front().added != static_cast<std::size_t>(imported_rows)) return {.state = "not all rows were taken"};
    }
    return rates_of(times, static_cast<double>(imported_rows), std::move(state));
}

Measured import_database(Trust trust) {
    const Folder folder;
    const fs::path file = folder / "theirs.db";
    Store::open({.path = file}).put(records_of_elsewhere());
    return rate_of_import(file, fmt::format("{} rows of one run, every row judged", imported_rows), trust);
}

Measured import_lines() {
    const Folder folder;
    const fs::path file = folder / "theirs.jsonl";
    {
        Store store = Store::in_memory();
        store.put(records_of_elsewhere());
        std::ofstream out{file};
        export_lines(store, {}, [&](const std::string& line) { out << line << '\n'; });
    }
    return rate_of_import(file,
                          fmt::format("{} lines of {:.0f} bytes, every row judged", imported_rows,
                                      static_cast<double>(fs::file_size(file)) / static_cast<double>(imported_rows)));
}

}  // namespace

std::vector<Figure> sharing_figures() {
    constexpr auto higher = Figure::Better::higher;
    return {
        {.name = "import",
         .what = "import of a foreign database, validated",
         .unit = "rows/s",
         .better = higher,
         .target = 300'000,
         .measure = [] { return import_database(Trust::elsewhere); }},
        {.name = "import-own",
         .what = "merge of an own database",
         .unit = "rows/s",
         .better = higher,
         .target = 700'000,
         .measure = [] { return import_database(Trust::own); }},
        {.name = "import-lines",
         .what = "import of JSON lines",
         .unit = "rows/s",
         .better = higher,
         .target = 150'000,
         .measure = import_lines},
        {.name = "merge",
         .what = "merge laws: any order, any repetition",
         .unit = "",
         .measure = [] { return Measured{.state = "sharing_test --gtest_filter='Merge*'"}; }},
    };
}

}  // namespace autotune::cache_bench

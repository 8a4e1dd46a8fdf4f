// Look-ups, and what is read to answer them.
#include <fmt/core.h>

#include <random>

#include "benchmarks/cache_bench/figure.h"
#include "cache/dispatch/snapshot.h"
#include "cache/store/identity.h"
#include "tests/cache/dispatch_samples.h"

namespace autotune::cache_bench {

namespace {

using namespace samples;
namespace fs = std::filesystem;

Snapshot snapshot_of(Store& store) {
    Store* const stores[] = {&store};
    return Snapshot::read(stores, "scale", "h200", today());
}

/// A database of that many problems.
struct Stored {
    Folder folder;
    fs::path path = folder / "tune.db";

    Stored(std::int64_t count, bool own_runs) {
        Store store = Store::open({.path = path});
        store.put(winners(count, own_runs));
    }
    std::string bytes_a_row(std::int64_t count) const {
        return fmt::format("{:.0f} bytes of the file a row",
                           static_cast<double>(fs::file_size(path)) / static_cast<double>(count));
    }
};

/// The problem of a call with that many elements, with the key that the dispatcher makes of it.
ProblemIdentity problem_of_call(const Op& op, std::int64_t n) {
    return problem_of(Instance::make(op, {{"n", n}}, device().limits, {.align = {{"x", 16}, {"y", 16}}}));
}

Snapshot snapshot_of_calls(const Op& op, std::int64_t count) {
    Store store = Store::in_memory();
    constexpr std::size_t batch = 50'000;
    std::vector<Record> records = winners(count, false);
    for (std::int64_t n = 0; n < count; ++n) records[static_cast<std::size_t>(n)].problem = problem_of_call(op, n + 1);
    for (std::size_t at = 0; at < records.size(); at += batch)
        store.put(std::span{records}.subspan(at, std::min(batch, records.size() - at)));
    return snapshot_of(store);
}

/// A call has just made its key, so here it is fetched ahead of its turn.
void fetch(const std::vector<std::byte>& key) {
    for (std::size_t at = 0; at < key.size(); at += 64) __builtin_prefetch(key.data() + at);
    __builtin_prefetch(key.data() + key.size() - 1);
}

/// different: that many keys, each of its own problem as a rule. The row that is found is read too: a place that has
/// yet to come from memory answers nothing.
Measured look_up(std::int64_t count, int different = 1 << 16) {
    constexpr int calls = 1 << 16, ahead = 16;
    const Op op = scale_op();
    const Snapshot snapshot = snapshot_of_calls(op, count);
    std::vector<std::vector<std::byte>> keys;
    std::mt19937_64 random{1};
    for (int i = 0; i < different; ++i)
        keys.push_back(
            problem_of_call(op, 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count))).key);
    std::uint64_t configs = 0;
    std::size_t missing = 0;
    Measured measured = timed_calls(
        21, calls, 1e9,
        [&](int) {
            for (int round = 0; round < calls / different; ++round)
                for (std::size_t i = 0; i < keys.size(); ++i) {
                    fetch(keys[(i + ahead) % keys.size()]);
                    const auto rows = snapshot.find(keys[i]);
                    if (rows.empty())
                        ++missing;
                    else
                        configs += rows.front().config;
                }
        },
        fmt::format("keys of {} bytes, {}", keys.front().size(), different == 1 ? "all the same" : "in random order"));
    keep(configs);
    if (missing > 0) return {.state = "not all keys were found"};
    return measured;
}

Measured reading(std::int64_t count, bool own_runs, bool cold) {
    const Stored stored{count, own_runs};
    std::size_t problems = 0;
    Measured measured = timed_rounds(
        cold ? 7 : 11,
        [&] {
            if (cold) forget_pages(stored.path);
        },
        [&] {
            Store store = Store::open({.path = stored.path, .mode = Store::Mode::read});
            problems = snapshot_of(store).problems().size();
        },
        fmt::format("{}, {}", own_runs ? "a run each" : "of one run", stored.bytes_a_row(count)));
    if (problems != static_cast<std::size_t>(count)) return {.state = "not all rows were read"};
    return measured;
}

Measured memory() {
    const double mib = static_cast<double>(snapshot_of_calls(scale_op(), 50'000).bytes()) / (1 << 20);
    return {.median = mib, .best = mib};
}

Measured opening(bool cold) {
    constexpr std::int64_t count = 50'000;
    const Stored stored{count, true};
    return timed_rounds(
        21,
        [&] {
            if (cold) forget_pages(stored.path);
        },
        [&] { keep(Store::open({.path = stored.path, .mode = Store::Mode::read}).generation()); },
        fmt::format("{} rows, header and generation", count));
}

}  // namespace

std::vector<Figure> snapshot_figures() {
    return {
        {.name = "lookup-50k",
         .what = "exact look-up, 50 000 entries",
         .unit = "ns",
         .target = 25,
         .measure = [] { return look_up(50'000); }},
        {.name = "lookup-same",
         .what = "the same, one key again and again",
         .unit = "ns",
         .measure = [] { return look_up(50'000, 1); }},
        {.name = "lookup-1m",
         .what = "exact look-up, 1 000 000 entries",
         .unit = "ns",
         .target = 100,
         .full = true,
         .measure = [] { return look_up(1'000'000); }},
        {.name = "open-warm",
         .what = "open and verify, warm",
         .unit = "ms",
         .target = 1,
         .measure = [] { return opening(false); }},
        {.name = "open-cold",
         .what = "open and verify, cold page cache",
         .unit = "ms",
         .target = 5,
         .measure = [] { return opening(true); }},
        {.name = "snapshot-warm",
         .what = "snapshot of 50 000 rows, warm",
         .unit = "ms",
         .target = 15,
         .measure = [] { return reading(50'000, false, false); }},
        {.name = "snapshot-runs-warm",
         .what = "the same, each of a search of its own",
         .unit = "ms",
         .target = 15,
         .measure = [] { return reading(50'000, true, false); }},
        {.name = "snapshot-cold",
         .what = "snapshot of 50 000 rows, cold page cache",
         .unit = "ms",
         .target = 60,
         .measure = [] { return reading(50'000, false, true); }},
        {.name = "snapshot-runs-cold",
         .what = "the same, each of a search of its own",
         .unit = "ms",
         .target = 60,
         .measure = [] { return reading(50'000, true, true); }},
        {.name = "snapshot-5k",
         .what = "snapshot of one op of 5 000 rows, warm",
         .unit = "ms",
         .target = 2,
         .measure = [] { return reading(5'000, false, false); }},
        {.name = "memory",
         .what = "memory of a snapshot of 50 000 entries",
         .unit = "MiB",
         .target = 10,
         .measure = memory},
    };
}

}  // namespace autotune::cache_bench

// Look-ups, and what is read to answer them.
#include <fmt/core.h>

#include <array>
#include <cstring>
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

/// The problem of a call with that many elements, with the key that the dispatcher makes of it.
ProblemIdentity problem_of_call(const Op& op, std::int64_t n) {
    return problem_of(Instance::make(op, {{"n", n}}, device().limits, {.align = {{"x", 16}, {"y", 16}}}));
}

/// Winners of the problems of calls with 1 to `count` elements, each with `ranks` configs.
std::vector<Record> winners_of_calls(std::int64_t count, bool own_runs, int ranks = 1) {
    const Op op = scale_op();
    std::vector<Record> records = winners(count, own_runs);
    records.reserve(records.size() * static_cast<std::size_t>(ranks));
    for (std::int64_t n = 0; n < count; ++n) {
        Record& record = records[static_cast<std::size_t>(n)];
        record.problem = problem_of_call(op, n + 1);
        for (int rank = 1; rank < ranks; ++rank) {
            records.push_back(records[static_cast<std::size_t>(n)]);
            records.back().rank = rank;
            records.back().config = config(32, 8 << rank);
        }
    }
    return records;
}

/// A database of that many problems.
struct Stored {
    Folder folder;
    fs::path path = folder / "tune.db";

    Stored(std::int64_t count, bool own_runs) {
        Store store = Store::open({.path = path});
        store.put(winners_of_calls(count, own_runs));
    }
    std::string bytes_a_row(std::int64_t count) const {
        return fmt::format("{:.0f} bytes of the file a row",
                           static_cast<double>(fs::file_size(path)) / static_cast<double>(count));
    }
};

Snapshot snapshot_of_calls(std::int64_t count, int ranks = 1) {
    Store store = Store::in_memory();
    constexpr std::size_t batch = 50'000;
    const std::vector<Record> records = winners_of_calls(count, false, ranks);
    for (std::size_t at = 0; at < records.size(); at += batch)
        store.put(std::span{records}.subspan(at, std::min(batch, records.size() - at)));
    return snapshot_of(store);
}

/// Keys of calls with random numbers of elements, as a look-up meets them: a call has just made its key, in memory that
/// other calls used before, so the key is in the nearest cache. Whole keys for as many look-ups, 12 MB, would come from
/// further away than the table, and drive it out of the caches besides. So a few keys take turns here, and the one
/// number that makes a key another problem's is written `ahead` look-ups before its turn: a call writes more of its key
/// after that number. Right before the look-up it would cost 1 ns more, since loads wider than a store wait for it.
/// Figures have the writing in them; `lookup-keys` is that alone.
class KeysOfCalls {
public:
    static constexpr std::size_t ahead = 8;

    explicit KeysOfCalls(std::int64_t count) : count_{static_cast<std::uint64_t>(count)} {
        const Op op = scale_op();
        keys_.fill(problem_of_call(op, 1).key);
        const auto other = problem_of_call(op, 2).key;
        place_ = static_cast<std::size_t>(std::ranges::mismatch(keys_[0], other).in1 - keys_[0].begin());
        for (std::size_t i = 0; i < ahead; ++i) write(i);
    }
    std::size_t size() const noexcept { return keys_[0].size(); }
    /// The key of that turn; it is good for `ahead` turns.
    std::span<const std::byte> operator[](std::size_t turn) noexcept {
        write(turn + ahead);
        return keys_[turn % keys_.size()];
    }

private:
    void write(std::size_t turn) noexcept {
        random_ = random_ * 6364136223846793005u + 1442695040888963407u;  // source  MMIX, Knuth
        const std::uint64_t n = 1 + ((random_ >> 32) * count_ >> 32);
        std::memcpy(keys_[turn % keys_.size()].data() + place_, &n, sizeof n);
    }

    std::uint64_t count_, random_ = 1;
    std::array<std::vector<std::byte>, 2 * ahead> keys_;
    std::size_t place_;  ///< of the number's 8 bytes
};

// Short rounds, and many: on a busy machine most of them run between two turns of others.
constexpr int rounds = 161, calls_a_round = 1 << 14;

/// What look-ups found: the rows that they lead to are read, since a place that has yet to come from memory answers
/// nothing.
struct Read {
    std::uint64_t configs = 0;
    std::size_t missing = 0;

    /// Returns one of the configs' numbers.
    template <class Rows>
    std::uint32_t add(const Rows& rows) noexcept {
        if (rows.empty()) ++missing;
        std::uint32_t last = 0;
        for (const SnapshotRow& row : rows) configs += last = row.config;
        return last;
    }
};

/// Look-ups of random keys. alone: each begins when the one before has its answer, so nothing hides how long memory
/// takes; else a processor has several under way. ranks: rows that a problem has; all of them are read.
Measured look_up(std::int64_t count, bool alone = false, int ranks = 1) {
    const Snapshot snapshot = snapshot_of_calls(count, ranks);
    KeysOfCalls keys{count};
    Read read;
    std::size_t turn = 0;
    Measured measured = timed_calls(
        rounds, calls_a_round, 1e9,
        [&](int calls) {
            for (int i = 0; i < calls; ++i, ++turn) {
                const std::uint32_t config = read.add(snapshot.find(keys[turn]));
                if (alone) turn += config >> 31;  // adds nothing, which only who has the answer knows
            }
        },
        fmt::format("keys of {} bytes, in random order", keys.size()));
    keep(read.configs);
    if (read.missing > 0) return {.state = "not all keys were found"};
    return measured;
}

Measured look_up_same() {
    const Snapshot snapshot = snapshot_of_calls(50'000);
    const std::vector<std::byte> key = problem_of_call(scale_op(), 12'345).key;
    Read read;
    Measured measured = timed_calls(
        rounds, calls_a_round, 1e9,
        [&](int calls) {
            for (int i = 0; i < calls; ++i) {
                keep(key);
                read.add(snapshot.find(key));
            }
        },
        fmt::format("keys of {} bytes, all the same", key.size()));
    keep(read.configs);
    if (read.missing > 0) return {.state = "the key was not found"};
    return measured;
}

/// What the keys of look_up cost without a look-up.
Measured writing_keys() {
    KeysOfCalls keys{50'000};
    std::size_t turn = 0;
    return timed_calls(rounds, calls_a_round, 1e9, [&](int calls) {
        for (int i = 0; i < calls; ++i) keep(keys[turn++]);
    });
}

/// What a look-up in a table that no cache holds takes at least: it reads one line of it, and cannot know which before
/// it has the key.
Measured memory_read() {
    constexpr std::size_t bytes = std::size_t{1'000'000} * 51, line = 64;  // about what a million problems take
    struct alignas(line) Line {
        std::uint64_t next;
    };
    std::vector<Line> lines(bytes / line);
    for (std::size_t i = 0; i < lines.size(); ++i) lines[i].next = i;
    std::mt19937_64 random{1};
    for (std::size_t i = lines.size() - 1; i > 0; --i)  // one cycle through all  source  Sattolo 1986
        std::swap(lines[i].next, lines[random() % i].next);
    std::uint64_t at = 0;
    Measured measured = timed_calls(
        rounds, calls_a_round, 1e9,
        [&](int calls) {
            for (int i = 0; i < calls; ++i) at = lines[at].next;
        },
        "each after the one before");
    keep(at);
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
    const double mib = static_cast<double>(snapshot_of_calls(50'000).bytes()) / (1 << 20);
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
        {.name = "lookup-alone",
         .what = "the same, each after the one before",
         .unit = "ns",
         .measure = [] { return look_up(50'000, true); }},
        {.name = "lookup-ranks",
         .what = "the same, three configs a problem",
         .unit = "ns",
         .measure = [] { return look_up(50'000, false, 3); }},
        {.name = "lookup-same", .what = "the same, one key again and again", .unit = "ns", .measure = look_up_same},
        {.name = "lookup-keys", .what = "writing such keys alone", .unit = "ns", .measure = writing_keys},
        {.name = "lookup-1m",
         .what = "exact look-up, 1 000 000 entries",
         .unit = "ns",
         .target = 100,
         .full = true,
         .measure = [] { return look_up(1'000'000); }},
        {.name = "lookup-1m-alone",
         .what = "the same, each after the one before",
         .unit = "ns",
         .full = true,
         .measure = [] { return look_up(1'000'000, true); }},
        {.name = "memory-read",
         .what = "reading a line of as much memory",
         .unit = "ns",
         .full = true,
         .measure = memory_read},
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

#ifndef AUTOTUNE_BENCHMARKS_CACHE_BENCH_FIGURE_H
#define AUTOTUNE_BENCHMARKS_CACHE_BENCH_FIGURE_H

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/store/record.h"

namespace autotune::cache_bench {

/// What one figure came to. Without a median there is none, and `state` says why.
struct Measured {
    std::optional<double> median{}, best{};
    std::optional<double> cpu{};  ///< the median of this process's processor time, which a busy machine changes little
    std::string state{};          ///< under which conditions, beside those in the table's head
};

/// A row of the table: a figure and what it may be.
struct Figure {
    std::string_view name;  ///< for --only
    std::string_view what, unit;
    enum class Better { lower, higher } better = Better::lower;
    std::optional<double> target{};  ///< none: it is told, and may be anything
    bool full = false;               ///< takes long or much memory: with --full, or where --only names it
    std::function<Measured()> measure{};
};

std::vector<Figure> dispatch_figures();
std::vector<Figure> snapshot_figures();
std::vector<Figure> store_figures();
std::vector<Figure> sharing_figures();
std::vector<Figure> process_figures();

/// What `cache_bench --tune-into FILE` does, as another process.
int tune_into(const std::filesystem::path& database);

// --- helpers of the figures ---

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point began);

/// How long something took.
struct Stopwatch {
    Clock::time_point began = Clock::now();
    double cpu_began = cpu_now();
    double wall() const { return seconds_since(began); }
    double cpu() const { return cpu_now() - cpu_began; }
    static double cpu_now();  ///< of all threads of this process, seconds
};
/// Seconds of several rounds.
struct Times {
    std::vector<double> wall{}, cpu{};
    void add(const Stopwatch& watch) {
        const double seconds = watch.wall();
        cpu.push_back(watch.cpu());
        wall.push_back(seconds);
    }
};

/// Keeps the compiler from leaving the work out.
template <class T>
void keep(const T& value) {
    asm volatile("" : : "g"(&value) : "memory");
}

/// Times `scale`.
Measured summary_of(const Times& times, double scale, std::string state = {});
/// Of `count` things each time, a second.
Measured rates_of(const Times& times, double count, std::string state = {});
/// Time of one of `calls` calls, in seconds times `scale`, over `rounds` rounds after one that warms up.
Measured timed_calls(int rounds, int calls, double scale, const std::function<void(int calls)>& run,
                     std::string state = {});
/// Time of `run`, in ms, with `prepare` before each round.
Measured timed_rounds(int rounds, const std::function<void()>& prepare, const std::function<void()>& run,
                      std::string state = {});

/// Drops the file's pages from the page cache.
void forget_pages(const std::filesystem::path& path);
/// Records of the op 'scale' on one GPU, a problem each. own_runs: each was searched for itself; else one search
/// brought all.
std::vector<Record> winners(std::int64_t count, bool own_runs);

}  // namespace autotune::cache_bench
#endif

#include "benchmarks/cache_bench/figure.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "tests/cache/samples.h"

namespace autotune::cache_bench {

double seconds_since(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

double Stopwatch::cpu_now() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

namespace {

double median_of(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

}  // namespace

Measured summary_of(const Times& times, double scale, std::string state) {
    return {.median = median_of(times.wall) * scale,
            .best = *std::ranges::min_element(times.wall) * scale,
            .cpu = median_of(times.cpu) * scale,
            .state = std::move(state)};
}

Measured rates_of(const Times& times, double count, std::string state) {
    Measured measured = summary_of(times, 1, std::move(state));
    for (auto* figure : {&measured.median, &measured.best, &measured.cpu}) *figure = count / **figure;
    return measured;
}

Measured timed_calls(int rounds, int calls, double scale, const std::function<void(int calls)>& run,
                     std::string state) {
    Times times;
    run(calls);
    for (int round = 0; round < rounds; ++round) {
        const Stopwatch watch;
        run(calls);
        times.add(watch);
    }
    return summary_of(times, scale / calls, std::move(state));
}

Measured timed_rounds(int rounds, const std::function<void()>& prepare, const std::function<void()>& run,
                      std::string state) {
    Times times;
    for (int round = 0; round < rounds; ++round) {
        prepare();
        const Stopwatch watch;
        run();
        times.add(watch);
    }
    return summary_of(times, 1e3, std::move(state));
}

void forget_pages(const std::filesystem::path& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    ::fdatasync(file);
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    ::close(file);
}

std::vector<Record> winners(std::int64_t count, bool own_runs) {
    std::vector<Record> records;
    records.reserve(static_cast<std::size_t>(count));
    for (std::int64_t n = 0; n < count; ++n) {
        records.push_back(samples::record(n, 50.0 + static_cast<double>(n % 7)));
        // As searches of here have them.
        records.back().run.uuid = own_runs || n == 0 ? new_run_uuid(1'700'000'000) : records.front().run.uuid;
        records.back().config = samples::config(32 * (1 + n % 32), 1 << (n % 4));
    }
    return records;
}

}  // namespace autotune::cache_bench

// Several processes on one database.
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "benchmarks/cache_bench/figure.h"
#include "cache/dispatch/snapshot.h"
#include "cache/store/database.h"
#include "tests/cache/dispatch_samples.h"

extern char** environ;

namespace autotune::cache_bench {

namespace {

using namespace samples;
namespace fs = std::filesystem;

constexpr std::int64_t tuned_there = 4096;

fs::path this_program() { return fs::read_symlink("/proc/self/exe"); }

/// What the program says, where it ends with 0.
std::optional<std::string> answer_of(const std::string& command) {
    std::FILE* pipe = ::popen(command.c_str(), "r");
    if (!pipe) return std::nullopt;
    std::string said;
    char buffer[4096];
    while (std::fgets(buffer, sizeof buffer, pipe)) said += buffer;
    return ::pclose(pipe) == 0 ? std::optional{said} : std::nullopt;
}

/// The stress program lies beside this one: it starts writers and looks for every row that was said to be committed.
/// The last line of what it says is its result; nullopt: it is not there, or found a fault.
std::optional<nlohmann::json> stress(const std::string& arguments) {
    const fs::path program = this_program().parent_path() / "store_writers_stress";
    if (!fs::exists(program)) return std::nullopt;
    std::optional<std::string> said = answer_of(fmt::format("'{}' {}", program.string(), arguments));
    if (!said) return std::nullopt;
    while (said->ends_with('\n')) said->pop_back();
    nlohmann::json result = nlohmann::json::parse(said->substr(said->rfind('\n') + 1), nullptr, false);
    if (!result.is_object() || !result.value("sound", false)) return std::nullopt;
    return result;
}

const char* journal() { return write_ahead_log_is_safe() ? "write-ahead log" : "rollback journal"; }
/// Of a writer: so many that to start it takes less time than they do.
int commits() { return write_ahead_log_is_safe() ? 300 : 20; }

struct Storm {
    double commits_a_second = 0, longest_wait_ms = 0;
};

/// Both of its figures come from one storm.
const std::optional<Storm>& storm(int writers) {
    static std::map<int, std::optional<Storm>> known;
    const auto [at, is_new] = known.try_emplace(writers);
    if (!is_new) return at->second;
    if (const auto said = stress(fmt::format("storm {} {} 0 0", writers, commits())))
        at->second = {.commits_a_second = said->at("commits_a_second"), .longest_wait_ms = said->at("longest_wait_ms")};
    return at->second;
}

Measured rate_of(int writers) {
    const auto& measured = storm(writers);
    if (!measured) return {.state = "rows were lost, or store_writers_stress is not beside this program"};
    return {.median = measured->commits_a_second,
            .best = measured->commits_a_second,
            .state = fmt::format("{}, {} commits each, none lost", journal(), commits())};
}

Measured wait_of(int writers) {
    const auto& measured = storm(writers);
    if (!measured) return {.state = "rows were lost, or store_writers_stress is not beside this program"};
    return {.median = measured->longest_wait_ms / 1e3,
            .best = measured->longest_wait_ms / 1e3,
            .state = fmt::format("{}, the longest of all", journal())};
}

Measured kills(int rounds) {
    const auto said = stress(fmt::format("kill 8 {}", rounds));
    const double lost = said ? 0 : 1;
    return {.median = lost,
            .best = lost,
            .state = said ? fmt::format("{} rows committed by 8 writers", said->at("committed").get<std::size_t>())
                          : "a round failed, or store_writers_stress is not beside this program"};
}

bool tune_elsewhere(const fs::path& database) {
    const std::string program = this_program(), file = database;
    const char* arguments[] = {program.c_str(), "--tune-into", file.c_str(), nullptr};
    pid_t process = -1;
    int status = 1;
    return ::posix_spawn(&process, program.c_str(), nullptr, nullptr, const_cast<char**>(arguments), environ) == 0 &&
           ::waitpid(process, &status, 0) == process && status == 0;
}

/// Seconds from the end of another process that tuned to the first call that gets its winner.
std::optional<double> seen_after(bool refreshed) {
    DispatchSetting setting;
    setting.tuned(1024, {{vector_config(8, 128), 40.0}});
    setting.put_binary(vector_config(8, 128), 1024);
    setting.put_binary(vector_config(4), 1024);
    Dispatcher dispatcher{setting.options()};
    const Handle handle = dispatcher.prepare("scale");
    if (setting.launch(dispatcher, handle, tuned_there).rung == Rung::exact) return std::nullopt;
    if (!tune_elsewhere(setting.folder / "tune.db")) return std::nullopt;
    const auto began = Clock::now();
    if (refreshed) dispatcher.refresh();
    for (std::int64_t other = 1 << 20; seconds_since(began) < 10; other += 1024) {
        if (setting.launch(dispatcher, handle, tuned_there).rung == Rung::exact) return seconds_since(began);
        setting.launch(dispatcher, handle, other);  // calls of other problems go on
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    return std::nullopt;
}

Measured visibility(bool refreshed) {
    Times times;
    for (int round = 0; round < 5; ++round) {
        const auto seen = seen_after(refreshed);
        if (!seen) return {.state = "the winner was not seen within 10 s"};
        times.wall.push_back(*seen);
        times.cpu.push_back(0);
    }
    Measured measured =
        summary_of(times, 1e3, refreshed ? "after refresh()" : "while calls miss now and then, without refresh()");
    measured.cpu.reset();  // it sleeps between calls
    return measured;
}

}  // namespace

int tune_into(const fs::path& database) {
    DispatchSetting setting;  // for its GPU and its op
    Store store = Store::open({.path = database});
    const RunId run = store.begin_run(setting.start(tuned_there));
    store.finish_run(
        run,
        {.finalists = {finalist(vector_config(8, 128), 30.0)}, .default_us = 100.0, .evaluated = 20, .space_size = 64});
    return 0;
}

std::vector<Figure> process_figures() {
    constexpr auto higher = Figure::Better::higher;
    const bool ahead = write_ahead_log_is_safe();
    const double rate = ahead ? 10'000 : 400, wait = ahead ? 1 : 10;
    return {
        {.name = "writers-64",
         .what = "64 processes that write, a row a commit",
         .unit = "rows/s",
         .better = higher,
         .target = rate,
         .measure = [] { return rate_of(64); }},
        {.name = "writers-64-wait",
         .what = "the longest wait among them",
         .unit = "s",
         .target = wait,
         .measure = [] { return wait_of(64); }},
        {.name = "writers-200",
         .what = "200 processes that write, a row a commit",
         .unit = "rows/s",
         .better = higher,
         .target = rate,
         .measure = [] { return rate_of(200); }},
        {.name = "writers-200-wait",
         .what = "the longest wait among them",
         .unit = "s",
         .target = wait,
         .measure = [] { return wait_of(200); }},
        {.name = "kills",
         .what = "rounds of kill -9 that lost a row, of 10",
         .unit = "",
         .target = 0,
         .measure = [] { return kills(10); }},
        {.name = "kills-100",
         .what = "rounds of kill -9 that lost a row, of 100",
         .unit = "",
         .target = 0,
         .full = true,
         .measure = [] { return kills(100); }},
        {.name = "seen",
         .what = "another process's winner is launched",
         .unit = "ms",
         .target = 1000,
         .measure = [] { return visibility(false); }},
        {.name = "seen-refresh",
         .what = "the same at a refresh",
         .unit = "ms",
         .target = 1000,
         .measure = [] { return visibility(true); }},
    };
}

}  // namespace autotune::cache_bench

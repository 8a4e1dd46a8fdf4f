// Many processes write one database at once, and are killed while they do: nothing that was committed may be lost.
//
//     store_writers_stress storm WRITERS ROWS [SPOOLERS READERS]
//         each process records ROWS outcomes and a winner; all must be there. Meanwhile SPOOLERS write spool files as
//         on a network file system, and READERS read: they must see every winner ever seen. Unsaid: a tenth as many of
//         each
//     store_writers_stress kill WRITERS ROUNDS
//         each round kills every writer with SIGKILL in the middle
//
// Writers are this same program, started anew: a store is never used across a fork. Each says on a pipe what it has
// committed, after the commit; what was said must be found, and the file must be sound. The last line of the output is
// the result as JSON, for programs.
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cache/store/store.h"
#include "tests/cache/samples.h"

extern char** environ;

namespace autotune {
namespace {

using namespace samples;
using Clock = std::chrono::steady_clock;

/// One line a commit: "WRITER ROW WAIT_MS"; short enough that the pipe takes it whole.
void say(const std::string& line) {
    if (::write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::_Exit(3);
}

int write_rows(const std::string& path, int writer, int rows) {
    Store store = Store::open({.path = path, .patience = std::chrono::seconds{60}});
    const RunId run = store.begin_run(start(writer));
    for (int row = 0; rows == 0 || row < rows; ++row) {
        const auto before = Clock::now();
        store.record_trial(run, config(row + 1), timed(100.0 + row));
        const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - before);
        say(fmt::format("{} {} {}\n", writer, row, wait.count()));
    }
    store.finish_run(run, {.finalists = {finalist(config(1), 100.0)}, .evaluated = 9, .space_size = 64});
    return 0;
}

/// As on a network file system: the winner waits in a file until somebody folds it.
int write_spool(const std::string& path, int writer) {
    Store store = Store::open({.path = path, .spool_only = true});
    const RunId run = store.begin_run(start(writer));
    store.record_trial(run, config(1), timed(100.0));
    store.finish_run(run, {.finalists = {finalist(config(1), 100.0)}, .evaluated = 9, .space_size = 64});
    return 0;
}

volatile sig_atomic_t enough = 0;

/// Reads until it is told to end. 1: a winner was lost on the way, or a read failed.
int read_on(const std::string& path) {
    ::signal(SIGTERM, [](int) { enough = 1; });
    std::size_t most = 0;
    for (int round = 0; !enough; ++round) {
        const Store store = Store::open({.path = path, .mode = Store::Mode::read});
        for (int i = 0; i < 10 && !enough; ++i) {
            const std::size_t winners = store.records({}, today()).size();
            if (winners < most) {
                fmt::print(stderr, "a reader saw {} winners after {}\n", winners, most);
                return 1;
            }
            most = winners;
            std::this_thread::sleep_for(std::chrono::milliseconds{20});
        }
    }
    return 0;
}

struct Writer {
    pid_t process = -1;
    int pipe = -1;
    std::string text{};
};

Writer spawn(const std::string& program, const char* role, const std::string& path, int number = 0, int rows = 0) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    const std::string id = std::to_string(number), count = std::to_string(rows);
    const char* arguments[] = {program.c_str(), role, path.c_str(), id.c_str(), count.c_str(), nullptr};
    Writer writer;
    if (::posix_spawn(&writer.process, program.c_str(), &actions, nullptr, const_cast<char**>(arguments), environ) != 0)
        std::abort();
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    writer.pipe = ends[0];
    return writer;
}

/// Reads what the writers say until `until` or until all have hung up.
void listen(std::vector<Writer>& writers, Clock::time_point until) {
    std::vector<pollfd> waiting(writers.size());  // poll() passes over those that are below zero
    for (;;) {
        for (std::size_t i = 0; i < writers.size(); ++i) waiting[i] = {writers[i].pipe, POLLIN, 0};
        const bool any = std::ranges::any_of(writers, [](const Writer& writer) { return writer.pipe >= 0; });
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
        if (!any || left <= 0 || ::poll(waiting.data(), waiting.size(), static_cast<int>(left)) <= 0) return;
        for (std::size_t i = 0; i < writers.size(); ++i) {
            if (waiting[i].revents == 0) continue;
            Writer& writer = writers[i];
            char buffer[4096];
            const auto got = ::read(writer.pipe, buffer, sizeof buffer);
            if (got > 0) {
                writer.text.append(buffer, static_cast<std::size_t>(got));
            } else {
                ::close(writer.pipe);
                writer.pipe = -1;
            }
        }
    }
}

struct Said {
    std::set<std::pair<int, int>> rows{};
    long longest_wait_ms = 0;
};

Said parse(const std::vector<Writer>& writers) {
    Said said;
    for (const Writer& writer : writers) {
        std::size_t at = 0;
        for (std::size_t end = writer.text.find('\n'); end != std::string::npos;
             at = end + 1, end = writer.text.find('\n', at)) {
            int number = 0, row = 0;
            long wait = 0;
            if (std::sscanf(writer.text.c_str() + at, "%d %d %ld", &number, &row, &wait) != 3) continue;
            said.rows.emplace(number, row);
            said.longest_wait_ms = std::max(said.longest_wait_ms, wait);
        }
    }
    return said;
}

std::set<std::pair<int, int>> stored(const Store& store) {
    std::set<std::pair<int, int>> rows;
    for (const StoredRun& run : store.runs()) {
        const auto writer = static_cast<int>(std::get<std::int64_t>(run.problem.fields.front().second));
        for (const StoredTrial& trial : store.trials(run.id))
            rows.emplace(writer, static_cast<int>(std::get<std::int64_t>(trial.config["THREADS"])) - 1);
    }
    return rows;
}

/// Whether everything that was said is there and the file is sound.
bool holds(const std::string& path, const Said& said, const char* when) {
    const Store store = Store::open({.path = path, .mode = Store::Mode::read});
    const auto rows = stored(store);
    std::size_t lost = 0;
    for (const auto& row : said.rows) lost += rows.contains(row) ? 0 : 1;
    const auto faults = store.check();
    for (const std::string& fault : faults) fmt::print(stderr, "{}: {}\n", when, fault);
    if (lost > 0) fmt::print(stderr, "{}: {} committed rows of {} are lost\n", when, lost, said.rows.size());
    return lost == 0 && faults.empty();
}

bool ended_well(const std::vector<Writer>& processes, const char* what) {
    bool well = true;
    for (const Writer& one : processes) {
        int status = 0;
        ::waitpid(one.process, &status, 0);
        if (status != 0) fmt::print(stderr, "{} ended with status {}\n", what, status);
        well = well && status == 0;
    }
    return well;
}

struct Storm {
    int writers = 0, rows = 0, spoolers = 0, readers = 0;
};

int storm(const std::string& program, const Storm& asked) {
    const Folder folder;
    const std::string path = (folder / "tune.db").string();
    const auto began = Clock::now();
    std::vector<Writer> writers;
    for (int i = 0; i < asked.writers; ++i) writers.push_back(spawn(program, "writer", path, i, asked.rows));
    std::vector<Writer> spoolers, readers;
    for (int i = 0; i < asked.spoolers; ++i) spoolers.push_back(spawn(program, "spooler", path, asked.writers + i));
    for (int i = 0; i < asked.readers; ++i) readers.push_back(spawn(program, "reader", path));
    listen(writers, began + std::chrono::minutes{10});
    bool sound = ended_well(writers, "a writer");
    const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    sound = ended_well(spoolers, "a writer of spool files") && sound;
    Store::open({.path = path}).fold_spools();
    for (const Writer& reader : readers) ::kill(reader.process, SIGTERM);
    sound = ended_well(readers, "a reader") && sound;
    const Said said = parse(writers);
    const Store store = Store::open({.path = path, .mode = Store::Mode::read});
    const auto winners = store.records({}, today()).size();
    sound = sound && said.rows.size() == static_cast<std::size_t>(asked.writers) * static_cast<std::size_t>(asked.rows);
    sound = sound && winners == static_cast<std::size_t>(asked.writers + asked.spoolers);
    sound = holds(path, said, "after the storm") && sound;
    const double rate = static_cast<double>(said.rows.size()) / seconds;
    fmt::print(
        "{} writers, {} of spool files, {} readers: {} commits of outcomes in {:.1f} s: {:.0f}/s, longest wait "
        "{} ms, {} winners\n",
        asked.writers, asked.spoolers, asked.readers, said.rows.size(), seconds, rate, said.longest_wait_ms, winners);
    fmt::print("{}\n", nlohmann::json{{"sound", sound},
                                      {"commits", said.rows.size()},
                                      {"commits_a_second", rate},
                                      {"longest_wait_ms", said.longest_wait_ms}}
                           .dump());
    return sound ? 0 : 1;
}

int kill_rounds(const std::string& program, int writer_count, int rounds) {
    const Folder folder;
    const std::string path = (folder / "tune.db").string();
    std::size_t committed = 0;
    Said all;
    for (int round = 0; round < rounds; ++round) {
        std::vector<Writer> writers;
        for (int i = 0; i < writer_count; ++i)
            writers.push_back(spawn(program, "writer", path, round * writer_count + i));
        listen(writers, Clock::now() + std::chrono::milliseconds{700 + 37 * (round % 10)});
        for (const Writer& writer : writers) ::kill(writer.process, SIGKILL);
        for (const Writer& writer : writers) ::waitpid(writer.process, nullptr, 0);
        listen(writers, Clock::now() + std::chrono::seconds{10});
        const Said said = parse(writers);
        committed += said.rows.size();
        all.rows.insert(said.rows.begin(), said.rows.end());
        if (!holds(path, all, fmt::format("after round {}", round).c_str())) return 1;
    }
    fmt::print("{} rounds of killing {} writers: {} rows committed, none lost\n", rounds, writer_count, committed);
    fmt::print("{}\n", nlohmann::json{{"sound", committed > 0}, {"rounds", rounds}, {"committed", committed}}.dump());
    return committed > 0 ? 0 : 1;
}

}  // namespace
}  // namespace autotune

int main(int count, char** arguments) {
    using namespace autotune;
    const std::string mode = count > 1 ? arguments[1] : "";
    const auto number = [&](int at) { return std::atoi(arguments[at]); };
    if (mode == "writer" && count == 5) return write_rows(arguments[2], number(3), number(4));
    if (mode == "spooler" && count == 5) return write_spool(arguments[2], number(3));
    if (mode == "reader" && count == 5) return read_on(arguments[2]);
    const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
    if (mode == "storm" && (count == 4 || count == 6)) {
        const int tenth = std::max(1, number(2) / 10);
        return storm(program, {.writers = number(2),
                               .rows = number(3),
                               .spoolers = count == 6 ? number(4) : tenth,
                               .readers = count == 6 ? number(5) : tenth});
    }
    if (mode == "kill" && count == 4) return kill_rounds(program, number(2), number(3));
    fmt::print(stderr, "usage: store_writers_stress storm WRITERS ROWS [SPOOLERS READERS] | kill WRITERS ROUNDS\n");
    return 1;
}

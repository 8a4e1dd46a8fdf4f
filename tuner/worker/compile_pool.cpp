#include "tuner/worker/compile_pool.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <future>
#include <nlohmann/json.hpp>
#include <optional>

#include "autotune/error.h"
#include "tuner/worker/frame.h"
#include "tuner/worker/json_types.h"

namespace autotune {
namespace {

using Clock = std::chrono::steady_clock;

/// A worker that fails so often in a row, without an answer between, is not started again.
constexpr const char* nobody_waits = "the search ended before it was compiled";
constexpr int most_failures = 3;
constexpr double start_limit_s = 60;

double age_s(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// A share of the machine's memory: a compile bomb in every worker at once must leave the rest alive.
std::uint64_t default_memory_bytes() {
    const auto total =
        static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    return std::clamp<std::uint64_t>(total / 4, 1ull << 30, 4ull << 30);
}

Outcome failed(Ending ending, std::string reason, std::string log) {
    constexpr std::size_t most = 64 * 1024;
    if (log.size() > most) log.erase(0, log.size() - most);
    return {.ending = ending, .reason = std::move(reason), .log = std::move(log)};
}

/// Of a compiler that had no room for its temporary files, which no source is to blame for.
std::shared_ptr<const Error> full_folder(const std::string& log) {
    if (log.find("unable to obtain mapped memory") == std::string::npos) return nullptr;
    const char* const folder = std::getenv("TMPDIR");
    return std::make_shared<const Error>(
        Error::Kind::compile,
        fmt::format("NVRTC has no room for temporary files in '{}'", folder && *folder ? folder : "/tmp"),
        "free some, or set TMPDIR to another folder");
}

}  // namespace

std::size_t usable_threads() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<std::size_t>(std::max(1, CPU_COUNT(&set)));
    return std::max(1u, std::thread::hardware_concurrency());
}

std::string first_error(std::string_view log) {
    for (std::size_t at = 0; at < log.size();) {
        const std::size_t end = std::min(log.find('\n', at), log.size());
        const std::string_view line = log.substr(at, end - at);
        at = end + 1;
        const std::size_t error = line.find("error");
        if (error == std::string_view::npos) continue;
        std::string text{line.substr(0, 400)};
        // NVRTC's file of the names that it was asked for.
        if (const std::size_t said = text.find("error: ");
            text.starts_with("__nv_name_map(") && said != std::string::npos)
            return fmt::format("an entry names no kernel of the source: {}", text.substr(said + 7));
        // rope.cu(37): error: ... becomes rope.cu:37: ...
        // `ptxas error   : ...`, whose first letter can be another's last.
        if (const std::size_t ptxas = text.find("ptxas error"), colon = text.find(": ", ptxas);
            ptxas != std::string::npos && colon != std::string::npos)
            return "ptxas: " + text.substr(colon + 2);
        const std::size_t open = text.find('('), close = text.find("): ");
        const std::size_t said = text.find("error: ");
        if (open != std::string::npos && close != std::string::npos && open < close && said != std::string::npos &&
            said > close)
            return fmt::format("{}:{}: {}", text.substr(0, open), text.substr(open + 1, close - open - 1),
                               text.substr(said + 7));
        return text;
    }
    return "the compiler gave no reason";
}

std::optional<std::string> too_much_shared(std::string_view log) {
    constexpr std::string_view entry = "Entry function '", says = "' uses too much shared data (0x";
    const std::size_t at = log.find(says), name = log.rfind(entry, at);
    if (at == std::string_view::npos || name == std::string_view::npos) return std::nullopt;
    std::uint64_t needed = 0, allowed = 0;
    const char* end = log.data() + log.size();
    const auto [rest, error] = std::from_chars(log.data() + at + says.size(), end, needed, 16);
    const std::string_view more{rest, end};
    constexpr std::string_view between = " bytes, 0x";
    if (error != std::errc{} || !more.starts_with(between) ||
        std::from_chars(more.data() + between.size(), end, allowed, 16).ec != std::errc{})
        return std::nullopt;
    return fmt::format("'{}' declares {} bytes of shared memory a block, of which a source may declare {}",
                       log.substr(name + entry.size(), at - name - entry.size()), needed, allowed);
}

void throw_obstacle(const std::shared_ptr<const Error>& obstacle) {
    if (obstacle) throw Error{*obstacle};
}

struct CompilePool::Worker {
    Process process;
    FrameReader reader;
    bool ready = false;
    int failures = 0;     ///< in a row, without an answer between
    std::string trouble;  ///< what the last failure wrote
    std::optional<Job> job;
    Clock::time_point since{};
};

CompilePool::CompilePool(CompilePoolOptions options) : options_{std::move(options)} {
    options_.worker = find_worker(options_.worker);
    if (options_.memory_bytes == 0) options_.memory_bytes = default_memory_bytes();
    wake_ = Fd{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    const std::size_t count = options_.workers ? options_.workers : usable_threads();
    for (std::size_t i = 0; i < count; ++i) workers_.push_back(std::make_unique<Worker>());
    thread_ = std::thread{[this] { loop(); }};
}

CompilePool::~CompilePool() {
    {
        const std::lock_guard lock{mutex_};
        ending_ = true;
    }
    eventfd_write(wake_.get(), 1);
    thread_.join();
}

void CompilePool::submit(CompileTask task, Done done, bool urgent) {
    {
        const std::lock_guard lock{mutex_};
        Job job{.task = std::move(task), .done = std::move(done), .ordinal = ++submitted_};
        if (urgent)
            waiting_.push_front(std::move(job));
        else
            waiting_.push_back(std::move(job));
    }
    eventfd_write(wake_.get(), 1);
}

void CompilePool::abandon() {
    std::deque<Job> lost;
    {
        const std::lock_guard lock{mutex_};
        lost.swap(waiting_);
        abandoned_ = submitted_;
    }
    eventfd_write(wake_.get(), 1);
    for (const Job& job : lost) job.done({.failure = failed(Ending::compile_timeout, nobody_waits, "")});
}

Compiled CompilePool::compile(CompileTask task) {
    std::promise<Compiled> promise;
    submit(
        std::move(task), [&](Compiled result) { promise.set_value(std::move(result)); }, true);
    return promise.get_future().get();
}

int CompilePool::replaced() const {
    const std::lock_guard lock{mutex_};
    return replaced_;
}

std::string CompilePool::trouble() const {
    const std::lock_guard lock{mutex_};
    return trouble_;
}

double CompilePool::busy_s() const {
    const std::lock_guard lock{mutex_};
    return busy_s_;
}

/// The workers are started here, since the kernel ends them when the thread that started them ends.
void CompilePool::loop() {
    for (const auto& worker : workers_) start(*worker);
    std::vector<pollfd> watched;
    while (true) {
        {
            const std::lock_guard lock{mutex_};
            if (ending_) break;
        }
        end_abandoned();
        hand_out();
        give_up();
        watched.assign(1, {wake_.get(), POLLIN, 0});
        for (const auto& worker : workers_) {
            watched.push_back({worker->process.socket(), POLLIN, 0});
            watched.push_back({worker->process.output(), POLLIN, 0});
        }
        if (poll(watched.data(), watched.size(), milliseconds_to_wait()) < 0 && errno != EINTR) break;
        eventfd_t ignored = 0;
        eventfd_read(wake_.get(), &ignored);
        for (std::size_t i = 0; i < workers_.size(); ++i) {
            if (watched[2 + 2 * i].revents) workers_[i]->process.drain();
            if (watched[1 + 2 * i].revents) take_answers(*workers_[i]);
        }
        end_late();
    }
    for (const auto& worker : workers_) worker->process.kill();
    for (const auto& worker : workers_) worker->process = Process{};
}

void CompilePool::start(Worker& worker) {
    worker.process = Process{};
    worker.reader = FrameReader{};
    worker.ready = false;
    std::vector<std::string> arguments{"--compile", "--memory-bytes", std::to_string(options_.memory_bytes)};
    if (!scratch_.path().empty()) arguments.insert(arguments.end(), {"--scratch", scratch_.path().string()});
    worker.since = Clock::now();
    try {
        worker.process = Process::start({.program = options_.worker, .arguments = arguments});
    } catch (const Error& e) {
        worker.failures = most_failures;
        worker.trouble = e.what();
    }
}

/// Where no worker ever got as far as its first word, whoever waits is told, so that nobody waits for ever.
void CompilePool::give_up() {
    const auto hopeless = [](const auto& worker) { return worker->failures >= most_failures; };
    if (!std::ranges::all_of(workers_, hopeless)) return;
    std::deque<Job> lost;
    {
        const std::lock_guard lock{mutex_};
        lost.swap(waiting_);
    }
    const std::string& why = workers_.front()->trouble;
    const auto obstacle = std::make_shared<const Error>(
        Error::Kind::compile, fmt::format("the compiler does not start: {}", why), "autotune doctor");
    for (const Job& job : lost)
        job.done({.failure = failed(Ending::compile_failed, obstacle->what(), ""), .obstacle = obstacle});
}

void CompilePool::hand_out() {
    for (const auto& worker : workers_) {
        if (worker->job || !worker->ready) continue;
        {
            const std::lock_guard lock{mutex_};
            if (waiting_.empty()) return;
            worker->job = std::move(waiting_.front());
            waiting_.pop_front();
        }
        worker->since = Clock::now();
        worker->process.clear_text();
        try {
            send_frame(worker->process.socket(), static_cast<std::uint32_t>(Message::compile), worker->job->task);
        } catch (const FrameError&) {
            lose(*worker, Ending::compile_failed, "the compiler's process ended");
        }
    }
}

void CompilePool::take_answers(Worker& worker) {
    try {
        while (worker.reader.read_from(worker.process.socket())) {
            while (const std::optional<Frame> frame = worker.reader.next()) {
                worker.failures = 0;
                const auto kind = static_cast<Message>(frame->type);
                if (kind == Message::ready) {
                    worker.ready = true;
                } else if (kind == Message::compiled) {
                    auto answer = frame->json().get<CompileAnswer>();
                    Compiled result{
                        .ok = answer.ok, .artefact = std::move(answer.artefact), .milliseconds = answer.milliseconds};
                    if (const auto shared = result.ok ? std::nullopt : too_much_shared(answer.log))
                        result.failure = failed(Ending::does_not_fit, *shared, answer.log);
                    else if (!result.ok) {
                        result.failure = failed(Ending::compile_failed, first_error(answer.log), answer.log);
                        result.obstacle = full_folder(answer.log);
                    } else
                        longest_s_ = std::max(longest_s_, answer.milliseconds * 1e-3);
                    finish(worker, std::move(result));
                } else if (kind == Message::failed) {
                    const Error error = error_from(frame->json());
                    Compiled result{.failure = failed(Ending::compile_failed, error.what(), "")};
                    if (error.kind() != Error::Kind::usage) result.obstacle = std::make_shared<const Error>(error);
                    finish(worker, std::move(result));
                }
            }
        }
    } catch (const FrameError&) {
        lose(worker, Ending::compile_failed, "the compiler's process ended");
    } catch (const nlohmann::json::exception&) {
        lose(worker, Ending::compile_failed, "the compiler's process sent nonsense");
    }
}

void CompilePool::finish(Worker& worker, Compiled result) {
    if (!worker.job) return;
    const double took_s = age_s(worker.since);
    if (result.milliseconds == 0) result.milliseconds = took_s * 1e3;
    result.failure.compile_ms = result.milliseconds;
    ++finished_;
    {
        const std::lock_guard lock{mutex_};
        busy_s_ += took_s;
    }
    const Done done = std::move(worker.job->done);
    worker.job.reset();
    done(std::move(result));
}

/// Ends a worker, answers its job, and puts another in its place.
void CompilePool::lose(Worker& worker, Ending ending, const std::string& reason) {
    const Exit exit = worker.process.stop(std::chrono::milliseconds{ending == Ending::compile_timeout ? 0 : 1000});
    const std::string text = worker.process.text();
    const bool memory =
        exit.code == 12 || text.find("bad_alloc") != std::string::npos || text.find("emory") != std::string::npos;
    std::string why = reason;
    if (ending != Ending::compile_timeout)
        why = memory ? fmt::format("the compiler ran out of memory, the limit is {} MiB", options_.memory_bytes >> 20)
                     : fmt::format("{}: {}", reason, exit.text());
    // Whatever killed it, the source did not: it is tried again by the next search.
    const bool killed =
        ending != Ending::compile_timeout && !memory && exit.signalled && (exit.code == SIGKILL || exit.code == SIGBUS);
    const bool never_ready = !worker.ready;
    worker.failures =
        never_ready ? worker.failures + 1 : 0;  // a source that crashes the compiler is no fault of the start
    Outcome failure = failed(ending, why, text);
    failure.tainted = killed;
    finish(worker, {.failure = std::move(failure)});
    {
        const std::lock_guard lock{mutex_};
        ++replaced_;
    }
    worker.process = Process{};
    worker.trouble = text.substr(0, text.find('\n'));
    if (worker.failures < most_failures) {
        start(worker);
        return;
    }
    const std::lock_guard lock{mutex_};
    trouble_ = worker.trouble.empty() ? why : worker.trouble;
}

/// Twenty times the longest compile so far is a compile that goes wrong; never under 10 s, since machines stutter.
double CompilePool::limit_s() const {
    constexpr std::size_t enough = 8;
    if (finished_ < enough || longest_s_ == 0) return options_.limit_s;
    return std::min(options_.limit_s, std::max(10.0, 20 * longest_s_));
}

void CompilePool::end_late() {
    for (const auto& worker : workers_) {
        const bool starting = !worker->ready && worker->failures < most_failures;
        if (starting && age_s(worker->since) > start_limit_s)
            lose(*worker, Ending::compile_timeout, "the compiler does not start");
        if (!worker->job || age_s(worker->since) < limit_s()) continue;
        lose(*worker, Ending::compile_timeout, fmt::format("the compiler was ended after {:.1f} s", limit_s()));
    }
}

void CompilePool::end_abandoned() {
    std::uint64_t abandoned = 0;
    {
        const std::lock_guard lock{mutex_};
        abandoned = abandoned_;
    }
    for (const auto& worker : workers_)
        if (worker->job && worker->job->ordinal <= abandoned) lose(*worker, Ending::compile_timeout, nobody_waits);
}

int CompilePool::milliseconds_to_wait() const {
    double soonest_s = 60;
    for (const auto& worker : workers_)
        if (worker->job) soonest_s = std::min(soonest_s, limit_s() - age_s(worker->since));
    return static_cast<int>(std::clamp(soonest_s * 1e3 + 1, 1.0, 60e3));
}

}  // namespace autotune

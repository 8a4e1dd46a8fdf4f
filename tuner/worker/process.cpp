#include "tuner/worker/process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "autotune/error.h"
#include "tuner/worker/frame.h"

extern char** environ;

namespace autotune {
namespace {

constexpr std::size_t text_limit = 64 * 1024;

[[noreturn]] void fail(const std::string& what, int code) {
    throw Error{Error::Kind::internal, fmt::format("{}: {}", what, std::strerror(code))};
}

/// A copy above the standard streams and the worker's socket, so that no dup2 in the child overwrites its source.
Fd above_standard(const Fd& fd) {
    Fd high{fcntl(fd.get(), F_DUPFD_CLOEXEC, 10)};
    if (!high) fail("a worker's streams could not be made", errno);
    return high;
}

/// posix_spawn's settings: streams, own process group, signals as a fresh program expects them.
class SpawnSettings {
public:
    SpawnSettings(int socket, int output) {
        posix_spawn_file_actions_init(&actions_);
        posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions_, output, 1);
        posix_spawn_file_actions_adddup2(&actions_, output, 2);
        posix_spawn_file_actions_adddup2(&actions_, socket, 3);
        posix_spawn_file_actions_addclosefrom_np(&actions_, 4);
        posix_spawnattr_init(&attributes_);
        sigset_t none, all;
        sigemptyset(&none);
        sigfillset(&all);
        posix_spawnattr_setsigmask(&attributes_, &none);
        posix_spawnattr_setsigdefault(&attributes_, &all);
        posix_spawnattr_setpgroup(&attributes_, 0);
        posix_spawnattr_setflags(
            &attributes_, static_cast<short>(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
    }
    SpawnSettings(const SpawnSettings&) = delete;
    SpawnSettings& operator=(const SpawnSettings&) = delete;
    ~SpawnSettings() {
        posix_spawn_file_actions_destroy(&actions_);
        posix_spawnattr_destroy(&attributes_);
    }
    const posix_spawn_file_actions_t* actions() const { return &actions_; }
    const posix_spawnattr_t* attributes() const { return &attributes_; }

private:
    posix_spawn_file_actions_t actions_{};
    posix_spawnattr_t attributes_{};
};

Exit exit_of(int status) {
    if (WIFSIGNALED(status)) return {.signalled = true, .code = WTERMSIG(status)};
    return {.signalled = false, .code = WEXITSTATUS(status)};
}

std::filesystem::path own_library() {
    Dl_info facts{};
    if (dladdr(reinterpret_cast<const void*>(&find_worker), &facts) == 0 || !facts.dli_fname) return {};
    std::error_code ignored;
    return std::filesystem::canonical(facts.dli_fname, ignored);
}

}  // namespace

std::string Exit::text() const {
    if (!signalled) return fmt::format("exit code {}", code);
    return fmt::format("signal {} ({})", code, strsignal(code));
}

Process Process::start(const ProcessOptions& options) {
    auto [ours, theirs] = socket_pair();
    std::array<int, 2> pipe_ends{};
    if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) fail("a pipe could not be made", errno);
    Fd reading{pipe_ends[0]};
    const Fd writing{pipe_ends[1]};
    fcntl(reading.get(), F_SETFL, O_NONBLOCK);
    const Fd high_socket = above_standard(theirs);
    const Fd high_output = above_standard(writing);

    std::vector<std::string> words{options.program.string()};
    words.insert(words.end(), options.arguments.begin(), options.arguments.end());
    words.push_back("--parent");
    words.push_back(std::to_string(getpid()));
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);

    const SpawnSettings settings{high_socket.get(), high_output.get()};
    Process process;
    const int code = posix_spawn(&process.pid_, options.program.c_str(), settings.actions(), settings.attributes(),
                                 argv.data(), environ);
    if (code != 0) {
        process.pid_ = -1;
        if (code == ENOENT || code == EACCES || code == ENOEXEC)
            throw Error{Error::Kind::device,
                        fmt::format("'{}' could not be started: {}", options.program.string(), std::strerror(code)),
                        "install autotune-worker again, for this kind of machine"};
        fail(fmt::format("'{}' could not be started", options.program.string()), code);
    }
    process.socket_ = std::move(ours);
    process.output_ = std::move(reading);
    return process;
}

Process::Process(Process&& other) noexcept
    : pid_{std::exchange(other.pid_, -1)},
      exit_{other.exit_},
      socket_{std::move(other.socket_)},
      output_{std::move(other.output_)},
      text_{std::move(other.text_)} {}

Process& Process::operator=(Process&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(exit_, other.exit_);
    std::swap(socket_, other.socket_);
    std::swap(output_, other.output_);
    std::swap(text_, other.text_);
    return *this;
}

Process::~Process() {
    if (running()) stop();
}

void Process::drain() {
    std::array<char, 4096> buffer;
    while (output_) {
        const ssize_t got = read(output_.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got == 0) output_.reset();
        if (got <= 0) return;
        text_.append(buffer.data(), static_cast<std::size_t>(got));
        if (text_.size() > text_limit) text_.erase(0, text_.size() - text_limit);
    }
}

std::optional<Exit> Process::ended() {
    if (exit_ || pid_ <= 0) return exit_;
    siginfo_t facts{};
    if (waitid(P_PID, static_cast<id_t>(pid_), &facts, WEXITED | WNOHANG | WNOWAIT) != 0 || facts.si_pid != pid_)
        return exit_;
    ::kill(-pid_, SIGKILL);  // whatever it started itself, while its number cannot be another's yet
    int status = 0;
    waitpid(pid_, &status, 0);
    exit_ = exit_of(status);
    drain();
    return exit_;
}

void Process::kill() noexcept {
    if (!running()) return;
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
}

Exit Process::stop(std::chrono::milliseconds grace) {
    const auto until = std::chrono::steady_clock::now() + grace;
    while (!ended() && std::chrono::steady_clock::now() < until) {
        drain();
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    if (exit_ || pid_ <= 0) return exit_.value_or(Exit{});
    kill();
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    exit_ = exit_of(status);
    drain();
    return *exit_;
}

std::filesystem::path find_worker(const std::filesystem::path& given) {
    // What keeps it from being run; empty: nothing.
    const auto trouble = [](const std::filesystem::path& path) -> std::string {
        std::error_code error;
        const auto status = std::filesystem::status(path, error);
        if (!std::filesystem::exists(status)) return "is not there";
        if (!std::filesystem::is_regular_file(status)) return "is no file";
        return access(path.c_str(), X_OK) == 0 ? "" : "may not be run";
    };
    if (!given.empty()) {
        const std::string why = trouble(given);
        if (why.empty()) return given;
        throw Error{Error::Kind::usage, fmt::format("the worker program '{}' {}", given.string(), why),
                    "name the autotune-worker that came with this program"};
    }
    if (const char* named = std::getenv("AUTOTUNE_WORKER"); named && *named) {
        const std::string why = trouble(named);
        if (why.empty()) return named;
        throw Error{Error::Kind::usage, fmt::format("AUTOTUNE_WORKER names '{}', which {}", named, why),
                    "unset AUTOTUNE_WORKER, or set it to the autotune-worker that came with this program"};
    }
    std::error_code ignored;
    std::string places;
    std::filesystem::path not_runnable;
    for (const std::filesystem::path& start : {std::filesystem::canonical("/proc/self/exe", ignored), own_library()}) {
        if (start.empty()) continue;
        for (const char* folder : {".", "../libexec/autotune", "../../libexec/autotune", "../bin"}) {
            const std::filesystem::path path = (start.parent_path() / folder / "autotune-worker").lexically_normal();
            const std::string why = trouble(path);
            if (why.empty()) return path;
            if (why == "may not be run" && not_runnable.empty()) not_runnable = path;
            places += fmt::format("{}{}", places.empty() ? "" : ", ", path.string());
        }
    }
    if (!not_runnable.empty())
        throw Error{Error::Kind::device, fmt::format("the program '{}' may not be run", not_runnable.string()),
                    fmt::format("chmod +x '{}'", not_runnable.string())};
    throw Error{Error::Kind::device,
                fmt::format("the program autotune-worker, which compiles and runs kernels, was not found; looked at {}",
                            places),
                "install it there again, or: export AUTOTUNE_WORKER=/path/to/autotune-worker"};
}

void become_worker(pid_t parent, std::uint64_t memory_bytes) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);  // it died before the line above
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    // A sanitizer's shadow memory counts as data, and is larger than any limit.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    memory_bytes = 0;
#endif
    if (memory_bytes) {
        const rlimit data{memory_bytes, memory_bytes};
        setrlimit(RLIMIT_DATA, &data);
    }
    // A second watch on the parent, for what the death signal misses: the thread that started us may outlive its
    // process in a debugger, and a signal may be lost to a change of credentials.
    std::thread{[] {
        pollfd watched{.fd = 3, .events = POLLRDHUP, .revents = 0};
        while (poll(&watched, 1, -1) < 0 && errno == EINTR) {
        }
        std::this_thread::sleep_for(std::chrono::seconds{2});  // one that was idle ends by itself meanwhile
        _exit(0);
    }}.detach();
}

}  // namespace autotune

#include "tuner/loader/user_reference.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "autotune/error.h"
#include "tuner/loader/file_source.h"
#include "tuner/loader/reference_headers.h"
#include "tuner/model/hashing.h"
#include "tuner/model/path.h"

extern char** environ;

namespace autotune {
namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::string>;

constexpr std::size_t longest_report = 4096;
// -z defs: a symbol that is missing is an error here, not in the worker.
constexpr std::array options{"-std=c++20", "-O2", "-shared", "-fPIC", "-pthread", "-Wl,-z,defs", "-I."};

[[noreturn]] void refuse(const std::string& message, const std::string& help = {}) {
    throw Error{Error::Kind::usage, message, help};
}

/// The file and what it includes by quoted names, and the two headers of ours.
Files files_of(const Op& op, const std::string& file) {
    Files files{{"autotune/reference.h", std::string{reference_h}},
                {"autotune/reference.hpp", std::string{reference_hpp}}};
    std::vector<std::string> open{file};
    while (!open.empty()) {
        const std::string name = open.back();
        open.pop_back();
        const auto text = op.files.find(name);
        if (text == op.files.end() || path_objection(name) || !files.emplace(name, text->second).second) continue;
        for (std::string& included : quoted_includes(text->second)) open.push_back(std::move(included));
    }
    return files;
}

std::string hash_of(const Files& files, const std::string& file, const HostCompiler& compiler) {
    CanonicalBytes bytes;
    bytes.add(file).add(compiler.program);
    for (const char* option : options) bytes.add(std::string_view{option});
    for (const auto& [name, text] : files) bytes.add(name).add(text);
    return bytes.sha256();
}

/// What is loaded from here runs as this user, so nobody else may put anything in.
void make_own_folder(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder.parent_path(), error);
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
        refuse(fmt::format("the folder '{}' for compiled references cannot be made: {}", folder.string(),
                           std::strerror(errno)));
    struct stat facts {};
    if (lstat(folder.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode))
        refuse(fmt::format("'{}' is no folder", folder.string()));
    if (facts.st_uid != geteuid() || (facts.st_mode & 022u) != 0)
        refuse(fmt::format("the folder '{}' for compiled references can be written by other users", folder.string()),
               fmt::format("chmod 700 '{}'", folder.string()));
}

bool is_own_file(const fs::path& path) {
    struct stat facts {};
    return lstat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == geteuid() &&
           (facts.st_mode & 022u) == 0;
}

/// A folder that is gone when the build is over.
class BuildFolder {
public:
    explicit BuildFolder(const fs::path& cache) {
        std::string pattern = (cache / "build-XXXXXX").string();
        if (mkdtemp(pattern.data()) == nullptr)
            refuse(fmt::format("a folder in '{}' cannot be made: {}", cache.string(), std::strerror(errno)));
        path_ = pattern;
    }
    BuildFolder(const BuildFolder&) = delete;
    BuildFolder& operator=(const BuildFolder&) = delete;
    ~BuildFolder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    const fs::path& path() const { return path_; }

    void write(const Files& files) const {
        for (const auto& [name, text] : files) {
            fs::create_directories((path_ / name).parent_path());
            std::ofstream file{path_ / name, std::ios::binary};
            file << text;
            file.close();
            if (!file) refuse(fmt::format("'{}' cannot be written", (path_ / name).string()));
        }
    }

private:
    fs::path path_;
};

/// posix_spawn's settings: in the folder, in a process group of its own, its words into the file `log` there.
class SpawnSettings {
public:
    explicit SpawnSettings(const fs::path& folder) {
        posix_spawn_file_actions_init(&actions_);
        posix_spawn_file_actions_addchdir_np(&actions_, folder.c_str());
        posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&actions_, 1, "log", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        posix_spawn_file_actions_adddup2(&actions_, 1, 2);
        posix_spawn_file_actions_addclosefrom_np(&actions_, 3);
        posix_spawnattr_init(&attributes_);
        posix_spawnattr_setpgroup(&attributes_, 0);
        posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP);
    }
    SpawnSettings(const SpawnSettings&) = delete;
    SpawnSettings& operator=(const SpawnSettings&) = delete;
    ~SpawnSettings() {
        posix_spawn_file_actions_destroy(&actions_);
        posix_spawnattr_destroy(&attributes_);
    }

    /// The error number, or 0.
    int spawn(pid_t& pid, std::vector<std::string> words) const {
        std::vector<char*> argv;
        for (std::string& word : words) argv.push_back(word.data());
        argv.push_back(nullptr);
        return posix_spawnp(&pid, argv[0], &actions_, &attributes_, argv.data(), environ);
    }

private:
    posix_spawn_file_actions_t actions_{};
    posix_spawnattr_t attributes_{};
};

/// The status of waitpid; nullopt: the time is over, and the process and its children are killed.
std::optional<int> wait_for(pid_t pid, std::chrono::milliseconds timeout) {
    const auto until = std::chrono::steady_clock::now() + timeout;
    int status = 0;
    auto pause = std::chrono::milliseconds{1};
    for (;;) {
        const pid_t ended = waitpid(pid, &status, WNOHANG);
        if (ended == pid) return status;
        if (ended < 0 && errno != EINTR) return status;
        if (std::chrono::steady_clock::now() >= until) break;
        std::this_thread::sleep_for(pause);
        pause = std::min(pause * 2, std::chrono::milliseconds{20});
    }
    kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return std::nullopt;
}

/// The start of what the compiler said: its first error explains the others.
std::string report_of(const fs::path& folder) {
    std::ifstream file{folder / "log", std::ios::binary};
    std::string text(longest_report, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

void run_compiler(const Op& op, const std::string& file, const HostCompiler& compiler, const fs::path& folder) {
    std::vector<std::string> words{compiler.program};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"-o", "made.so", file});
    pid_t pid = -1;
    const int code = SpawnSettings{folder}.spawn(pid, std::move(words));
    if (code != 0)
        throw Error{Error::Kind::compile,
                    fmt::format("'{}' of op '{}' needs a C++ compiler, but '{}' cannot be started: {}", file, op.name,
                                compiler.program, std::strerror(code)),
                    "export AUTOTUNE_CXX=g++"};
    const std::optional<int> status = wait_for(pid, compiler.timeout);
    if (!status)
        refuse(fmt::format("'{}' of op '{}' took the compiler more than {} s, so it was stopped", file, op.name,
                           static_cast<double>(compiler.timeout.count()) / 1000.0));
    // Where posix_spawn cannot tell that there is no such program, the child ends with 127.
    if (WIFEXITED(*status) && WEXITSTATUS(*status) == 0) return;
    const std::string how = WIFEXITED(*status) ? fmt::format("exit code {}", WEXITSTATUS(*status))
                                               : fmt::format("signal {}", WTERMSIG(*status));
    refuse(fmt::format("'{}' of op '{}' does not compile ('{}' ended with {})\n{}", file, op.name, compiler.program,
                       how, report_of(folder)));
}

}  // namespace

bool has_user_code(const Op& op, const std::string& file) { return !file.empty() && op.files.contains(file); }

fs::path compile_user_code(const Op& op, const std::string& file, const HostCompiler& compiler) {
    if (!has_user_code(op, file) || path_objection(file))
        refuse(fmt::format("op '{}' has no file '{}' to compile", op.name, file));
    const Files files = files_of(op, file);
    make_own_folder(compiler.cache);
    const fs::path library =
        compiler.cache / fmt::format("{}-{}.so", op.name, hash_of(files, file, compiler).substr(0, 40));
    if (is_own_file(library)) return library;
    const BuildFolder build{compiler.cache};
    build.write(files);
    run_compiler(op, file, compiler, build.path());
    // Compilers obey the umask; the library must not be writable by others, whatever that is.
    std::error_code error;
    fs::permissions(build.path() / "made.so", fs::perms::owner_all, error);
    if (!error) fs::rename(build.path() / "made.so", library, error);
    if (error) refuse(fmt::format("'{}' cannot be stored: {}", library.string(), error.message()));
    return library;
}

}  // namespace autotune

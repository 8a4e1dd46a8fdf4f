#ifndef AUTOTUNE_TOOLS_CONSOLE_H
#define AUTOTUNE_TOOLS_CONSOLE_H

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace autotune {

/// What the status line shows of a running search.
struct Progress {
    std::string op;
    std::size_t tried = 0;
    std::size_t total = 0;  ///< trials the budget or the space allows; 0: only time ends it
    double share_done = 0;  ///< 0 to 1, for the bar
    double best_us = 0;     ///< 0: nothing yet
    double speedup = 0;     ///< over the default; 0: not known
    std::size_t in_flight = 0;
    std::size_t failed = 0;
    std::optional<double> eta_s;
    std::string running;  ///< the config that has been running for more than 5 s
};

/// The status line for a terminal of `width` columns: cut, never wrapped. Pure, so that tests compare it.
std::string render(const Progress& progress, std::size_t width);

/// `error: what`, then `help: ...` where there is one, each with its line break: see docs on messages.
std::string render_message(std::string_view level, std::string_view text, std::string_view help, bool colour);

enum class ProgressMode { automatic, line, plain, none };
enum class Verbosity { quiet, normal, trials, logs };

enum class ConsoleStream { result, notice };  ///< stdout, stderr

struct ConsoleOptions {
    ProgressMode progress = ProgressMode::automatic;
    Verbosity verbosity = Verbosity::normal;
    bool json = false;           ///< stdout holds JSON lines only
    std::optional<bool> colour;  ///< nullopt: a terminal gets it unless NO_COLOR is set
    /// Takes what would go to stdout and stderr, for a program that has these for itself; empty: they get it.
    std::function<void(ConsoleStream, const std::string&)> sink;
};

/// Everything the program prints goes through here: results to stdout, all else to stderr, with one status line that is
/// redrawn at most ten times a second and leaves nothing behind.
class Console {
public:
    explicit Console(const ConsoleOptions& options = {});
    ~Console();
    Console(const Console&) = delete;
    Console& operator=(const Console&) = delete;

    void result(std::string_view text);       ///< to stdout, with a line break
    void raw(std::string_view bytes);         ///< to stdout as they are, with --json too
    void json_line(std::string_view object);  ///< to stdout when --json was given, else nothing
    void line(std::string_view text);         ///< to stderr; not with -q
    void trial_line(std::string_view text);   ///< to stderr with -v
    void status(const Progress& progress);    ///< redraws the status line, or a plain line each 30 s
    void end_status();
    void note(std::string_view text, std::string_view help = {});
    void warning(std::string_view text, std::string_view help = {});  ///< each text once
    void error(std::string_view text, std::string_view help = {});

    bool json() const noexcept { return options_.json; }
    Verbosity verbosity() const noexcept { return options_.verbosity; }
    bool shows_status_line() const noexcept { return status_line_; }
    /// The errno of the first write to stdout that failed; 0: all was taken.
    int stdout_error() const noexcept { return stdout_error_; }

private:
    void to_stdout(std::string_view text);
    void to_stderr(std::string_view text);
    void erase_status();

    ConsoleOptions options_;
    bool status_line_ = false, plain_ = false, colour_ = false, drawn_ = false;
    int stdout_error_ = 0;
    std::chrono::steady_clock::time_point last_draw_{}, last_plain_;
    std::set<std::string, std::less<>> warned_;
};

}  // namespace autotune
#endif

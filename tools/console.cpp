#include "tools/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "tools/format.h"
#include "tuner/model/printable.h"

namespace autotune {
namespace {

using namespace std::chrono_literals;

constexpr auto redraw_every = 100ms;
constexpr auto plain_every = 30s;

bool is_set(const char* variable) {
    const char* value = std::getenv(variable);
    return value && *value;
}

/// A terminal that can redraw a line, and nobody who collects a log.
bool can_redraw() {
    const char* term = std::getenv("TERM");
    return isatty(STDERR_FILENO) && term && std::string_view{term} != "dumb" && !is_set("CI");
}

std::size_t terminal_width() {
    winsize size{};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool write_all(std::FILE* stream, std::string_view text) {
    const bool taken = std::fwrite(text.data(), 1, text.size(), stream) == text.size();
    return std::fflush(stream) == 0 && taken;
}

std::string bar(double share) {
    constexpr std::size_t cells = 20;
    const auto full = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * cells);
    std::string text(full, '=');
    if (full < cells) text += '>';
    return text + std::string(cells - std::min(cells, text.size()), ' ');
}

}  // namespace

std::string render(const Progress& p, std::size_t width) {
    std::string text = fmt::format("{} [{}]", p.op, bar(p.share_done));
    text += p.total ? fmt::format("  {}/{}", p.tried, p.total) : fmt::format("  {}", p.tried);
    if (p.best_us > 0) text += fmt::format("  best {}", format_time(p.best_us));
    if (p.best_us > 0 && p.speedup > 0) text += " " + format_speedup(p.speedup);
    if (p.in_flight) text += fmt::format("  compiling {}", p.in_flight);
    if (p.failed) text += fmt::format("  failed {}", p.failed);
    if (p.eta_s) text += "  eta " + format_duration(*p.eta_s);
    if (!p.running.empty()) text += "  running " + p.running;
    return cut(text, width);
}

namespace {

/// Its lines but the first are indented, so that none of a text that a file brought looks like a message of ours.
std::string indented(std::string_view text) {
    std::string out;
    for (const char c : printable(text)) {
        if (out.ends_with('\n') && c != ' ' && c != '\n') out += "  ";
        out += c == '\r' ? ' ' : c;
    }
    return out;
}

}  // namespace

std::string render_message(std::string_view level, std::string_view text, std::string_view help, bool colour) {
    const std::string_view code = level == "error" ? "\x1b[1;31m" : level == "warning" ? "\x1b[1;33m" : "\x1b[1m";
    std::string message = colour ? fmt::format("{}{}:\x1b[0m {}\n", code, level, indented(text))
                                 : fmt::format("{}: {}\n", level, indented(text));
    if (!help.empty()) message += fmt::format("help: {}\n", indented(help));
    return message;
}

Console::Console(const ConsoleOptions& options) : options_{options}, last_plain_{std::chrono::steady_clock::now()} {
    const bool quiet = options_.verbosity == Verbosity::quiet;
    switch (options_.progress) {
        case ProgressMode::automatic:
            status_line_ = !quiet && can_redraw();
            plain_ = !quiet && !status_line_;
            break;
        case ProgressMode::line:
            status_line_ = true;
            break;
        case ProgressMode::plain:
            plain_ = true;
            break;
        case ProgressMode::none:
            break;
    }
    colour_ = options_.colour.value_or(isatty(STDERR_FILENO) && !is_set("NO_COLOR"));
}

Console::~Console() { erase_status(); }

void Console::result(std::string_view text) {
    erase_status();
    if (!options_.json) to_stdout(fmt::format("{}\n", printable(text)));
}

void Console::raw(std::string_view bytes) {
    erase_status();
    to_stdout(bytes);
}

void Console::json_line(std::string_view object) {
    if (options_.json) to_stdout(fmt::format("{}\n", object));
}

void Console::to_stdout(std::string_view text) {
    if (options_.sink) return options_.sink(ConsoleStream::result, std::string{text});
    errno = 0;
    if (!write_all(stdout, text) && stdout_error_ == 0) stdout_error_ = errno ? errno : EIO;
}

void Console::line(std::string_view text) {
    if (options_.verbosity != Verbosity::quiet) to_stderr(fmt::format("{}\n", printable(text)));
}

void Console::trial_line(std::string_view text) {
    if (options_.verbosity >= Verbosity::trials) to_stderr(fmt::format("{}\n", printable(text)));
}

void Console::status(const Progress& progress) {
    const auto now = std::chrono::steady_clock::now();
    if (status_line_ && now - last_draw_ >= redraw_every) {
        last_draw_ = now;
        write_all(stderr, fmt::format("\r{}\x1b[K", render(progress, terminal_width() - 1)));
        drawn_ = true;
    } else if (plain_ && now - last_plain_ >= plain_every) {
        last_plain_ = now;
        write_all(stderr, render(progress, 200) + "\n");
    }
}

void Console::end_status() { erase_status(); }

void Console::note(std::string_view text, std::string_view help) {
    if (options_.verbosity != Verbosity::quiet) to_stderr(render_message("note", text, help, colour_));
}

void Console::warning(std::string_view text, std::string_view help) {
    if (warned_.emplace(text).second) to_stderr(render_message("warning", text, help, colour_));
}

void Console::error(std::string_view text, std::string_view help) {
    to_stderr(render_message("error", text, help, colour_));
}

void Console::to_stderr(std::string_view text) {
    if (options_.sink) return options_.sink(ConsoleStream::notice, std::string{text});
    erase_status();
    write_all(stderr, text);
}

void Console::erase_status() {
    if (!drawn_) return;
    write_all(stderr, "\r\x1b[K");
    drawn_ = false;
}

}  // namespace autotune

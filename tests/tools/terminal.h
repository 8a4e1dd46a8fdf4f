#ifndef AUTOTUNE_TESTS_TOOLS_TERMINAL_H
#define AUTOTUNE_TESTS_TOOLS_TERMINAL_H

#include <sys/types.h>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace autotune {

/// What a terminal of some width shows after all that was written to it: carriage return, line feed, erasing to the end
/// of the line and colours are understood, which is all that the program may send.
class Screen {
public:
    explicit Screen(std::size_t width) : width_{width} {}
    void feed(std::string_view bytes);
    void resize(std::size_t width) { width_ = width; }

    const std::vector<std::string>& lines() const noexcept { return lines_; }
    /// The whole screen, a line break after each line but an empty last one.
    std::string text() const;
    /// Lines that were erased or overwritten from their start, as they stood then: the states of the status line.
    const std::vector<std::string>& drawn() const noexcept { return drawn_; }
    bool colours() const noexcept { return colours_; }
    /// Rows beyond the first that a status line has taken: it wrapped.
    std::size_t wrapped() const noexcept { return wrapped_; }
    /// Escape sequences that are none of the above.
    const std::vector<std::string>& unknown() const noexcept { return unknown_; }

private:
    void escape(std::string_view sequence);
    void leave();

    std::size_t width_;
    std::vector<std::string> lines_{""};
    std::size_t column_ = 0;
    std::vector<std::string> drawn_, unknown_;
    std::size_t wrapped_ = 0;
    bool colours_ = false;
    std::string pending_;  ///< the begin of a sequence whose end has not come yet
};

/// A program on a pseudo-terminal of its own, which is its stdin, stdout and stderr.
class Terminal {
public:
    /// Whether this machine gives out pseudo-terminals: a root without /dev/pts has none.
    static bool available();

    /// variables: set in the program's environment; those with an empty value are unset.
    Terminal(const std::vector<std::string>& words, const std::vector<std::pair<std::string, std::string>>& variables,
             std::size_t columns);
    ~Terminal();
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    void resize(std::size_t columns);
    void type(std::string_view keys);
    /// Reads until `done` says so or the program has ended; false: it ended first.
    template <class Done>
    bool read_until(const Done& done) {
        while (!done())
            if (!read_some()) return done();
        return true;
    }
    /// Reads what comes within so many milliseconds; false: the program has ended.
    bool alive_after_ms(int ms);
    /// Reads the rest and waits. The exit code, or 128 and the signal.
    int wait();

    Screen screen;
    std::string bytes;  ///< all that was written

private:
    bool read_some();

    int master_ = -1;
    pid_t pid_ = -1;
};

}  // namespace autotune
#endif

#include "tests/tools/terminal.h"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace autotune {

void Screen::feed(std::string_view bytes) {
    for (const char c : bytes) {
        if (!pending_.empty()) {
            pending_ += c;
            const bool ended = pending_.size() > 2 ? c >= '@' && c <= '~' : c != '[';
            if (ended) escape(std::exchange(pending_, {}));
        } else if (c == '\x1b') {
            pending_ = c;
        } else if (c == '\r') {
            leave();
            column_ = 0;
        } else if (c == '\n') {
            lines_.emplace_back();
            column_ = 0;
        } else {
            if (column_ == width_) {
                ++wrapped_;
                lines_.emplace_back();
                column_ = 0;
            }
            std::string& line = lines_.back();
            if (column_ < line.size())
                line[column_] = c;
            else
                line += c;
            ++column_;
        }
    }
}

void Screen::escape(std::string_view sequence) {
    if (sequence == "\x1b[K")
        lines_.back().resize(column_);
    else if (sequence.size() > 2 && sequence.back() == 'm')
        colours_ = true;
    else
        unknown_.emplace_back(sequence);
}

void Screen::leave() {
    if (!lines_.back().empty()) drawn_.push_back(lines_.back());
}

std::string Screen::text() const {
    std::string text;
    for (std::size_t i = 0; i < lines_.size(); ++i)
        if (i + 1 < lines_.size() || !lines_[i].empty()) text += lines_[i] + "\n";
    return text;
}

bool Terminal::available() {
    int master = -1, slave = -1;
    if (openpty(&master, &slave, nullptr, nullptr, nullptr) != 0) return false;
    close(master);
    close(slave);
    return true;
}

Terminal::Terminal(const std::vector<std::string>& words,
                   const std::vector<std::pair<std::string, std::string>>& variables, std::size_t columns)
    : screen{columns} {
    winsize size{};
    size.ws_col = static_cast<unsigned short>(columns);
    size.ws_row = 40;
    std::vector<char*> pointers;
    for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    pid_ = forkpty(&master_, nullptr, nullptr, &size);
    if (pid_ < 0) throw std::system_error{errno, std::generic_category(), "forkpty"};
    if (pid_ > 0) return;
    termios modes{};
    tcgetattr(0, &modes);
    modes.c_oflag &= ~static_cast<tcflag_t>(OPOST);  // line feeds stay as they were written
    modes.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    tcsetattr(0, TCSANOW, &modes);
    for (const auto& [name, value] : variables) {
        if (value.empty())
            unsetenv(name.c_str());
        else
            setenv(name.c_str(), value.c_str(), 1);
    }
    execv(pointers[0], pointers.data());
    _exit(127);
}

Terminal::~Terminal() {
    if (pid_ > 0) {
        kill(pid_, SIGKILL);
        wait();
    }
    if (master_ >= 0) close(master_);
}

void Terminal::resize(std::size_t columns) {
    winsize size{};
    size.ws_col = static_cast<unsigned short>(columns);
    size.ws_row = 40;
    ioctl(master_, TIOCSWINSZ, &size);
    screen.resize(columns);
}

void Terminal::type(std::string_view keys) {
    if (write(master_, keys.data(), keys.size()) < 0) return;  // the program has ended: wait() says how
}

bool Terminal::read_some() {
    char buffer[4096];
    const ssize_t count = read(master_, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) return true;
    if (count <= 0) return false;  // EIO: nobody has the other side open any more
    bytes.append(buffer, static_cast<std::size_t>(count));
    screen.feed({buffer, static_cast<std::size_t>(count)});
    return true;
}

bool Terminal::alive_after_ms(int ms) {
    pollfd side{.fd = master_, .events = POLLIN, .revents = 0};
    return poll(&side, 1, ms) == 0 || read_some();
}

int Terminal::wait() {
    while (read_some()) {
    }
    int status = 0;
    const pid_t ended = waitpid(std::exchange(pid_, -1), &status, 0);
    if (ended < 0) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace autotune

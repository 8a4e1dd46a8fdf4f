#include "tuner/worker/run_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>

#include "autotune/error.h"
#include "tuner/worker/json_types.h"

namespace autotune {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

Clock::time_point after(double seconds) {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>{seconds});
}

double limit_for(const Patience& patience, double expect_s) {
    if (expect_s <= 0) return std::max(patience.limit_s, patience.least_s);
    return std::max(patience.least_s, patience.times_expected * expect_s);
}

/// The processor's time that a process has taken; negative where that cannot be told.
double processor_s(pid_t process) {
    clockid_t clock{};
    timespec taken{};
    if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &taken) != 0) return -1;
    return static_cast<double>(taken.tv_sec) + static_cast<double>(taken.tv_nsec) * 1e-9;
}

/// Until when a worker may be silent.
class Deadline {
public:
    Deadline(const Patience& patience, pid_t process) : patience_{patience}, process_{process} { begin(0); }

    void begin(double expect_s) {
        limit_s_ = limit_for(patience_, expect_s);
        until_ = after(limit_s_);
        last_ = after(patience_.processor_time ? longest_wait * limit_s_ : limit_s_);
        before_s_ = processor_s(process_);
    }

    double limit_s() const noexcept { return limit_s_; }

    /// 0: it is over.
    std::chrono::milliseconds left() {
        const auto now = Clock::now();
        if (now >= until_ && now < last_) {
            const double taken_s = processor_s(process_) - before_s_;
            if (before_s_ >= 0 && taken_s >= 0 && taken_s < limit_s_)
                until_ = std::min(last_, after(std::max(least_look_s, limit_s_ - taken_s)));
        }
        return std::max(std::chrono::milliseconds{0}, std::chrono::ceil<std::chrono::milliseconds>(until_ - now));
    }

private:
    static constexpr double longest_wait = 3, least_look_s = 0.01;
    const Patience& patience_;
    const pid_t process_;
    double limit_s_ = 0, before_s_ = 0;
    Clock::time_point until_, last_;
};

}  // namespace

RunClient::RunClient(const std::filesystem::path& worker, const std::string& mode, std::vector<std::string> more) {
    more.insert(more.begin(), mode);
    process_ = Process::start({.program = worker, .arguments = std::move(more)});
}

void RunClient::lose(Ending ending, const std::string& reason) {
    const Exit exit = process_.stop(std::chrono::milliseconds{ending == Ending::crashed ? 2000 : 0});
    const std::string why = ending == Ending::crashed ? fmt::format("{}: {}", reason, exit.text()) : reason;
    throw WorkerLost{ending, why, take_text()};
}

std::string RunClient::take_text() {
    process_.drain();
    std::string text = process_.text();
    process_.clear_text();
    return text;
}

Frame RunClient::ask(Message type, const Json& body, std::span<const int> fds, const Patience& patience) {
    std::string phase = "starting";
    Deadline deadline{patience, process_.pid()};
    try {
        if (!process_.running()) throw FrameError{"the worker ended"};
        send_frame(process_.socket(), static_cast<std::uint32_t>(type), body, fds);
        while (true) {
            while (std::optional<Frame> frame = reader_.next()) {
                const auto kind = static_cast<Message>(frame->type);
                if (kind == Message::failed) throw error_from(frame->json());
                if (kind != Message::ready && kind != Message::progress) return std::move(*frame);
                const Json news = frame->json();
                phase = news.value("phase", "running");
                deadline.begin(news.value("expect_s", 0.0));
            }
            std::array<pollfd, 2> watched{pollfd{process_.socket(), POLLIN, 0}, pollfd{process_.output(), POLLIN, 0}};
            if (patience.abandoned && *patience.abandoned) {
                process_.stop();
                throw Error{Error::Kind::interrupted, "the run is ending"};
            }
            const auto left = deadline.left().count();
            if (left <= 0)
                lose(Ending::timed_out, fmt::format("it was ended after {:.1f} s of {}", deadline.limit_s(), phase));
            const int ready = poll(watched.data(), watched.size(), static_cast<int>(std::min<long>(left, 1000)));
            if (ready < 0 && errno != EINTR) throw FrameError{"polling a worker failed"};
            process_.drain();
            reader_.read_from(process_.socket());
        }
    } catch (const FrameError& e) {
        lose(Ending::crashed, fmt::format("its process ended while {}", phase));
    } catch (const Json::exception& e) {
        lose(Ending::crashed, fmt::format("its process sent nonsense while {}: {}", phase, e.what()));
    }
}

}  // namespace autotune

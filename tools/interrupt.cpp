#include "tools/interrupt.h"

#include <atomic>
#include <csignal>
#include <utility>

namespace autotune {
namespace {

std::atomic<int> code{0};
thread_local const StopScope* innermost = nullptr;

extern "C" void on_signal(int signal) {
    code = 128 + signal;
    std::signal(signal, SIG_DFL);
}

}  // namespace

void watch_interrupts() {
    std::signal(SIGINT, on_signal);
    std::signal(SIGTERM, on_signal);
    if (std::signal(SIGHUP, on_signal) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);  // nohup wants it to go on
}

int interrupted() {
    for (const StopScope* scope = innermost; scope; scope = scope->outer_)
        if (scope->wanted_()) return 128 + SIGINT;
    return code;
}

StopScope::StopScope(std::function<bool()> wanted)
    : wanted_{std::move(wanted)}, outer_{std::exchange(innermost, this)} {}
StopScope::~StopScope() { innermost = outer_; }

}  // namespace autotune

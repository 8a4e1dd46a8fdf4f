#include "tools/interrupt.h"

#include <atomic>
#include <csignal>

namespace autotune {
namespace {

std::atomic<int> code{0};

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

int interrupted() { return code; }

}  // namespace autotune

#ifndef AUTOTUNE_TOOLS_INTERRUPT_H
#define AUTOTUNE_TOOLS_INTERRUPT_H

#include <functional>

namespace autotune {

/// From now on the first Ctrl-C, SIGTERM or hang-up of the terminal only asks for an end; the second kills the process.
/// A hang-up that is ignored already, as under nohup, stays ignored.
void watch_interrupts();
/// 0, or the exit code of the signal that came: 130, 143 or 129.
int interrupted();

/// While it lives, `interrupted()` on this thread is 130 as soon as `wanted` says so: for a program that runs a
/// subcommand and has its signals for itself.
class StopScope {
public:
    explicit StopScope(std::function<bool()> wanted);
    ~StopScope();
    StopScope(const StopScope&) = delete;
    StopScope& operator=(const StopScope&) = delete;

private:
    friend int interrupted();
    std::function<bool()> wanted_;
    const StopScope* outer_;
};

}  // namespace autotune
#endif

#ifndef AUTOTUNE_TOOLS_INTERRUPT_H
#define AUTOTUNE_TOOLS_INTERRUPT_H

namespace autotune {

/// From now on the first Ctrl-C, SIGTERM or hang-up of the terminal only asks for an end; the second kills the process.
/// A hang-up that is ignored already, as under nohup, stays ignored.
void watch_interrupts();
/// 0, or the exit code of the signal that came: 130, 143 or 129.
int interrupted();

}  // namespace autotune
#endif

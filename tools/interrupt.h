#ifndef AUTOTUNE_TOOLS_INTERRUPT_H
#define AUTOTUNE_TOOLS_INTERRUPT_H

namespace autotune {

/// From now on the first Ctrl-C or SIGTERM only asks for an end; the second kills the process.
void watch_interrupts();
/// 0, or the exit code of the signal that came: 130 or 143.
int interrupted();

}  // namespace autotune
#endif

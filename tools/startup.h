#ifndef AUTOTUNE_TOOLS_STARTUP_H
#define AUTOTUNE_TOOLS_STARTUP_H

namespace autotune {

/// To be called first: makes a process of whatever surroundings it was started in. Descriptors 0 to 2 are open, so that
/// no database and no worker's socket becomes "stdout"; a closed stdin reads as empty, a closed stdout or stderr
/// refuses what is written. A reader that has gone away and a file that may not grow are errors of a write, not
/// signals.
void prepare_process();

}  // namespace autotune
#endif

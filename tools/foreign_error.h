#ifndef AUTOTUNE_TOOLS_FOREIGN_ERROR_H
#define AUTOTUNE_TOOLS_FOREIGN_ERROR_H

#include <exception>

#include "autotune/error.h"

namespace autotune {

/// What people are told of an exception that is no Error: memory, files and threads that the system does not give are
/// its doing, all else is a fault of ours.
Error foreign_error(const std::exception& exception);

}  // namespace autotune
#endif

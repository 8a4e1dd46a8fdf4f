#ifndef AUTOTUNE_DEVICE_SUPPORT_H
#define AUTOTUNE_DEVICE_SUPPORT_H

#include <string>
#include <string_view>

#include "device/compiler.h"

namespace autotune {

/// The text of device/support.cu, embedded at build time.
std::string_view support_source() noexcept;

/// What to compile for `make_cuda_device`, once a device: its entries are fill, compare and equal.
CompileRequest support_request(std::string arch);

}  // namespace autotune
#endif

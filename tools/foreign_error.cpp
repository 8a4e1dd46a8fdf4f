#include "tools/foreign_error.h"

#include <fmt/format.h>

#include <filesystem>
#include <new>
#include <system_error>

namespace autotune {

Error foreign_error(const std::exception& exception) {
    if (dynamic_cast<const std::bad_alloc*>(&exception))
        return {Error::Kind::usage, "out of memory: this machine, or its limit, has too little for what was asked",
                "ulimit -v"};
    if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&exception)) {
        const bool full = file->code() == std::errc::no_space_on_device;
        return {full ? Error::Kind::store : Error::Kind::usage,
                fmt::format("'{}' cannot be used: {}", file->path1().string(), file->code().message())};
    }
    if (const auto* system = dynamic_cast<const std::system_error*>(&exception))
        return {Error::Kind::usage, fmt::format("the system refused what was needed: {}", system->what()), "ulimit -a"};
    return {Error::Kind::internal, fmt::format("a fault of autotune's own: {}", exception.what()),
            "report it with the output of: autotune doctor --json"};
}

}  // namespace autotune

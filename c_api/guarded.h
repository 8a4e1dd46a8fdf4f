#ifndef AUTOTUNE_C_API_GUARDED_H
#define AUTOTUNE_C_API_GUARDED_H

#include <string_view>

#include "autotune/error.h"

namespace autotune::c_api {

/// Keeps what the thread is told of its last failure. Returns `status`.
int failed(int status, std::string_view message, std::string_view help = {}) noexcept;
/// The same for the exception that is being handled.
int failed_by_exception() noexcept;

/// Bad use of a function of the C API.
inline Error misuse(const std::string& message) {
    return {Error::Kind::usage, message, "include/autotune/autotune.h says what it takes"};
}

/// Runs the body of an exported function, which returns a status; what is thrown becomes one.
template <class Body>
int guarded(Body&& body) noexcept {
    try {
        return body();
    } catch (...) {
        return failed_by_exception();
    }
}

}  // namespace autotune::c_api
#endif

#include "c_api/guarded.h"

#include <algorithm>
#include <array>
#include <exception>

#include "autotune/autotune.h"
#include "device/device.h"
#include "tools/foreign_error.h"

namespace autotune::c_api {
namespace {

/// No std::string: telling of a failure must not fail, and a thread's end has nothing to do.
struct LastFailure {
    std::array<char, 2048> message;
    std::array<char, 512> help;
};
thread_local LastFailure last_failure{};

/// Cut at a whole character of UTF-8.
void copy_cut(std::string_view text, std::span<char> out) noexcept {
    std::size_t size = std::min(text.size(), out.size() - 1);
    if (size < text.size())
        while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
    std::copy_n(text.data(), size, out.data());
    out[size] = '\0';
}

}  // namespace

int failed(int status, std::string_view message, std::string_view help) noexcept {
    copy_cut(message, last_failure.message);
    copy_cut(help, last_failure.help);
    return status;
}

int failed_by_exception() noexcept {
    try {
        throw;
    } catch (const Error& error) {
        return failed(exit_code(error.kind()), error.what(), error.help());
    } catch (const DeviceFailure& failure) {
        return failed(AUTOTUNE_UNAVAILABLE, failure.what());
    } catch (const std::exception& exception) {
        try {
            const Error told = foreign_error(exception);
            return failed(exit_code(told.kind()), told.what(), told.help());
        } catch (...) {
            return failed(AUTOTUNE_USAGE, "out of memory");
        }
    } catch (...) {
        return failed(AUTOTUNE_INTERNAL, "something was thrown that is no exception");
    }
}

}  // namespace autotune::c_api

const char* autotune_error_message(void) { return autotune::c_api::last_failure.message.data(); }
const char* autotune_error_help(void) { return autotune::c_api::last_failure.help.data(); }

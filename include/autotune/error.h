#ifndef AUTOTUNE_ERROR_H
#define AUTOTUNE_ERROR_H

#include <source_location>
#include <stdexcept>
#include <string>
#include <utility>

namespace autotune {

/// What stops a run: one lower-case sentence that names the thing, the cause and the remedy, in `what()`.
/// A config that fails is no error but an `Outcome`.
class Error : public std::runtime_error {
public:
    /// For callers that react to it, and for the exit code of the command line.
    enum class Kind {
        usage,          ///< bad use or input: exit code 1
        nothing_found,  ///< no valid config: 2
        device,         ///< no usable device, or its driver failed: 3
        compile,        ///< no usable compiler: 3
        check,          ///< a check that the user asked for failed: 4
        store,          ///< the database could not be read or written: 5
        interrupted,    ///< ended by the user, the work saved: 130
        internal,       ///< a fault of ours: 70
    };

    /// help: a line that can be pasted and works, or empty
    Error(Kind kind, const std::string& message, std::string help = {},
          std::source_location where = std::source_location::current())
        : std::runtime_error{message}, kind_{kind}, help_{std::move(help)}, where_{where} {}

    Kind kind() const noexcept { return kind_; }
    const std::string& help() const noexcept { return help_; }
    const std::source_location& where() const noexcept { return where_; }

private:
    Kind kind_;
    std::string help_;
    std::source_location where_;
};

/// 1, 2, 3, 4, 5, 70 or 130: the process's exit code for an error of this kind.
constexpr int exit_code(Error::Kind kind) noexcept {
    switch (kind) {
        case Error::Kind::usage: return 1;
        case Error::Kind::nothing_found: return 2;
        case Error::Kind::device:
        case Error::Kind::compile: return 3;
        case Error::Kind::check: return 4;
        case Error::Kind::store: return 5;
        case Error::Kind::interrupted: return 130;
        case Error::Kind::internal: return 70;
    }
    return 70;
}

}  // namespace autotune
#endif

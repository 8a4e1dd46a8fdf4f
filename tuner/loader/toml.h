#ifndef AUTOTUNE_LOADER_TOML_H
#define AUTOTUNE_LOADER_TOML_H

#include <exception>

// The one way to toml++, for document.cpp only: everyone else reads files through Document.
//
// toml++ 3.3 asserts things about its input that a broken file can make false (a table header that starts with a
// character of no key: `[%]`), and tells the optimiser to rely on them where NDEBUG is set. Here they are checked in
// every build, and end the parse.

namespace autotune {
struct TomlFault : std::exception {
    const char* what() const noexcept override { return "toml++ met something that it did not expect"; }
};
[[noreturn]] inline void toml_fault() { throw TomlFault{}; }
}  // namespace autotune

#undef NDEBUG
#define TOML_ASSERT(condition) ((condition) ? void() : ::autotune::toml_fault())
#include <toml++/toml.h>

#endif

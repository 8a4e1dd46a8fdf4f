#ifndef AUTOTUNE_DEVICE_SHARED_LIBRARY_H
#define AUTOTUNE_DEVICE_SHARED_LIBRARY_H

#include <optional>
#include <string>

namespace autotune {

/// A library opened at run time. It stays open for the process's life: the driver and NVRTC keep threads and
/// handlers of their own, so closing either is not safe.
class SharedLibrary {
public:
    /// name: a path, or a name for the loader's search. On failure `why` is the loader's sentence.
    static std::optional<SharedLibrary> open(const std::string& name, std::string& why);
    /// Only if the process has it loaded already.
    static std::optional<SharedLibrary> already_loaded(const std::string& name);

    /// The address of an exported symbol, or null.
    void* find(const char* symbol) const noexcept;
    /// The file it came from, empty where the loader does not tell.
    std::string path(const char* some_symbol) const;

private:
    explicit SharedLibrary(void* handle) noexcept : handle_{handle} {}
    void* handle_;
};

}  // namespace autotune
#endif

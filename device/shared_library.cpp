#include "device/shared_library.h"

#include <dlfcn.h>

namespace autotune {

std::optional<SharedLibrary> SharedLibrary::open(const std::string& name, std::string& why) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return SharedLibrary{handle};
    const char* reason = dlerror();
    why = reason ? reason : name + ": not found";
    return std::nullopt;
}

std::optional<SharedLibrary> SharedLibrary::already_loaded(const std::string& name) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) return SharedLibrary{handle};
    dlerror();
    return std::nullopt;
}

void* SharedLibrary::find(const char* symbol) const noexcept {
    void* address = dlsym(handle_, symbol);
    if (!address) dlerror();
    return address;
}

std::string SharedLibrary::path(const char* some_symbol) const {
    Dl_info info{};
    void* address = find(some_symbol);
    if (!address || !dladdr(address, &info) || !info.dli_fname) return {};
    return info.dli_fname;
}

}  // namespace autotune

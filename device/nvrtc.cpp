#include "device/nvrtc.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>

#include "autotune/error.h"
#include "device/shared_library.h"

namespace autotune {
namespace {

namespace fs = std::filesystem;

constexpr int oldest_major = 12, newest_major = 14;

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

/// The `nvidia/cu13` folders of pip's wheels: scripts/setup.sh puts them into build/cuda, and a program stands in
/// build/<preset>/bin, so the program's parents are looked through.
std::vector<fs::path> wheel_folders() {
    std::vector<fs::path> found;
    std::error_code error;
    fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
    for (int depth = 0; depth < 4 && !folder.empty() && folder != folder.root_path(); ++depth) {
        for (const fs::directory_entry& python : fs::directory_iterator{folder / "cuda" / "lib", error}) {
            const fs::path packages = python.path() / "site-packages" / "nvidia";
            for (int major = newest_major; major >= oldest_major; --major) {
                const fs::path candidate = packages / fmt::format("cu{}", major);
                if (fs::is_directory(candidate, error)) found.push_back(candidate);
            }
        }
        folder = folder.parent_path();
    }
    return found;
}

/// The `nvidia` folders of what pip installed: into the environment that is active, for this user, for the machine.
std::vector<fs::path> pip_folders() {
    std::vector<fs::path> roots;
    for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
        if (const std::string folder = environment(name); !folder.empty()) roots.emplace_back(folder);
    if (const std::string home = environment("HOME"); !home.empty()) roots.push_back(fs::path{home} / ".local");
    roots.emplace_back("/usr/local");
    std::vector<fs::path> found;
    std::error_code error;
    for (const fs::path& root : roots)
        for (const fs::directory_entry& python : fs::directory_iterator{root / "lib", error}) {
            if (!python.path().filename().string().starts_with("python3")) continue;
            for (const char* packages : {"site-packages", "dist-packages"})
                if (const fs::path folder = python.path() / packages / "nvidia"; fs::is_directory(folder, error))
                    found.push_back(folder);
        }
    return found;
}

/// The wheels of CUDA 13 share the folder cu13, those of 12 have one each.
std::vector<fs::path> pip_parts(std::string_view part_of_12, std::string_view folder) {
    std::vector<fs::path> found;
    for (const fs::path& nvidia : pip_folders()) {
        for (int major = newest_major; major > oldest_major; --major)
            found.push_back(nvidia / fmt::format("cu{}", major) / folder);
        found.push_back(nvidia / part_of_12 / folder);
    }
    return found;
}

/// libnvrtc.so.13, .12 ... in a folder; newest first, then without a number.
std::vector<std::string> libraries_in(const fs::path& folder) {
    std::vector<std::string> found;
    std::error_code error;
    for (int major = newest_major; major >= oldest_major; --major) {
        const fs::path file = folder / fmt::format("libnvrtc.so.{}", major);
        if (fs::exists(file, error)) found.push_back(file.string());
    }
    if (found.empty() && fs::exists(folder / "libnvrtc.so", error)) found.push_back((folder / "libnvrtc.so").string());
    return found;
}

std::vector<std::string> toolkit_folders() {
    std::vector<std::string> found;
    for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
        if (std::string folder = environment(name); !folder.empty()) found.push_back(std::move(folder));
    return found;
}

/// NVRTC opens libnvrtc-builtins by its bare name; where it lies in no folder of the loader, a copy that is already
/// loaded is what it finds.
void preload_builtins(const std::string& library) {
    std::error_code error;
    const fs::path folder = fs::path{library}.parent_path();
    if (folder.empty()) return;
    for (const fs::directory_entry& entry : fs::directory_iterator{folder, error}) {
        const std::string name = entry.path().filename().string();
        std::string ignored;
        if (name.starts_with("libnvrtc-builtins.so.")) SharedLibrary::open(entry.path().string(), ignored);
    }
}

std::optional<SharedLibrary> open_library(std::string& why) {
    if (const std::string wanted = environment("AUTOTUNE_NVRTC"); !wanted.empty()) {
        std::error_code error;
        const auto in_folder = fs::is_directory(wanted, error) ? libraries_in(wanted) : std::vector{wanted};
        const std::string file = in_folder.empty() ? wanted : in_folder.front();
        preload_builtins(file);
        auto library = SharedLibrary::open(file, why);
        if (!library) why = fmt::format("AUTOTUNE_NVRTC is '{}', which cannot be opened ({})", wanted, why);
        return library;
    }
    for (int major = newest_major; major >= oldest_major; --major)
        if (auto library = SharedLibrary::already_loaded(fmt::format("libnvrtc.so.{}", major))) return library;
    for (const std::string& file : nvrtc_candidates()) {
        preload_builtins(file);
        if (auto library = SharedLibrary::open(file, why)) return library;
    }
    why = "NVRTC (libnvrtc.so.12 or .13) was found neither in a CUDA toolkit nor among pip's packages";
    return std::nullopt;
}

std::string open_nvrtc(Nvrtc& result) {
    std::string why;
    const auto library = open_library(why);
    if (!library) return why;
    std::string missing;
    const auto load = [&]<class Call>(Call& call, const char* symbol, bool needed) {
        call = reinterpret_cast<Call>(library->find(symbol));
        if (!call && needed && missing.empty()) missing = symbol;
    };
#define NVRTC_CALL(name) load(result.calls.name, #name, true);
#define NVRTC_CALL_OPTIONAL(name, ...) load(result.calls.name, #name, false);
#include "device/nvrtc_calls.def"
#undef NVRTC_CALL
#undef NVRTC_CALL_OPTIONAL
    result.path = library->path("nvrtcVersion");
    if (!missing.empty())
        return fmt::format("{} lacks {}, so it is no NVRTC of 12.0 or newer",
                           result.path.empty() ? environment("AUTOTUNE_NVRTC") : result.path, missing);
    if (result.calls.nvrtcVersion(&result.major, &result.minor) != NVRTC_SUCCESS || result.major < oldest_major)
        return fmt::format("NVRTC {}.{} at {} is too old: 12.0 is the oldest that works", result.major, result.minor,
                           result.path);
    int count = 0;
    if (result.calls.nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count <= 0)
        return fmt::format("NVRTC at {} names no device that it makes code for", result.path);
    result.archs.resize(static_cast<std::size_t>(count));
    result.calls.nvrtcGetSupportedArchs(result.archs.data());
    std::sort(result.archs.begin(), result.archs.end());
    return {};
}

struct OpenedNvrtc {
    Nvrtc nvrtc;
    std::string why;
};

const OpenedNvrtc& opened_nvrtc() {
    static const OpenedNvrtc once = [] {
        OpenedNvrtc result;
        result.why = open_nvrtc(result.nvrtc);
        return result;
    }();
    return once;
}

}  // namespace

std::vector<std::string> nvrtc_candidates() {
    std::vector<std::string> files;
    const auto add = [&](const fs::path& folder) {
        for (std::string& file : libraries_in(folder)) files.push_back(std::move(file));
    };
    for (const fs::path& wheel : wheel_folders()) add(wheel / "lib");
    for (const std::string& toolkit : toolkit_folders()) {
        add(fs::path{toolkit} / "lib64");
        add(fs::path{toolkit} / "lib");
    }
    for (int major = newest_major; major >= oldest_major; --major)
        files.push_back(fmt::format("libnvrtc.so.{}", major));
    add("/usr/local/cuda/lib64");
    for (const fs::path& folder : pip_parts("cuda_nvrtc", "lib")) add(folder);
    return files;
}

const Nvrtc* nvrtc_if_present(std::string* why) noexcept {
    const OpenedNvrtc& once = opened_nvrtc();
    if (once.why.empty()) return &once.nvrtc;
    if (why) *why = once.why;
    return nullptr;
}

const Nvrtc& nvrtc() {
    std::string why;
    if (const Nvrtc* found = nvrtc_if_present(&why)) return *found;
    throw Error{Error::Kind::compile, fmt::format("there is no compiler here: {}", why), how_to_get_nvrtc};
}

std::vector<std::string> cuda_include_folders() {
    std::vector<fs::path> folders;
    std::error_code error;
    if (const std::string wanted = environment("AUTOTUNE_CUDA_INCLUDE"); !wanted.empty()) {
        if (!fs::exists(fs::path{wanted} / "cuda_fp16.h", error))
            throw Error{Error::Kind::compile,
                        fmt::format("AUTOTUNE_CUDA_INCLUDE is '{}', which holds no cuda_fp16.h", wanted),
                        "unset AUTOTUNE_CUDA_INCLUDE, or set it to the include folder of a CUDA toolkit"};
        folders.emplace_back(wanted);
    }
    for (const fs::path& wheel : wheel_folders()) folders.push_back(wheel / "include");
    for (const std::string& toolkit : toolkit_folders()) folders.push_back(fs::path{toolkit} / "include");
    if (const Nvrtc* found = nvrtc_if_present()) {
        const fs::path real = fs::weakly_canonical(found->path, error);
        folders.push_back(real.parent_path().parent_path() / "include");
    }
    if (constexpr std::string_view built_with = AUTOTUNE_BUILT_WITH_CUDA_INCLUDE; !built_with.empty())
        folders.emplace_back(built_with);
    folders.emplace_back("/usr/local/cuda/include");
    std::ranges::move(pip_parts("cuda_runtime", "include"), std::back_inserter(folders));
    for (const fs::path& folder : folders) {
        if (!fs::exists(folder / "cuda_fp16.h", error)) continue;
        std::vector<std::string> result{folder.string()};
        if (fs::is_directory(folder / "cccl", error)) result.push_back((folder / "cccl").string());
        return result;
    }
    return {};
}

}  // namespace autotune

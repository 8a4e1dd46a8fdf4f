#ifndef AUTOTUNE_DEVICE_NVRTC_H
#define AUTOTUNE_DEVICE_NVRTC_H

#include <nvrtc.h>

#include <string>
#include <type_traits>
#include <vector>

namespace autotune {

/// NVRTC's calls as members, opened at first use; no driver or GPU is needed.
struct NvrtcCalls {
#define NVRTC_CALL(name) decltype(&::name) name = nullptr;
#define NVRTC_CALL_OPTIONAL(name, ...) std::type_identity_t<__VA_ARGS__> name = nullptr;
#include "device/nvrtc_calls.def"
#undef NVRTC_CALL
#undef NVRTC_CALL_OPTIONAL
};

/// What was found of NVRTC. Looked for in this order: the file or folder AUTOTUNE_NVRTC; a copy that the process has
/// loaded already; pip wheels beside the build; CUDA_HOME and CUDA_PATH; the loader's own search; /usr/local/cuda; what
/// pip installed in the active environment (VIRTUAL_ENV, CONDA_PREFIX), in ~/.local or in /usr/local.
struct Nvrtc {
    NvrtcCalls calls;
    std::string path;  ///< of the library
    int major = 0, minor = 0;
    std::vector<int> archs;  ///< capabilities it makes code for, ascending: 75, 80, ...
};

/// Throws Error{compile} when there is none, or one older than 12.0.
const Nvrtc& nvrtc();
/// Or null, with the reason.
const Nvrtc* nvrtc_if_present(std::string* why = nullptr) noexcept;

/// The files that are tried after AUTOTUNE_NVRTC and what is loaded already, in order; a name without a folder is the
/// loader's to find.
std::vector<std::string> nvrtc_candidates();

inline constexpr const char* how_to_get_nvrtc =
    "install the CUDA toolkit 12.0 or newer, or in a Python environment that is active: pip install nvidia-cuda-nvrtc "
    "nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl; or set AUTOTUNE_NVRTC to a libnvrtc.so.13 that lies "
    "elsewhere";

/// Folders with cuda_fp16.h and its kin, for -I: of AUTOTUNE_CUDA_INCLUDE, the wheels, CUDA_HOME, CUDA_PATH, the
/// toolkit that NVRTC came from, the one this was built with, /usr/local/cuda, pip's packages. The first that has the
/// headers counts, with the cccl folder in it. Empty when none has. Throws Error{compile} where AUTOTUNE_CUDA_INCLUDE
/// is set and has not: another folder's headers in its place would surprise.
std::vector<std::string> cuda_include_folders();

}  // namespace autotune
#endif

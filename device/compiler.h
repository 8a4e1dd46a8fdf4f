#ifndef AUTOTUNE_DEVICE_COMPILER_H
#define AUTOTUNE_DEVICE_COMPILER_H

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/compile_log.h"
#include "device/device.h"

namespace autotune {

/// A file that the source includes by this name.
struct CompileHeader {
    std::string name, text;
};

/// A macro and its text.
using Define = std::pair<std::string, std::string>;

struct CompileRequest {
    std::string name;  ///< of the source, in messages: "softmax.cu"
    std::string source;
    std::vector<CompileHeader> headers;
    std::vector<Define> defines;       ///< in order; see `with_defines`
    std::vector<std::string> options;  ///< of NVRTC, after ours
    std::vector<std::string> entries;  ///< kernels by name or by name expression, "kern<float, 4>"
    std::string arch;                  ///< "sm_90", "sm_90a"
    bool precompiled_headers = true;   ///< where the source has `#pragma nv_hdrstop` and NVRTC is 12.8 or newer
};

struct CompileResult {
    bool ok = false;
    Artefact artefact;  ///< when ok; `arch` is the one that the cubin is for
    std::string log;    ///< of NVRTC and ptxas
    std::vector<CompileRemark> remarks;
};

/// What NVRTC is asked for when `wanted` is: the same where it knows it, else the nearest lower capability, whose PTX
/// a driver can bring to the device.
/// throws  Error{usage} on a malformed arch, Error{compile} where NVRTC knows nothing that low
std::string nearest_arch(std::string_view wanted, std::span<const int> known, std::string_view compiler);

/// The source with its defines: right after the line `#pragma nv_hdrstop`, which keeps a precompiled header valid, or
/// before the first line where there is none. A `#line` follows, so that messages name the user's own lines.
/// throws  Error{usage} for a define that is no identifier or has a line break in its text
std::string with_defines(std::string_view source, std::string_view name, std::span<const Define> defines);

class TemporaryFolder;

/// Compiles with NVRTC: cubin and PTX of one compile. One thread calls it; a pool of processes, not threads, makes
/// compiles run side by side. Its folder of precompiled headers is its own and goes with it.
class Compiler {
public:
    /// include_folders: where CUDA's headers lie. Throws Error{compile} without NVRTC.
    Compiler();
    explicit Compiler(std::span<const std::string> include_folders);
    ~Compiler();
    Compiler(const Compiler&) = delete;
    Compiler& operator=(const Compiler&) = delete;

    /// A source that does not compile is an answer: `ok` is false and the log says why.
    /// throws  Error{compile} when NVRTC itself fails or CUDA's headers are missing, and as `nearest_arch` and
    ///         `with_defines` do
    CompileResult compile(const CompileRequest& request);

    /// The options of every compile, for cache keys: no paths, no arch.
    static std::span<const std::string_view> fixed_options() noexcept;

private:
    CompileResult compile(const CompileRequest& request, bool anew);  ///< anew: whatever NVRTC has kept

    std::unique_ptr<TemporaryFolder> header_folder_;  ///< made at the first source that can use it
    std::vector<std::string> include_options_;
};

/// What keeps a kernel on half-precision numbers, which needs CUDA's own headers, from compiling here; empty when
/// nothing does.
std::string compiler_trouble();

}  // namespace autotune
#endif

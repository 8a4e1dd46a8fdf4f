#include "device/compiler.h"

#include <fmt/format.h>
#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "autotune/error.h"
#include "device/cubin.h"
#include "device/identity.h"
#include "device/nvrtc.h"
#include "device/owned.h"
#include "device/temporary_folder.h"

namespace autotune {
namespace {

constexpr std::array<std::string_view, 3> fixed{"--std=c++17", "--ptxas-options=-v", "-lineinfo"};

/// From 12.9 on NVRTC keeps what it compiled, where there is a driver, and gives it again without the assembler's log.
bool has_cache(const Nvrtc& found) noexcept { return found.major > 12 || (found.major == 12 && found.minor >= 9); }

inline constexpr auto destroy_program = [](nvrtcProgram program) noexcept {
    nvrtc().calls.nvrtcDestroyProgram(&program);
};
using Program = Owned<nvrtcProgram, destroy_program>;

void require(nvrtcResult status, std::string_view action) {
    if (status == NVRTC_SUCCESS) return;
    throw Error{Error::Kind::compile,
                fmt::format("NVRTC failed while {}: {}", action, nvrtc().calls.nvrtcGetErrorString(status))};
}

bool is_identifier(std::string_view name) noexcept {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    return !name.empty() && letter(name.front()) &&
           std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || digit(c); });
}

/// The offset just behind the line `#pragma nv_hdrstop`, or npos; `line` is the number of the line there.
std::size_t behind_header_stop(std::string_view source, std::size_t& line) {
    line = 1;
    std::size_t at = 0;
    while (at < source.size()) {
        const std::size_t end = std::min(source.find('\n', at), source.size());
        std::string_view text = source.substr(at, end - at);
        text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
        at = std::min(end + 1, source.size());
        ++line;
        if (text.starts_with("#pragma nv_hdrstop")) return end < source.size() ? at : std::string_view::npos;
    }
    return std::string_view::npos;
}

bool has_header_stop(std::string_view source) {
    std::size_t line = 0;
    return behind_header_stop(source, line) != std::string_view::npos;
}

template <class Size, class Get>
std::string text_of(nvrtcProgram program, Size size, Get get, std::string_view what) {
    std::size_t bytes = 0;
    require(size(program, &bytes), what);
    std::string text(bytes, '\0');
    if (bytes > 0) require(get(program, text.data()), what);
    while (!text.empty() && text.back() == '\0') text.pop_back();
    return text;
}

std::vector<std::byte> cubin_of(nvrtcProgram program) {
    std::size_t bytes = 0;
    require(nvrtc().calls.nvrtcGetCUBINSize(program, &bytes), "fetching the cubin");
    std::vector<std::byte> cubin(bytes);
    require(nvrtc().calls.nvrtcGetCUBIN(program, reinterpret_cast<char*>(cubin.data())), "fetching the cubin");
    return cubin;
}

/// The folder that sources are said to be in. NVRTC finds quoted includes beside the source, and takes one without a
/// folder for a file of the working folder: a header that lies there by chance would be compiled in, and its bytes are
/// in no key. In this folder there is never anything. Nor does a binary tell where it was made.
constexpr std::string_view nowhere = "/dev/null/";

std::string placed(std::string_view name) { return fmt::format("{}{}", nowhere, name); }

std::string without_folder(std::string text) {
    for (std::size_t at = 0; (at = text.find(nowhere, at)) != std::string::npos;) text.erase(at, nowhere.size());
    return text;
}

Program create_program(const CompileRequest& request, const std::string& source) {
    std::vector<const char*> texts, names;
    for (const CompileHeader& header : request.headers) {
        texts.push_back(header.text.c_str());
        names.push_back(header.name.c_str());
    }
    const std::string name = placed(request.name);
    nvrtcProgram program = nullptr;
    require(nvrtc().calls.nvrtcCreateProgram(&program, source.c_str(), name.c_str(), static_cast<int>(texts.size()),
                                             texts.data(), names.data()),
            fmt::format("taking in '{}'", request.name));
    return Program{program};
}

/// Kernels from the cubin, spills from the log, names from the request.
std::vector<KernelInfo> describe_kernels(const CompileRequest& request, nvrtcProgram program,
                                         std::span<const std::byte> cubin, const CompileLog& log) {
    std::vector<KernelInfo> kernels;
    for (const CubinKernel& kernel : read_cubin(cubin).kernels) {
        KernelInfo info = kernel_info(kernel);
        for (const CompiledFunction& function : log.functions)
            if (function.symbol == info.symbol)
                info.spill_bytes = function.spill_store_bytes + function.spill_load_bytes;
        kernels.push_back(std::move(info));
    }
    for (const std::string& entry : request.entries) {
        const char* lowered = nullptr;
        if (nvrtc().calls.nvrtcGetLoweredName(program, entry.c_str(), &lowered) != NVRTC_SUCCESS || !lowered) continue;
        for (KernelInfo& kernel : kernels)
            if (kernel.symbol == lowered) kernel.name = entry;
    }
    return kernels;
}

/// Whether it came from NVRTC's cache, and what only the log tells may matter: how much is spilled, and remarks on
/// asynchronous products and on register counts that change.
bool lost_its_log(const CompileResult& result) {
    const Artefact& made = result.artefact;
    if (made.kernels.empty() || !read_compile_log(result.log).functions.empty()) return false;
    const std::vector<CubinKernel> kernels = read_cubin(made.cubin).kernels;
    return std::ranges::any_of(kernels, &CubinKernel::spills) || made.ptx.find("wgmma.mma_async") != std::string::npos ||
           made.ptx.find("setmaxnreg") != std::string::npos;
}

/// A name for what a precompiled header holds. NVRTC knows one again by the text before the header stop and by its
/// options, and does not look into headers that it was handed in memory: a changed header under an old name would go
/// unseen. So each content gets a folder of its own.
std::string header_key(const CompileRequest& request, const std::vector<std::string>& options) {
    std::string text;
    const auto add = [&](std::string_view part) { text += fmt::format("{}:{}", part.size(), part); };
    for (const CompileHeader& header : request.headers) {
        add(header.name);
        add(header.text);
    }
    for (const std::string& option : options) add(option);
    std::array<unsigned char, 16> hash{};
    crypto_generichash(hash.data(), hash.size(), reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                       nullptr, 0);
    return hex_of(hash);
}

/// A heap that was too small once is made large enough for the next source.
void grow_header_heap(nvrtcProgram program) {
    const NvrtcCalls& calls = nvrtc().calls;
    if (calls.nvrtcGetPCHCreateStatus(program) != NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED) return;
    std::size_t bytes = 0;
    if (calls.nvrtcGetPCHHeapSizeRequired(program, &bytes) == NVRTC_SUCCESS) calls.nvrtcSetPCHHeapSize(bytes);
}

/// No candidate would do better, so it is no candidate's failure.
[[noreturn]] void throw_missing_headers(const std::string& source) {
    throw Error{Error::Kind::compile,
                fmt::format("'{}' includes CUDA headers, and no folder with cuda_fp16.h was found here", source),
                "pip install nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl, then set AUTOTUNE_CUDA_INCLUDE to "
                "their include folder"};
}

}  // namespace

std::string nearest_arch(std::string_view wanted, std::span<const int> known, std::string_view compiler) {
    int cc = 0;
    const std::string_view digits = wanted.starts_with("sm_") ? wanted.substr(3) : std::string_view{};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), cc);
    const std::string_view suffix{end, static_cast<std::size_t>(digits.data() + digits.size() - end)};
    if (digits.empty() || error != std::errc{} || cc < 50 || cc > 999 ||
        !(suffix.empty() || suffix == "a" || suffix == "f"))
        throw Error{Error::Kind::usage, fmt::format("'{}' is no architecture; sm_86 and sm_90a are", wanted)};
    if (std::find(known.begin(), known.end(), cc) != known.end()) return std::string{wanted};
    int nearest = 0;
    for (const int candidate : known)
        if (candidate < cc) nearest = std::max(nearest, candidate);
    if (nearest == 0)
        throw Error{Error::Kind::compile,
                    fmt::format("{} makes no code for {} nor for anything older", compiler, wanted),
                    "set AUTOTUNE_NVRTC to the NVRTC of an older toolkit, 12.0 or newer"};
    return fmt::format("sm_{}", nearest);
}

std::string with_defines(std::string_view source, std::string_view name, std::span<const Define> defines) {
    std::string lines;
    for (const auto& [macro, text] : defines) {
        if (!is_identifier(macro))
            throw Error{Error::Kind::usage, fmt::format("'{}' cannot be defined: it is no identifier", macro)};
        if (text.find_first_of("\n\r\\") != std::string::npos)
            throw Error{Error::Kind::usage,
                        fmt::format("'{}' cannot be defined: its text has a line break or a backslash", macro)};
        lines += fmt::format("#define {} {}\n", macro, text);
    }
    std::size_t line = 1;
    std::size_t at = behind_header_stop(source, line);
    if (at == std::string_view::npos) {
        at = 0;
        line = 1;
    }
    return fmt::format("{}{}#line {} \"{}\"\n{}", source.substr(0, at), lines, line, name, source.substr(at));
}

std::span<const std::string_view> Compiler::fixed_options() noexcept { return fixed; }

Compiler::Compiler() : Compiler{cuda_include_folders()} {}

Compiler::Compiler(std::span<const std::string> include_folders) {
    nvrtc();
    for (const std::string& folder : include_folders) include_options_.push_back("-I" + folder);
}

Compiler::~Compiler() = default;

CompileResult Compiler::compile(const CompileRequest& request) {
    CompileResult result = compile(request, false);
    return result.ok && lost_its_log(result) ? compile(request, true) : result;
}

CompileResult Compiler::compile(const CompileRequest& request, bool anew) {
    const Nvrtc& compiler = nvrtc();
    const std::string arch =
        nearest_arch(request.arch, compiler.archs, fmt::format("NVRTC {}.{}", compiler.major, compiler.minor));
    const std::string source = with_defines(request.source, placed(request.name), request.defines);
    const Program program = create_program(request, source);
    for (const std::string& entry : request.entries)
        require(compiler.calls.nvrtcAddNameExpression(program.get(), entry.c_str()), fmt::format("naming '{}'", entry));

    std::vector<std::string> options{"-arch=" + arch};
    options.insert(options.end(), fixed.begin(), fixed.end());
    if (anew && has_cache(compiler)) options.emplace_back("--no-cache");
    options.insert(options.end(), include_options_.begin(), include_options_.end());
    const bool precompile =
        request.precompiled_headers && compiler.calls.nvrtcGetPCHCreateStatus && has_header_stop(request.source);
    options.insert(options.end(), request.options.begin(), request.options.end());
    if (precompile && !header_folder_) header_folder_ = std::make_unique<TemporaryFolder>("pch");
    if (precompile && !header_folder_->path().empty()) {
        const std::string folder = (header_folder_->path() / header_key(request, options)).string();
        std::error_code error;
        std::filesystem::create_directory(folder, error);
        if (!error) options.insert(options.end(), {"-pch", "--pch-dir=" + folder, "--pch-messages=false"});
    }
    std::vector<const char*> raw;
    for (const std::string& option : options) raw.push_back(option.c_str());

    const nvrtcResult status =
        compiler.calls.nvrtcCompileProgram(program.get(), static_cast<int>(raw.size()), raw.data());
    CompileResult result;
    result.log = without_folder(text_of(program.get(), compiler.calls.nvrtcGetProgramLogSize,
                                        compiler.calls.nvrtcGetProgramLog, "fetching the log"));
    if (precompile) grow_header_heap(program.get());
    if (status == NVRTC_ERROR_COMPILATION || status == NVRTC_ERROR_INVALID_OPTION ||
        status == NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID) {
        if (include_options_.empty() && result.log.find("open source file \"") != std::string::npos)
            throw_missing_headers(request.name);
        return result;
    }
    require(status, fmt::format("compiling '{}'", request.name));

    CompileLog log = read_compile_log(result.log);
    result.ok = true;
    result.artefact = {.arch = arch,
                       .cubin = cubin_of(program.get()),
                       .ptx = without_folder(text_of(program.get(), compiler.calls.nvrtcGetPTXSize,
                                                     compiler.calls.nvrtcGetPTX, "fetching the PTX")),
                       .log = result.log,
                       .kernels = {}};
    result.artefact.kernels = describe_kernels(request, program.get(), result.artefact.cubin, log);
    result.remarks = std::move(log.remarks);
    return result;
}

std::string compiler_trouble() {
    try {
        const Nvrtc& found = nvrtc();
        Compiler compiler;
        const CompileResult result = compiler.compile({.name = "half.cu",
                                                       .source = "#include <cuda_fp16.h>\nextern \"C\" __global__ void "
                                                                 "half_sum(__half* x) { x[0] = __hadd(x[0], x[1]); }\n",
                                                       .headers = {},
                                                       .defines = {},
                                                       .options = {},
                                                       .entries = {},
                                                       .arch = fmt::format("sm_{}", found.archs.back())});
        return result.ok ? std::string{} : result.log;
    } catch (const Error& error) {
        return error.what();
    }
}

}  // namespace autotune

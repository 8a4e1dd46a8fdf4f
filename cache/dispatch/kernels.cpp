#include "cache/dispatch/kernels.h"

#include <fmt/core.h>

#include <charconv>

#include "autotune/error.h"
#include "cache/dispatch/compile_once.h"
#include "cache/store/identity.h"
#include "device/identity.h"
#include "device/nvrtc.h"
#include "tuner/model/compile_request.h"

namespace autotune {

namespace {

[[noreturn]] void refuse(CUresult code, const std::string& action) {
    throw DeviceFailure{{.kind = fault_row(code).kind,
                         .code = static_cast<int>(code),
                         .message = fmt::format("{} while {}", name_of(code), action)}};
}

/// What a tuner compiles the source for, so that what was measured is what runs.
std::string arch_of(const SourceSpec& source, int cc) { return source.arch.empty() ? arch_name(cc) : source.arch; }

/// Code for sm_90a runs on that part alone, for sm_100f on later parts of its family too, for sm_90 on later parts of
/// its major capability. What a family is, its major capability bounds; the driver knows the rest.
bool runs_on(std::string_view arch, int cc) {
    int made_for = 0;
    const char* const end = arch.data() + arch.size();
    if (!arch.starts_with("sm_")) return false;
    const auto [rest, error] = std::from_chars(arch.data() + 3, end, made_for);
    if (error != std::errc{}) return false;
    if (rest != end && *rest == 'a') return cc == made_for;
    return cc / 10 == made_for / 10 && cc >= made_for;
}

/// Whose code also runs on this part, where the source asks for no architecture of its own.
std::vector<std::string> earlier_archs(const SourceSpec& source, int cc) {
    std::vector<std::string> archs;
    if (source.arch.empty())
        for (int minor = cc % 10 - 1; minor >= 0; --minor) archs.push_back(arch_name(cc / 10 * 10 + minor));
    return archs;
}

}  // namespace

Kernels::~Kernels() {
    for (const auto& [key, library] : loaded_) calls_.cuLibraryUnload(library->library);
}

std::optional<KernelSet> Kernels::get(const Instance& instance, const Config& config, int device,
                                      std::span<const std::pair<int, int>> versions, bool loaded_only) {
    KernelSet set{.device = device};
    for (const SourceSpec& source : instance.sources(config)) {
        const auto [found, for_earlier_part] = library(source, instance.limits().cc, versions, loaded_only);
        if (!found || (loaded_only && !ready_.contains({found, context()}))) return std::nullopt;
        if (for_earlier_part ||
            (!versions.empty() && versions.front() != std::pair{found->nvrtc_major, found->nvrtc_minor}))
            set.compiled_otherwise = true;
        set.libraries.emplace(source.source, found);
    }
    return set;
}

Kernels::Found Kernels::library(const SourceSpec& source, int cc, std::span<const std::pair<int, int>> versions,
                                bool loaded_only) {
    const std::string arch = arch_of(source, cc);
    if (!runs_on(arch, cc))
        throw Error{Error::Kind::compile,
                    fmt::format("'{}' is made for {}, which does not run on {}", source.source, arch, arch_name(cc))};
    if (LoadedLibrary* found = existing(source, arch, versions, loaded_only)) return {.library = found};
    std::string why = "compiling is switched off";
    const Nvrtc* compiler = options_.compile && !loaded_only ? nvrtc_if_present(&why) : nullptr;
    if (!compiler)
        for (const std::string& earlier : earlier_archs(source, cc))
            if (LoadedLibrary* found = existing(source, earlier, versions, loaded_only))
                return {.library = found, .for_earlier_part = true};
    if (loaded_only) return {};
    if (!compiler)
        throw Error{Error::Kind::compile,
                    options_.compile
                        ? fmt::format("no binary of '{}' is stored and there is no compiler ({})", source.source, why)
                        : fmt::format("no binary of '{}' is stored and {}", source.source, why)};
    // Under what was asked for: an NVRTC older than the GPU makes code for an earlier architecture, and is not asked
    // for it again.
    const std::string key = binary_key(source, Compiler::fixed_options(), arch, compiler->major, compiler->minor);
    LoadedLibrary* made = load(
        compile_once(key, options_.keep_in ? &*options_.keep_in : nullptr, [&] { return compiled(source, cc, key); }));
    return {.library = made};
}

LoadedLibrary* Kernels::existing(const SourceSpec& source, const std::string& arch,
                                 std::span<const std::pair<int, int>> versions, bool loaded_only) {
    const std::string name = source_key(source, Compiler::fixed_options(), arch);
    std::vector<std::string> keys;  // of the versions that were named, in their order
    for (const auto& [major, minor] : versions) keys.push_back(fmt::format("{}-{}.{}", name, major, minor));

    for (const std::string& key : keys)
        if (const auto found = loaded_.find(key); found != loaded_.end()) return found->second.get();
    if (!loaded_only)
        for (const std::string& key : keys)
            if (const auto binary = stored(key)) return load(*binary);
    // Else whatever another NVRTC made of the same source.
    if (const auto found = loaded_.lower_bound(name); found != loaded_.end() && found->first.starts_with(name))
        return found->second.get();
    if (loaded_only) return nullptr;
    const auto binary = stored_of_any_version(name);
    return binary ? load(*binary) : nullptr;
}

std::optional<Binary> Kernels::stored(std::string_view key) const {
    for (const BinaryStore& store : options_.binaries)
        if (auto binary = store.get(key)) return binary;
    for (const Bundle* bundle : options_.bundles)
        if (auto binary = bundle->binary(key)) return binary;
    return std::nullopt;
}

std::optional<Binary> Kernels::stored_of_any_version(std::string_view name) const {
    for (const BinaryStore& store : options_.binaries)
        for (const std::string& key : store.keys_of(name))
            if (auto binary = store.get(key)) return binary;
    for (const Bundle* bundle : options_.bundles)
        for (const std::string& key : newest_first(bundle->binary_keys(), name))
            if (auto binary = bundle->binary(key)) return binary;
    return std::nullopt;
}

Binary Kernels::compiled(const SourceSpec& source, int cc, const std::string& key) {
    if (!compiler_) compiler_ = std::make_unique<Compiler>();
    CompileResult result = compiler_->compile(compile_request(source, arch_of(source, cc)));
    if (!result.ok)
        throw Error{Error::Kind::compile, fmt::format("'{}' does not compile: {}", source.source,
                                                      result.log.substr(0, result.log.find('\n')))};
    const Nvrtc& compiler = nvrtc();
    return {.key = key,
            .artefact = std::move(result.artefact),
            .source = source.source,
            .nvrtc_major = compiler.major,
            .nvrtc_minor = compiler.minor};
}

LoadedLibrary* Kernels::load(const Binary& binary) {
    const bool has_cubin = !binary.artefact.cubin.empty();
    const void* code = has_cubin ? static_cast<const void*>(binary.artefact.cubin.data()) : binary.artefact.ptx.c_str();
    auto library = std::make_unique<LoadedLibrary>(LoadedLibrary{
        .kernels = binary.artefact.kernels, .nvrtc_major = binary.nvrtc_major, .nvrtc_minor = binary.nvrtc_minor});
    const CUresult status = calls_.cuLibraryLoadData(&library->library, code, nullptr, nullptr, 0, nullptr, nullptr, 0);
    if (status != CUDA_SUCCESS) refuse(status, fmt::format("loading '{}' for {}", binary.source, binary.artefact.arch));
    return loaded_.emplace(binary.key, std::move(library)).first->second.get();
}

CUcontext Kernels::context() const noexcept {
    CUcontext context = nullptr;
    calls_.cuCtxGetCurrent(&context);
    return context;
}

CUkernel Kernels::kernel(LoadedLibrary& library, const std::string& entry) {
    if (const auto found = library.handles.find(entry); found != library.handles.end()) return found->second;
    const char* symbol = entry.c_str();
    for (const KernelInfo& kernel : library.kernels)
        if (kernel.name == entry) symbol = kernel.symbol.c_str();
    CUkernel handle = nullptr;
    if (const CUresult status = calls_.cuLibraryGetKernel(&handle, library.library, symbol); status != CUDA_SUCCESS)
        refuse(status, fmt::format("finding the kernel '{}'", entry));
    return library.handles.emplace(entry, handle).first->second;
}

CUfunction Kernels::function(const KernelSet& set, const std::string& source, const std::string& entry,
                             std::uint32_t shared_bytes, std::uint32_t cluster_blocks) {
    const auto library = set.libraries.find(source);
    if (library == set.libraries.end())
        throw Error{Error::Kind::internal,
                    fmt::format("'{}' launches a kernel of '{}', which was not loaded", entry, source)};
    const CUkernel handle = kernel(*library->second, entry);
    // Opting in costs a call that may synchronise: once a kernel and size, never a launch.
    std::uint32_t& opted_in = shared_set_[{handle, set.device}];
    if (shared_bytes > opted_in) {
        const CUresult status = calls_.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                            static_cast<int>(shared_bytes), handle, set.device);
        if (status != CUDA_SUCCESS)
            refuse(status, fmt::format("giving '{}' {} bytes of shared memory", entry, shared_bytes));
        opted_in = shared_bytes;
    }
    if (cluster_blocks > 8) {
        const CUresult status =
            calls_.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1, handle, set.device);
        if (status != CUDA_SUCCESS)
            refuse(status, fmt::format("allowing '{}' clusters of {} blocks", entry, cluster_blocks));
    }
    // Code is loaded lazily: now, not at the first launch, which may be inside a capture.
    CUfunction loaded = nullptr;
    if (const CUresult status = calls_.cuKernelGetFunction(&loaded, handle); status != CUDA_SUCCESS)
        refuse(status, fmt::format("loading the kernel '{}'", entry));
    ready_.emplace(library->second, context());
    return reinterpret_cast<CUfunction>(handle);  // cuLaunchKernel takes it in any context of the device
}

CUdeviceptr Kernels::variable(const KernelSet& set, const std::string& source, const std::string& symbol,
                              std::uint64_t bytes) {
    const auto library = set.libraries.find(source);
    if (library == set.libraries.end())
        throw Error{Error::Kind::internal,
                    fmt::format("'{}' is a variable of '{}', which was not loaded", symbol, source)};
    CUdeviceptr address = 0;
    std::size_t size = 0;
    if (const CUresult status = calls_.cuLibraryGetGlobal(&address, &size, library->second->library, symbol.c_str());
        status != CUDA_SUCCESS)
        refuse(status, fmt::format("finding the variable '{}'", symbol));
    if (bytes > size)
        throw Error{Error::Kind::usage,
                    fmt::format("the variable '{}' holds {} bytes, its tensor has {}", symbol, size, bytes)};
    return address;
}

int Kernels::blocks_per_sm(const KernelSet& set, const Launch& launch) {
    const CUfunction handle = function(set, launch.source, launch.entry, launch.shared_bytes, 0);
    CUfunction loaded = nullptr;
    calls_.cuKernelGetFunction(&loaded, reinterpret_cast<CUkernel>(handle));
    int blocks = 0;
    const auto threads = static_cast<int>(launch.block.x * launch.block.y * launch.block.z);
    const CUresult status =
        calls_.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, loaded, threads, launch.shared_bytes);
    if (status != CUDA_SUCCESS) refuse(status, fmt::format("asking how many blocks of '{}' an SM holds", launch.entry));
    return blocks;
}

}  // namespace autotune

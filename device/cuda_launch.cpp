#include "device/cuda_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "autotune/error.h"
#include "device/tensor_map.h"

namespace autotune {
namespace {

constexpr int shared_without_opt_in = 48 * 1024;
constexpr std::uint32_t portable_cluster = 8;

[[noreturn]] void does_not_fit(std::string message) {
    throw DeviceFailure{{.kind = DeviceFault::Kind::does_not_fit,
                         .code = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
                         .message = std::move(message)}};
}

int attribute(CUfunction function, CUfunction_attribute which) {
    int value = 0;
    check(driver().cuFuncGetAttribute(&value, which, function), "reading attribute {} of a kernel",
          static_cast<int>(which));
    return value;
}

/// Loads PTX; the driver's own compiler says in `log` what it did not like.
CUresult load_ptx(CUmodule* module, const std::string& ptx, std::string& log) {
    std::array<char, 4096> text{};
    std::array options{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    std::array<void*, 2> values{text.data(), reinterpret_cast<void*>(text.size())};
    const CUresult status = driver().cuModuleLoadDataEx(module, ptx.c_str(), static_cast<unsigned>(options.size()),
                                                        options.data(), values.data());
    log = text.data();
    return status;
}

std::string cuda_version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

CUmodule load_either(const Artefact& artefact, const DeviceIdentity& device) {
    CUmodule module = nullptr;
    CUresult status = CUDA_ERROR_NO_BINARY_FOR_GPU;
    if (!artefact.cubin.empty()) status = driver().cuModuleLoadData(&module, artefact.cubin.data());
    if (status == CUDA_SUCCESS) return module;
    const FaultRow row = fault_row(status);
    if (row.action != FaultAction::candidate || row.kind == DeviceFault::Kind::out_of_memory || artefact.ptx.empty())
        throw_failure(status, fmt::format("loading {} code on a device of capability {}.{}", artefact.arch,
                                          device.limits.cc / 10, device.limits.cc % 10));
    std::string log;
    status = load_ptx(&module, artefact.ptx, log);
    if (status == CUDA_SUCCESS) return module;
    if (status == CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
        throw Error{Error::Kind::device,
                    fmt::format("the compiler makes PTX that driver {} (CUDA {}) cannot load, and its {} code does not "
                                "run on {}",
                                device.driver.empty() ? "here" : device.driver, cuda_version(device.driver_version),
                                artefact.arch, device.name),
                    "update the driver, or set AUTOTUNE_NVRTC to an NVRTC of the driver's CUDA version"};
    throw_failure(status, fmt::format("loading PTX for {}{}{}", artefact.arch, log.empty() ? "" : ": ", log));
}

CUtensorMap encode_map(const TensorMapArgument& map, Buffer buffer, const std::string& entry) {
    CUtensorMap encoded;
    check(encode_tensor_map(driver(), map, buffer.address, encoded),
          "making a tensor map of '{}': extents {}, strides {} bytes, box {}, swizzle {}", entry,
          fmt::join(map.extents, "x"), fmt::join(map.strides_bytes, ", "), fmt::join(map.box, "x"), map.swizzle_bytes);
    return encoded;
}

void opt_in(const Launch& launch, CudaFunction& function, const DeviceLimits& limits) {
    const std::int64_t dynamic = launch.shared_bytes;
    const std::int64_t total = function.static_shared_bytes + dynamic;
    if (total > limits.max_shared)
        does_not_fit(
            fmt::format("'{}' needs {} bytes of shared memory a block, {} of them static, and the device has {}",
                        launch.entry, total, function.static_shared_bytes, limits.max_shared));
    if (total > shared_without_opt_in && dynamic > function.dynamic_shared_bytes) {
        check(driver().cuFuncSetAttribute(function.handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                          static_cast<int>(dynamic)),
              "allowing '{}' {} bytes of dynamic shared memory", launch.entry, dynamic);
        function.dynamic_shared_bytes = static_cast<int>(dynamic);
    }
    const std::uint64_t cluster = std::uint64_t{launch.cluster.x} * launch.cluster.y * launch.cluster.z;
    if (cluster > portable_cluster && !function.large_clusters) {
        check(driver().cuFuncSetAttribute(function.handle, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
              "allowing '{}' clusters of {} blocks", launch.entry, cluster);
        function.large_clusters = true;
    }
}

void check_shape(const Launch& launch, const CudaFunction& function, const DeviceLimits& limits) {
    const std::uint64_t threads = std::uint64_t{launch.block.x} * launch.block.y * launch.block.z;
    const int most = std::min(function.max_threads, limits.max_threads);
    if (threads == 0 || threads > static_cast<std::uint64_t>(most))
        does_not_fit(
            fmt::format("'{}' is launched with {} threads a block, and at most {} fit its registers and bounds",
                        launch.entry, threads, most));
    if (launch.grid.x > limits.max_grid_x || launch.grid.y > limits.max_grid_y || launch.grid.z > limits.max_grid_z)
        does_not_fit(fmt::format("'{}' is launched with a grid of {}x{}x{}, beyond the device's {}x{}x{}", launch.entry,
                                 launch.grid.x, launch.grid.y, launch.grid.z, limits.max_grid_x, limits.max_grid_y,
                                 limits.max_grid_z));
}

}  // namespace

CudaModule::CudaModule(const Artefact& artefact, const DeviceIdentity& device)
    : module_{load_either(artefact, device)} {
    for (const KernelInfo& kernel : artefact.kernels) symbols_[kernel.name] = kernel.symbol;
}

CudaFunction& CudaModule::function(const std::string& entry) {
    if (const auto found = functions_.find(entry); found != functions_.end()) return found->second;
    const auto named = symbols_.find(entry);
    const std::string& symbol = named == symbols_.end() ? entry : named->second;
    CudaFunction function;
    check(driver().cuModuleGetFunction(&function.handle, module_.get(), symbol.c_str()), "looking for kernel '{}'",
          entry);
    function.static_shared_bytes = attribute(function.handle, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    function.max_threads = attribute(function.handle, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    return functions_.emplace(entry, function).first->second;
}

std::pair<CUdeviceptr, std::size_t> CudaModule::symbol(const std::string& name) const {
    CUdeviceptr address = 0;
    std::size_t bytes = 0;
    check(driver().cuModuleGetGlobal(&address, &bytes, module_.get(), name.c_str()), "looking for variable '{}'", name);
    return {address, bytes};
}

struct CudaLaunch::Packed {
    struct Slot {
        alignas(64) std::array<std::byte, sizeof(CUtensorMap)> bytes;
    };
    std::vector<Slot> slots;
    std::vector<void*> pointers;
};

CudaLaunch::CudaLaunch(const Launch& launch, CudaFunction& function, const std::vector<Buffer>& buffers,
                       const DeviceLimits& limits)
    : entry_{&launch.entry}, repeat_{launch.repeat}, function_{function.handle}, packed_{std::make_shared<Packed>()} {
    check_shape(launch, function, limits);
    opt_in(launch, function, limits);
    packed_->slots.resize(launch.arguments.size());
    for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
        std::byte* const slot = packed_->slots[i].bytes.data();
        const Argument& argument = launch.arguments[i];
        if (const auto* buffer = std::get_if<BufferArgument>(&argument)) {
            const std::uint64_t address = buffers.at(buffer->buffer).address;
            std::memcpy(slot, &address, sizeof address);
        } else if (const auto* value = std::get_if<ValueArgument>(&argument)) {
            std::memcpy(slot, value->bytes.data(), value->bytes.size());
        } else {
            const auto& map = std::get<TensorMapArgument>(argument);
            const CUtensorMap encoded = encode_map(map, buffers.at(map.buffer), launch.entry);
            std::memcpy(slot, &encoded, sizeof encoded);
        }
        packed_->pointers.push_back(slot);
    }
    const Dim3 &grid = launch.grid, &block = launch.block, &cluster = launch.cluster;
    if (cluster != Dim3{}) {
        CUlaunchAttribute shape{};
        shape.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        shape.value.clusterDim = {cluster.x, cluster.y, cluster.z};
        attributes_.push_back(shape);
    }
    if (launch.cooperative) {
        CUlaunchAttribute together{};
        together.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        together.value.cooperative = 1;
        attributes_.push_back(together);
    }
    config_.gridDimX = grid.x, config_.gridDimY = grid.y, config_.gridDimZ = grid.z;
    config_.blockDimX = block.x, config_.blockDimY = block.y, config_.blockDimZ = block.z;
    config_.sharedMemBytes = launch.shared_bytes;
    config_.numAttrs = static_cast<unsigned>(attributes_.size());
}

CUresult CudaLaunch::enqueue(CUstream stream) const {
    // A launch of nothing: the driver refuses an empty grid, and an op over an empty tensor has one.
    if (config_.gridDimX == 0 || config_.gridDimY == 0 || config_.gridDimZ == 0) return CUDA_SUCCESS;
    CUlaunchConfig config = config_;
    config.hStream = stream;
    config.attrs = const_cast<CUlaunchAttribute*>(attributes_.data());
    return driver().cuLaunchKernelEx(&config, function_, packed_->pointers.data(), nullptr);
}

void CudaSequence::enqueue_once(CUstream stream) const {
    for (const Copy& copy : once)
        check(driver().cuMemcpyDtoDAsync(copy.to, copy.from, copy.bytes, stream), "filling variable '{}'", copy.symbol);
}

void CudaSequence::enqueue(CUstream stream) const {
    for (const Zeroing& zero : zeroing)
        check(driver().cuMemsetD8Async(zero.address, 0, zero.bytes, stream), "zeroing {} bytes of scratch", zero.bytes);
    for (const Copy& copy : copies)
        check(driver().cuMemcpyDtoDAsync(copy.to, copy.from, copy.bytes, stream), "filling variable '{}'", copy.symbol);
    for (const CudaLaunch& launch : launches)
        for (std::uint32_t turn = 0; turn < launch.repeat(); ++turn)
            check(launch.enqueue(stream), "launching '{}'", launch.entry());
}

std::string CudaSequence::names() const {
    std::string text;
    for (const CudaLaunch& launch : launches) {
        const std::string quoted = fmt::format("'{}'", launch.entry());
        if (text.find(quoted) == std::string::npos) text += (text.empty() ? "" : ", ") + quoted;
    }
    return text.empty() ? "nothing" : text;
}

}  // namespace autotune

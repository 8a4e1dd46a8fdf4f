#include "cache/dispatch/plan.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "autotune/error.h"
#include "device/tensor_map.h"

namespace autotune {

namespace {

constexpr std::uint64_t workspace_alignment = 256;

/// The bytes of a scalar as its kernel takes them, in the low end.
std::uint64_t bits_of(const ScalarArgument& scalar, DType dtype) noexcept {
    switch (dtype) {
        case DType::f32:
            return std::bit_cast<std::uint32_t>(static_cast<float>(scalar.real));
        case DType::f64:
            return std::bit_cast<std::uint64_t>(scalar.real);
        case DType::i32:
        case DType::u32:
            return static_cast<std::uint32_t>(scalar.integer);
        default:
            return static_cast<std::uint64_t>(scalar.integer);
    }
}

/// Turns one config's sequence into a plan.
class Planner {
public:
    Planner(Plan& plan, const Instance& instance, const LaunchSequence& sequence)
        : plan_{plan}, tensors_{instance.tensors().size()}, sequence_{sequence} {
        std::uint64_t offset = 0;
        for (const ScratchBuffer& scratch : sequence.scratch) {
            offsets_.push_back(offset);
            if (scratch.zeroed) plan_.zeroings.push_back({offset, scratch.bytes});
            offset += (scratch.bytes + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
        }
        plan_.workspace_bytes = offset;
    }

    PlannedArgument buffer(std::uint32_t index) const {
        if (index < tensors_)
            return {.kind = PlannedArgument::Kind::tensor, .index = static_cast<std::uint16_t>(index)};
        return {.kind = PlannedArgument::Kind::scratch, .bits = offsets_.at(index - tensors_)};
    }

    void add(const Launch& launch, CUfunction kernel) {
        if (launch.arguments.size() > most_arguments)
            throw Error{Error::Kind::usage, fmt::format("'{}' takes {} arguments, {} is the most", launch.entry,
                                                        launch.arguments.size(), most_arguments)};
        plan_.launches.push_back({.kernel = kernel,
                                  .grid = launch.grid,
                                  .block = launch.block,
                                  .cluster = launch.cluster,
                                  .shared_bytes = launch.shared_bytes,
                                  .repeat = launch.repeat,
                                  .cooperative = launch.cooperative,
                                  .first_argument = static_cast<std::uint32_t>(plan_.arguments.size()),
                                  .argument_count = static_cast<std::uint32_t>(launch.arguments.size())});
        for (const Argument& argument : launch.arguments) plan_.arguments.push_back(planned(argument));
    }

private:
    PlannedArgument planned(const Argument& argument) {
        if (const auto* of = std::get_if<BufferArgument>(&argument)) return buffer(of->buffer);
        if (const auto* value = std::get_if<ValueArgument>(&argument)) {
            PlannedArgument out;
            std::memcpy(&out.bits, value->bytes.data(), sizeof out.bits);
            return out;
        }
        if (plan_.tensor_maps.size() == most_tensor_maps)
            throw Error{Error::Kind::usage, fmt::format("a config takes more than {} tensor maps", most_tensor_maps)};
        const auto& map = std::get<TensorMapArgument>(argument);
        plan_.tensor_maps.push_back({.buffer = buffer(map.buffer), .map = map});
        return {.kind = PlannedArgument::Kind::tensor_map,
                .index = static_cast<std::uint16_t>(plan_.tensor_maps.size() - 1)};
    }

    Plan& plan_;
    std::size_t tensors_;
    const LaunchSequence& sequence_;
    std::vector<std::uint64_t> offsets_;
};

ScalarArgument argument_of(const Value& value) noexcept {
    if (const auto* real = std::get_if<double>(&value)) return *real;
    const auto* whole = std::get_if<std::int64_t>(&value);
    return whole ? *whole : std::int64_t{0};
}

/// A number for each scalar of the op that no other has, nor the scalar itself in this call.
std::vector<ScalarArgument> probes_for(const Op& op, const FieldValues& actual) {
    std::vector<ScalarArgument> probes;
    for (std::size_t i = 0; i < op.scalars.size(); ++i) {
        const Scalar& scalar = op.scalars[i];
        ScalarArgument probe{static_cast<std::int64_t>(10'007 + 16 * i)};
        const auto now = std::ranges::find(actual, scalar.name, &FieldValues::value_type::first);
        if (now != actual.end() && bits_of(argument_of(now->second), scalar.dtype) == bits_of(probe, scalar.dtype))
            probe = ScalarArgument{probe.integer + 8};
        probes.push_back(probe);
    }
    return probes;
}

/// Arguments that are just a scalar are those that change with it: the same sequence with other scalars shows them.
/// `deciding` scalars are part of the signature and keep their values.
void mark_scalars(Plan& plan, const Instance& instance, const Config& config, std::optional<int> blocks,
                  std::size_t scalars_given) {
    const Op& op = instance.op();
    const std::vector<bool> deciding = deciding_scalars(op);
    if (scalars_given == 0 || std::ranges::count(deciding, false) == 0) return;
    Binding binding = instance.binding();
    binding.scalars = instance.scalars();
    const std::vector<ScalarArgument> probes = probes_for(op, binding.scalars);
    for (std::size_t i = 0; i < op.scalars.size() && i < scalars_given; ++i)
        for (auto& [name, value] : binding.scalars)
            if (name == op.scalars[i].name && !deciding[i])
                value = info(op.scalars[i].dtype).floating ? Value{probes[i].real} : Value{probes[i].integer};
    const LaunchSequence probed =
        Instance::make(op, instance.problem().fields, instance.limits(), binding).launches(config, blocks);
    std::size_t at = 0;
    for (const Launch& launch : probed.launches)
        for (const Argument& argument : launch.arguments) {
            PlannedArgument& planned = plan.arguments.at(at++);
            const auto* value = std::get_if<ValueArgument>(&argument);
            if (!value || planned.kind != PlannedArgument::Kind::value) continue;
            std::uint64_t bits = 0;
            std::memcpy(&bits, value->bytes.data(), sizeof bits);
            if (bits == planned.bits) continue;
            for (std::size_t i = 0; i < op.scalars.size(); ++i)
                if (!deciding[i] && bits == bits_of(probes[i], op.scalars[i].dtype))
                    planned = {.kind = PlannedArgument::Kind::scalar,
                               .dtype = op.scalars[i].dtype,
                               .index = static_cast<std::uint16_t>(i)};
        }
}

}  // namespace

void fill_plan(Plan& plan, const Instance& instance, const Config& config, Kernels& kernels, const KernelSet& set,
               std::size_t scalars_given) {
    std::optional<int> blocks;
    if (instance.needs_blocks_per_sm(config)) {
        const LaunchSequence one = instance.launches(config, 1);
        if (!one.launches.empty()) blocks = kernels.blocks_per_sm(set, one.launches.front());
    }
    const LaunchSequence sequence = instance.launches(config, blocks);
    Planner planner{plan, instance, sequence};
    for (const Launch& launch : sequence.launches) {
        const std::uint32_t cluster = launch.cluster.x * launch.cluster.y * launch.cluster.z;
        planner.add(launch, kernels.function(set, launch.source, launch.entry, launch.shared_bytes, cluster));
    }
    for (const SymbolCopy& copy : sequence.symbols) {
        // "Once a problem" is once a call here: the caller may have changed the tensor since.
        const std::uint64_t bytes = instance.tensors().at(copy.buffer).bytes;
        plan.copies.push_back({.to = kernels.variable(set, copy.source, copy.symbol, bytes),
                               .tensor = static_cast<std::uint16_t>(copy.buffer),
                               .bytes = bytes});
    }
    mark_scalars(plan, instance, config, blocks, scalars_given);
}

namespace {

/// Storage of one launch's arguments, on the stack of the call.
struct Arguments {
    std::array<std::uint64_t, most_arguments> bits;
    std::array<void*, most_arguments> pointers;
};

std::uint64_t address_of(const PlannedArgument& argument, std::span<const TensorArgument> tensors,
                         std::uint64_t workspace) noexcept {
    return argument.kind == PlannedArgument::Kind::scratch
               ? workspace + argument.bits
               : reinterpret_cast<std::uint64_t>(tensors[argument.index].data);
}

CUresult launch_extended(const DriverCalls& calls, const PlannedLaunch& launch, CUstream stream,
                         void** arguments) noexcept {
    std::array<CUlaunchAttribute, 2> attributes{};
    unsigned count = 0;
    if (launch.cluster != Dim3{}) {
        attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attributes[count].value.clusterDim.x = launch.cluster.x;
        attributes[count].value.clusterDim.y = launch.cluster.y;
        attributes[count++].value.clusterDim.z = launch.cluster.z;
    }
    if (launch.cooperative) {
        attributes[count].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        attributes[count++].value.cooperative = 1;
    }
    const CUlaunchConfig config{.gridDimX = launch.grid.x,
                                .gridDimY = launch.grid.y,
                                .gridDimZ = launch.grid.z,
                                .blockDimX = launch.block.x,
                                .blockDimY = launch.block.y,
                                .blockDimZ = launch.block.z,
                                .sharedMemBytes = launch.shared_bytes,
                                .hStream = stream,
                                .attrs = attributes.data(),
                                .numAttrs = count};
    return calls.cuLaunchKernelEx(&config, launch.kernel, arguments, nullptr);
}

/// Where the driver finds the arguments of one launch.
void gather(const Plan& plan, const PlannedLaunch& launch, std::span<const TensorArgument> tensors,
            std::span<const ScalarArgument> scalars, std::uint64_t workspace, std::span<CUtensorMap> maps,
            Arguments& out) noexcept {
    for (std::uint32_t i = 0; i < launch.argument_count; ++i) {
        const PlannedArgument& argument = plan.arguments[launch.first_argument + i];
        out.pointers[i] = &out.bits[i];
        switch (argument.kind) {
            case PlannedArgument::Kind::value:
                out.bits[i] = argument.bits;
                break;
            case PlannedArgument::Kind::tensor:
            case PlannedArgument::Kind::scratch:
                out.bits[i] = address_of(argument, tensors, workspace);
                break;
            case PlannedArgument::Kind::scalar:
                out.bits[i] = bits_of(scalars[argument.index], argument.dtype);
                break;
            case PlannedArgument::Kind::tensor_map:
                out.pointers[i] = &maps[argument.index];
                break;
        }
    }
}

/// What lies in memory before the first launch: zeros in the workspace, contents of module-scope variables.
CUresult fill_memory(const DriverCalls& calls, const Plan& plan, std::span<const TensorArgument> tensors,
                     CUstream stream, CUdeviceptr workspace) noexcept {
    for (const PlannedZeroing& zeroing : plan.zeroings)
        if (const CUresult status = calls.cuMemsetD8Async(workspace + zeroing.offset, 0, zeroing.bytes, stream);
            status != CUDA_SUCCESS)
            return status;
    for (const PlannedCopy& copy : plan.copies) {
        const auto from = reinterpret_cast<CUdeviceptr>(tensors[copy.tensor].data);
        if (const CUresult status = calls.cuMemcpyDtoDAsync(copy.to, from, copy.bytes, stream); status != CUDA_SUCCESS)
            return status;
    }
    return CUDA_SUCCESS;
}

CUresult encode_maps(const DriverCalls& calls, const Plan& plan, std::span<const TensorArgument> tensors,
                     std::uint64_t workspace, std::span<CUtensorMap> maps) noexcept {
    for (std::size_t i = 0; i < plan.tensor_maps.size(); ++i) {
        const PlannedTensorMap& planned = plan.tensor_maps[i];
        const std::uint64_t address = address_of(planned.buffer, tensors, workspace);
        if (const CUresult status = encode_tensor_map(calls, planned.map, address, maps[i]); status != CUDA_SUCCESS)
            return status;
    }
    return CUDA_SUCCESS;
}

}  // namespace

CUresult launch_plan(const DriverCalls& calls, const Plan& plan, std::span<const TensorArgument> tensors,
                     std::span<const ScalarArgument> scalars, CUstream stream, const Workspace* memory,
                     bool& begun) noexcept {
    begun = false;
    std::unique_lock<std::mutex> turn;
    if (memory && !(turn = std::unique_lock{memory->turn, std::try_to_lock})) {
        if (memory->process != ::getpid()) return CUDA_ERROR_NOT_INITIALIZED;
        turn.lock();
    }
    const CUdeviceptr workspace = memory ? memory->address : 0;
    if (const CUresult status = fill_memory(calls, plan, tensors, stream, workspace); status != CUDA_SUCCESS)
        return status;
    alignas(64) std::array<CUtensorMap, most_tensor_maps> maps;
    if (const CUresult status = encode_maps(calls, plan, tensors, workspace, maps); status != CUDA_SUCCESS)
        return status;
    Arguments out;
    for (const PlannedLaunch& launch : plan.launches) {
        gather(plan, launch, tensors, scalars, workspace, maps, out);
        const bool extended = launch.cooperative || launch.cluster != Dim3{};
        for (std::uint32_t repeat = 0; repeat < launch.repeat; ++repeat) {
            const CUresult status =
                extended ? launch_extended(calls, launch, stream, out.pointers.data())
                         : calls.cuLaunchKernel(launch.kernel, launch.grid.x, launch.grid.y, launch.grid.z,
                                                launch.block.x, launch.block.y, launch.block.z, launch.shared_bytes,
                                                stream, out.pointers.data(), nullptr);
            if (status != CUDA_SUCCESS) return status;
            begun = true;
        }
    }
    return CUDA_SUCCESS;
}

}  // namespace autotune

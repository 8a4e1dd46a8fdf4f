#include "device/emulator/emulated_device.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "autotune/error.h"
#include "device/compare.h"
#include "device/emulator/scheduler.h"
#include "device/emulator/tensor_record.h"
#include "device/fill.h"
#include "device/guards.h"
#include "device/occupancy.h"

namespace autotune {
namespace {

using emulator::ByteState;
using Kind = DeviceFault::Kind;

[[noreturn]] void fault(Kind kind, std::string message) {
    throw DeviceFailure{{.kind = kind, .message = std::move(message)}};
}

std::uint64_t memory_limit(const DeviceIdentity& identity, const EmulatorOptions& options) {
    if (options.memory_bytes > 0) return options.memory_bytes;
    const auto machine =
        static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    return std::min(static_cast<std::uint64_t>(identity.limits.memory_bytes), machine / 2);
}

void require_inside(Buffer buffer, std::uint64_t offset, std::uint64_t bytes) {
    if (offset > buffer.bytes || bytes > buffer.bytes - offset)
        throw Error{Error::Kind::internal,
                    fmt::format("{} bytes at {} go beyond a buffer of {}", bytes, offset, buffer.bytes)};
}

/// The parameters as the kernel finds them, and the addresses among them.
void pack(const Launch& launch, const emulator::DecodedFunction& kernel, const std::vector<Buffer>& buffers,
          emulator::LaunchState& state) {
    if (launch.arguments.size() != kernel.parameters.size())
        fault(Kind::launch_failed, fmt::format("'{}' takes {} arguments, and {} are given", launch.entry,
                                               kernel.parameters.size(), launch.arguments.size()));
    state.parameters.resize(kernel.parameter_bytes + 16);
    state.pointers.resize(launch.arguments.size());
    for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
        const emulator::Formal& formal = kernel.parameters[i];
        std::byte* const to = state.parameters.data() + formal.offset;
        if (const auto* const buffer = std::get_if<BufferArgument>(&launch.arguments[i])) {
            state.pointers[i] = buffers.at(buffer->buffer).address;
            std::memcpy(to, &state.pointers[i], std::min<std::size_t>(formal.bytes, 8));
        } else if (const auto* const value = std::get_if<ValueArgument>(&launch.arguments[i])) {
            std::memcpy(to, value->bytes.data(), std::min<std::size_t>(formal.bytes, value->bytes.size()));
        } else {
            const auto& map = std::get<TensorMapArgument>(launch.arguments[i]);
            if (formal.bytes < emulator::tensor_map_bytes)
                fault(Kind::launch_failed, fmt::format("argument {} of '{}' is a tensor map, and takes {} bytes", i,
                                                       launch.entry, formal.bytes));
            const std::string trouble =
                emulator::encode_tensor_record(map, buffers.at(map.buffer).address, {to, emulator::tensor_map_bytes});
            if (!trouble.empty())
                fault(Kind::launch_failed,
                      fmt::format("the tensor map in argument {} of '{}' is none: {}", i, launch.entry, trouble));
        }
    }
}

void check_shape(const Launch& launch, const emulator::DecodedFunction& kernel, const KernelInfo* resources,
                 const DeviceLimits& limits) {
    const std::uint64_t threads = std::uint64_t{launch.block.x} * launch.block.y * launch.block.z;
    std::uint64_t most = static_cast<std::uint64_t>(limits.max_threads);
    if (kernel.max_threads > 0) most = std::min<std::uint64_t>(most, kernel.max_threads);
    if (resources && resources->registers > 0)
        most = std::min<std::uint64_t>(
            most,
            static_cast<std::uint64_t>(limits.registers_per_sm / std::max(1, (resources->registers + 7) / 8 * 8 * 32)) *
                32);
    if (threads == 0 || threads > most || launch.block.z > 64)
        fault(Kind::does_not_fit,
              fmt::format("'{}' is launched with {} threads a block, and at most {} fit its registers and bounds",
                          launch.entry, threads, most));
    if (kernel.required_threads && threads != kernel.max_threads)
        fault(Kind::launch_failed, fmt::format("'{}' is launched with {} threads a block, and requires {}",
                                               launch.entry, threads, kernel.max_threads));
    const std::int64_t fixed = resources ? resources->static_shared_bytes : kernel.static_shared_bytes;
    if (fixed + launch.shared_bytes > limits.max_shared)
        fault(Kind::does_not_fit,
              fmt::format("'{}' needs {} bytes of shared memory a block, {} of them static, and the device has {}",
                          launch.entry, fixed + launch.shared_bytes, fixed, limits.max_shared));
    if (launch.grid.x > limits.max_grid_x || launch.grid.y > limits.max_grid_y || launch.grid.z > limits.max_grid_z)
        fault(Kind::does_not_fit, fmt::format("'{}' is launched with a grid of {}x{}x{}, beyond the device's {}x{}x{}",
                                              launch.entry, launch.grid.x, launch.grid.y, launch.grid.z,
                                              limits.max_grid_x, limits.max_grid_y, limits.max_grid_z));
}

/// The cluster of a launch: what it asks for, or what the kernel was compiled for.
Dim3 cluster_of(const Launch& launch, const emulator::DecodedFunction& kernel, const DeviceLimits& limits) {
    const Dim3 own{kernel.cluster[0], kernel.cluster[1], kernel.cluster[2]};
    if (own.x > 0 && launch.cluster != Dim3{} && launch.cluster != own)
        fault(Kind::launch_failed,
              fmt::format("'{}' is launched in clusters of {}x{}x{}, and compiled for {}x{}x{}", launch.entry,
                          launch.cluster.x, launch.cluster.y, launch.cluster.z, own.x, own.y, own.z));
    const Dim3 shape = own.x > 0 ? own : launch.cluster;
    const std::uint64_t blocks = std::uint64_t{shape.x} * shape.y * shape.z;
    if (blocks == 1) return shape;
    if (limits.cc < 90)
        fault(Kind::launch_failed,
              fmt::format("'{}' is launched in clusters, which need compute capability 9.0", launch.entry));
    constexpr std::uint64_t largest = 16;
    if (blocks == 0 || blocks > largest)
        fault(Kind::does_not_fit,
              fmt::format("'{}' is launched in clusters of {} blocks, and 1 to {} fit", launch.entry, blocks, largest));
    if (launch.grid.x % shape.x != 0 || launch.grid.y % shape.y != 0 || launch.grid.z % shape.z != 0)
        fault(Kind::launch_failed,
              fmt::format("the grid of '{}', {}x{}x{} blocks, is no multiple of its cluster of {}x{}x{}", launch.entry,
                          launch.grid.x, launch.grid.y, launch.grid.z, shape.x, shape.y, shape.z));
    return shape;
}

}  // namespace

EmulatedDevice::EmulatedDevice(DeviceIdentity identity, EmulatorOptions options)
    : identity_{std::move(identity)}, options_{std::move(options)}, memory_{memory_limit(identity_, options_)} {}
EmulatedDevice::~EmulatedDevice() = default;

Buffer EmulatedDevice::allocate(std::uint64_t bytes, std::uint64_t misalign) {
    const auto address = memory_.allocate(bytes, misalign, {});
    if (!address)
        fault(Kind::out_of_memory,
              fmt::format("the emulated device has no {} bytes left: {} are free", bytes, memory_.free_bytes()));
    const Buffer buffer{.address = *address, .bytes = bytes, .id = next_id_++};
    buffers_[buffer.id] = buffer.address;
    return buffer;
}

Buffer EmulatedDevice::reserve(std::uint64_t bytes, std::uint64_t misalign, DType dtype, const FillSpec* fill) {
    const auto address = memory_.allocate_untouched(bytes, misalign, {});
    if (!address)
        fault(Kind::out_of_memory,
              fmt::format("the emulated device has no {} bytes left: {} are free", bytes, memory_.free_bytes()));
    const Buffer buffer{.address = *address, .bytes = bytes, .id = next_id_++};
    buffers_[buffer.id] = buffer.address;
    std::unique_ptr<emulator::LazyPages>& pages = reserved_[buffer.id];
    if (!fill || bytes == 0) return buffer;
    const auto make = [dtype, spec = *fill, elements = bytes / size_of(dtype)](std::span<std::byte> out,
                                                                               std::uint64_t offset) {
        const std::uint64_t size = size_of(dtype), first = offset / size;
        const std::uint64_t last = std::min((offset + out.size() + size - 1) / size, elements);
        if (first >= last) return;
        std::vector<std::byte> whole((last - first) * size);  // an element may lie across the border
        fill_on_host(whole, dtype, first, elements, spec);
        const std::uint64_t skip = offset - first * size;
        std::memcpy(out.data(), whole.data() + skip, std::min<std::uint64_t>(out.size(), whole.size() - skip));
    };
    pages = std::make_unique<emulator::LazyPages>(memory_.bytes(*address, bytes), make);
    return buffer;
}

void EmulatedDevice::release(Buffer buffer) {
    reserved_.erase(buffer.id);
    if (buffers_.erase(buffer.id) > 0) memory_.release(buffer.address);
}

std::span<std::byte> EmulatedDevice::bytes(Buffer buffer) {
    const auto found = buffers_.find(buffer.id);
    if (found == buffers_.end()) throw Error{Error::Kind::internal, fmt::format("there is no buffer {}", buffer.id)};
    return memory_.bytes(found->second, buffer.bytes);
}

void EmulatedDevice::write(Buffer buffer, std::uint64_t offset, std::span<const std::byte> from) {
    require_inside(buffer, offset, from.size());
    if (from.empty()) return;
    std::memcpy(bytes(buffer).data() + offset, from.data(), from.size());
    memory_.mark(buffer.address + offset, from.size(), ByteState::initialised);
}

void EmulatedDevice::read(Buffer buffer, std::uint64_t offset, std::span<std::byte> to) {
    require_inside(buffer, offset, to.size());
    if (!to.empty()) std::memcpy(to.data(), bytes(buffer).data() + offset, to.size());
}

void EmulatedDevice::copy(Buffer to, Buffer from) {
    require_inside(to, 0, from.bytes);
    if (from.bytes == 0) return;
    std::memmove(bytes(to).data(), bytes(from).data(), from.bytes);
    const auto states = memory_.states(from.address, from.bytes);
    std::memmove(memory_.states(to.address, from.bytes).data(), states.data(), states.size());
}

void EmulatedDevice::set(Buffer buffer, std::uint8_t byte) {
    const auto all = bytes(buffer);
    if (all.empty()) return;
    std::memset(all.data(), byte, all.size());
    memory_.mark(buffer.address, buffer.bytes, byte == 0 ? ByteState::initialised : ByteState::uninitialised);
}

void EmulatedDevice::fill(Buffer buffer, DType dtype, std::uint64_t elements, const FillSpec& spec) {
    const std::uint64_t size = elements * size_of(dtype);
    require_inside(buffer, 0, size);
    fill_on_host(bytes(buffer).first(size), dtype, 0, elements, spec);
    memory_.mark(buffer.address, size, ByteState::initialised);
}

bool EmulatedDevice::guards_intact(Buffer buffer, std::int64_t& where) {
    bytes(buffer);
    const emulator::GlobalMemory::Allocation& one = memory_.allocation(buffer.address);
    const auto before = memory_.bytes(one.first, one.address - one.first);
    const std::uint64_t end = one.address + one.bytes;
    const auto after = memory_.bytes(end, one.last - end);
    const auto change = nearest_change(before, one.first, after, end);
    if (!change) return true;
    where = *change;
    memory_.mend(buffer.address);
    return false;
}

Comparison EmulatedDevice::compare(Buffer got, DType dtype, std::span<const std::int64_t> shape,
                                   std::span<const std::int64_t> strides, Buffer value, Buffer magnitude,
                                   const Bound& bound, std::uint8_t poison) {
    const std::uint64_t count = element_count(shape);
    if (count == 0) return {};
    require_inside(got, 0,
                   (static_cast<std::uint64_t>(element_offset(count - 1, shape, strides)) + 1) * size_of(dtype));
    const auto doubles = [&](Buffer buffer) {
        require_inside(buffer, 0, count * sizeof(double));
        const auto raw = bytes(buffer);
        return std::vector<double>{reinterpret_cast<const double*>(raw.data()),
                                   reinterpret_cast<const double*>(raw.data()) + count};
    };
    const std::vector<double> values = doubles(value),
                              magnitudes = magnitude.address ? doubles(magnitude) : std::vector<double>{};
    return compare_on_host(bytes(got), dtype, shape, strides, values, magnitudes, bound, poison);
}

bool EmulatedDevice::equal(Buffer a, Buffer b) {
    const auto left = bytes(a), right = bytes(b);
    return std::equal(left.begin(), left.end(), right.begin(), right.end());
}

Module EmulatedDevice::load(const Artefact& artefact) {
    const Module module{next_id_++};
    try {
        modules_.emplace(module.id, std::make_unique<emulator::LoadedModule>(artefact, memory_));
    } catch (const Error& error) {
        if (error.kind() != Error::Kind::usage) throw;
        fault(Kind::launch_failed, error.what());
    }
    return module;
}

void EmulatedDevice::unload(Module module) { modules_.erase(module.id); }

const emulator::LoadedModule& EmulatedDevice::module(Module module) const {
    const auto found = modules_.find(module.id);
    if (found == modules_.end()) throw Error{Error::Kind::internal, fmt::format("there is no module {}", module.id)};
    return *found->second;
}

void EmulatedDevice::prepare(const BoundSequence& bound) {
    const LaunchSequence& plan = *bound.sequence;
    const std::size_t tensors = bound.buffers.size() - plan.scratch.size();
    for (std::size_t i = 0; i < plan.scratch.size(); ++i)
        if (const Buffer buffer = bound.buffers.at(tensors + i); plan.scratch[i].zeroed) {
            if (reserved_.contains(buffer.id))
                memory_.zero(buffer.address, buffer.bytes);
            else
                set(buffer, 0);
        }
    for (const SymbolCopy& copy : plan.symbols) {
        const auto* const symbol = module(bound.module_of(copy.source)).symbol(copy.symbol);
        if (!symbol) fault(Kind::launch_failed, fmt::format("there is no variable '{}'", copy.symbol));
        const auto from = bytes(bound.buffers.at(copy.buffer));
        if (from.size() > symbol->bytes)
            fault(Kind::launch_failed, fmt::format("variable '{}' has {} bytes, and {} are copied to it", copy.symbol,
                                                   symbol->bytes, from.size()));
        std::memcpy(memory_.host(symbol->address), from.data(), from.size());
        memory_.mark(symbol->address, from.size(), ByteState::initialised);
    }
}

void EmulatedDevice::launch(const BoundSequence& bound, const Launch& launch, std::span<const std::uint64_t> blocks,
                            emulator::BlockTrace* trace) {
    const emulator::LoadedModule& code = module(bound.module_of(launch.source));
    const emulator::DecodedFunction* const kernel = code.kernel(launch.entry);
    if (!kernel) fault(Kind::launch_failed, fmt::format("there is no kernel '{}'", launch.entry));
    check_shape(launch, *kernel, code.resources(launch.entry), identity_.limits);
    if (launch.grid.x == 0 || launch.grid.y == 0 || launch.grid.z == 0) return;
    std::string printed;
    emulator::LaunchState state{.program = code.program(),
                                .kernel = *kernel,
                                .memory = memory_,
                                .grid = launch.grid,
                                .block = launch.block,
                                .cluster = cluster_of(launch, *kernel, identity_.limits),
                                .parameters = {},
                                .pointers = {},
                                .shared_bytes = kernel->static_shared_bytes + launch.shared_bytes,
                                .dynamic_shared_bytes = launch.shared_bytes,
                                .checks = options_.checks,
                                .counters = options_.counters ? &counters_ : nullptr,
                                .trace = trace,
                                .steps_left = options_.steps,
                                .grid_id = ++launches_,
                                .cc = identity_.limits.cc,
                                .sm_count = std::max(1, identity_.limits.sm_count),
                                .printed = options_.printed ? options_.printed : &printed};
    // Blocks of a cluster have a barrier of their own, and blocks that run alone meet no others.
    const std::uint64_t count = std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
    const bool clusters = std::uint64_t{state.cluster.x} * state.cluster.y * state.cluster.z > 1;
    if (options_.checks.races && !clusters && blocks.empty() && count > 1 && count < (1u << 30)) {
        block_races_.begin(count);
        state.block_races = &block_races_;
    }
    pack(launch, *kernel, bound.buffers, state);
    const auto show = [&] {
        if (!printed.empty()) std::fwrite(printed.data(), 1, printed.size(), stdout);
    };
    try {
        emulator::run_launch(state, launch.cooperative, blocks);
    } catch (const emulator::Fault& error) {
        show();
        report_ = error.report();
        fault(error.report().kind, error.report().message);
    }
    show();
}

void EmulatedDevice::run(const BoundSequence& bound) {
    prepare(bound);
    for (const Launch& one : bound.sequence->launches)
        for (std::uint32_t turn = 0; turn < one.repeat; ++turn) launch(bound, one, {});
}

emulator::Counters EmulatedDevice::take_counters() { return std::exchange(counters_, {}); }

Samples EmulatedDevice::time(std::span<const BoundSequence> rotated, std::span<const Restore> restore,
                             const TimePlan& plan) {
    if (rotated.empty()) throw Error{Error::Kind::internal, "nothing was given to time"};
    for (const Restore& one : restore)
        if (one.set == 0) copy(one.target, one.pristine);
    Samples samples;
    samples.time_us = {emulator::predicted_us(launch_works(rotated.front()), emulator::machine_of(identity_),
                                              emulator::weights_of(identity_.limits.cc))};
    samples.graph = plan.graph;
    samples.predicted = true;
    samples.clock_mhz = identity_.core_khz / 1000.0;
    samples.dropped = plan.drop_above_us > 0 && samples.time_us.front() > plan.drop_above_us;
    return samples;
}

std::int64_t EmulatedDevice::free_bytes() { return static_cast<std::int64_t>(memory_.free_bytes()); }

std::unique_ptr<EmulatedDevice> make_emulated_device(std::string_view part, EmulatorOptions options) {
    const emulator::Part* const found = emulator::part_named(part);
    if (!found)
        throw Error{Error::Kind::usage, fmt::format("there is no emulated device '{}'", part),
                    "take a capability such as sm_86, or a part such as a100"};
    return std::make_unique<EmulatedDevice>(emulator::identity_of(*found), std::move(options));
}

}  // namespace autotune

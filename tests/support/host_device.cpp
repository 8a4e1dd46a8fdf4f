#include "tests/support/host_device.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <thread>

#include "autotune/error.h"
#include "device/compare.h"
#include "device/fill.h"
#include "device/guards.h"

namespace autotune {

/// guard | buffer | guard, the buffer's start aligned to 256 bytes plus its misalignment.
struct HostDevice::Block {
    std::vector<std::byte> memory;
    std::uint64_t start = 0, bytes = 0;

    std::uint64_t base() const { return reinterpret_cast<std::uint64_t>(memory.data()); }
    std::span<std::byte> before() { return std::span{memory}.first(start - base()); }
    std::span<std::byte> contents() { return std::span{memory}.subspan(start - base(), bytes); }
    std::span<std::byte> after() { return std::span{memory}.subspan(start - base() + bytes); }
    void mend() {
        for (std::uint64_t i = 0; i < before().size(); ++i) before()[i] = guard_byte(base() + i);
        for (std::uint64_t i = 0; i < after().size(); ++i) after()[i] = guard_byte(start + bytes + i);
    }
};

namespace {

[[noreturn]] void misuse(const std::string& what) { throw Error{Error::Kind::internal, "HostDevice: " + what}; }

DeviceIdentity made_up_gpu() {
    DeviceIdentity identity;
    identity.fp = std::string(64, '5');
    identity.name = "HostDevice";
    identity.bandwidth_gbs = 1000;
    identity.core_khz = 1'000'000;
    identity.driver_version = 13000;
    identity.limits = {.cc = 90,
                       .sm_count = 16,
                       .max_shared = 232448,
                       .shared_per_sm = 233472,
                       .reserved_shared = 1024,
                       .threads_per_sm = 2048,
                       .blocks_per_sm_limit = 32,
                       .l2_bytes = 1 << 20,
                       .memory_bytes = 1 << 30};
    return identity;
}

}  // namespace

Buffer HostCall::buffer(std::size_t argument) const {
    const Argument& given = launch.arguments.at(argument);
    const auto* plain = std::get_if<BufferArgument>(&given);
    const std::uint32_t index = plain ? plain->buffer : std::get<TensorMapArgument>(given).buffer;
    return sequence.buffers.at(index);
}

HostDevice::HostDevice() : told{made_up_gpu()} {}
HostDevice::~HostDevice() = default;

void HostDevice::define(const std::string& entry, HostKernel kernel, double time_us) {
    define(entry, std::move(kernel), [time_us](const HostCall&) { return time_us; });
}

void HostDevice::define(const std::string& entry, HostKernel kernel, std::function<double(const HostCall&)> time_us) {
    entries_[entry] = {std::move(kernel), std::move(time_us)};
}

void HostDevice::fail(DeviceFault fault) {
    if (fault.sticky) lost_ = fault;
    throw DeviceFailure{std::move(fault)};
}

void HostDevice::throw_if_lost() const {
    if (lost_) throw DeviceFailure{*lost_};
}

HostDevice::Block& HostDevice::block(Buffer buffer) {
    throw_if_lost();
    const auto found = blocks_.find(buffer.id);
    if (found == blocks_.end()) misuse("there is no buffer " + std::to_string(buffer.id));
    return *found->second;
}

std::span<std::byte> HostDevice::bytes(Buffer buffer) { return block(buffer).contents(); }

Buffer HostDevice::allocate(std::uint64_t bytes, std::uint64_t misalign) {
    throw_if_lost();
    if (bytes > static_cast<std::uint64_t>(free_bytes()))
        fail({.kind = DeviceFault::Kind::out_of_memory,
              .code = 2,
              .message = "CUDA_ERROR_OUT_OF_MEMORY while allocating " + std::to_string(bytes) + " bytes"});
    auto made = std::make_unique<Block>();
    constexpr std::uint64_t alignment = 256;
    made->memory.resize(bytes + misalign + 2 * guard_bytes + alignment);
    const std::uint64_t first = made->base() + guard_bytes;
    made->start = (first + alignment - 1) / alignment * alignment + misalign;
    made->bytes = bytes;
    made->mend();
    used_ += static_cast<std::int64_t>(bytes);
    const Buffer buffer{.address = made->start, .bytes = bytes, .id = next_id_++};
    blocks_.emplace(buffer.id, std::move(made));
    return buffer;
}

void HostDevice::release(Buffer buffer) {
    if (blocks_.erase(buffer.id) == 0) misuse("a buffer was released twice");
    used_ -= static_cast<std::int64_t>(buffer.bytes);
}

std::int64_t HostDevice::free_bytes() { return memory - used_; }

void HostDevice::write(Buffer buffer, std::uint64_t offset, std::span<const std::byte> from) {
    const auto to = bytes(buffer);
    if (offset > to.size() || from.size() > to.size() - offset) misuse("a write goes beyond its buffer");
    std::copy(from.begin(), from.end(), to.begin() + static_cast<std::ptrdiff_t>(offset));
}

void HostDevice::read(Buffer buffer, std::uint64_t offset, std::span<std::byte> to) {
    const auto from = bytes(buffer);
    if (offset > from.size() || to.size() > from.size() - offset) misuse("a read goes beyond its buffer");
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(offset), to.size(), to.begin());
}

void HostDevice::copy(Buffer to, Buffer from) {
    if (to.bytes != from.bytes) misuse("a copy between buffers of two sizes");
    const auto source = bytes(from);
    std::copy(source.begin(), source.end(), bytes(to).begin());
}

void HostDevice::set(Buffer buffer, std::uint8_t byte) {
    const auto to = bytes(buffer);
    std::fill(to.begin(), to.end(), std::byte{byte});
}

void HostDevice::fill(Buffer buffer, DType dtype, std::uint64_t elements, const FillSpec& spec) {
    const auto to = bytes(buffer);
    if (elements * size_of(dtype) > to.size()) misuse("a fill goes beyond its buffer");
    fill_on_host(to.first(elements * size_of(dtype)), dtype, 0, elements, spec);
}

bool HostDevice::guards_intact(Buffer buffer, std::int64_t& where) {
    Block& held = block(buffer);
    const auto change = nearest_change(held.before(), held.base(), held.after(), held.start + held.bytes);
    if (!change) return true;
    where = *change;
    held.mend();
    return false;
}

Comparison HostDevice::compare(Buffer got, DType dtype, std::span<const std::int64_t> shape,
                               std::span<const std::int64_t> strides, Buffer value, Buffer magnitude,
                               const Bound& bound, std::uint8_t poison) {
    const auto doubles = [&](Buffer buffer) {
        const auto raw = bytes(buffer);
        return std::span{reinterpret_cast<const double*>(raw.data()), raw.size() / sizeof(double)};
    };
    const std::uint64_t count = element_count(shape);
    if (count > 0 &&
        (static_cast<std::uint64_t>(element_offset(count - 1, shape, strides)) + 1) * size_of(dtype) > got.bytes)
        misuse("a comparison goes beyond its buffer");
    if (doubles(value).size() < count || doubles(magnitude).size() < count) misuse("a reference is too small");
    return compare_on_host(bytes(got), dtype, shape, strides, doubles(value), doubles(magnitude), bound, poison);
}

bool HostDevice::equal(Buffer a, Buffer b) {
    const auto left = bytes(a), right = bytes(b);
    return std::equal(left.begin(), left.end(), right.begin(), right.end());
}

Module HostDevice::load(const Artefact& artefact) {
    throw_if_lost();
    const Module module{next_id_++};
    modules_.emplace(module.id, artefact);
    return module;
}

void HostDevice::unload(Module module) {
    if (modules_.erase(module.id) == 0) misuse("a module was unloaded twice");
}

double HostDevice::run_timed(const BoundSequence& sequence) {
    throw_if_lost();
    const LaunchSequence& plan = *sequence.sequence;
    const std::size_t tensors = sequence.buffers.size() - plan.scratch.size();
    for (std::size_t i = 0; i < plan.scratch.size(); ++i)
        if (plan.scratch[i].zeroed) set(sequence.buffers[tensors + i], 0);
    for (const SymbolCopy& copied : plan.symbols) {
        const auto from = bytes(sequence.buffers.at(copied.buffer));
        symbols_[copied.symbol].assign(from.begin(), from.end());
    }
    double time_us = 0;
    for (const Launch& launch : plan.launches)
        for (std::uint32_t turn = 0; turn < launch.repeat; ++turn) {
            const auto entry = entries_.find(launch.entry);
            const auto module = modules_.find(sequence.module_of(launch.source).id);
            if (entry == entries_.end() || module == modules_.end())
                fail({.kind = DeviceFault::Kind::launch_failed,
                      .code = 500,
                      .message = "CUDA_ERROR_NOT_FOUND while looking for '" + launch.entry + "'"});
            const HostCall call{*this, launch, sequence, module->second};
            ++launches;
            entry->second.kernel(call);
            time_us += entry->second.time_us(call);
        }
    return time_us;
}

void HostDevice::run(const BoundSequence& sequence) { run_timed(sequence); }

Samples HostDevice::time(std::span<const BoundSequence> rotated, std::span<const Restore> restore,
                         const TimePlan& plan) {
    Samples result;
    result.graph = plan.graph;
    result.clock_mhz = told.core_khz / 1000.0;
    const auto replay = [&] {
        for (const Restore& one : restore) copy(one.target, one.pristine);
        double sum = 0;
        for (const BoundSequence& set : rotated) sum += run_timed(set);
        return sum / static_cast<double>(rotated.size());
    };
    for (int i = 0; i < plan.warmup; ++i) replay();
    for (int i = 0; i < plan.samples; ++i) {
        result.time_us.push_back(replay());
        if (plan.drop_above_us > 0 && result.time_us.back() > plan.drop_above_us) {
            result.dropped = true;
            break;
        }
    }
    return result;
}

HostKernel hanging(double seconds) {
    return [seconds](const HostCall&) { std::this_thread::sleep_for(std::chrono::duration<double>{seconds}); };
}

HostKernel faulting() {
    return [](const HostCall& call) {
        call.device.fail({.kind = DeviceFault::Kind::invalid_access,
                          .code = 700,
                          .message = "CUDA_ERROR_ILLEGAL_ADDRESS while running '" + call.launch.entry + "'",
                          .sticky = true});
    };
}

HostKernel dying() {
    return [](const HostCall&) { std::_Exit(9); };
}

HostKernel not_fitting() {
    return [](const HostCall& call) {
        call.device.fail({.kind = DeviceFault::Kind::does_not_fit,
                          .code = 701,
                          .message = "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES while launching '" + call.launch.entry + "'"});
    };
}

HostKernel writing_outside(HostKernel kernel, std::size_t argument, std::int64_t distance) {
    return [kernel = std::move(kernel), argument, distance](const HostCall& call) {
        if (kernel) kernel(call);
        const Buffer buffer = call.buffer(argument);
        const auto base = static_cast<std::int64_t>(distance < 0 ? buffer.address : buffer.address + buffer.bytes);
        *reinterpret_cast<unsigned char*>(base + distance) ^= 0x55;
    };
}

HostKernel writing_nothing() {
    return [](const HostCall&) {};
}

HostKernel writing_nan(HostKernel kernel, std::size_t argument, std::size_t index) {
    return [kernel = std::move(kernel), argument, index](const HostCall& call) {
        if (kernel) kernel(call);
        call.pointer<float>(argument)[index] = std::numeric_limits<float>::quiet_NaN();
    };
}

}  // namespace autotune

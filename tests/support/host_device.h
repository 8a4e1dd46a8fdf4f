#ifndef AUTOTUNE_TESTS_SUPPORT_HOST_DEVICE_H
#define AUTOTUNE_TESTS_SUPPORT_HOST_DEVICE_H

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"

namespace autotune {

class HostDevice;

/// One launch as a host kernel sees it.
struct HostCall {
    HostDevice& device;
    const Launch& launch;
    const BoundSequence& sequence;
    const Artefact& artefact;  ///< of the module that holds the entry

    /// The memory behind argument i, a buffer.
    template <class T>
    T* pointer(std::size_t argument) const {
        return reinterpret_cast<T*>(buffer(argument).address);
    }
    /// Argument i, passed by value.
    template <class T>
    T value(std::size_t argument) const {
        T result;
        std::memcpy(&result, std::get<ValueArgument>(launch.arguments.at(argument)).bytes.data(), sizeof result);
        return result;
    }
    Buffer buffer(std::size_t argument) const;
};

using HostKernel = std::function<void(const HostCall&)>;

/// A Device whose memory is the host's and whose kernels are C++ functions: what checks, timing and workers are tested
/// with where there is no GPU. Guards, fills and comparisons behave as on a real device; times are as told.
class HostDevice : public Device {
public:
    HostDevice();
    ~HostDevice() override;

    /// What runs for launches of `entry`, and the time that a launch is said to take.
    void define(const std::string& entry, HostKernel kernel, double time_us = 10);
    /// As above, with a time that depends on the launch.
    void define(const std::string& entry, HostKernel kernel, std::function<double(const HostCall&)> time_us);

    DeviceIdentity told;            ///< what identity() answers; some made-up GPU of capability 9.0 at first
    std::int64_t memory = 1 << 30;  ///< bytes in all: allocations beyond it are out_of_memory
    double bandwidth_gbs = 1000;
    int launches = 0;  ///< kernels run so far
    int live_buffers() const noexcept { return static_cast<int>(blocks_.size()); }
    int live_modules() const noexcept { return static_cast<int>(modules_.size()); }

    const DeviceIdentity& identity() const override { return told; }
    Buffer allocate(std::uint64_t bytes, std::uint64_t misalign) override;
    void release(Buffer buffer) override;
    void write(Buffer buffer, std::uint64_t offset, std::span<const std::byte> bytes) override;
    void read(Buffer buffer, std::uint64_t offset, std::span<std::byte> bytes) override;
    void copy(Buffer to, Buffer from) override;
    void set(Buffer buffer, std::uint8_t byte) override;
    void fill(Buffer buffer, DType dtype, std::uint64_t elements, const FillSpec& spec) override;
    bool guards_intact(Buffer buffer, std::int64_t& where) override;
    Comparison compare(Buffer got, DType dtype, std::span<const std::int64_t> shape,
                       std::span<const std::int64_t> strides, Buffer value, Buffer magnitude, const Bound& bound,
                       std::uint8_t poison) override;
    bool equal(Buffer a, Buffer b) override;
    Module load(const Artefact& artefact) override;
    void unload(Module module) override;
    void run(const BoundSequence& sequence) override;
    double run_timed(const BoundSequence& sequence) override;
    Samples time(std::span<const BoundSequence> rotated, std::span<const Restore> restore,
                 const TimePlan& plan) override;
    double copy_bandwidth_gbs() override { return bandwidth_gbs; }
    std::int64_t free_bytes() override;

    /// The symbol's bytes, as the last symbol copy left them; empty before one.
    const std::vector<std::byte>& symbol(const std::string& name) { return symbols_[name]; }

    /// Throws a fault as a device would; after a sticky one every call throws it again.
    [[noreturn]] void fail(DeviceFault fault);

private:
    struct Block;
    struct Entry {
        HostKernel kernel;
        std::function<double(const HostCall&)> time_us;
    };

    Block& block(Buffer buffer);
    std::span<std::byte> bytes(Buffer buffer);
    void throw_if_lost() const;

    std::map<std::uint32_t, std::unique_ptr<Block>> blocks_;
    std::map<std::uint32_t, Artefact> modules_;
    std::map<std::string, Entry> entries_;
    std::map<std::string, std::vector<std::byte>> symbols_;
    std::optional<DeviceFault> lost_;
    std::uint32_t next_id_ = 1;
    std::int64_t used_ = 0;
};

// ---- Faults to register as kernels.

/// Sleeps, and does nothing: what a hang looks like to a watchdog.
HostKernel hanging(double seconds);
/// CUDA_ERROR_ILLEGAL_ADDRESS: sticky.
HostKernel faulting();
/// Ends the process at once, as a crash of the driver would.
HostKernel dying();
/// CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: the device lives on.
HostKernel not_fitting();
/// Does as told, then writes one byte `distance` bytes behind the end of the buffer of an argument (negative: before
/// its start, -1 the last one).
HostKernel writing_outside(HostKernel kernel, std::size_t argument, std::int64_t distance);
/// Leaves its outputs as they are.
HostKernel writing_nothing();
/// Does as told, then makes element `index` of a float buffer NaN.
HostKernel writing_nan(HostKernel kernel, std::size_t argument, std::size_t index);

}  // namespace autotune
#endif

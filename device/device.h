#ifndef AUTOTUNE_DEVICE_DEVICE_H
#define AUTOTUNE_DEVICE_DEVICE_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autotune/dtype.h"
#include "device/launch.h"

namespace autotune {

/// What one kernel of a cubin needs; read from the ELF file (device/cubin.h) and the compile log.
struct KernelInfo {
    std::string name;   ///< as the source spells it
    std::string symbol; ///< as the cubin spells it (mangled for a C++ template)
    int registers = 0;  ///< a thread
    int static_shared_bytes = 0;
    int stack_bytes = 0;
    int spill_bytes = 0;  ///< stores and loads
    int barriers = 0;
    int max_threads = 0;  ///< its launch bound; 0: none given
    friend bool operator==(const KernelInfo&, const KernelInfo&) = default;
};

/// What one compile gave: the very bytes that are timed, checked and shipped.
struct Artefact {
    std::string arch;  ///< "sm_90", "sm_90a"
    std::vector<std::byte> cubin;
    std::string ptx;
    std::string log;
    std::vector<KernelInfo> kernels;
};

/// Limits of a device that decide whether a launch fits. The names in brackets are those of op files.
struct DeviceLimits {
    int cc = 0;                 ///< capability, 90 for 9.0 [cc]
    int sm_count = 0;           ///< [sm_count]
    int warp = 32;              ///< [warp]
    int max_threads = 1024;     ///< a block [max_threads]
    int max_shared = 49152;     ///< bytes a block with opt-in [max_shared]
    int shared_per_sm = 0;      ///< bytes [shared_per_sm]
    int reserved_shared = 0;    ///< bytes a block that the driver keeps
    int registers_per_sm = 65536;  ///< [registers_per_sm]
    int threads_per_sm = 0;     ///< [threads_per_sm]
    int blocks_per_sm_limit = 0;
    std::int64_t l2_bytes = 0;      ///< [l2]
    std::int64_t memory_bytes = 0;  ///< [memory]
    std::uint32_t max_grid_x = 2147483647, max_grid_y = 65535, max_grid_z = 65535;
    friend bool operator==(const DeviceLimits&, const DeviceLimits&) = default;
};

/// Which silicon this is (`fp`, the same inside and outside a container) and what is said about it but is no part of that.
struct DeviceIdentity {
    std::string fp;    ///< SHA-256, 64 hex digits, over what decides a kernel's speed: see device/identity.h
    std::string name;  ///< "NVIDIA H200": a label, never compared
    std::string vendor = "nvidia";
    int bandwidth_gbs = 0;  ///< rounded to 10
    int core_khz = 0, memory_khz = 0;
    bool ecc = false;
    std::string mig;     ///< profile, or empty
    std::string pci_id;  ///< "0000:65:00.0"
    std::string uuid;    ///< 32 hex digits: raw UUIDs may hold zero bytes
    int driver_version = 0;  ///< CUDA version of the driver, 13000 for 13.0
    std::string driver;      ///< "580.159.04", empty where it is not told
    DeviceLimits limits;
    bool emulated = false;
};

/// A launch that failed on the device. `sticky`: the context is lost and the process with it.
struct DeviceFault {
    /// Those from out_of_bounds on only an emulated device tells.
    enum class Kind {
        launch_failed, out_of_memory, does_not_fit, invalid_access, crashed,
        out_of_bounds, race, barrier_misuse, deadlock, not_emulated
    };
    Kind kind = Kind::crashed;
    int code = 0;         ///< CUresult; 0 where there is none
    std::string message;  ///< "CUDA_ERROR_ILLEGAL_ADDRESS while running 'softmax_rows'"
    bool sticky = false;
};

/// Thrown by the device calls below.
class DeviceFailure : public std::exception {
public:
    explicit DeviceFailure(DeviceFault fault) : fault_{std::move(fault)} {}
    const char* what() const noexcept override { return fault_.message.c_str(); }
    const DeviceFault& fault() const noexcept { return fault_; }

private:
    DeviceFault fault_;
};

/// A counter-based generator gives the same element from (seed, tensor, index) on CPU and GPU: see device/fill.h.
struct FillSpec {
    enum class Kind { normal, uniform, constant, integers, permutation, sorted, lengths, special, zero };
    Kind kind = Kind::normal;
    std::uint64_t seed = 0, stream = 0;  ///< stream: the tensor's index
    double low = -1.0, high = 1.0;       ///< uniform and integers: bounds, inclusive; constant: low
    std::uint64_t modulus = 0;           ///< permutation: of how many; rows restart when the tensor is larger
    friend bool operator==(const FillSpec&, const FillSpec&) = default;
};

/// How an output is judged, element by element: |got - value| <= u*|value| + acc*magnitude + rel*|value| + abs.
struct Bound {
    double of_value = 0;      ///< u_out plus rel
    double of_magnitude = 0;  ///< accumulation and intermediate roundings
    double absolute = 0;      ///< smallest subnormal of the output, plus abs
    friend bool operator==(const Bound&, const Bound&) = default;
};

/// The first bad element and the count of all: what a report needs.
struct Comparison {
    std::uint64_t elements = 0, bad = 0;
    std::uint64_t still_poison = 0;  ///< bad elements that hold the poison: never written
    std::uint64_t not_finite = 0;    ///< bad elements that are NaN or inf where the reference is finite
    std::uint64_t first_bad = 0;     ///< row-major index
    double got = 0, want = 0, bound = 0;
    double largest_ratio = 0;  ///< largest error over its bound among the good elements and the bad
};

/// A device address range with guard zones on both sides. A handle: released by its device.
struct Buffer {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint32_t id = 0;
};

/// A loaded artefact.
struct Module {
    std::uint32_t id = 0;
};

/// How long to time one sequence, and when to give it up as hopeless.
struct TimePlan {
    int warmup = 1;
    int samples = 5;              ///< each of one replay
    double at_least_us = 0;       ///< device time of one sample, reached by putting more sequences in it
    double drop_above_us = 0;     ///< stop after the first sample that is slower than this; 0: never
    double timeout_us = 0;
    double about_us = 0;          ///< what one sequence takes, where that is known: it is not measured first
    bool graph = true;            ///< replay of a graph; else launches between events
};

struct Samples {
    std::vector<double> time_us;  ///< of one sequence
    bool dropped = false;         ///< stopped by drop_above_us: the samples are a lower bound
    bool graph = false;           ///< how it was timed
    bool predicted = false;       ///< modelled by an emulator
    double clock_mhz = 0;         ///< SM clock seen, 0 where unknown
};

/// A sequence bound to memory: `buffers[i]` stands for buffer i of the sequence.
struct BoundSequence {
    const LaunchSequence* sequence = nullptr;
    Module module;
    std::vector<Buffer> buffers;
    /// Modules of further sources, by the name that a launch or symbol gives as its `source`; all others are in `module`.
    std::vector<std::pair<std::string, Module>> others = {};

    Module module_of(std::string_view source) const noexcept {
        for (const auto& [name, other] : others)
            if (name == source) return other;
        return module;
    }
};

/// A GPU, or its emulation, as the run worker uses it. One thread calls it. Every call may throw DeviceFailure.
class Device {
public:
    virtual ~Device() = default;
    virtual const DeviceIdentity& identity() const = 0;

    /// A buffer with guard zones of at least 4 KiB on both sides, its end flush against the guard;
    /// `misalign` bytes are added to a 256-byte aligned start.
    virtual Buffer allocate(std::uint64_t bytes, std::uint64_t misalign = 0) = 0;
    /// A buffer for time() alone, whose contents no check looks at: an emulated device fills it where it is first touched.
    /// spec: null for zeros.
    virtual Buffer reserve(std::uint64_t bytes, std::uint64_t misalign, DType dtype, const FillSpec* spec) {
        const Buffer buffer = allocate(bytes, misalign);
        if (spec) fill(buffer, dtype, bytes / size_of(dtype), *spec);
        return buffer;
    }
    virtual void release(Buffer buffer) = 0;
    virtual void write(Buffer buffer, std::uint64_t offset, std::span<const std::byte> bytes) = 0;
    virtual void read(Buffer buffer, std::uint64_t offset, std::span<std::byte> bytes) = 0;
    virtual void copy(Buffer to, Buffer from) = 0;
    virtual void set(Buffer buffer, std::uint8_t byte) = 0;  ///< poison, or zero
    virtual void fill(Buffer buffer, DType dtype, std::uint64_t elements, const FillSpec& spec) = 0;
    /// Whether every guard byte around the buffer is as it was left; if not, the guards are mended and
    /// `where` says how far outside the nearest change lies (negative: before the start).
    virtual bool guards_intact(Buffer buffer, std::int64_t& where) = 0;
    /// Compares `elements` of `got` with the doubles of `value` and `magnitude`, both contiguous and row-major.
    /// NaN matches NaN only, an infinity itself only. shape, strides: of `got`, in elements.
    virtual Comparison compare(Buffer got, DType dtype, std::span<const std::int64_t> shape,
                               std::span<const std::int64_t> strides, Buffer value, Buffer magnitude, const Bound& bound,
                               std::uint8_t poison) = 0;
    /// Whether two buffers hold the same bytes.
    virtual bool equal(Buffer a, Buffer b) = 0;

    virtual Module load(const Artefact& artefact) = 0;
    virtual void unload(Module module) = 0;
    /// Runs a whole sequence once and waits for it, incl. its zeroing and symbol copies.
    virtual void run(const BoundSequence& sequence) = 0;
    /// As run(). Returns the device's own time of it in us, a first launch's cost included; 0 where it has no clock.
    virtual double run_timed(const BoundSequence& sequence) {
        run(sequence);
        return 0;
    }
    /// Times a sequence over `rotated`: the same sequence bound to R sets of buffers, used in turn.
    /// restore: buffers of each set that the sequence updates in place, with their pristine copies: restored
    /// between replays, untimed.
    struct Restore {
        std::size_t set;
        Buffer target, pristine;
    };
    virtual Samples time(std::span<const BoundSequence> rotated, std::span<const Restore> restore, const TimePlan& plan) = 0;
    /// What a large copy reaches here, GB/s counting bytes read and written; measured once.
    virtual double copy_bandwidth_gbs() = 0;
    virtual std::int64_t free_bytes() = 0;
};

}  // namespace autotune
#endif

#ifndef AUTOTUNE_DEVICE_EMULATOR_EMULATED_DEVICE_H
#define AUTOTUNE_DEVICE_EMULATOR_EMULATED_DEVICE_H

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/emulator/block.h"
#include "device/emulator/block_races.h"
#include "device/emulator/cost_model.h"
#include "device/emulator/counters.h"
#include "device/emulator/fault.h"
#include "device/emulator/lazy_pages.h"
#include "device/emulator/loaded_module.h"
#include "device/emulator/memory.h"
#include "device/emulator/parts.h"

namespace autotune {

struct EmulatorOptions {
    emulator::Checks checks = {};
    bool counters = false;
    std::uint64_t steps = std::uint64_t{1} << 33;  ///< warp instructions that one launch may take
    std::uint64_t memory_bytes = 0;  ///< that allocations may take together; 0: half of the machine's, or the part's
    std::string* printed = nullptr;  ///< what kernels print goes here; null: to standard output
};

/// A GPU that is not there: interprets the very PTX that NVRTC made, and checks each access while it does. What a
/// kernel does wrong is thrown as a DeviceFailure that is never sticky, with a message that names the line, the block,
/// the thread and the buffer; memory is as the kernel left it. A buffer that was set to anything but zero counts as
/// uninitialised: that is what poison is for. Results and addresses are the same in every run.
class EmulatedDevice : public Device, public emulator::Counting {
public:
    explicit EmulatedDevice(DeviceIdentity identity, EmulatorOptions options = {});
    ~EmulatedDevice() override;

    const DeviceIdentity& identity() const override { return identity_; }
    Buffer allocate(std::uint64_t bytes, std::uint64_t misalign = 0) override;
    Buffer reserve(std::uint64_t bytes, std::uint64_t misalign, DType dtype, const FillSpec* fill) override;
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
    /// Takes the PTX, and what the cubin says of registers and shared memory.
    Module load(const Artefact& artefact) override;
    void unload(Module module) override;
    void run(const BoundSequence& sequence) override;
    /// One sample, `predicted`, by the cost model, of the first set; what its launches write is not whole afterwards.
    Samples time(std::span<const BoundSequence> rotated, std::span<const Restore> restore,
                 const TimePlan& plan) override;
    double copy_bandwidth_gbs() override { return identity_.bandwidth_gbs * 0.9; }
    std::int64_t free_bytes() override;

    // ---- What no GPU has.

    EmulatorOptions& options() noexcept { return options_; }
    /// Of all launches since they were last taken; zeros unless options().counters.
    emulator::Counters take_counters();
    /// Of the last launch that failed.
    const std::optional<emulator::Report>& report() const noexcept { return report_; }
    /// What the cost model looks at, of each launch of a sequence: from 3 to 12 blocks of its grid, the more the
    /// shorter they are, and the last one, each with its cluster. Unchecked, since a block alone finds memory as others
    /// have not left it; all blocks of a sequence whose blocks wait for each other. Scratch is zeroed first, as for
    /// run(); what the blocks write stays.
    std::vector<emulator::LaunchWork> launch_works(const BoundSequence& sequence);
    /// What those blocks did, by launch, and so what the last time was modelled on.
    const std::vector<emulator::CountedLaunch>& counted() const noexcept override { return counted_; }

private:
    std::span<std::byte> bytes(Buffer buffer);
    void prepare(const BoundSequence& sequence);
    void launch(const BoundSequence& sequence, const Launch& launch, std::span<const std::uint64_t> blocks,
                emulator::BlockTrace* trace = nullptr);
    std::vector<emulator::LaunchWork> launch_works(const BoundSequence& sequence, bool whole);
    emulator::LaunchWork launch_work(const BoundSequence& sequence, const Launch& launch,
                                     const emulator::Machine& machine, bool whole);
    double dram_bytes(std::span<const std::uint64_t> sectors, double blocks) const;
    const emulator::LoadedModule& module(Module module) const;

    DeviceIdentity identity_;
    EmulatorOptions options_;
    emulator::GlobalMemory memory_;
    std::map<std::uint32_t, std::uint64_t> buffers_;                          ///< addresses
    std::map<std::uint32_t, std::unique_ptr<emulator::LazyPages>> reserved_;  ///< null: zeros
    std::map<std::uint32_t, std::unique_ptr<emulator::LoadedModule>> modules_;
    std::uint32_t next_id_ = 1;
    std::uint64_t launches_ = 0;
    emulator::Counters counters_;
    std::vector<emulator::CountedLaunch> counted_;
    emulator::BlockRaces block_races_;
    std::optional<emulator::Report> report_;
};

/// "a100", "sm_86". throws  Error{usage} for what the table of parts lacks
std::unique_ptr<EmulatedDevice> make_emulated_device(std::string_view part, EmulatorOptions options = {});

}  // namespace autotune
#endif

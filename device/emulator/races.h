#ifndef AUTOTUNE_DEVICE_EMULATOR_RACES_H
#define AUTOTUNE_DEVICE_EMULATOR_RACES_H

#include <cstdint>
#include <span>
#include <vector>

#include "device/emulator/warp.h"

namespace autotune::emulator {

/// Conflicting accesses to shared memory that no barrier orders. One vector clock a warp: what it knows of the others'
/// past; by word of four bytes the last writer and the readers since. Barriers join the clocks of those who meet there.
/// Inside a warp, any collective orders lanes.
class SharedRaces {
public:
    /// partial: some barriers do not take the whole block, so that the times of all readers are kept.
    void begin(std::uint32_t warps, std::uint32_t shared_bytes, bool partial);

    /// One warp's access: lane i touches [at[i], at[i] + bytes) for the lanes of `mask`. Throws a Fault on a conflict.
    void read(Warp& warp, const Op& op, std::uint32_t mask, const std::uint32_t* at, std::uint32_t bytes);
    void write(Warp& warp, const Op& op, std::uint32_t mask, const std::uint32_t* at, std::uint32_t bytes);
    /// An atomic access conflicts with plain ones only.
    void update(Warp& warp, const Op& op, std::uint32_t mask, const std::uint32_t* at, std::uint32_t bytes);

    /// A warp arrives at a barrier: what it did so far is before what follows there.
    void arrive(std::uint32_t warp, std::vector<std::uint32_t>& gathered);
    /// A warp leaves it with what all arrivals knew.
    void leave(std::uint32_t warp, std::span<const std::uint32_t> gathered);

    // What the hot handlers of whole rows look at; by word.
    struct Words {
        std::uint32_t* write_time;
        std::uint32_t* writer;
        std::uint32_t* write_op;
        std::uint32_t* read_time;
        std::uint32_t* readers;
        std::uint32_t* read_op;
    };
    const Words& words() const noexcept { return words_; }
    std::uint32_t time() const noexcept { return time_; }
    /// Accesses up to that time are before all that the warp does now.
    std::uint32_t known_since(std::uint32_t warp) const noexcept { return known_since_[warp]; }
    bool partial() const noexcept { return partial_; }
    /// Who writes now, in one number.
    static std::uint32_t writer_of(const Warp& warp, int lane) noexcept {
        return (warp.index << 26) | static_cast<std::uint32_t>(lane) << 21 | (warp.sync_count & 0xffff) << 5;
    }

private:
    void check_writer(Warp& warp, const Op& op, int lane, std::uint32_t word, bool atomic, const char* doing);
    void check_readers(Warp& warp, const Op& op, int lane, std::uint32_t word, const char* doing);
    void note_read(const Warp& warp, const Op& op, std::uint32_t word);
    [[noreturn]] void conflict(Warp& warp, const Op& op, int lane, std::uint32_t word, const char* doing,
                               const char* other, std::uint32_t other_op, std::uint32_t other_warp);
    std::uint32_t clock(std::uint32_t warp, std::uint32_t of) const noexcept { return clocks_[warp * warps_ + of]; }
    void refresh(std::uint32_t warp) noexcept;

    std::uint32_t warps_ = 0, time_ = 0;
    bool partial_ = false;
    std::vector<std::uint32_t> clocks_, known_since_;
    std::vector<std::uint32_t> storage_, reader_times_;
    std::uint32_t words_count_ = 0;
    Words words_{};
};

}  // namespace autotune::emulator
#endif

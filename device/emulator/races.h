#ifndef AUTOTUNE_DEVICE_EMULATOR_RACES_H
#define AUTOTUNE_DEVICE_EMULATOR_RACES_H

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "device/emulator/warp.h"

namespace autotune::emulator {

/// Conflicting accesses to shared memory that no barrier orders. One vector clock a warp: what it knows of the others'
/// past; by word of four bytes the last writer and the readers since, and of a warp's own stores the lane of each byte. Barriers join the clocks of those who meet there.
/// Inside a warp, any collective orders lanes.
class SharedRaces {
public:
    /// partial: some barriers do not take the whole block, so that the times of all readers are kept.
    void begin(std::uint32_t warps, std::uint32_t shared_bytes, bool partial);

    /// One warp's access: lane i touches [at[i], at[i] + bytes) for the lanes of `mask`. Throws a Fault on a conflict.
    void read(Warp& warp, const Op& op, std::uint32_t mask, const std::uint32_t* at, std::uint32_t bytes);
    void write(Warp& warp, const Op& op, std::uint32_t mask, const std::uint32_t* at, std::uint32_t bytes);
    /// A read by what runs beside the warp, of whole words: conflicts as others do, and needs a proxy fence behind
    /// stores.
    void read_async(Warp& warp, const Op& op, int lane, std::uint32_t from, std::uint32_t bytes);
    /// fence.proxy.async: what the warp wrote so far is there for such reads.
    void fence(std::uint32_t warp) noexcept { fences_[warp] = time_++; }
    /// The time of what was just done; what follows comes later.
    std::uint32_t stamp() noexcept { return time_++; }
    bool knows(std::uint32_t warp, std::uint32_t of, std::uint32_t time) const noexcept {
        return warp == of || time <= clock(warp, of);
    }
    /// What was done by one warp up to a time is known to another.
    void learn(std::uint32_t warp, std::uint32_t of, std::uint32_t time) noexcept {
        std::uint32_t& known = clocks_[warp * warps_ + of];
        known = known > time ? known : time;
        refresh(warp);
    }
    /// The bytes of an asynchronous copy have landed: from now on they are as written now.
    void land(Warp& warp, const Op& op, std::uint32_t mask, const std::uint32_t* at, std::uint32_t bytes);
    /// An atomic access conflicts with plain ones only.
    void update(Warp& warp, const Op& op, std::uint32_t mask, const std::uint32_t* at, std::uint32_t bytes);

    /// A warp arrives at a barrier: what it did so far is before what follows there.
    void arrive(std::uint32_t warp, std::vector<std::uint32_t>& gathered);
    /// The same where the warp goes on: what it does from now on is not before what follows there.
    void publish(std::uint32_t warp, std::vector<std::uint32_t>& gathered) {
        arrive(warp, gathered);
        ++time_;
    }
    /// A warp leaves it with what all arrivals knew.
    void leave(std::uint32_t warp, std::span<const std::uint32_t> gathered);

    // ---- What the hot handlers look at. A bit a word: written by anybody, or read by one warp, since the last barrier
    // of the whole block. Where no bit is in the way, an access needs no closer look. Not kept with partial barriers.

    struct Writers {
        std::uint32_t* time;
        std::uint32_t* writer;
        std::uint32_t* op;
    };
    const Writers& writers() const noexcept { return writers_; }
    std::uint8_t* written() noexcept { return written_.data(); }
    std::uint8_t* read_by(std::uint32_t warp) noexcept { return read_.data() + std::size_t{warp} * map_bytes_; }
    std::uint32_t map_bytes() const noexcept { return map_bytes_; }
    std::uint32_t warps() const noexcept { return warps_; }
    /// A load of a warp, for reports: where it reached from and to.
    void log(std::uint32_t warp, std::uint32_t op, std::uint32_t first, std::uint32_t last) noexcept {
        Log& log = logs_[warp];
        log.entries[log.next++ % log_entries] = {op, first, last};
    }
    std::uint32_t time() const noexcept { return time_; }
    /// Accesses up to that time are before all that the warp does now.
    std::uint32_t known_since(std::uint32_t warp) const noexcept { return known_since_[warp]; }
    bool partial() const noexcept { return partial_; }
    /// Who writes now, in one number.
    static std::uint32_t writer_of(const Warp& warp, int lane) noexcept {
        return (warp.index << 26) | static_cast<std::uint32_t>(lane) << 21 | (warp.sync_count & 0xffff) << 5;
    }

private:
    bool write_freely(Warp& warp, const Op& op, std::uint32_t mask, const std::uint32_t* at, std::uint32_t bytes);
    /// By byte of a word, which lane of the warp wrote it since the last collective of its lanes; no_lane: none.
    using Lanes = std::array<std::uint8_t, 4>;
    Lanes lanes_of(const Warp& warp, std::uint32_t word) const noexcept;

    void check_writer(Warp& warp, const Op& op, int lane, std::uint32_t word, std::uint32_t touched, bool atomic,
                      const char* doing);
    void check_readers(Warp& warp, const Op& op, int lane, std::uint32_t word, const char* doing);
    void note_read(const Warp& warp, const Op& op, std::uint32_t word);
    void note_write(const Warp& warp, const Op& op, std::uint32_t word, std::uint32_t writer);
    std::uint32_t reader_op(std::uint32_t warp, std::uint32_t word) const noexcept;
    [[noreturn]] void conflict(Warp& warp, const Op& op, int lane, std::uint32_t word, const char* doing,
                               const char* other, std::uint32_t other_op, std::uint32_t other_warp);
    std::uint32_t clock(std::uint32_t warp, std::uint32_t of) const noexcept { return clocks_[warp * warps_ + of]; }
    void refresh(std::uint32_t warp) noexcept;

    static constexpr std::uint8_t no_lane = 0xff;
    static constexpr std::uint32_t log_entries = 1024;
    struct LogEntry {
        std::uint32_t op, first, last;
    };
    /// A word that lanes may have written in parts. Only of the store that `time` and `writer` name.
    struct Parts {
        std::uint32_t time, writer;
        Lanes lanes;
    };
    struct Log {
        std::uint32_t next = 0;
        LogEntry entries[log_entries];
    };

    std::uint32_t warps_ = 0, time_ = 0;
    bool partial_ = false;
    std::vector<std::uint32_t> clocks_, known_since_, fences_;
    std::vector<std::uint32_t> storage_;
    std::vector<std::uint32_t> reader_times_, reader_ops_;  ///< [word][warp], with partial barriers
    std::vector<std::uint8_t> written_, read_;              ///< maps of bits
    std::vector<Parts> parts_;
    std::vector<Log> logs_;
    std::uint32_t words_count_ = 0, map_bytes_ = 0;
    Writers writers_{};
};

}  // namespace autotune::emulator
#endif

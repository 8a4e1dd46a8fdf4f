#include "device/emulator/races.h"

#include <fmt/format.h>

#include <algorithm>

#include "device/emulator/block.h"
#include "device/emulator/fault.h"

namespace autotune::emulator {
namespace {

constexpr std::uint32_t mask_shift = 1, whole = 0xf, atomic_bit = 1;

/// Which of a word's bytes an access at `at` of `bytes` touches.
std::uint32_t bytes_in_word(std::uint32_t at, std::uint32_t bytes, std::uint32_t word) {
    const std::uint32_t first = word * 4;
    std::uint32_t mask = 0;
    for (std::uint32_t k = 0; k < 4; ++k)
        if (first + k >= at && first + k < at + bytes) mask |= 1u << k;
    return mask;
}

}  // namespace

void SharedRaces::begin(std::uint32_t warps, std::uint32_t shared_bytes, bool partial) {
    const std::uint32_t words = (shared_bytes + 3) / 4 + 1;
    if (warps != warps_ || words != words_count_ || partial != partial_ || time_ > 0x7fffffff) {
        warps_ = warps;
        words_count_ = words;
        partial_ = partial;
        time_ = 0;
        storage_.assign(std::size_t{6} * words, 0);
        reader_times_.assign(partial ? std::size_t{words} * warps : 0, 0);
        std::uint32_t* const first = storage_.data();
        words_ = {first, first + words, first + 2 * words, first + 3 * words, first + 4 * words, first + 5 * words};
    }
    // What earlier blocks did is long known.
    clocks_.assign(std::size_t{warps} * warps, time_);
    known_since_.assign(warps, time_);
    ++time_;
}

void SharedRaces::refresh(std::uint32_t warp) noexcept {
    std::uint32_t least = time_;
    for (std::uint32_t other = 0; other < warps_; ++other)
        if (other != warp) least = std::min(least, clock(warp, other));
    known_since_[warp] = warps_ == 1 ? time_ - 1 : least;
}

void SharedRaces::arrive(std::uint32_t warp, std::vector<std::uint32_t>& gathered) {
    gathered.resize(warps_, 0);
    for (std::uint32_t other = 0; other < warps_; ++other)
        gathered[other] = std::max(gathered[other], clock(warp, other));
    gathered[warp] = std::max(gathered[warp], time_);
}

void SharedRaces::leave(std::uint32_t warp, std::span<const std::uint32_t> gathered) {
    bool fresh = false;  // the first to leave starts a new time
    for (std::uint32_t other = 0; other < warps_; ++other) {
        fresh |= gathered[other] == time_;
        clocks_[warp * warps_ + other] = std::max(clock(warp, other), gathered[other]);
    }
    if (fresh) ++time_;
    refresh(warp);
}

void SharedRaces::conflict(Warp& warp, const Op& op, int lane, std::uint32_t word, const char* doing, const char* other,
                           std::uint32_t other_op, std::uint32_t other_warp) {
    const Op* found = nullptr;
    for (const Op& candidate : warp.program->ops)
        if (candidate.instruction == other_op) found = &candidate;
    fail(warp, op, lane, DeviceFault::Kind::race,
         fmt::format("{} of shared memory at byte {} conflicts, without a barrier between,", doing, word * 4),
         fmt::format(
             ", with {} of {}", other,
             other_warp == warp.index ? std::string{"another lane of its warp"} : fmt::format("warp {}", other_warp)),
         shared_window + word * 4, found);
}

void SharedRaces::check_writer(Warp& warp, const Op& op, int lane, std::uint32_t word, bool atomic, const char* doing) {
    const std::uint32_t written = words_.write_time[word];
    if (written == 0) return;
    const std::uint32_t writer = words_.writer[word], by = writer >> 26;
    if (atomic && (writer & atomic_bit)) return;
    if (by == warp.index) {
        const bool same_step = (writer & 0x1fffe0) == (writer_of(warp, 0) & 0x1fffe0);
        const bool other_lane = (writer >> 21 & 31) != static_cast<std::uint32_t>(lane);
        if (!same_step || !other_lane || written <= known_since_[warp.index]) return;
    } else if (by >= warps_ || written <= clock(warp.index, by)) {
        return;
    }
    conflict(warp, op, lane, word, doing, writer & atomic_bit ? "an atomic access" : "a store", words_.write_op[word],
             by);
}

void SharedRaces::check_readers(Warp& warp, const Op& op, int lane, std::uint32_t word, const char* doing) {
    const std::uint32_t read = words_.read_time[word];
    if (read == 0 || read <= known_since_[warp.index]) return;
    std::uint32_t others = words_.readers[word] & ~(1u << warp.index);
    for (; others; others &= others - 1) {
        const auto reader = static_cast<std::uint32_t>(__builtin_ctz(others));
        if (reader >= warps_) return;
        const std::uint32_t at = partial_ ? reader_times_[std::size_t{word} * warps_ + reader] : read;
        if (at > clock(warp.index, reader))
            conflict(warp, op, lane, word, doing, "a load", words_.read_op[word] >> 4, reader);
    }
}

void SharedRaces::note_read(const Warp& warp, const Op& op, std::uint32_t word) {
    const std::uint32_t bit = 1u << warp.index;
    if (partial_) {
        reader_times_[std::size_t{word} * warps_ + warp.index] = time_;
        words_.readers[word] |= bit;
    } else {
        words_.readers[word] = (words_.read_time[word] == time_ ? words_.readers[word] : 0) | bit;
    }
    words_.read_time[word] = time_;
    words_.read_op[word] = op.instruction << 4;
}

void SharedRaces::read(Warp& warp, const Op& op, std::uint32_t mask, const std::uint32_t* at, std::uint32_t bytes) {
    for (std::uint32_t left = mask; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        for (std::uint32_t word = at[i] / 4; word <= (at[i] + bytes - 1) / 4; ++word) {
            const std::uint32_t touched = bytes_in_word(at[i], bytes, word);
            if ((words_.writer[word] >> mask_shift & touched) != 0) check_writer(warp, op, i, word, false, "a load");
            const std::uint32_t before =
                words_.read_time[word] > known_since_[warp.index] ? words_.read_op[word] & whole : 0;
            note_read(warp, op, word);
            words_.read_op[word] |= before | touched;
        }
    }
}

void SharedRaces::write(Warp& warp, const Op& op, std::uint32_t mask, const std::uint32_t* at, std::uint32_t bytes) {
    for (std::uint32_t left = mask; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        for (std::uint32_t word = at[i] / 4; word <= (at[i] + bytes - 1) / 4; ++word) {
            const std::uint32_t touched = bytes_in_word(at[i], bytes, word);
            // Lanes of one store may write the same word: one of them wins, which programs rely on.
            const bool same_store = words_.write_op[word] == op.instruction && words_.writer[word] >> 26 == warp.index;
            if ((words_.writer[word] >> mask_shift & touched) != 0 && !same_store)
                check_writer(warp, op, i, word, false, "a store");
            if ((words_.read_op[word] & whole & touched) != 0) check_readers(warp, op, i, word, "a store");
            const bool joined = words_.write_time[word] == time_ && words_.writer[word] >> 26 == warp.index;
            const std::uint32_t before = joined ? words_.writer[word] & whole << mask_shift : 0;
            words_.write_time[word] = time_;
            words_.writer[word] = writer_of(warp, i) | touched << mask_shift | before;
            words_.write_op[word] = op.instruction;
        }
    }
}

void SharedRaces::update(Warp& warp, const Op& op, std::uint32_t mask, const std::uint32_t* at, std::uint32_t bytes) {
    for (std::uint32_t left = mask; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        for (std::uint32_t word = at[i] / 4; word <= (at[i] + bytes - 1) / 4; ++word) {
            check_writer(warp, op, i, word, true, "an atomic access");
            check_readers(warp, op, i, word, "an atomic access");
            words_.write_time[word] = time_;
            words_.writer[word] = writer_of(warp, i) | whole << mask_shift | atomic_bit;
            words_.write_op[word] = op.instruction;
        }
    }
}

}  // namespace autotune::emulator

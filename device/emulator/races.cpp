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
        storage_.assign(std::size_t{3} * words, 0);
        std::uint32_t* const first = storage_.data();
        writers_ = {first, first + words, first + 2 * words};
        parts_.assign(words, Parts{});
        map_bytes_ = words / 8 + 16;
        if (partial) {
            reader_times_.assign(std::size_t{words} * warps, 0);
            reader_ops_.assign(std::size_t{words} * warps, 0);
        }
        logs_.resize(warps);
    }
    written_.assign(map_bytes_, 0);
    read_.assign(std::size_t{map_bytes_} * warps, 0);
    for (Log& log : logs_) log.next = 0;
    // What earlier blocks did is long known.
    clocks_.assign(std::size_t{warps} * warps, time_);
    known_since_.assign(warps, time_);
    fences_.assign(warps, time_);
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
    if (gathered.empty()) return;
    bool fresh = false;  // the first to leave starts a new time
    for (std::uint32_t other = 0; other < warps_; ++other) {
        fresh |= gathered[other] == time_;
        clocks_[warp * warps_ + other] = std::max(clock(warp, other), gathered[other]);
    }
    if (fresh) {
        ++time_;
        if (!partial_) {
            std::fill(written_.begin(), written_.end(), std::uint8_t{0});
            std::fill(read_.begin(), read_.end(), std::uint8_t{0});
            for (Log& log : logs_) log.next = 0;
        }
    }
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

SharedRaces::Lanes SharedRaces::lanes_of(const Warp& warp, std::uint32_t word) const noexcept {
    Lanes by_byte;
    by_byte.fill(no_lane);
    const std::uint32_t writer = writers_.writer[word];
    if (writers_.time[word] <= known_since_[warp.index] || writer >> 26 != warp.index) return by_byte;
    if ((writer & 0x1fffe0) != (writer_of(warp, 0) & 0x1fffe0)) return by_byte;
    const Parts& known = parts_[word];
    if (known.time == writers_.time[word] && known.writer == writer) return known.lanes;
    for (std::size_t byte = 0; byte < by_byte.size(); ++byte)
        if (writer >> mask_shift >> byte & 1) by_byte[byte] = static_cast<std::uint8_t>(writer >> 21 & 31);
    return by_byte;
}

void SharedRaces::check_writer(Warp& warp, const Op& op, int lane, std::uint32_t word, std::uint32_t touched,
                               bool atomic, const char* doing) {
    const std::uint32_t written = writers_.time[word];
    if (written == 0) return;
    const std::uint32_t writer = writers_.writer[word], by = writer >> 26;
    if (atomic && (writer & atomic_bit)) return;
    if (by == warp.index) {
        const Lanes by_byte = lanes_of(warp, word);
        bool other_lane = false;
        for (std::size_t byte = 0; byte < by_byte.size(); ++byte)
            other_lane |= (touched >> byte & 1) && by_byte[byte] != no_lane && by_byte[byte] != lane;
        if (!other_lane) return;
    } else if (by >= warps_ || written <= clock(warp.index, by)) {
        return;
    }
    conflict(warp, op, lane, word, doing, writer & atomic_bit ? "an atomic access" : "a store", writers_.op[word], by);
}

void SharedRaces::check_readers(Warp& warp, const Op& op, int lane, std::uint32_t word, const char* doing) {
    for (std::uint32_t reader = 0; reader < warps_; ++reader) {
        if (reader == warp.index) continue;
        const bool conflicts = partial_ ? reader_times_[std::size_t{word} * warps_ + reader] > clock(warp.index, reader)
                                        : (read_by(reader)[word / 8] >> (word % 8) & 1) != 0;
        if (conflicts) conflict(warp, op, lane, word, doing, "a load", reader_op(reader, word), reader);
    }
}

std::uint32_t SharedRaces::reader_op(std::uint32_t warp, std::uint32_t word) const noexcept {
    if (partial_) return reader_ops_[std::size_t{word} * warps_ + warp];
    const Log& log = logs_[warp];
    for (std::uint32_t i = 0; i < log_entries && i < log.next; ++i) {
        const LogEntry& entry = log.entries[(log.next - 1 - i) % log_entries];
        if (word * 4 + 3 >= entry.first && word * 4 < entry.last) return entry.op;
    }
    return no_pc;
}

void SharedRaces::note_read(const Warp& warp, const Op& op, std::uint32_t word) {
    if (partial_) {
        reader_times_[std::size_t{word} * warps_ + warp.index] = time_;
        reader_ops_[std::size_t{word} * warps_ + warp.index] = op.instruction;
    } else {
        read_by(warp.index)[word / 8] = static_cast<std::uint8_t>(read_by(warp.index)[word / 8] | 1u << (word % 8));
    }
}

void SharedRaces::note_write(const Warp&, const Op& op, std::uint32_t word, std::uint32_t writer) {
    writers_.time[word] = time_;
    writers_.writer[word] = writer;
    writers_.op[word] = op.instruction;
    written_[word / 8] = static_cast<std::uint8_t>(written_[word / 8] | 1u << (word % 8));
}

void SharedRaces::read(Warp& warp, const Op& op, std::uint32_t mask, const std::uint32_t* at, std::uint32_t bytes) {
    std::uint32_t first = ~0u, last = 0;
    for (std::uint32_t left = mask; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        first = std::min(first, at[i]);
        last = std::max(last, at[i] + bytes);
        for (std::uint32_t word = at[i] / 4; word <= (at[i] + bytes - 1) / 4; ++word) {
            const std::uint32_t touched = bytes_in_word(at[i], bytes, word);
            if ((writers_.writer[word] >> mask_shift & touched) != 0)
                check_writer(warp, op, i, word, touched, false, "a load");
            // Parts of words are not kept apart: a neighbour that writes the rest is no conflict.
            if (touched == whole || partial_) note_read(warp, op, word);
        }
    }
    log(warp.index, op.instruction, first, last);
}

void SharedRaces::read_async(Warp& warp, const Op& op, int lane, std::uint32_t from, std::uint32_t bytes) {
    std::uint32_t last_op = no_pc;
    bool apart = false;  // the writer is no asynchronous copy itself
    for (std::uint32_t word = from / 4; word < (from + bytes) / 4; ++word) {
        if ((writers_.writer[word] >> mask_shift & whole) != 0)
            check_writer(warp, op, lane, word, whole, false, "a load");
        note_read(warp, op, word);
        if (writers_.op[word] != last_op) {
            last_op = writers_.op[word];
            apart = last_op < warp.program->names.size() && !warp.program->names[last_op].starts_with("cp.async.bulk");
        }
        const std::uint32_t by = writers_.writer[word] >> 26;
        if (!apart || by >= warps_ || writers_.time[word] <= std::max(fences_[by], fences_[warp.index])) continue;
        conflict(warp, op, lane, word, "a load by the async proxy",
                 "a store, as there is no fence.proxy.async behind it,", last_op, by);
    }
}

/// Whole words that nobody touched since the last barrier of the block: noted at once.
bool SharedRaces::write_freely(Warp& warp, const Op& op, std::uint32_t mask, const std::uint32_t* at,
                               std::uint32_t bytes) {
    if (partial_ || bytes % 4 != 0 || bytes > 16) return false;
    const std::uint32_t ones = (1u << (bytes / 4)) - 1;
    std::uint32_t in_the_way = 0;
    for (std::uint32_t left = mask; left; left &= left - 1) {
        const std::uint32_t from = at[__builtin_ctz(left)], bits = ones << (from / 4 % 8);
        in_the_way |= written_[from / 32] & bits;
        for (std::uint32_t reader = 0; reader < warps_; ++reader)
            if (reader != warp.index) in_the_way |= read_[std::size_t{reader} * map_bytes_ + from / 32] & bits;
    }
    if (in_the_way) return false;
    land(warp, op, mask, at, bytes);
    return true;
}

void SharedRaces::land(Warp& warp, const Op& op, std::uint32_t mask, const std::uint32_t* at, std::uint32_t bytes) {
    const std::uint32_t me = writer_of(warp, 0) | whole << mask_shift, words = bytes / 4, ones = (1u << words) - 1;
    for (std::uint32_t left = mask; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        const std::uint32_t first = at[i] / 4, writer = me | static_cast<std::uint32_t>(i) << 21;
        for (std::uint32_t word = first; word < first + words; ++word) {
            writers_.time[word] = time_;
            writers_.writer[word] = writer;
            writers_.op[word] = op.instruction;
        }
        // Pieces are aligned to their size, so that their bits lie in one byte.
        written_[first / 8] = static_cast<std::uint8_t>(written_[first / 8] | ones << (first % 8));
    }
}

void SharedRaces::write(Warp& warp, const Op& op, std::uint32_t mask, const std::uint32_t* at, std::uint32_t bytes) {
    if (write_freely(warp, op, mask, at, bytes)) return;
    for (std::uint32_t left = mask; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        for (std::uint32_t word = at[i] / 4; word <= (at[i] + bytes - 1) / 4; ++word) {
            const std::uint32_t touched = bytes_in_word(at[i], bytes, word);
            // Lanes of one store may write the same word: one of them wins, which programs rely on.
            const bool same_store = writers_.op[word] == op.instruction && writers_.writer[word] >> 26 == warp.index;
            if ((writers_.writer[word] >> mask_shift & touched) != 0 && !same_store)
                check_writer(warp, op, i, word, touched, false, "a store");
            if (touched == whole) check_readers(warp, op, i, word, "a store");
            const bool joined = writers_.time[word] == time_ && writers_.writer[word] >> 26 == warp.index;
            const std::uint32_t before = joined ? writers_.writer[word] & whole << mask_shift : 0;
            Lanes by_byte = lanes_of(warp, word);
            for (std::size_t byte = 0; byte < by_byte.size(); ++byte)
                if (touched >> byte & 1) by_byte[byte] = static_cast<std::uint8_t>(i);
            const std::uint32_t writer = writer_of(warp, i) | touched << mask_shift | before;
            note_write(warp, op, word, writer);
            parts_[word] = {time_, writer, by_byte};
        }
    }
}

void SharedRaces::update(Warp& warp, const Op& op, std::uint32_t mask, const std::uint32_t* at, std::uint32_t bytes) {
    for (std::uint32_t left = mask; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        for (std::uint32_t word = at[i] / 4; word <= (at[i] + bytes - 1) / 4; ++word) {
            check_writer(warp, op, i, word, whole, true, "an atomic access");
            check_readers(warp, op, i, word, "an atomic access");
            note_write(warp, op, word, writer_of(warp, i) | whole << mask_shift | atomic_bit);
        }
    }
}

}  // namespace autotune::emulator

// Loads and stores. One row of addresses; lanes side by side, as most are, move as a block.
#include "device/emulator/accesses.h"
#include "device/emulator/cluster.h"
#include "device/emulator/fault.h"
#include "device/emulator/races.h"
#include "device/emulator/rows_map.h"

namespace autotune::emulator::AUTOTUNE_ROWS {
namespace {

struct Addresses {
    alignas(64) std::uint64_t at[lanes];  ///< offsets in the space; of lanes that take no part: the first one's
    Space space = Space::global;
    bool contiguous = false;  ///< all lanes take part, each behind its neighbour
    bool uniform = false;
};

/// False: generic addresses of several spaces, which were handled by running the op once for each.
template <std::uint32_t bytes>
ROWS_INLINE bool addresses_of(Warp& w, const Op& op, std::uint32_t m, Addresses& a, Access access) {
    const int first = __builtin_ctz(m);
    const auto offset = static_cast<std::uint64_t>(op.imm);
    if (op.wide_address) {
        const std::uint64_t* const row = w.row<std::uint64_t>(op.a);
        for (int i = 0; i < lanes; ++i) a.at[i] = row[i] + offset;
    } else {
        const std::uint32_t* const row = w.row<std::uint32_t>(op.a);
        for (int i = 0; i < lanes; ++i) a.at[i] = (row[i] + offset) & 0xffffffffu;
    }
    if (m != all_lanes) {
        const std::uint64_t stand_in = a.at[first];
        for (int i = 0; i < lanes; ++i) a.at[i] = m >> i & 1 ? a.at[i] : stand_in;
    }
    a.space = op.space;
    std::uint64_t start = 0;
    if (op.space == Space::generic) {
        a.space = space_of(w, a.at[first]);
        std::uint32_t same = 0;
        for (int i = 0; i < lanes; ++i)
            if (m >> i & 1 && space_of(w, a.at[i]) == a.space) same |= 1u << i;
        if (same != m) {
            op.run(w, op, same);
            op.run(w, op, m & ~same);
            return false;
        }
        start = window_of(a.space);
    }
    const SpaceView& view = w.views[static_cast<int>(a.space)];
    start += view.start;
    const std::uint64_t base = a.at[0];
    std::uint64_t highest = 0, low_bits = 0, apart = 0, differ = 0;
    for (int i = 0; i < lanes; ++i) {
        const std::uint64_t at = a.at[i];
        low_bits |= at;
        apart |= at ^ (base + static_cast<std::uint64_t>(i) * bytes);
        differ |= at ^ base;
        const std::uint64_t from = at - start;
        a.at[i] = from;
        highest = from > highest ? from : highest;
    }
    if (__builtin_expect(highest >= view.size || bytes > view.size - highest || (low_bits & (bytes - 1)) != 0, 0)) {
        const bool near = a.space == Space::shared && (low_bits & (bytes - 1)) == 0;
        if (!near || !reach_cluster(w, op, m, a.at, bytes, a.space)) bad_access(w, op, m, a.space, a.at, bytes, access);
        a.contiguous = a.uniform = false;
        return true;
    }
    a.contiguous = apart == 0 && m == all_lanes && view.lane_stride == 0;
    a.uniform = differ == 0 && view.lane_stride == 0;
    return true;
}

ROWS_INLINE bool all_states_are(const std::uint8_t* states, std::uint64_t count, std::uint8_t wanted) {
    std::uint64_t differ = 0;
    const std::uint64_t pattern = wanted * 0x0101010101010101ull;
    std::uint64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        std::uint64_t eight;
        std::memcpy(&eight, states + i, 8);
        differ |= eight ^ pattern;
    }
    for (; i < count; ++i) differ |= states[i] ^ wanted;
    return differ == 0;
}

/// Bits of an aligned access of `bytes` in its byte of a map, or in two of them for 16 bytes and more.
template <std::uint32_t bytes>
ROWS_INLINE std::uint32_t word_bits(std::uint64_t at) {
    return ((1u << (bytes / 4)) - 1) << (at / 4 % 8);
}

/// Lanes whose address differs from their neighbour's: what many lanes share is looked at once.
template <std::uint32_t bytes>
ROWS_INLINE std::uint32_t distinct_lanes(std::uint32_t m, const Addresses& a) {
    if (a.uniform) return m & -m;
    std::uint32_t repeated = 0;
    for (int i = 1; i < lanes; ++i) repeated |= static_cast<std::uint32_t>(a.at[i] == a.at[i - 1]) << i;
    return m & ~(repeated & m << 1);
}

/// Whole words that nobody wrote since the last barrier, and for a store nobody else read: noted at once. False: look
/// closer.
template <std::uint32_t bytes>
ROWS_INLINE bool is_race_free(Warp& w, const Op& op, std::uint32_t m, const Addresses& a, bool store) {
    SharedRaces& races = *w.races;
    if (bytes < 4 || races.partial()) return false;
    std::uint8_t* const written = races.written();
    std::uint8_t* const mine = races.read_by(w.index);
    std::uint32_t in_the_way = 0;
    if (!store) {
        const std::uint32_t distinct = distinct_lanes<bytes>(m, a);
        std::uint64_t first = a.at[__builtin_ctz(m)], last = first;
        for (std::uint32_t left = distinct; left; left &= left - 1) {
            const std::uint64_t at = a.at[__builtin_ctz(left)];
            const std::uint32_t bits = word_bits<bytes>(at);
            in_the_way |= written[at / 32] & bits;
            mine[at / 32] = static_cast<std::uint8_t>(mine[at / 32] | bits);
            first = at < first ? at : first;
            last = at > last ? at : last;
        }
        if (in_the_way) return false;
        races.log(w.index, op.instruction, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last + bytes));
        return true;
    }
    const std::uint32_t warps = races.warps(), map_bytes = races.map_bytes();
    const std::uint8_t* const all = races.read_by(0);
    for (std::uint32_t left = m; left; left &= left - 1) {
        const std::uint64_t at = a.at[__builtin_ctz(left)];
        const std::uint32_t bits = word_bits<bytes>(at);
        in_the_way |= written[at / 32] & bits;
        written[at / 32] = static_cast<std::uint8_t>(written[at / 32] | bits);  // two lanes at one word: look closer
    }
    // Maps of a contiguous row are a few bytes; else each lane's.
    for (std::uint32_t other = 0; other < warps; ++other) {
        if (other == w.index) continue;
        const std::uint8_t* const theirs = all + std::size_t{other} * map_bytes;
        if (a.contiguous) {
            for (std::uint32_t k = 0; k <= bytes; ++k) in_the_way |= theirs[a.at[0] / 32 + k];
        } else {
            for (std::uint32_t left = m; left; left &= left - 1) {
                const std::uint64_t at = a.at[__builtin_ctz(left)];
                in_the_way |= theirs[at / 32] & word_bits<bytes>(at);
            }
        }
    }
    if (in_the_way) return false;
    const SharedRaces::Writers& writers = races.writers();
    const std::uint32_t now = races.time(), me = SharedRaces::writer_of(w, 0) | 0xf << 1;
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        const std::uint64_t first = a.at[i] / 4;
        for (std::uint32_t k = 0; k < bytes / 4; ++k) {
            writers.time[first + k] = now;
            writers.writer[first + k] = me + (static_cast<std::uint32_t>(i) << 21);
            writers.op[first + k] = op.instruction;
        }
    }
    return true;
}

ROWS_INLINE void narrow_offsets(const Addresses& a, std::uint32_t* at) {
    for (int i = 0; i < lanes; ++i) at[i] = static_cast<std::uint32_t>(a.at[i]);
}

template <std::uint32_t bytes>
ROWS_INLINE void check_access(Warp& w, const Op& op, std::uint32_t m, const Addresses& a, Access access) {
    const SpaceView& view = w.views[static_cast<int>(a.space)];
    if (view.states) {
        bool known = false;
        if (a.contiguous || a.uniform) {
            known = all_states_are(view.states + a.at[0], a.contiguous ? bytes * lanes : bytes,
                                   static_cast<std::uint8_t>(ByteState::initialised));
        } else {
            std::uint64_t differ = 0;
            for (std::uint32_t left = distinct_lanes<bytes>(m, a); left; left &= left - 1) {
                const std::uint8_t* const s = view.states + a.at[__builtin_ctz(left)];
                if constexpr (bytes >= 8) {
                    for (std::uint32_t k = 0; k < bytes; k += 8) {
                        std::uint64_t eight;
                        std::memcpy(&eight, s + k, 8);
                        differ |= eight ^ 0x0202020202020202ull;
                    }
                } else {
                    std::uint32_t few = 0;
                    std::memcpy(&few, s, bytes);
                    differ |= few ^ (0x02020202u >> (8 * (4 - bytes)));
                }
            }
            known = differ == 0;
        }
        if (!known) check_states(w, op, m, a.space, a.at, bytes, access);
    }
    if (a.space == Space::shared && w.races) {
        if (is_race_free<bytes>(w, op, m, a, access == Access::store)) return;
        std::uint32_t at[lanes];
        narrow_offsets(a, at);
        if (access == Access::store)
            w.races->write(w, op, m, at, bytes);
        else
            w.races->read(w, op, m, at, bytes);
    }
}

template <class M>
ROWS_INLINE M read_memory(const std::byte* from) {
    M x;
    std::memcpy(&x, from, sizeof x);
    return x;
}

/// M: in memory; R: the register's integer. V of them, to rows d or those in extra.
template <class M, class R, int V>
void load(Warp& w, const Op& op, std::uint32_t m) {
    constexpr std::uint32_t bytes = sizeof(M) * V;
    Addresses a;
    if (!addresses_of<bytes>(w, op, m, a, Access::load)) return;
    if (w.checked) check_access<bytes>(w, op, m, a, Access::load);
    if (w.counted) count_access(w, m, a.space, a.at, bytes, Access::load);
    const SpaceView& view = w.views[static_cast<int>(a.space)];
    R* d[V];
    for (int v = 0; v < V; ++v) {
        const std::int32_t at = V == 1 ? op.d : part_of(w, op, v);
        d[v] = at ? w.row<R>(at) : nullptr;
    }
    const auto each = [&](auto&& f) ROWS_LAMBDA {
        for (int v = 0; v < V; ++v)
            if (d[v]) f(v);
    };
    if (a.contiguous) {
        const std::byte* const from = view.base + a.at[0];
        each([&](int v) ROWS_LAMBDA {
            R* const row = d[v];
#pragma GCC ivdep
            for (int i = 0; i < lanes; ++i)
                row[i] = static_cast<R>(
                    read_memory<M>(from + (static_cast<std::size_t>(i) * V + static_cast<std::size_t>(v)) * sizeof(M)));
        });
        return;
    }
    if (a.uniform && m == all_lanes) {
        each([&](int v) ROWS_LAMBDA {
            const R value =
                static_cast<R>(read_memory<M>(view.base + a.at[0] + static_cast<std::size_t>(v) * sizeof(M)));
            R* const row = d[v];
            for (int i = 0; i < lanes; ++i) row[i] = value;
        });
        return;
    }
    if (m == all_lanes) {
        each([&](int v) ROWS_LAMBDA {
            R* const row = d[v];
            const std::byte* const base = view.base + static_cast<std::size_t>(v) * sizeof(M);
            for (int i = 0; i < lanes; ++i)
                row[i] =
                    static_cast<R>(read_memory<M>(base + a.at[i] + static_cast<std::uint64_t>(i) * view.lane_stride));
        });
        return;
    }
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        const std::byte* const from = view.base + a.at[i] + static_cast<std::uint64_t>(i) * view.lane_stride;
        each([&](int v) ROWS_LAMBDA {
            d[v][i] = static_cast<R>(read_memory<M>(from + static_cast<std::size_t>(v) * sizeof(M)));
        });
    }
}

template <class M, class R, int V>
void store(Warp& w, const Op& op, std::uint32_t m) {
    constexpr std::uint32_t bytes = sizeof(M) * V;
    Addresses a;
    if (!addresses_of<bytes>(w, op, m, a, Access::store)) return;
    if (w.checked) check_access<bytes>(w, op, m, a, Access::store);
    if (w.counted) count_access(w, m, a.space, a.at, bytes, Access::store);
    const SpaceView& view = w.views[static_cast<int>(a.space)];
    const R* s[V];
    for (int v = 0; v < V; ++v) s[v] = w.row<R>(V == 1 ? op.b : part_of(w, op, v));
    if (a.contiguous) {
        std::byte* const to = view.base + a.at[0];
        for (int v = 0; v < V; ++v) {
            const R* const row = s[v];
#pragma GCC ivdep
            for (int i = 0; i < lanes; ++i) {
                const M x = static_cast<M>(row[i]);
                std::memcpy(to + (static_cast<std::size_t>(i) * V + static_cast<std::size_t>(v)) * sizeof(M), &x,
                            sizeof x);
            }
        }
        return;
    }
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        std::byte* const to = view.base + a.at[i] + static_cast<std::uint64_t>(i) * view.lane_stride;
        for (int v = 0; v < V; ++v) {
            const M x = static_cast<M>(s[v][i]);
            std::memcpy(to + static_cast<std::size_t>(v) * sizeof(M), &x, sizeof x);
        }
    }
}

template <class M, class R>
Handler load_of(int vector) {
    switch (vector) {
        case 1:
            return load<M, R, 1>;
        case 2:
            return load<M, R, 2>;
        case 4:
            return load<M, R, 4>;
        default:
            return nullptr;
    }
}
template <class M, class R>
Handler store_of(int vector) {
    switch (vector) {
        case 1:
            return store<M, R, 1>;
        case 2:
            return store<M, R, 2>;
        case 4:
            return store<M, R, 4>;
        default:
            return nullptr;
    }
}

// ---- ldmatrix and stmatrix: lanes 8j to 8j+7 hold the addresses of matrix j's rows of 16 bytes. small: matrices;
// imm is the offset; guard_flip is no use here, so `c` says whether it is transposed.

template <bool store>
void move_matrix(Warp& w, const Op& op, std::uint32_t m) {
    const int count = op.small;
    const std::uint32_t addressed = count == 4 ? all_lanes : (1u << (8 * count)) - 1;
    if (m != all_lanes) incomplete_warp(w, op, m);
    Addresses a;
    if (!addresses_of<16>(w, op, addressed, a, store ? Access::store : Access::load)) return;
    a.contiguous = false;
    if (w.checked) check_access<16>(w, op, addressed, a, store ? Access::store : Access::load);
    if (w.counted) count_access(w, addressed, a.space, a.at, 16, store ? Access::store : Access::load);
    const SpaceView& view = w.views[static_cast<int>(a.space)];
    for (int j = 0; j < count; ++j) {
        std::uint32_t* const row = w.row<std::uint32_t>(part_of(w, op, j));
        for (int i = 0; i < lanes; ++i) {
            if (op.c == 0) {
                std::byte* const at = view.base + a.at[8 * j + i / 4] + 4 * (i % 4);
                if constexpr (store)
                    std::memcpy(at, row + i, 4);
                else
                    std::memcpy(row + i, at, 4);
                continue;
            }
            std::uint16_t halves[2] = {static_cast<std::uint16_t>(row[i]), static_cast<std::uint16_t>(row[i] >> 16)};
            for (int half = 0; half < 2; ++half) {
                std::byte* const at = view.base + a.at[8 * j + 2 * (i % 4) + half] + 2 * (i / 4);
                if constexpr (store)
                    std::memcpy(at, halves + half, 2);
                else
                    std::memcpy(halves + half, at, 2);
            }
            if constexpr (!store) row[i] = static_cast<std::uint32_t>(halves[1]) << 16 | halves[0];
        }
    }
}

}  // namespace

Handler select_memory(const Selector& s) {
    if (s.operation == Operation::ldmatrix) return move_matrix<false>;
    if (s.operation == Operation::stmatrix) return move_matrix<true>;
    const bool in = s.operation == Operation::load;
    const int width = bytes_of(s.type), reg = s.register_bytes;
#define ROWS_MEMORY(M, S, R) \
    return in ? (is_signed(s.type) ? load_of<S, R>(s.vector) : load_of<M, R>(s.vector)) : store_of<M, R>(s.vector);
    if (width == 1) {
        if (reg == 2) ROWS_MEMORY(std::uint8_t, std::int8_t, std::uint16_t)
        if (reg == 4) ROWS_MEMORY(std::uint8_t, std::int8_t, std::uint32_t)
        ROWS_MEMORY(std::uint8_t, std::int8_t, std::uint64_t)
    }
    if (width == 2) {
        if (reg == 2) ROWS_MEMORY(std::uint16_t, std::int16_t, std::uint16_t)
        if (reg == 4) ROWS_MEMORY(std::uint16_t, std::int16_t, std::uint32_t)
        if (reg == 8) ROWS_MEMORY(std::uint16_t, std::int16_t, std::uint64_t)
        return nullptr;
    }
    if (width == 4) {
        if (reg == 4) ROWS_MEMORY(std::uint32_t, std::int32_t, std::uint32_t)
        if (reg == 8) ROWS_MEMORY(std::uint32_t, std::int32_t, std::uint64_t)
        return nullptr;
    }
    if (width == 8 && reg == 8) {
        if (s.vector == 1)
            return in ? Handler{load<std::uint64_t, std::uint64_t, 1>} : store<std::uint64_t, std::uint64_t, 1>;
        if (s.vector == 2)
            return in ? Handler{load<std::uint64_t, std::uint64_t, 2>} : store<std::uint64_t, std::uint64_t, 2>;
    }
    return nullptr;
}

}  // namespace autotune::emulator::AUTOTUNE_ROWS

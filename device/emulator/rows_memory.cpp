// Loads and stores. One row of addresses; lanes side by side, as most are, move as a block.
#include "device/emulator/accesses.h"
#include "device/emulator/block_races.h"
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

/// What a lane's address differs by from the first one's where lanes lie side by side.
template <class T, std::uint32_t bytes>
struct Steps {
    alignas(32) T of[lanes];
    constexpr Steps() : of{} {
        for (int i = 0; i < lanes; ++i) of[i] = static_cast<T>(i) * bytes;
    }
};

/// What all addresses have in common, found in one pass over a row.
template <class T>
struct Common {
    T low_bits = 0, apart = 0, differ = 0;
    bool outside = false;
};

/// Makes addresses of a row of registers, relative to `start` once `offset` was added; those of lanes that take no part
/// are the first one's. `last`: the highest one that is inside; beyond 2^63 (or 2^31) nothing is.
template <class T, std::uint32_t bytes>
ROWS_INLINE Common<T> relative(const T* row, T offset, T start, T last, std::uint32_t m, T* at) {
    static constexpr Steps<T, bytes> steps;
    const T moved = offset - start;
    Common<T> found;
    T beyond = 0;
    if (m == all_lanes) {
        const T base = row[0] + moved;
#pragma GCC ivdep
        for (int i = 0; i < lanes; ++i) {
            const T from = row[i] + moved;
            at[i] = from;
            found.low_bits |= from;
            beyond |= (last - from) | from;
            found.apart |= from ^ (base + steps.of[i]);
            found.differ |= from ^ base;
        }
    } else {
        const T base = row[__builtin_ctz(m)] + moved;
        found.apart = 1;
#pragma GCC ivdep
        for (int i = 0; i < lanes; ++i) {
            const T chosen = static_cast<T>(0 - static_cast<T>(m >> i & 1));
            const T from = ((row[i] + moved) & chosen) | (base & ~chosen);
            at[i] = from;
            found.low_bits |= from;
            beyond |= (last - from) | from;
            found.differ |= from ^ base;
        }
    }
    found.outside = beyond >> (sizeof(T) * 8 - 1) != 0;
    return found;
}

/// The space of generic addresses, if all lie in one.
ROWS_INLINE bool lie_in_one_space(const Warp& w, const std::uint64_t* row, std::uint64_t offset, std::uint32_t m,
                                  Space& space) {
    const std::uint64_t base = row[__builtin_ctz(m)] + offset;
    std::uint64_t differ = 0;
    for (int i = 0; i < lanes; ++i) differ |= ((row[i] + offset) ^ base) & (0 - std::uint64_t{m >> i & 1});
    space = space_of(w, base);
    return differ < window_bytes;
}

/// False: generic addresses of several spaces, which were handled by running the op once for each.
template <std::uint32_t bytes>
ROWS_INLINE bool addresses_of(Warp& w, const Op& op, std::uint32_t m, Addresses& a, Access access) {
    const auto offset = static_cast<std::uint64_t>(op.imm);
    alignas(32) std::uint64_t widened[lanes];
    const std::uint64_t* row = op.wide_address ? w.row<std::uint64_t>(op.a) : widened;
    a.space = op.space;
    bool outside = false, misaligned = false;
    const SpaceView* view = w.views + static_cast<int>(op.space);
    // Narrow addresses lead into spaces that begin at 0 and are small: numbers of 32 bits do.
    if (!op.wide_address && op.space != Space::generic && op.space != Space::global) {
        alignas(32) std::uint32_t narrow[lanes];
        const bool fits = view->size >= bytes && view->size < 0x80000000u;
        const Common<std::uint32_t> found =
            relative<std::uint32_t, bytes>(w.row<std::uint32_t>(op.a), static_cast<std::uint32_t>(offset), 0,
                                           fits ? static_cast<std::uint32_t>(view->size - bytes) : 0, m, narrow);
        for (int i = 0; i < lanes; ++i) a.at[i] = narrow[i];
        outside = found.outside || !fits;
        misaligned = (found.low_bits & (bytes - 1)) != 0;
        a.contiguous = found.apart == 0;
        a.uniform = found.differ == 0;
    } else {
        if (!op.wide_address) {
            const std::uint32_t* const narrow = w.row<std::uint32_t>(op.a);
            for (int i = 0; i < lanes; ++i) widened[i] = ((narrow[i] + offset) & 0xffffffffu) - offset;
        }
        std::uint64_t start = 0;
        if (op.space == Space::generic) {
            if (!lie_in_one_space(w, row, offset, m, a.space)) {
                std::uint32_t same = 0;
                for (int i = 0; i < lanes; ++i)
                    if (m >> i & 1 && space_of(w, row[i] + offset) == a.space) same |= 1u << i;
                if (same != m) {
                    op.run(w, op, same);
                    op.run(w, op, m & ~same);
                    return false;
                }
            }
            start = window_of(a.space);
            view = w.views + static_cast<int>(a.space);
        }
        const bool fits = view->size >= bytes;
        const Common<std::uint64_t> found =
            relative<std::uint64_t, bytes>(row, offset, start + view->start, fits ? view->size - bytes : 0, m, a.at);
        outside = found.outside || !fits;
        misaligned = (found.low_bits & (bytes - 1)) != 0;
        a.contiguous = found.apart == 0;
        a.uniform = found.differ == 0;
    }
    if (__builtin_expect(outside || misaligned, 0)) {
        const bool near = a.space == Space::shared && !misaligned;
        if (!near || !reach_cluster(w, op, m, a.at, bytes, a.space)) bad_access(w, op, m, a.space, a.at, bytes, access);
        a.contiguous = a.uniform = false;
        return true;
    }
    if (view->lane_stride != 0) a.contiguous = a.uniform = false;
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

/// Bits of an aligned access of `bytes` in its byte of a map.
template <std::uint32_t bytes>
constexpr std::uint32_t ones_of = (1u << (bytes / 4)) - 1;
template <std::uint32_t bytes>
ROWS_INLINE std::uint32_t word_bits(std::uint64_t at) {
    return ones_of<bytes> << (at / 4 % 8);
}

/// Lanes whose address differs from their neighbour's: what many lanes share is looked at once.
ROWS_INLINE std::uint32_t distinct_lanes(std::uint32_t m, const Addresses& a) {
    if (a.uniform) return m & -m;
    std::uint32_t repeated = 0;
#if defined(__AVX2__)
    for (int i = lanes - 4; i > 0; i -= 4) {
        const __m256i here = _mm256_load_si256(reinterpret_cast<const __m256i*>(a.at + i)),
                      before = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a.at + i - 1));
        const int same = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(here, before)));
        repeated |= static_cast<std::uint32_t>(same) << i;
    }
    for (int i = 1; i < 4; ++i) repeated |= static_cast<std::uint32_t>(a.at[i] == a.at[i - 1]) << i;
#else
    for (int i = 1; i < lanes; ++i) repeated |= static_cast<std::uint32_t>(a.at[i] == a.at[i - 1]) << i;
#endif
    return m & ~(repeated & m << 1);
}

/// Words that some lanes touch, as bits of a map: 64 of them from a byte of it on.
struct NearWords {
    std::uint64_t byte = 0, bits = 0;
    std::uint64_t first = 0, last = 0;  ///< addresses
    bool near = false;                  ///< all lie there
    bool shared = false;                ///< some by two lanes
};

template <std::uint32_t bytes>
ROWS_INLINE NearWords near_words(std::uint32_t m, const Addresses& a) {
    NearWords words;
    words.first = words.last = a.at[__builtin_ctz(m)];
    for (std::uint32_t left = m & (m - 1); left; left &= left - 1) {
        const std::uint64_t at = a.at[__builtin_ctz(left)];
        words.first = at < words.first ? at : words.first;
        words.last = at > words.last ? at : words.last;
    }
    words.byte = words.first / 32;
    words.near = words.last + bytes - words.byte * 32 <= 256;
    if (!words.near) return words;
    for (std::uint32_t left = m; left; left &= left - 1) {
        const std::uint64_t at = a.at[__builtin_ctz(left)],
                            bits = std::uint64_t{ones_of<bytes>} << (at / 4 - words.byte * 8);
        words.shared |= (words.bits & bits) != 0;
        words.bits |= bits;
    }
    return words;
}

ROWS_INLINE std::uint64_t map_word(const std::uint8_t* map) {
    std::uint64_t x;
    std::memcpy(&x, map, sizeof x);
    return x;
}
ROWS_INLINE void add_to_map(std::uint8_t* map, std::uint64_t bits) {
    bits |= map_word(map);
    std::memcpy(map, &bits, sizeof bits);
}

/// Lanes that share a piece of a map if they lie side by side.
template <std::uint32_t bytes>
constexpr int lanes_at_once = bytes >= 16  ? 8
                              : bytes == 8 ? 16
                                           : lanes;

/// Whole words that nobody wrote since the last barrier, noted at once. False: look closer.
template <std::uint32_t bytes>
ROWS_INLINE bool is_free_to_read(SharedRaces& races, std::uint32_t warp, std::uint32_t instruction, std::uint32_t m,
                                 const Addresses& a) {
    std::uint8_t* const written = races.written();
    std::uint8_t* const mine = races.read_by(warp);
    const std::uint32_t distinct = distinct_lanes(m, a);
    std::uint64_t in_the_way = 0, first = ~std::uint64_t{0}, last = 0;
    constexpr int step = lanes_at_once<bytes>;
    for (int from = 0; from < lanes; from += step) {
        const std::uint32_t some = distinct & static_cast<std::uint32_t>(((std::uint64_t{1} << step) - 1) << from);
        if (some == 0) continue;
        const NearWords words = near_words<bytes>(some, a);
        first = words.first < first ? words.first : first;
        last = words.last > last ? words.last : last;
        if (words.near) {
            in_the_way |= map_word(written + words.byte) & words.bits;
            add_to_map(mine + words.byte, words.bits);
            continue;
        }
        for (std::uint32_t left = some; left; left &= left - 1) {
            const std::uint64_t at = a.at[__builtin_ctz(left)];
            const std::uint32_t bits = word_bits<bytes>(at);
            in_the_way |= written[at / 32] & bits;
            mine[at / 32] = static_cast<std::uint8_t>(mine[at / 32] | bits);
        }
    }
    if (in_the_way) return false;
    races.log(warp, instruction, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last + bytes));
    return true;
}

/// The same for a store, which nobody else may have read either.
template <std::uint32_t bytes>
ROWS_INLINE bool is_free_to_write(SharedRaces& races, const Warp& w, std::uint32_t instruction, std::uint32_t m,
                                  const Addresses& a) {
    std::uint8_t* const written = races.written();
    const std::uint8_t* const all = races.read_by(0);
    const std::uint32_t warps = races.warps(), map_bytes = races.map_bytes();
    std::uint64_t in_the_way = 0;
    constexpr int step = lanes_at_once<bytes>;
    for (int from = 0; from < lanes; from += step) {
        const std::uint32_t some = m & static_cast<std::uint32_t>(((std::uint64_t{1} << step) - 1) << from);
        if (some == 0) continue;
        const NearWords words = near_words<bytes>(some, a);
        if (words.near) {
            in_the_way |= (map_word(written + words.byte) & words.bits) | words.shared;
            add_to_map(written + words.byte, words.bits);
            for (std::uint32_t other = 0; other < warps; ++other)
                if (other != w.index)
                    in_the_way |= map_word(all + std::size_t{other} * map_bytes + words.byte) & words.bits;
            continue;
        }
        for (std::uint32_t left = some; left; left &= left - 1) {
            const std::uint64_t at = a.at[__builtin_ctz(left)];
            const std::uint32_t bits = word_bits<bytes>(at);
            in_the_way |= written[at / 32] & bits;
            written[at / 32] = static_cast<std::uint8_t>(written[at / 32] | bits);  // two lanes at one: look closer
        }
        for (std::uint32_t other = 0; other < warps; ++other) {
            if (other == w.index) continue;
            const std::uint8_t* const theirs = all + std::size_t{other} * map_bytes;
            for (std::uint32_t left = some; left; left &= left - 1) {
                const std::uint64_t at = a.at[__builtin_ctz(left)];
                in_the_way |= theirs[at / 32] & word_bits<bytes>(at);
            }
        }
    }
    if (in_the_way) return false;
    const SharedRaces::Writers& writers = races.writers();
    const std::uint32_t now = races.time(), me = SharedRaces::writer_of(w, 0) | 0xf << 1;
    if (a.contiguous) {
        const std::uint64_t first = a.at[0] / 4;
        std::uint32_t* const time = writers.time + first;
        std::uint32_t* const writer = writers.writer + first;
        std::uint32_t* const by = writers.op + first;
        constexpr std::uint32_t count = bytes / 4;
#pragma GCC ivdep
        for (std::uint32_t k = 0; k < lanes * count; ++k) {
            time[k] = now;
            writer[k] = me + (k / (count ? count : 1) << 21);
            by[k] = instruction;
        }
        return true;
    }
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        const std::uint64_t first = a.at[i] / 4;
        for (std::uint32_t k = 0; k < bytes / 4; ++k) {
            writers.time[first + k] = now;
            writers.writer[first + k] = me + (static_cast<std::uint32_t>(i) << 21);
            writers.op[first + k] = instruction;
        }
    }
    return true;
}

template <std::uint32_t bytes>
ROWS_INLINE bool is_race_free(Warp& w, const Op& op, std::uint32_t m, const Addresses& a, bool store) {
    SharedRaces& races = *w.races;
    if (bytes < 4 || races.partial()) return false;
    return store ? is_free_to_write<bytes>(races, w, op.instruction, m, a)
                 : is_free_to_read<bytes>(races, w.index, op.instruction, m, a);
}

ROWS_INLINE void narrow_offsets(const Addresses& a, std::uint32_t* at) {
    for (int i = 0; i < lanes; ++i) at[i] = static_cast<std::uint32_t>(a.at[i]);
}

template <std::uint32_t bytes>
__attribute__((noinline)) void check_access(Warp& w, const Op& op, std::uint32_t m, const Addresses& a, Access access) {
    const SpaceView& view = w.views[static_cast<int>(a.space)];
    if (view.states) {
        bool known = false;
        if (a.contiguous || a.uniform) {
            known = all_states_are(view.states + a.at[0], a.contiguous ? bytes * lanes : bytes,
                                   static_cast<std::uint8_t>(ByteState::initialised));
        } else {
            std::uint64_t differ = 0;
            for (std::uint32_t left = distinct_lanes(m, a); left; left &= left - 1) {
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

/// The words of 16 bytes of each of four lanes, turned: all first ones, all second ones and so on.
ROWS_INLINE void turn_words(const std::byte* const* from, std::uint32_t* const* to, int lane) {
#if defined(__AVX2__)
    const auto at = [&](int i) ROWS_LAMBDA { return _mm_loadu_ps(reinterpret_cast<const float*>(from[i])); };
    __m128 a = at(0), b = at(1), c = at(2), d = at(3);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_store_ps(reinterpret_cast<float*>(to[0] + lane), a);
    _mm_store_ps(reinterpret_cast<float*>(to[1] + lane), b);
    _mm_store_ps(reinterpret_cast<float*>(to[2] + lane), c);
    _mm_store_ps(reinterpret_cast<float*>(to[3] + lane), d);
#else
    for (int v = 0; v < 4; ++v)
        for (int i = 0; i < 4; ++i) to[v][lane + i] = read_memory<std::uint32_t>(from[i] + 4 * v);
#endif
}

/// M: in memory; R: the register's integer. V of them, to rows d or those in extra.
template <class M, class R, int V>
void load(Warp& w, const Op& op, std::uint32_t m) {
    constexpr std::uint32_t bytes = sizeof(M) * V;
    Addresses a;
    if (!addresses_of<bytes>(w, op, m, a, Access::load)) return;
    if (w.checked) check_access<bytes>(w, op, m, a, Access::load);
    if (w.block_races && a.space == Space::global) w.block_races->read(w, op, m, a.at, bytes);
    if (w.counted) count_access(w, m, a.space, a.at, bytes, Access::load);
    const SpaceView& view = w.views[static_cast<int>(a.space)];
    R* d[V];
    alignas(32) R nowhere[lanes];
    for (int v = 0; v < V; ++v) {
        const std::int32_t at = V == 1 ? op.d : part_of(w, op, v);
        d[v] = at ? w.row<R>(at) : nowhere;
    }
    const std::byte* const base = view.base;
    if (m == all_lanes && a.uniform) {
        for (int v = 0; v < V; ++v) {
            const R value = static_cast<R>(read_memory<M>(base + a.at[0] + static_cast<std::size_t>(v) * sizeof(M)));
            R* const row = d[v];
            for (int i = 0; i < lanes; ++i) row[i] = value;
        }
        return;
    }
    if (view.lane_stride != 0)
        for (int i = 0; i < lanes; ++i) a.at[i] += static_cast<std::uint64_t>(i) * view.lane_stride;
    if (m != all_lanes) {
        for (std::uint32_t left = m; left; left &= left - 1) {
            const int i = __builtin_ctz(left);
            const std::byte* const from = base + a.at[i];
            for (int v = 0; v < V; ++v)
                d[v][i] = static_cast<R>(read_memory<M>(from + static_cast<std::size_t>(v) * sizeof(M)));
        }
        return;
    }
    if constexpr (V == 4 && sizeof(M) == 4 && sizeof(R) == 4) {
        for (int i = 0; i < lanes; i += 4) {
            const std::byte* const from[4] = {base + a.at[i], base + a.at[i + 1], base + a.at[i + 2],
                                              base + a.at[i + 3]};
            turn_words(from, reinterpret_cast<std::uint32_t**>(d), i);
        }
        return;
    }
    for (int v = 0; v < V; ++v) {
        R* const row = d[v];
        const std::size_t part = static_cast<std::size_t>(v) * sizeof(M);
        if (a.contiguous) {
            const std::byte* const from = base + a.at[0] + part;
#pragma GCC ivdep
            for (int i = 0; i < lanes; ++i)
                row[i] = static_cast<R>(read_memory<M>(from + static_cast<std::size_t>(i) * bytes));
        } else {
            for (int i = 0; i < lanes; ++i) row[i] = static_cast<R>(read_memory<M>(base + part + a.at[i]));
        }
    }
}

template <class M, class R, int V>
ROWS_INLINE void put(Warp& w, const Op& op, std::uint32_t m, Addresses& a) {
    constexpr std::uint32_t bytes = sizeof(M) * V;
    const SpaceView& view = w.views[static_cast<int>(a.space)];
    const R* s[V];
    for (int v = 0; v < V; ++v) s[v] = w.row<R>(V == 1 ? op.b : part_of(w, op, v));
    if (view.lane_stride != 0)
        for (int i = 0; i < lanes; ++i) a.at[i] += static_cast<std::uint64_t>(i) * view.lane_stride;
    if (a.contiguous) {
        std::byte* const to = view.base + a.at[0];
        if constexpr (V == 4 && sizeof(M) == 4 && sizeof(R) == 4) {
            // Four lanes of four rows, turned, are the words of those lanes.
            for (int i = 0; i < lanes; i += 4) {
                const auto from = [&](int v) { return reinterpret_cast<const std::byte*>(s[v] + i); };
                const std::byte* const rows[4] = {from(0), from(1), from(2), from(3)};
                alignas(16) std::uint32_t turned[16];
                std::uint32_t* const parts[4] = {turned, turned + 4, turned + 8, turned + 12};
                turn_words(rows, parts, 0);
                std::memcpy(to + static_cast<std::size_t>(i) * bytes, turned, sizeof turned);
            }
            return;
        }
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
        std::byte* const to = view.base + a.at[i];
        for (int v = 0; v < V; ++v) {
            const M x = static_cast<M>(s[v][i]);
            std::memcpy(to + static_cast<std::size_t>(v) * sizeof(M), &x, sizeof x);
        }
    }
}

template <class M, class R, int V>
void store(Warp& w, const Op& op, std::uint32_t m) {
    constexpr std::uint32_t bytes = sizeof(M) * V;
    Addresses a;
    if (!addresses_of<bytes>(w, op, m, a, Access::store)) return;
    if (w.checked) check_access<bytes>(w, op, m, a, Access::store);
    if (w.counted) count_access(w, m, a.space, a.at, bytes, Access::store);
    if (__builtin_expect(w.block_races && a.space == Space::global, 0)) {
        w.block_races->keep(w, m, a.at, bytes);
        put<M, R, V>(w, op, m, a);
        w.block_races->write(w, op, m, a.at, bytes);
        return;
    }
    put<M, R, V>(w, op, m, a);
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

/// Eight rows of eight halves, turned; rows of `to` are eight halves apart.
ROWS_INLINE void turn_halves(const std::byte* const* from, std::uint16_t* to) {
#if defined(__AVX2__)
    const auto at = [&](int i) ROWS_LAMBDA { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from[i])); };
    const __m128i a0 = _mm_unpacklo_epi16(at(0), at(1)), a1 = _mm_unpackhi_epi16(at(0), at(1)),
                  a2 = _mm_unpacklo_epi16(at(2), at(3)), a3 = _mm_unpackhi_epi16(at(2), at(3)),
                  a4 = _mm_unpacklo_epi16(at(4), at(5)), a5 = _mm_unpackhi_epi16(at(4), at(5)),
                  a6 = _mm_unpacklo_epi16(at(6), at(7)), a7 = _mm_unpackhi_epi16(at(6), at(7));
    const __m128i b0 = _mm_unpacklo_epi32(a0, a2), b1 = _mm_unpackhi_epi32(a0, a2), b2 = _mm_unpacklo_epi32(a1, a3),
                  b3 = _mm_unpackhi_epi32(a1, a3), b4 = _mm_unpacklo_epi32(a4, a6), b5 = _mm_unpackhi_epi32(a4, a6),
                  b6 = _mm_unpacklo_epi32(a5, a7), b7 = _mm_unpackhi_epi32(a5, a7);
    const auto put = [&](int i, __m128i low, __m128i high) ROWS_LAMBDA {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 8 * i), _mm_unpacklo_epi64(low, high));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 8 * i + 8), _mm_unpackhi_epi64(low, high));
    };
    put(0, b0, b4);
    put(2, b1, b5);
    put(4, b2, b6);
    put(6, b3, b7);
#else
    for (int r = 0; r < 8; ++r)
        for (int c = 0; c < 8; ++c) to[8 * c + r] = read_memory<std::uint16_t>(from[r] + 2 * c);
#endif
}

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
    // A row of a matrix is four lanes of a register; turned, two rows make their low and high halves.
    for (int j = 0; j < count; ++j) {
        std::byte* const row = w.row<std::byte>(part_of(w, op, j));
        const std::uint64_t* const at = a.at + 8 * j;
        if (op.c == 0) {
            for (int r = 0; r < 8; ++r) {
                std::byte* const memory = view.base + at[r];
                std::memcpy(store ? memory : row + 16 * r, store ? row + 16 * r : memory, 16);
            }
            continue;
        }
        alignas(16) std::uint16_t turned[64];
        const std::byte* from[8];
        for (int r = 0; r < 8; ++r) from[r] = store ? row + 16 * r : view.base + at[r];
        turn_halves(from, turned);
        for (int r = 0; r < 8; ++r) std::memcpy(store ? view.base + at[r] : row + 16 * r, turned + 8 * r, 16);
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

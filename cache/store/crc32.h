#ifndef AUTOTUNE_CACHE_STORE_CRC32_H
#define AUTOTUNE_CACHE_STORE_CRC32_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace autotune {

/// CRC-32 (IEEE 802.3) of bytes as they come. It finds flipped bits, which SQLite's own checks do not.
class Crc32 {
public:
    Crc32& add(std::span<const std::byte> bytes) noexcept {
#ifdef __x86_64__
        if (bytes.size() >= 16 && can_multiply()) {
            state_ = folded(state_, bytes);
            return *this;
        }
#endif
        std::size_t i = 0;
        for (; i + 8 <= bytes.size(); i += 8) {
            std::uint32_t low = 0, high = 0;
            std::memcpy(&low, bytes.data() + i, 4);
            std::memcpy(&high, bytes.data() + i + 4, 4);
            low ^= state_;
            state_ = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^
                     table[4][low >> 24] ^ table[3][high & 0xff] ^ table[2][high >> 8 & 0xff] ^
                     table[1][high >> 16 & 0xff] ^ table[0][high >> 24];
        }
        if (i + 4 <= bytes.size()) {
            std::uint32_t low = 0;
            std::memcpy(&low, bytes.data() + i, 4);
            low ^= state_;
            state_ =
                table[3][low & 0xff] ^ table[2][low >> 8 & 0xff] ^ table[1][low >> 16 & 0xff] ^ table[0][low >> 24];
            i += 4;
        }
        for (; i < bytes.size(); ++i)
            state_ = table[0][(state_ ^ std::to_integer<std::uint32_t>(bytes[i])) & 0xff] ^ (state_ >> 8);
        return *this;
    }
    template <class Number>
    requires std::is_arithmetic_v<Number> Crc32& add(Number number) noexcept {
        return add(std::as_bytes(std::span{&number, 1}));
    }
    std::uint32_t value() const noexcept { return ~state_; }

private:
#ifdef __x86_64__
    static bool can_multiply() noexcept {
        static const bool can = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
        return can;
    }
    /// Sixteen bytes a step, by products of polynomials: a third of the table's time for a record. At least 16 bytes.
    /// source  Gopal et al., Fast CRC computation using PCLMULQDQ, Intel 2009
    static std::uint32_t folded(std::uint32_t state, std::span<const std::byte> bytes) noexcept;
#endif
    /// Eight bytes a step: row k is what a byte does k bytes later.
    static constexpr std::array<std::array<std::uint32_t, 256>, 8> table = [] {
        std::array<std::array<std::uint32_t, 256>, 8> rows{};
        for (std::uint32_t i = 0; i < 256; ++i) {
            std::uint32_t row = i;
            for (int bit = 0; bit < 8; ++bit) row = row & 1 ? (row >> 1) ^ 0xedb88320u : row >> 1;
            rows[0][i] = row;
        }
        for (std::size_t k = 1; k < rows.size(); ++k)
            for (std::size_t i = 0; i < 256; ++i) rows[k][i] = rows[0][rows[k - 1][i] & 0xff] ^ (rows[k - 1][i] >> 8);
        return rows;
    }();
    std::uint32_t state_ = ~std::uint32_t{0};
};

inline std::uint32_t crc32(std::span<const std::byte> bytes) noexcept { return Crc32{}.add(bytes).value(); }
inline std::uint32_t crc32(std::string_view text) noexcept { return crc32(std::as_bytes(std::span{text})); }

}  // namespace autotune
#endif

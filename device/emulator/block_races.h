#ifndef AUTOTUNE_DEVICE_EMULATOR_BLOCK_RACES_H
#define AUTOTUNE_DEVICE_EMULATOR_BLOCK_RACES_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "device/emulator/warp.h"

namespace autotune::emulator {

/// Conflicting accesses of two blocks of a launch to global memory: by word of four bytes the last block that changed
/// it and the blocks that read it. A block is ordered behind another only by an access that both may see at once, an
/// atomic or a volatile one say; a block that has made one is taken to know of all others, so that none that is ordered
/// is told. Not told either: stores that change nothing, parts of words, copies of matrices and bulk copies.
class BlockRaces {
public:
    /// A launch of so many blocks. What was noted in others counts no more.
    void begin(std::uint64_t blocks);

    // One warp's access to global memory: lane i touches [at[i], at[i] + bytes), offsets in that space. Throws a Fault
    // on a conflict.
    void read(Warp& warp, const Op& op, std::uint32_t mask, const std::uint64_t* at, std::uint32_t bytes);
    /// Behind the store; `keep` comes before it.
    void write(Warp& warp, const Op& op, std::uint32_t mask, const std::uint64_t* at, std::uint32_t bytes);
    void keep(const Warp& warp, std::uint32_t mask, const std::uint64_t* at, std::uint32_t bytes);

    /// Op::small of loads and stores that order blocks, or hint at that.
    static constexpr std::uint16_t strong = 1;

private:
    static constexpr std::uint64_t words_a_page = 1024;
    /// Memory that is looked after ends there: 64 MiB, with 256 of notes.
    static constexpr std::size_t most_pages = std::size_t{1} << 14;
    static constexpr std::uint32_t piece =
        16;  ///< bytes of the widest access of a lane, noted at once where it is read
    struct Reader {
        std::uint32_t block, op;
    };
    struct Writer {
        std::uint32_t block, op;
    };
    struct Page {
        std::uint32_t written;  ///< in this launch from its first block's number on
        Writer writers[words_a_page];
        Reader readers[words_a_page];             ///< of single words
        Reader pieces[words_a_page * 4 / piece];  ///< of whole ones
    };

    Page* page_of(std::uint64_t at);
    void check_writers(Warp& warp, const Op& op, int lane, const Page& page, std::uint64_t at,
                       std::uint32_t bytes) const;
    void note(Reader& reader, std::uint32_t mine, const Op& op) const noexcept;
    std::uint32_t number_of(const Warp& warp) const noexcept;
    bool is_another(std::uint32_t block, std::uint32_t mine) const noexcept { return block >= base_ && block != mine; }
    [[noreturn]] void conflict(Warp& warp, const Op& op, int lane, std::uint64_t at, const char* doing,
                               const char* other, std::uint32_t other_op, std::uint32_t other_block) const;

    std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
    std::uint64_t last_number_ = ~std::uint64_t{0};  ///< the page that was asked for last
    Page* last_page_ = nullptr;
    std::uint32_t base_ = 1, several_ = 1;  ///< of this launch: its first block, and that of more than one
    std::array<std::byte, lanes * piece> kept_{};
};

}  // namespace autotune::emulator
#endif

#include "device/emulator/block_races.h"

#include <fmt/format.h>

#include <cstring>

#include "device/emulator/accesses.h"
#include "device/emulator/block.h"
#include "device/emulator/fault.h"

namespace autotune::emulator {
namespace {

/// In the place of the op that wrote: only a part of the word, which is not looked after.
constexpr std::uint32_t partly = no_pc;

std::string name_of_block(const LaunchState& launch, std::uint64_t number) {
    const Dim3& grid = launch.grid;
    return fmt::format("block ({},{},{})", number % grid.x, number / grid.x % grid.y, number / grid.x / grid.y);
}

}  // namespace

void BlockRaces::begin(std::uint64_t blocks) {
    const std::uint64_t first = std::uint64_t{several_} + 1;
    if (first + blocks > 0xfffffff0u) {
        pages_.clear();
        last_page_ = nullptr;
        last_number_ = ~std::uint64_t{0};
    }
    base_ = first + blocks > 0xfffffff0u ? 1 : static_cast<std::uint32_t>(first);
    several_ = base_ + static_cast<std::uint32_t>(blocks);
}

BlockRaces::Page* BlockRaces::page_of(std::uint64_t at) {
    const std::uint64_t number = at / (4 * words_a_page);
    if (number != last_number_) {
        const auto found = pages_.find(number);
        if (found == pages_.end() && pages_.size() >= most_pages) return nullptr;
        last_page_ = found != pages_.end() ? found->second.get()
                                           : pages_.emplace(number, std::make_unique<Page>()).first->second.get();
        last_number_ = number;
    }
    return last_page_;
}

std::uint32_t BlockRaces::number_of(const Warp& warp) const noexcept {
    return base_ + static_cast<std::uint32_t>(warp.block->number);
}

void BlockRaces::check_writers(Warp& warp, const Op& op, int lane, const Page& page, std::uint64_t at,
                               std::uint32_t bytes) const {
    const std::uint32_t mine = number_of(warp);
    for (std::uint32_t k = 0; k < bytes; k += 4) {
        const Writer& writer = page.writers[(at + k) / 4 % words_a_page];
        if (is_another(writer.block, mine) && writer.op != partly)
            conflict(warp, op, lane, at + k, "a load", "a store", writer.op, writer.block);
    }
}

void BlockRaces::note(Reader& reader, std::uint32_t mine, const Op& op) const noexcept {
    if (reader.block == mine || reader.block == several_) return;
    if (reader.block < base_)
        reader = {mine, op.instruction};
    else
        reader.block = several_;
}

void BlockRaces::read(Warp& warp, const Op& op, std::uint32_t mask, const std::uint64_t* at, std::uint32_t bytes) {
    if (op.small & strong) {
        warp.block->in_touch = true;
        return;
    }
    const std::uint32_t mine = number_of(warp);
    const bool alone = !warp.block->in_touch;
    std::uint64_t before = ~std::uint64_t{0};
    for (std::uint32_t left = mask; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        if (at[i] == before) continue;
        before = at[i];
        Page* const page = page_of(at[i]);
        if (!page) continue;
        if (alone && page->written >= base_) check_writers(warp, op, i, *page, at[i], bytes);
        const std::uint64_t word = at[i] / 4 % words_a_page;
        if (bytes == piece)
            note(page->pieces[word * 4 / piece], mine, op);
        else
            for (std::uint32_t k = 0; k < bytes / 4; ++k) note(page->readers[word + k], mine, op);
    }
}

void BlockRaces::keep(const Warp& warp, std::uint32_t mask, const std::uint64_t* at, std::uint32_t bytes) {
    const std::byte* const base = warp.views[static_cast<int>(Space::global)].base;
    for (std::uint32_t left = mask; left; left &= left - 1) {
        const auto i = static_cast<std::size_t>(__builtin_ctz(left));
        std::memcpy(kept_.data() + i * piece, base + at[i], bytes);
    }
}

void BlockRaces::write(Warp& warp, const Op& op, std::uint32_t mask, const std::uint64_t* at, std::uint32_t bytes) {
    if (op.small & strong) {
        warp.block->in_touch = true;
        return;
    }
    const std::byte* const base = warp.views[static_cast<int>(Space::global)].base;
    const std::uint32_t mine = number_of(warp);
    const bool alone = !warp.block->in_touch;
    for (std::uint32_t left = mask; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        const std::byte* const kept = kept_.data() + static_cast<std::size_t>(i) * piece;
        if (std::memcmp(base + at[i], kept, bytes) == 0) continue;
        Page* const page = page_of(at[i]);
        if (!page) continue;
        page->written = several_;
        const std::uint64_t first = at[i] / 4 % words_a_page;
        if (bytes < 4) {
            page->writers[first] = {mine, partly};
            continue;
        }
        const Reader& whole = page->pieces[first * 4 / piece];
        for (std::uint32_t k = 0; k < bytes / 4; ++k) {
            if (std::memcmp(base + at[i] + 4 * k, kept + 4 * k, 4) == 0) continue;
            Writer& writer = page->writers[first + k];
            if (alone && is_another(writer.block, mine) && writer.op != partly)
                conflict(warp, op, i, at[i] + 4 * k, "a store", "a store", writer.op, writer.block);
            for (const Reader& reader : {page->readers[first + k], whole})
                if (alone && is_another(reader.block, mine))
                    conflict(warp, op, i, at[i] + 4 * k, "a store", "a load", reader.op, reader.block);
            writer = {mine, op.instruction};
        }
    }
}

void BlockRaces::conflict(Warp& warp, const Op& op, int lane, std::uint64_t at, const char* doing, const char* other,
                          std::uint32_t other_op, std::uint32_t other_block) const {
    const LaunchState& launch = *warp.block->launch;
    const Op* found = nullptr;
    for (const Op& candidate : warp.program->ops)
        if (candidate.instruction == other_op) found = &candidate;
    const std::uint64_t address = warp.views[static_cast<int>(Space::global)].start + at;
    fail(
        warp, op, lane, DeviceFault::Kind::race,
        fmt::format("{} of global memory conflicts, with nothing that orders the blocks,", doing),
        fmt::format("{}, with {} of {}", beside(launch, address), other,
                    other_block == several_ ? std::string{"other blocks"} : name_of_block(launch, other_block - base_)),
        address, found);
}

}  // namespace autotune::emulator

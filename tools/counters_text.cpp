#include "tools/counters_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "device/occupancy.h"
#include "tools/format.h"

namespace autotune {
namespace {

using emulator::CountedLaunch;
using emulator::Counters;

constexpr std::size_t line_width = 100, label_width = 26, cell_width = 14;

/// A column is a weighted sum of what was counted in the middle and at the end of the grid. Doubles: a large grid's sum
/// need not fit 64 bits.
struct CountColumn {
    std::string_view title;
    double of_interior, of_edge;
};

std::vector<CountColumn> columns_of(const CountedLaunch& launch) {
    if (launch.blocks <= 1) return {{"the block", 0, 1}};
    const auto all = static_cast<double>(launch.blocks);
    const double last = static_cast<double>(std::max<std::uint64_t>(launch.edge.blocks, 1));
    if (launch.interior.blocks == 0) return {{"a block", 0, 1 / last}, {"launch", 0, all / last}};
    const auto inside = static_cast<double>(launch.interior.blocks);
    return {{"a block", 1 / inside, 0}, {"last block", 0, 1 / last}, {"launch", (all - last) / inside, 1}};
}

std::string count_words(double count) {
    if (count < 1e6) return fmt::format("{:.0f}", count);
    if (count < 1e9) return fmt::format("{:.2f} M", count / 1e6);
    if (count < 1e12) return fmt::format("{:.2f} G", count / 1e9);
    return fmt::format("{:.2f} T", count / 1e12);
}

std::string byte_words(double bytes) {
    constexpr double most = 1e18;
    return format_bytes(static_cast<std::uint64_t>(std::min(bytes, most)));
}

std::string limit_words(Occupancy::Limit limit) {
    switch (limit) {
        case Occupancy::Limit::warps:
            return "warps";
        case Occupancy::Limit::registers:
            return "registers";
        case Occupancy::Limit::shared:
            return "shared memory";
        case Occupancy::Limit::barriers:
            return "barriers";
        case Occupancy::Limit::blocks:
            return "blocks an SM";
    }
    return {};
}

class CountTable {
public:
    CountTable(const CountedLaunch& launch, const DeviceLimits& limits, std::string& out)
        : launch_{launch}, limits_{limits}, columns_{columns_of(launch)}, out_{out} {}

    void print() {
        head();
        if (launch_.blocks == 0) return;
        line(pad_right("", label_width), [](const CountColumn& column) { return std::string{column.title}; });
        instructions();
        work();
        global_memory();
        shared_memory();
    }

private:
    void head() {
        const Dim3 grid = launch_.grid, block = launch_.block;
        fmt::format_to(std::back_inserter(out_), "  {}\n    grid {}x{}x{}, block {}x{}x{}{}; {}\n",
                       cut(launch_.entry, line_width - 2), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                       launch_.repeat > 1 ? fmt::format(", {} times", launch_.repeat) : "",
                       launch_.blocks == 0   ? "no block runs"
                       : launch_.blocks == 1 ? "its one block was counted"
                                             : fmt::format("{} of its {} blocks were counted",
                                                           launch_.interior.blocks + launch_.edge.blocks,
                                                           count_words(static_cast<double>(launch_.blocks))));
        resources();
    }

    void resources() {
        const KernelInfo& kernel = launch_.resources;
        if (kernel.registers == 0) {
            out_ += "    registers and occupancy are not known: there is no cubin\n";
            return;
        }
        fmt::format_to(
            std::back_inserter(out_), "    {} a thread, {}, {} of shared memory a block\n",
            format_count(static_cast<std::size_t>(kernel.registers), "register", "registers"),
            kernel.spill_bytes > 0 ? byte_words(static_cast<double>(kernel.spill_bytes)) + " spilled" : "none spilled",
            byte_words(static_cast<double>(kernel.static_shared_bytes) + launch_.shared_bytes));
        occupancy_line(kernel);
    }

    void occupancy_line(const KernelInfo& kernel) {
        const std::uint64_t threads = std::uint64_t{launch_.block.x} * launch_.block.y * launch_.block.z;
        const Occupancy found =
            occupancy(limits_, {.threads = static_cast<int>(std::min<std::uint64_t>(threads, 1 << 20)),
                                .registers = kernel.registers,
                                .static_shared_bytes = kernel.static_shared_bytes,
                                .dynamic_shared_bytes = launch_.shared_bytes,
                                .barriers = kernel.barriers});
        if (found.blocks == 0) {
            fmt::format_to(std::back_inserter(out_), "    not one block fits an SM: {}\n", limit_words(found.limit));
            return;
        }
        const auto warp = static_cast<std::uint64_t>(limits_.warp);
        const std::uint64_t warps = (threads + warp - 1) / warp * static_cast<std::uint64_t>(found.blocks);
        const std::uint64_t most = static_cast<std::uint64_t>(limits_.threads_per_sm) / warp;
        fmt::format_to(std::back_inserter(out_), "    occupancy {:.2f}: {} an SM, {} of {} warps, limited by {}{}\n",
                       static_cast<double>(warps) / static_cast<double>(std::max<std::uint64_t>(most, 1)),
                       format_count(static_cast<std::size_t>(found.blocks), "block", "blocks"), warps, most,
                       limit_words(found.limit), waves(found));
    }

    std::string waves(const Occupancy& found) const {
        if (limits_.sm_count <= 0) return {};
        const double at_once = static_cast<double>(found.blocks) * limits_.sm_count;
        const double rounds = static_cast<double>(launch_.blocks) / at_once;
        return fmt::format("; {} waves on {} SMs", rounds < 1e3 ? fmt::format("{:.2f}", rounds) : count_words(rounds),
                           limits_.sm_count);
    }

    void instructions() {
        sum("warp instructions", &Counters::instructions);
        for (std::size_t kind = 0; kind < emulator::op_class_names.size(); ++kind) {
            const auto issued = [&](const CountColumn& column) { return of_class(column, kind); };
            const double total = of(columns_.back(), &Counters::instructions);
            if (std::ranges::all_of(columns_, [&](const CountColumn& column) { return issued(column) == 0; })) continue;
            row(fmt::format("  {} ({:.0f} %)", emulator::op_class_names[kind],
                            total > 0 ? 100 * issued(columns_.back()) / total : 0.0),
                [&](const CountColumn& column) { return count_words(issued(column)); });
        }
        ratio("lanes an instruction", &Counters::lane_instructions, &Counters::instructions);
        sum("divergent branches", &Counters::divergent_branches);
        sum("warps at barriers", &Counters::barriers);
    }

    void work() {
        sum("flops", &Counters::flops, Zero::left_out);
        bytes("local memory", &Counters::local_bytes, Zero::left_out);
    }

    void global_memory() {
        if (occurs(&Counters::global_load_requests)) {
            sum("global load requests", &Counters::global_load_requests);
            ratio("  sectors a request", &Counters::global_load_sectors, &Counters::global_load_requests);
            bytes("  bytes asked for", &Counters::global_load_bytes);
        }
        if (occurs(&Counters::global_store_requests)) {
            sum("global store requests", &Counters::global_store_requests);
            ratio("  sectors a request", &Counters::global_store_sectors, &Counters::global_store_requests);
            bytes("  bytes written", &Counters::global_store_bytes);
        }
        sum("atomic requests", &Counters::atomic_requests, Zero::left_out);
        bytes("asynchronous copies", &Counters::async_bytes, Zero::left_out);
    }

    void shared_memory() {
        if (!occurs(&Counters::shared_load_requests) && !occurs(&Counters::shared_store_requests)) return;
        sum("shared load requests", &Counters::shared_load_requests);
        ratio("  wavefronts a request", &Counters::shared_load_wavefronts, &Counters::shared_load_requests);
        bytes("  bytes read", &Counters::shared_load_bytes);
        sum("shared store requests", &Counters::shared_store_requests);
        ratio("  wavefronts a request", &Counters::shared_store_wavefronts, &Counters::shared_store_requests);
        bytes("  bytes written", &Counters::shared_store_bytes);
        sum("bank conflicts", &Counters::shared_conflicts);
    }

    // ---- Rows.

    using Sum = std::uint64_t Counters::*;
    enum class Zero { shown, left_out };

    double of(const CountColumn& column, Sum sum) const {
        return column.of_interior * static_cast<double>(launch_.interior.*sum) +
               column.of_edge * static_cast<double>(launch_.edge.*sum);
    }
    double of_class(const CountColumn& column, std::size_t kind) const {
        return column.of_interior * static_cast<double>(launch_.interior.classes[kind].warps) +
               column.of_edge * static_cast<double>(launch_.edge.classes[kind].warps);
    }
    bool occurs(Sum sum) const { return launch_.interior.*sum > 0 || launch_.edge.*sum > 0; }

    void sum(std::string_view label, Sum what, Zero zero = Zero::shown) {
        if (zero == Zero::left_out && !occurs(what)) return;
        row(label, [&](const CountColumn& column) { return count_words(of(column, what)); });
    }
    void bytes(std::string_view label, Sum what, Zero zero = Zero::shown) {
        if (zero == Zero::left_out && !occurs(what)) return;
        row(label, [&](const CountColumn& column) { return byte_words(of(column, what)); });
    }
    /// A dash where there is nothing to divide by.
    void ratio(std::string_view label, Sum above, Sum below) {
        row(label, [&](const CountColumn& column) {
            const double divisor = of(column, below);
            return divisor > 0 ? fmt::format("{:.2f}", of(column, above) / divisor) : std::string{"-"};
        });
    }

    template <class Cell>
    void row(std::string_view label, const Cell& cell) {
        line(pad_right(label, label_width), cell);
    }
    template <class Cell>
    void line(const std::string& label, const Cell& cell) {
        out_ += "    " + label;
        for (const CountColumn& column : columns_) out_ += pad_left(cell(column), cell_width);
        out_ += '\n';
    }

    const CountedLaunch& launch_;
    const DeviceLimits& limits_;
    std::vector<CountColumn> columns_;
    std::string& out_;
};

}  // namespace

std::string counters_text(std::span<const CountedLaunch> launches, const DeviceLimits& limits) {
    std::string text = "counted by the emulator, not measured\n";
    for (const CountedLaunch& launch : launches) CountTable{launch, limits, text}.print();
    return text;
}

}  // namespace autotune

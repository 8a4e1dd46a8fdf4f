#include "tools/counters_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "tools/format.h"
#include "tools/launch_figures.h"

namespace autotune {
namespace {

using emulator::CountedLaunch;
using emulator::Counters;

constexpr std::size_t line_width = 100, label_width = 26, cell_width = 14;

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
        fmt::format_to(std::back_inserter(out_), "  {}\n    grid {}x{}x{}, block {}x{}x{}{}\n    ",
                       cut(launch_.entry, line_width - 2), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                       launch_.repeat > 1 ? fmt::format(", {} times", launch_.repeat) : "");
        if (launch_.blocks == 0)
            out_ += "no block runs\n";
        else if (launch_.blocks == 1)
            out_ += "counted on the emulator over its one block\n";
        else
            fmt::format_to(std::back_inserter(out_), "counted on the emulator over {} of its {} blocks\n",
                           launch_.interior.blocks + launch_.edge.blocks,
                           count_words(static_cast<double>(launch_.blocks)));
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
        occupancy_lines();
    }

    void occupancy_lines() {
        const LaunchOccupancy filled = occupancy_of(launch_, limits_);
        if (filled.found.blocks == 0) {
            fmt::format_to(std::back_inserter(out_), "    not one block fits an SM: {}\n",
                           limit_words(filled.found.limit));
            return;
        }
        fmt::format_to(std::back_inserter(out_), "    occupancy {:.2f}: {} an SM, {} of {} warps, limited by {}{}\n",
                       filled.theoretical,
                       format_count(static_cast<std::size_t>(filled.found.blocks), "block", "blocks"), filled.warps,
                       filled.most_warps, limit_words(filled.found.limit), waves(filled.waves));
        if (filled.waves > 0)
            fmt::format_to(std::back_inserter(out_),
                           "    achieved occupancy {} with the last wave, if all blocks take equally long\n",
                           filled.achieved < 0.01 ? fmt::format("{:.2g}", filled.achieved)
                                                  : fmt::format("{:.2f}", filled.achieved));
    }

    std::string waves(double count) const {
        if (count <= 0) return {};
        return fmt::format("; {} waves on {} SMs", count < 1e3 ? fmt::format("{:.2f}", count) : count_words(count),
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
            percent("  memory efficiency", &Counters::global_load_bytes, &Counters::global_load_sectors, sector_bytes);
            bytes("  bytes asked for", &Counters::global_load_bytes);
        }
        if (occurs(&Counters::global_store_requests)) {
            sum("global store requests", &Counters::global_store_requests);
            ratio("  sectors a request", &Counters::global_store_sectors, &Counters::global_store_requests);
            percent("  memory efficiency", &Counters::global_store_bytes, &Counters::global_store_sectors,
                    sector_bytes);
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

    double of(const CountColumn& column, Sum sum) const { return sum_of(column, launch_, sum); }
    double of_class(const CountColumn& column, std::size_t kind) const { return class_of(column, launch_, kind); }
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

    /// Of so many of `below` as a whole; a dash as above.
    void percent(std::string_view label, Sum above, Sum below, double each) {
        row(label, [&](const CountColumn& column) {
            const double divisor = of(column, below) * each;
            return divisor > 0 ? fmt::format("{:.0f} %", 100 * of(column, above) / divisor) : std::string{"-"};
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
    std::string text;
    for (const CountedLaunch& launch : launches) CountTable{launch, limits, text}.print();
    return text;
}

}  // namespace autotune

// What a config costs each strategy, of spaces of 10^5 and 10^7 configs where nothing but the strategy takes time.
//
//   ask_bench [--evaluations 200] [STRATEGY ...]
//
// One line a strategy: the median, the 90 % quantile and the most of the milliseconds from an ask to the end of its
// tell, the median of the last twenty, and the best time that was found. Times are those of the core.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <limits>
#include <string>
#include <vector>

#include "autotune/error.h"
#include "tuner/strategy.h"

using namespace autotune;

namespace {

/// A space of ten values to the power of `parameters`, some of them powers of two.
Op made_up(std::size_t parameters) {
    Op op;
    op.name = "made_up";
    Variant variant{.name = "made_up", .source = "made_up.cu", .entry = "made_up"};
    for (std::size_t p = 0; p < parameters; ++p) {
        Parameter parameter{.name = fmt::format("P{}", p)};
        for (std::int64_t i = 0; i < 10; ++i) parameter.values.emplace_back(p % 2 ? std::int64_t{1} << i : i + 1);
        variant.parameters.push_back(std::move(parameter));
    }
    op.variants.push_back(std::move(variant));
    return op;
}

/// A bowl whose axes depend on each other, and a twelfth of it fails.
Outcome made_up_outcome(const Space& space, std::size_t number) {
    const Space::Row row = space.row(number);
    double sum = 0;
    for (std::size_t p = 0; p < row.size(); ++p) {
        const double off = row[p] - 6 + (p > 0 ? 0.4 * (row[p - 1] - 6.0) : 0);
        sum += off * off;
    }
    if ((row[0] + row[1]) % 12 == 11) return {.ending = Ending::launch_failed};
    return {.ending = Ending::timed, .time_us = 100 * std::exp(0.02 * sum)};
}

struct Asks {
    std::vector<double> ms;  ///< of each config, in the order of asks
    double best_us = std::numeric_limits<double>::infinity();
};

/// Time of this process on a core, which others on the machine do not add to.
double now_ms() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

Asks search(const Space& space, Strategy& strategy, std::size_t evaluations) {
    Asks asks;
    while (asks.ms.size() < evaluations) {
        const double begin = now_ms();
        const std::vector<std::size_t> asked = strategy.ask(1);
        if (asked.empty()) break;
        const Outcome outcome = made_up_outcome(space, asked.front());
        if (outcome.ok()) asks.best_us = std::min(asks.best_us, outcome.time_us);
        strategy.tell(asked.front(), outcome);
        asks.ms.push_back(now_ms() - begin);
    }
    return asks;
}

void print(std::string_view strategy, Asks asks) {
    constexpr std::size_t most_last = 20;
    std::vector<double>& ms = asks.ms;
    std::vector<double> last{ms.end() - static_cast<std::ptrdiff_t>(std::min(most_last, ms.size())), ms.end()};
    std::ranges::sort(ms);
    std::ranges::sort(last);
    fmt::print("{:<14}{:>10.2f}{:>10.2f}{:>10.2f}{:>16.2f}{:>10.1f}\n", strategy, ms[ms.size() / 2],
               ms[ms.size() * 9 / 10], ms.back(), last[last.size() / 2], asks.best_us);
    std::fflush(stdout);
}

void run(const std::vector<std::string>& names, std::size_t evaluations) {
    for (const std::size_t parameters : {5, 7}) {
        const Op op = made_up(parameters);
        const Space space = Space::make(Instance::make(op, {}, DeviceLimits{}));
        fmt::print("{} configs: ms a config\n{:<14}{:>10}{:>10}{:>10}{:>16}{:>10}\n", space.size(), "strategy",
                   "median", "90 %", "most", "median of last", "best");
        for (const std::string& name : names)
            print(name, search(space, *strategy_named(name).make(space, 1), evaluations));
    }
}

}  // namespace

int main(int count, char** arguments) {
    std::vector<std::string> names;
    std::size_t evaluations = 200;
    CLI::App app{"what a config costs each strategy"};
    app.add_option("strategies", names, "default: all but exhaustive");
    app.add_option("--evaluations", evaluations, "of a search")->check(CLI::PositiveNumber);
    CLI11_PARSE(app, count, arguments);
    if (names.empty())
        for (const StrategyEntry& entry : strategies())
            if (entry.name != "exhaustive") names.emplace_back(entry.name);
    try {
        run(names, evaluations);
        return 0;
    } catch (const Error& e) {
        fmt::print(stderr, "error: {}\n", e.what());
        return exit_code(e.kind());
    }
}

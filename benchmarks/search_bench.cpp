// How few evaluations each strategy needs on recorded spaces: every strategy of the table on every space, many seeds.
//
//   search_bench --spaces DIR [--strategies a,b] [--seeds 50] [--evaluations 400] [--only TEXT] [--threads N] [--csv
//   FILE]
//
// Prints per space, then over all: optimum/best after 10 to 400 evaluations, evaluations to within 5 % and 1 %, and the
// score of docs/search.md, for which random search gets 0.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "autotune/error.h"
#include "tuner/replay/replay.h"
#include "tuner/replay/transfer.h"

using namespace autotune;

namespace {

struct Options {
    std::string spaces, strategies, only;
    std::size_t seeds = 50, evaluations = 400, threads = 0, window = 1;
    bool leave_one_out = false;
};

std::vector<std::string> listed(const std::string& text) {
    std::vector<std::string> names;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        names.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return names;
}

std::vector<RecordedSpace> read_spaces(const Options& options) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator{options.spaces})
        if (entry.path().string().ends_with(".csv.gz")) files.push_back(entry.path());
    std::ranges::sort(files);
    std::vector<RecordedSpace> spaces;
    const std::vector<std::string> wanted = listed(options.only);
    for (const auto& file : files)
        if (wanted.empty() || std::ranges::any_of(wanted, [&](const std::string& part) {
                return file.filename().string().find(part) != std::string::npos;
            }))
            spaces.push_back(RecordedSpace::read(file));
    if (spaces.empty()) throw Error{Error::Kind::usage, fmt::format("there is no .csv.gz in '{}'", options.spaces)};
    return spaces;
}

std::vector<const StrategyEntry*> chosen(const Options& options) {
    std::vector<const StrategyEntry*> entries;
    if (options.strategies.empty())
        for (const StrategyEntry& row : strategies()) entries.push_back(&row);
    for (const std::string& name : listed(options.strategies)) {
        const StrategyEntry* entry = strategy_named(name);
        if (!entry) throw Error{Error::Kind::usage, fmt::format("there is no strategy '{}'", name)};
        entries.push_back(entry);
    }
    return entries;
}

/// Makes a strategy for the space of this place in the list.
using Maker = std::function<std::unique_ptr<Strategy>(std::size_t space, std::uint64_t seed)>;

/// Seeds 1 to `seeds` of one strategy on every space: spaces x seeds.
std::vector<std::vector<ReplayRun>> run_all(const std::vector<RecordedSpace>& spaces, const Maker& make,
                                            const Options& options) {
    std::vector<std::vector<ReplayRun>> runs(spaces.size(), std::vector<ReplayRun>(options.seeds));
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
        for (std::size_t job = next++; job < spaces.size() * options.seeds; job = next++) {
            const std::size_t space = job / options.seeds, seed = job % options.seeds;
            const auto strategy = make(space, seed + 1);
            runs[space][seed] = replay(spaces[space], *strategy, options.evaluations, options.window);
        }
    };
    std::vector<std::jthread> threads;
    const std::size_t count = options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency());
    for (std::size_t i = 1; i < count; ++i) threads.emplace_back(work);
    work();
    threads.clear();
    return runs;
}

std::string row(const std::string& name, const ReplayFigures& f) {
    constexpr std::size_t tenth = 3;  // after 100 evaluations
    std::string text = fmt::format("{:<30}{:>7.3f}", name, f.score.value_or(0));
    for (const double mean : f.mean) text += fmt::format("{:>7.3f}", mean);
    text += fmt::format("{:>7.3f}", tenth < f.worst_tenth.size() ? f.worst_tenth[tenth] : 0);
    text += fmt::format("{:>7.2f}{:>7.2f}", f.within_5pct.share, f.within_1pct.share);
    const auto count = [](const std::optional<double>& e) { return e ? fmt::format("{:.0f}", *e) : std::string{"-"}; };
    text += fmt::format("{:>7}{:>7}{:>7}{:>7}", count(f.within_5pct.median), count(f.within_5pct.p90),
                        count(f.within_1pct.median), count(f.within_1pct.p90));
    return text + fmt::format("{:>8.3f}{:>9.3f}", f.failed_share, f.ask_ms);
}

ReplayFigures averaged(const std::vector<ReplayFigures>& all) {
    ReplayFigures sum = all.front();
    const auto count = static_cast<double>(all.size());
    sum.within_5pct = sum.within_1pct = {};
    sum.failed_share = sum.ask_ms = 0;
    std::ranges::fill(sum.mean, 0);
    std::ranges::fill(sum.worst_tenth, 0);
    double score = 0;
    for (const ReplayFigures& one : all) {
        for (std::size_t i = 0; i < sum.mean.size(); ++i) sum.mean[i] += one.mean[i] / count;
        for (std::size_t i = 0; i < sum.mean.size(); ++i) sum.worst_tenth[i] += one.worst_tenth[i] / count;
        score += one.score.value_or(0) / count;
        sum.within_5pct.share += one.within_5pct.share / count;
        sum.within_1pct.share += one.within_1pct.share / count;
        sum.failed_share += one.failed_share / count;
        sum.ask_ms = std::max(sum.ask_ms, one.ask_ms);
    }
    sum.score = score;
    return sum;
}

void print_head(const std::string& name, const ReplayFigures& figures) {
    std::string text = fmt::format("{:<30}{:>7}", name, "score");
    for (const std::size_t point : figures.points) text += fmt::format("{:>7}", fmt::format("@{}", point));
    fmt::print("{}  10%@100 in 5%  in 1%   to 5% (p90)   to 1% (p90)  failing  ask ms\n", text);
}

ReplayFigures compare(const std::string& name, const std::vector<RecordedSpace>& spaces, const Maker& make,
                      const Options& options) {
    const auto runs = run_all(spaces, make, options);
    std::vector<ReplayFigures> all;
    for (std::size_t i = 0; i < spaces.size(); ++i) all.push_back(figures_of(spaces[i], runs[i], options.evaluations));
    print_head(name, all.front());
    for (std::size_t i = 0; i < spaces.size(); ++i) fmt::print("  {}\n", row(spaces[i].name(), all[i]));
    fmt::print("  {}\n\n", row("all", averaged(all)));
    std::fflush(stdout);
    return averaged(all);
}

/// What the other devices' records of the same kernel tell of each space; those that have none are left out.
std::vector<Knowledge> transfers(std::vector<RecordedSpace>& spaces) {
    const auto others = [&](const RecordedSpace& space) {
        std::vector<const RecordedSpace*> records;
        for (const RecordedSpace& other : spaces)
            if (&other != &space && other.kernel() == space.kernel()) records.push_back(&other);
        return records;
    };
    std::vector<Knowledge> knowledge;
    std::vector<bool> alone;
    for (const RecordedSpace& space : spaces) {
        const auto records = others(space);
        alone.push_back(records.empty());
        if (!records.empty()) knowledge.push_back(transfer(space.space(), records));
    }
    std::size_t at = 0;
    std::erase_if(spaces, [&](const RecordedSpace&) { return alone[at++]; });
    return knowledge;
}

int run(const Options& options) {
    std::vector<RecordedSpace> spaces = read_spaces(options);
    std::vector<std::pair<std::string, ReplayFigures>> totals;
    std::vector<Knowledge> knowledge;
    if (options.leave_one_out) {
        knowledge = transfers(spaces);
        if (spaces.empty()) throw Error{Error::Kind::usage, "no kernel has records of two devices"};
        const auto with_transfer = [&](std::size_t space, std::uint64_t seed) {
            return make_guided_by(spaces[space].space(), seed, knowledge[space]);
        };
        totals.emplace_back("guided, other devices known",
                            compare("guided, other devices known", spaces, with_transfer, options));
    }
    for (const StrategyEntry* entry : chosen(options)) {
        const auto plain = [&](std::size_t space, std::uint64_t seed) {
            return entry->make(spaces[space].space(), seed);
        };
        totals.emplace_back(entry->name, compare(std::string{entry->name}, spaces, plain, options));
    }
    print_head(fmt::format("{} spaces, seeds 1 to {}", spaces.size(), options.seeds), totals.front().second);
    for (const auto& [name, figures] : totals) fmt::print("{}\n", row(name, figures));
    return 0;
}

}  // namespace

int main(int count, char** arguments) {
    Options options;
    CLI::App app{"searches recorded spaces with every strategy"};
    app.add_option("--spaces", options.spaces, "the folder with the .csv.gz files")->required();
    app.add_option("--strategies", options.strategies, "names, with commas between; default: all");
    app.add_option("--only", options.only, "spaces whose names hold one of these, with commas between");
    app.add_option("--seeds", options.seeds, "searches of a space: seeds 1 to this");
    app.add_option("--evaluations", options.evaluations, "of a search");
    app.add_option("--threads", options.threads, "default: one a core");
    app.add_flag("--leave-one-out", options.leave_one_out,
                 "first of all, guided where it knows the other devices' records of each kernel");
    app.add_option("--window", options.window, "configs asked for at once");
    CLI11_PARSE(app, count, arguments);
    try {
        return run(options);
    } catch (const Error& e) {
        fmt::print(stderr, "error: {}\n", e.what());
        return exit_code(e.kind());
    }
}

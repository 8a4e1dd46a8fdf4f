// How few evaluations each strategy needs on recorded spaces: every strategy of the table on every space, many seeds.
//
//   search_bench --spaces DIR [--strategies a,b] [--seeds 50] [--evaluations 400] [--only TEXT] [--jobs N]
//                [--leave-one-out]
//   search_bench --made-up ...                 three small spaces, made up, where there are no recorded ones
//
// Prints per space, then over all: optimum/best after 10 to 400 evaluations, evaluations to within 5 % and 1 %, and the
// score of docs/search.md, for which random search gets about 0. Searches run on --jobs threads; all that is printed
// but the time for a config is the same whatever their number.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "autotune/error.h"
#include "tests/support/made_up_space.h"
#include "tuner/replay/replay.h"
#include "tuner/replay/transfer.h"

using namespace autotune;

namespace {

struct Options {
    std::string spaces, strategies, only;
    std::size_t seeds = 50, evaluations = 400, jobs = 0, window = 1;
    bool leave_one_out = false, made_up = false;
};

std::vector<std::string> listed(const std::string& text) {
    std::vector<std::string> names;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        if (end > begin) names.push_back(text.substr(begin, end - begin));  // "" would be part of every name
        begin = end + 1;
    }
    return names;
}

/// Smooth with a switch, the same with two fifths that fail, and rugged.
std::vector<RecordedSpace> made_up_spaces() {
    std::vector<RecordedSpace> spaces;
    spaces.push_back(made_up_space(valley, "ABC", "smooth"));
    spaces.push_back(
        made_up_space([](int a, int b, int c) { return a >= 8 && a < 15 ? -1 : valley(a, b, c); }, "ABC", "failing"));
    spaces.push_back(
        made_up_space([](int a, int b, int c) { return valley(a, b, c) * (1 + 0.05 * ((a * 7 + b * 5 + c * 3) % 4)); },
                      "ABC", "rugged"));
    return spaces;
}

/// Those in which anything works, by name.
std::vector<RecordedSpace> read_spaces(const std::string& folder) {
    std::error_code failure;
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator{folder, failure})
        if (entry.path().string().ends_with(".csv.gz")) files.push_back(entry.path());
    if (failure)
        throw Error{Error::Kind::usage, fmt::format("the folder '{}' cannot be read: {}", folder, failure.message())};
    std::ranges::sort(files);
    std::vector<RecordedSpace> spaces;
    for (const auto& file : files) {
        RecordedSpace space = RecordedSpace::read(file);
        if (space.sorted_us().empty())
            fmt::print(stderr, "{} is left out: no config of it works\n", file.string());
        else
            spaces.push_back(std::move(space));
    }
    if (spaces.empty()) throw Error{Error::Kind::usage, fmt::format("there is no .csv.gz in '{}'", folder)};
    return spaces;
}

bool wanted(const RecordedSpace& space, const Options& options) {
    const std::vector<std::string> parts = listed(options.only);
    return parts.empty() || std::ranges::any_of(parts, [&](const std::string& part) {
               return space.name().find(part) != std::string::npos;
           });
}

std::vector<const StrategyEntry*> chosen(const Options& options) {
    std::vector<const StrategyEntry*> entries;
    if (options.strategies.empty())
        for (const StrategyEntry& row : strategies()) entries.push_back(&row);
    for (const std::string& name : listed(options.strategies)) entries.push_back(&strategy_named(name));
    return entries;
}

/// Makes a strategy for the space of this place in the list.
using Maker = std::function<std::unique_ptr<Strategy>(std::size_t space, std::uint64_t seed)>;

/// A strategy, or guided with what it is told beforehand, and its runs: spaces x seeds 1 to `seeds`.
struct Contestant {
    std::string name;
    Maker make;
    std::vector<std::vector<ReplayRun>> runs = {};
    std::vector<ReplayFigures> figures = {};  ///< one a space
};

/// All searches of all contestants, the longest first, so that the last ones end together.
void run_all(std::vector<Contestant>& contestants, const std::vector<RecordedSpace>& spaces, const Options& options) {
    struct Job {
        std::size_t contestant, space, seed;
    };
    std::vector<Job> jobs;
    for (std::size_t c = 0; c < contestants.size(); ++c) {
        contestants[c].runs.assign(spaces.size(), std::vector<ReplayRun>(options.seeds));
        for (std::size_t space = 0; space < spaces.size(); ++space)
            for (std::size_t seed = 0; seed < options.seeds; ++seed) jobs.push_back({c, space, seed});
    }
    std::ranges::stable_sort(jobs, std::greater{}, [&](const Job& job) { return spaces[job.space].space().size(); });
    std::atomic<std::size_t> next = 0, done = 0;
    const auto work = [&] {
        for (std::size_t i = next++; i < jobs.size(); i = next++) {
            const auto [c, space, seed] = jobs[i];
            const auto strategy = contestants[c].make(space, seed + 1);
            contestants[c].runs[space][seed] = replay(spaces[space], *strategy, options.evaluations, options.window);
            if (const std::size_t ended = ++done; ended % 500 == 0)
                fmt::print(stderr, "{} of {} searches\n", ended, jobs.size());
        }
    };
    const std::size_t count = options.jobs ? options.jobs : std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < std::min(count, jobs.size()); ++i) threads.emplace_back(work);
    work();
}

std::string row(const std::string& name, const ReplayFigures& f) {
    constexpr std::size_t tenth = 3;  // after 100 evaluations
    const auto share = [](bool known, double value) {
        return known ? fmt::format("{:>7.3f}", value) : fmt::format("{:>7}", "-");
    };
    std::string text = fmt::format("{:<30}{}", name, share(f.score.has_value(), f.score.value_or(0)));
    for (const double mean : f.mean) text += share(true, mean);
    text += tenth < f.worst_tenth.size() ? share(true, f.worst_tenth[tenth]) : share(false, 0);
    text += fmt::format("{:>7.2f}{:>7.2f}", f.within_5pct.share, f.within_1pct.share);
    const auto count = [](const std::optional<double>& e) { return e ? fmt::format("{:.0f}", *e) : std::string{"-"}; };
    text += fmt::format("{:>7}{:>7}{:>7}{:>7}", count(f.within_5pct.median), count(f.within_5pct.p90),
                        count(f.within_1pct.median), count(f.within_1pct.p90));
    return text + fmt::format("{:>8.3f}{:>9.3f}", f.failed_share, f.ask_ms);
}

/// Over all spaces; the score over those that have one.
ReplayFigures averaged(const std::vector<ReplayFigures>& all) {
    ReplayFigures sum = all.front();
    const auto count = static_cast<double>(all.size());
    sum.within_5pct = sum.within_1pct = {};
    sum.failed_share = sum.ask_ms = 0;
    std::ranges::fill(sum.mean, 0);
    std::ranges::fill(sum.worst_tenth, 0);
    double score = 0, scored = 0;
    for (const ReplayFigures& one : all) {
        for (std::size_t i = 0; i < sum.mean.size(); ++i) sum.mean[i] += one.mean[i] / count;
        for (std::size_t i = 0; i < sum.mean.size(); ++i) sum.worst_tenth[i] += one.worst_tenth[i] / count;
        score += one.score.value_or(0);
        scored += one.score.has_value();
        sum.within_5pct.share += one.within_5pct.share / count;
        sum.within_1pct.share += one.within_1pct.share / count;
        sum.failed_share += one.failed_share / count;
        sum.ask_ms = std::max(sum.ask_ms, one.ask_ms);
    }
    sum.score = scored > 0 ? std::optional{score / scored} : std::nullopt;
    return sum;
}

void print_head(const std::string& name, const ReplayFigures& figures) {
    std::string text = fmt::format("{:<30}{:>7}", name, "score");
    for (const std::size_t point : figures.points) text += fmt::format("{:>7}", fmt::format("@{}", point));
    fmt::print("{}  10%@100 in 5%  in 1%   to 5% (p90)   to 1% (p90)  failing  ask ms\n", text);
}

/// A table of the spaces; the figures over all of them.
ReplayFigures report(Contestant& contestant, const std::vector<RecordedSpace>& spaces, const Options& options) {
    for (std::size_t i = 0; i < spaces.size(); ++i)
        contestant.figures.push_back(figures_of(spaces[i], contestant.runs[i], options.evaluations));
    print_head(contestant.name, contestant.figures.front());
    for (std::size_t i = 0; i < spaces.size(); ++i) fmt::print("  {}\n", row(spaces[i].name(), contestant.figures[i]));
    const ReplayFigures all = averaged(contestant.figures);
    fmt::print("  {}\n\n", row("all", all));
    return all;
}

/// What is gained by knowing other devices, of the same seeds: the mean difference of optimum/best, and its standard
/// error. Below 0 by more than twice that is a loss that is not chance.
void report_gain(const Contestant& with, const Contestant& without, const std::vector<RecordedSpace>& spaces) {
    const std::vector<std::size_t>& points = with.figures.front().points;
    std::string head = fmt::format("{:<32}", with.name + " - " + without.name);
    for (const std::size_t point : points) head += fmt::format("{:>18}", fmt::format("@{}", point));
    fmt::print("{}\n", head);
    for (std::size_t i = 0; i < spaces.size(); ++i) {
        std::string text = fmt::format("  {:<30}", spaces[i].name());
        for (const std::size_t point : points) {
            const auto share = [&](const ReplayRun& run) {
                return run.best_us.empty()
                           ? 0
                           : spaces[i].optimum_us() / run.best_us[std::min(point, run.best_us.size()) - 1];
            };
            double sum = 0, squares = 0;
            const auto count = static_cast<double>(with.runs[i].size());
            for (std::size_t seed = 0; seed < with.runs[i].size(); ++seed) {
                const double gain = share(with.runs[i][seed]) - share(without.runs[i][seed]);
                sum += gain;
                squares += gain * gain;
            }
            const double mean = sum / count;
            const double error = count > 1 ? std::sqrt(std::max(0.0, squares / count - mean * mean) / (count - 1)) : 0;
            text += fmt::format("{:>18}", fmt::format("{:+.4f} ({:.4f})", mean, error));
        }
        fmt::print("{}\n", text);
    }
    fmt::print("\n");
}

/// What the other devices' records of the same kernel tell of a space; nullopt where there is none.
std::optional<Knowledge> transfer_to(const RecordedSpace& space, const std::vector<RecordedSpace>& all) {
    std::vector<const RecordedSpace*> records;
    for (const RecordedSpace& other : all)
        if (&other != &space && other.kernel() == space.kernel()) records.push_back(&other);
    if (records.empty()) return std::nullopt;
    return transfer(space.space(), records);
}

int run(const Options& options) {
    std::vector<RecordedSpace> spaces = options.made_up ? made_up_spaces() : read_spaces(options.spaces);
    std::vector<std::optional<Knowledge>> knowledge;
    std::vector<bool> left_out;
    if (std::ranges::none_of(spaces, [&](const RecordedSpace& space) { return wanted(space, options); }))
        throw Error{Error::Kind::usage, fmt::format("no space is named '{}'", options.only)};
    for (const RecordedSpace& space : spaces) {  // what is known of one does not depend on --only
        std::optional<Knowledge> known;
        if (options.leave_one_out && wanted(space, options)) known = transfer_to(space, spaces);
        left_out.push_back(!wanted(space, options) || (options.leave_one_out && !known));
        if (!left_out.back()) knowledge.push_back(std::move(known));
    }
    std::size_t at = 0;
    std::erase_if(spaces, [&](const RecordedSpace&) { return left_out[at++]; });
    if (spaces.empty()) throw Error{Error::Kind::usage, "no kernel has records of two devices"};
    std::vector<Contestant> contestants;
    if (options.leave_one_out)
        contestants.push_back({"guided, other devices known", [&](std::size_t space, std::uint64_t seed) {
                                   return make_guided_by(spaces[space].space(), seed, *knowledge[space]);
                               }});
    for (const StrategyEntry* entry : chosen(options))
        contestants.push_back({std::string{entry->name}, [&spaces, entry](std::size_t space, std::uint64_t seed) {
                                   return entry->make(spaces[space].space(), seed);
                               }});
    run_all(contestants, spaces, options);
    std::vector<ReplayFigures> totals;
    for (Contestant& contestant : contestants) totals.push_back(report(contestant, spaces, options));
    for (const Contestant& other : contestants)
        if (options.leave_one_out && other.name == "guided") report_gain(contestants.front(), other, spaces);
    print_head(fmt::format("{} spaces, seeds 1 to {}", spaces.size(), options.seeds), totals.front());
    for (std::size_t i = 0; i < contestants.size(); ++i) fmt::print("{}\n", row(contestants[i].name, totals[i]));
    return 0;
}

}  // namespace

int main(int count, char** arguments) {
    Options options;
    CLI::App app{"searches recorded spaces with every strategy"};
    app.add_option("--spaces", options.spaces, "the folder with the .csv.gz files");
    app.add_option("--strategies", options.strategies, "names, with commas between; default: all");
    app.add_option("--only", options.only, "spaces whose names hold one of these, with commas between");
    app.add_option("--seeds", options.seeds, "searches of a space: seeds 1 to this")
        ->check(CLI::Range(std::size_t{1}, std::size_t{10'000}));
    app.add_option("--evaluations", options.evaluations, "of a search")
        ->check(CLI::Range(std::size_t{1}, std::size_t{1'000'000}));
    app.add_option("--jobs", options.jobs, "searches at once; default: one a core")
        ->check(CLI::Range(std::size_t{0}, std::size_t{1024}));
    app.add_flag("--leave-one-out", options.leave_one_out,
                 "first of all, guided where it knows the other devices' records of each kernel");
    app.add_flag("--made-up", options.made_up, "three small spaces, made up");
    app.add_option("--window", options.window, "configs asked for at once")
        ->check(CLI::Range(std::size_t{1}, std::size_t{1'000'000}));
    try {
        app.parse(count, arguments);
    } catch (const CLI::ParseError& e) {
        return app.exit(e) == 0 ? 0 : exit_code(Error::Kind::usage);
    }
    try {
        if (options.spaces.empty() != options.made_up)
            throw Error{Error::Kind::usage, "one of --spaces DIR and --made-up says what is searched"};
        return run(options);
    } catch (const Error& e) {
        fmt::print(stderr, "error: {}\n", e.what());
        return exit_code(e.kind());
    }
}

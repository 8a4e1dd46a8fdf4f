#include "tuner/replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "autotune/error.h"
#include "tools/format.h"
#include "tools/interrupt.h"
#include "tools/json_events.h"
#include "tools/subcommands.h"
#include "tuner/model/suggest.h"
#include "tuner/replay/transfer.h"

namespace autotune {
namespace {

using ReplayMaker = std::function<std::unique_ptr<Strategy>(std::uint64_t seed)>;

/// Seeds from the request's own upwards, a thread a core. Throws Error{interrupted} after a signal.
std::vector<ReplayRun> replay_seeds(const RecordedSpace& space, const ReplayMaker& make, const Request& request,
                                    Console& console) {
    std::vector<ReplayRun> runs(request.seeds);
    std::atomic<std::size_t> next = 0, done = 0;
    std::atomic<bool> stop = false;
    const auto stop_requested = [&] { return stop || (stop = interrupted() != 0); };
    const auto show = [&] {
        const auto share = static_cast<double>(done) / static_cast<double>(runs.size());
        console.status({.op = space.name(), .tried = done, .total = runs.size(), .share_done = share});
    };
    const auto work = [&](bool shows) {
        for (std::size_t i = next++; i < runs.size() && !stop_requested(); i = next++) {
            if (shows) show();
            runs[i] = replay(space, *make(request.seed + i), request.evaluations, 1, stop_requested);
            if (!stop) ++done;
        }
    };
    const std::size_t workers = request.workers ? request.workers : std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < std::min(workers, runs.size()); ++i) threads.emplace_back(work, false);
    work(true);
    threads.clear();
    console.end_status();
    if (stop)
        throw Error{Error::Kind::interrupted,
                    fmt::format("interrupted after {} of {}, which are too few to judge by", done.load(),
                                format_count(runs.size(), "search", "searches"))};
    return runs;
}

nlohmann::json by_point(const ReplayFigures& figures, const std::vector<double>& values) {
    nlohmann::json object = nlohmann::json::object();
    for (std::size_t i = 0; i < figures.points.size(); ++i) object[std::to_string(figures.points[i])] = values[i];
    return object;
}

nlohmann::json evaluations_to(const Reached& reached) {
    nlohmann::json object = {{"median", nullptr}, {"p90", nullptr}};
    if (reached.median) object["median"] = *reached.median;
    if (reached.p90) object["p90"] = *reached.p90;
    return object;
}

nlohmann::json replay_json(const RecordedSpace& space, const Request& request, const ReplayFigures& figures) {
    nlohmann::json fields = {{"space", space.name()},
                             {"strategy", request.strategy},
                             {"seeds", figures.runs},
                             {"first_seed", request.seed},
                             {"evaluations", request.evaluations},
                             {"configs", space.space().size()},
                             {"working", space.sorted_us().size()},
                             {"optimum_us", space.optimum_us()},
                             {"best_over", by_point(figures, figures.mean)},
                             {"worst_tenth", by_point(figures, figures.worst_tenth)},
                             {"score", nullptr},
                             {"within_5pct", figures.within_5pct.share},
                             {"within_1pct", figures.within_1pct.share},
                             {"evaluations_to_5pct", evaluations_to(figures.within_5pct)},
                             {"evaluations_to_1pct", evaluations_to(figures.within_1pct)},
                             {"failed_share", figures.failed_share},
                             {"ask_ms", figures.ask_ms}};
    if (figures.score) fields["score"] = *figures.score;
    return fields;
}

void print_replay(const RecordedSpace& space, const Request& request, const ReplayFigures& figures, Console& console) {
    console.result(fmt::format("{}: {}, {} work; {} of {}, seeds {} to {}", space.name(),
                               format_count(space.space().size(), "config", "configs"), space.sorted_us().size(),
                               format_count(figures.runs, "search", "searches"), request.strategy, request.seed,
                               request.seed + figures.runs - 1));
    console.result(fmt::format("{:<14}{:>16}{:>14}", "evaluations", "optimum/best", "worst tenth"));
    for (std::size_t i = 0; i < figures.points.size(); ++i)
        console.result(
            fmt::format("{:<14}{:>16.3f}{:>14.3f}", figures.points[i], figures.mean[i], figures.worst_tenth[i]));
    console.result(fmt::format("within 5 % of the optimum {:.0f} % of the searches, within 1 % {:.0f} %",
                               100 * figures.within_5pct.share, 100 * figures.within_1pct.share));
    if (figures.score) console.result(fmt::format("score {:.3f}; random search gets 0, the optimum 1", *figures.score));
}

}  // namespace

int run_replay(const Request& request, Console& console) {
    if (request.file.empty())
        throw Error{Error::Kind::usage, "replay needs the recorded space to search", "autotune help search"};
    const StrategyEntry& entry = strategy_named(request.strategy);
    const RecordedSpace space = RecordedSpace::read(request.file);
    if (space.sorted_us().empty())
        throw Error{Error::Kind::nothing_found, fmt::format("no config of '{}' works", request.file)};
    std::vector<RecordedSpace> others;
    for (const std::string& file : request.with) others.push_back(RecordedSpace::read(file));
    ReplayMaker make = [&](std::uint64_t seed) { return entry.make(space.space(), seed); };
    Knowledge knowledge;
    if (!others.empty()) {
        if (request.strategy != "guided")
            throw Error{Error::Kind::usage,
                        fmt::format("--with is of use to guided alone, not to {}", request.strategy)};
        std::vector<const RecordedSpace*> records;
        for (const RecordedSpace& other : others) records.push_back(&other);
        for (const RecordedSpace& other : others)
            if (other.kernel() != space.kernel())
                console.warning(fmt::format("a record of the kernel '{}' is taken for one of '{}'", other.kernel(),
                                            space.kernel()));
            else if (other.device() == space.device())
                console.warning(
                    fmt::format("what is searched for is known: a record of --with is of '{}' too", space.device()));
        knowledge = transfer(space.space(), records);
        if (knowledge.expected.empty())
            throw Error{Error::Kind::usage, fmt::format("the records of --with have no config of '{}'", request.file)};
        make = [&](std::uint64_t seed) { return make_guided_by(space.space(), seed, knowledge); };
    }
    const std::vector<ReplayRun> runs = replay_seeds(space, make, request, console);
    const ReplayFigures figures = figures_of(space, runs, request.evaluations);
    if (console.json()) console.json_line(json_event("replay", replay_json(space, request, figures)));
    print_replay(space, request, figures, console);
    return 0;
}

}  // namespace autotune

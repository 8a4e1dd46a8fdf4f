#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "autotune/error.h"
#include "cache/dispatch/ladder.h"
#include "cache/store/location.h"
#include "cache/store/stored_problem.h"
#include "tools/bench_source.h"
#include "tools/counters_text.h"
#include "tools/format.h"
#include "tools/json_events.h"
#include "tools/launch_figures.h"
#include "tools/session.h"
#include "tools/subcommands.h"
#include "tools/suggestion.h"
#include "tuner/model/printable.h"

namespace autotune {
namespace {

Error nothing(const std::string& message, const std::string& help) {
    return {Error::Kind::nothing_found, message, help};
}

/// Whether a run was of the problem and on the GPU that were named; where none was, each is.
bool was_asked(const StoredRun& run, const Request& request, const Session& session) {
    if (!request.gpu.empty() &&
        std::ranges::none_of(session.gpus(), [&](const PresentGpu& gpu) { return gpu.identity.fp == run.device.fp; }))
        return false;
    if (request.problems.empty() && request.problems_file.empty()) return true;
    return std::ranges::any_of(session.problems(), [&](const AskedProblem& problem) {
        try {
            return problem.op->name == run.problem.op &&
                   std::ranges::equal(Session::instance(problem, run.device.limits).key(), run.problem.key);
        } catch (const Error&) {  // no problem of that GPU
            return false;
        }
    });
}

StoredRun run_of(const Request& request, const Session& session, const Store& store) {
    if (request.run) {
        if (const auto run = store.run(static_cast<RunId>(*request.run))) return *run;
        throw nothing(fmt::format("there is no run {}", *request.run), "autotune why softmax --trial 1");
    }
    std::vector<StoredRun> runs = store.runs(request.op);
    if (runs.empty())
        throw nothing(
            request.op.empty() ? "nothing was tuned yet" : fmt::format("nothing of '{}' was tuned yet", request.op),
            "autotune tune softmax");
    std::erase_if(runs, [&](const StoredRun& run) { return !was_asked(run, request, session); });
    if (runs.empty())
        throw nothing(fmt::format("no search of that problem{} is stored", request.gpu.empty() ? "" : " on that GPU"),
                      "without a problem, the trial of the latest search is shown");
    return runs.front();
}

/// The problem of a run as a command takes it.
std::string problem_argument(const StoredRun& run, const Session& session) {
    if (const Op* op = session.ops().find_or_null(run.problem.op)) try {
            return problem_words(instance_of(run.problem, *op, run.device.limits), ",");
        } catch (const Error&) {  // the op has changed since
        }
    std::string text = run.problem.text();
    std::ranges::replace(text, ' ', ',');
    return text;
}

std::string indented(const std::string& text) {
    std::string out = "  ";
    for (const char c : text) out += c == '\n' ? std::string{"\n  "} : std::string{c};
    return out;
}

void print(const Request& request, const StoredRun& run, const StoredTrial& trial, const Session& session,
           Console& console) {
    const Outcome& o = trial.outcome;
    console.result(fmt::format("run {}, trial {}: {} on {} {}, {}", run.id, trial.ordinal, trial.config.text(),
                               run.problem.op, run.problem.text(), run.device.name));
    console.result(fmt::format("  outcome    {}{}", info(o.ending).words, o.reason.empty() ? "" : ": " + o.reason));
    if (o.time_us > 0)
        console.result(run.device.emulated
                           ? fmt::format("  time       {} PREDICTED by an emulator", format_time(o.time_us))
                           : fmt::format("  time       {}{} in {}", o.ending == Ending::dropped ? "more than " : "",
                                         format_time(o.time_us),
                                         format_count(o.samples_us.size(), "sample", "samples")));
    if (o.registers)
        console.result(fmt::format("  resources  {} registers, {} spilled, {} shared, {} an SM", o.registers,
                                   format_bytes(static_cast<std::uint64_t>(o.spill_bytes)),
                                   format_bytes(static_cast<std::uint64_t>(o.shared_bytes)),
                                   format_count(static_cast<std::size_t>(o.blocks_per_sm), "block", "blocks")));
    console.result(fmt::format("  took       compile {:.0f} ms, check {:.1f} ms, time {:.1f} ms", o.compile_ms,
                               o.check_ms, o.time_ms));
    if (!o.log.empty()) console.result(fmt::format("  log\n{}", indented(o.log)));
    if (!o.counters.empty()) {
        std::string text = counters_text(o.counters, run.device.limits);
        if (text.ends_with('\n')) text.pop_back();
        console.result(text);
    }
    console.result(fmt::format("help: autotune bench {} {} --config {}{}", run.problem.op,
                               shell_word(problem_argument(run, session)), shell_word(trial.config.text()),
                               same_flags(request)));
}

nlohmann::json json_of(const StoredRun& run, const StoredTrial& trial) {
    const Outcome& o = trial.outcome;
    nlohmann::json fields = {{"run", run.id},
                             {"trial", trial.ordinal},
                             {"op", run.problem.op},
                             {"config", trial.config},
                             {"outcome", info(o.ending).name},
                             {"reason", o.reason},
                             {"time_us", o.time_us},
                             {"samples_us", o.samples_us},
                             {"registers", o.registers},
                             {"spill_bytes", o.spill_bytes},
                             {"shared_bytes", o.shared_bytes},
                             {"log", o.log}};
    if (!o.counters.empty()) fields["counters"] = counters_value(o.counters, run.device.limits);
    return fields;
}

int explain_trial(const Request& request, const Session& session, const Store& store, Console& console) {
    const StoredRun run = run_of(request, session, store);
    const auto trial = store.trial(run.id, *request.trial);
    if (!trial)
        throw nothing(fmt::format("run {} has no trial {}; it has {}, from 1", run.id, *request.trial, run.trials),
                      fmt::format("autotune why {} --run {} --trial 1", run.problem.op, run.id));
    print(request, run, *trial, session, console);
    if (console.json()) console.json_line(json_event("trial", json_of(run, *trial)));
    return 0;
}

/// The word of a rung in JSON.
std::string source_of(Rung rung) {
    if (rung == Rung::exact_stale) return "stale";
    return rung == Rung::sibling_nearest ? "sibling_nearest" : std::string{name_of(rung)};
}

/// What a rung holds where it holds nothing; empty: that goes without saying.
std::string_view nothing_on(Rung rung) {
    switch (rung) {
        case Rung::exact:
            return "none for this problem on this GPU";
        case Rung::nearest:
            return "no problem within 4x in each dim that won 3 % over its default on this GPU";
        case Rung::sibling:
            return "none for this problem on a GPU of the same capability and limits";
        case Rung::robust:
            return "no config that has won on this GPU or a sibling";
        case Rung::family:
            return "none on a GPU of the same generation with limits no larger";
        default:
            return "";
    }
}

std::string line_of(const Explanation::Row& row, Rung rung) {
    std::string text = fmt::format("  {:<16}  {}", row.rung, row.config);
    if (row.time_us > 0) text += "   " + format_time(row.time_us) + (rung == Rung::predicted ? " PREDICTED" : "");
    const bool elsewhere = rung > Rung::exact_stale && rung < Rung::predicted;
    if (elsewhere) text += "   " + row.why;
    if (!row.refused.empty())
        text += "   not used: " + row.refused;
    else if (!row.state.empty())
        text += "   " + row.state;
    if (row.layer != name_of(Layer::user) && row.layer != name_of(Layer::op)) text += ", layer " + row.layer;
    return text + (row.chosen ? "   <- chosen" : "");
}

/// Each rung down to the one that answers, and what is below it.
void print(const Explanation& answer, Console& console) {
    console.result(fmt::format("answer: {}, {}: {}", name_of(answer.rung), answer.config, answer.why));
    for (int number = 0; number <= static_cast<int>(Rung::default_config); ++number) {
        const Rung rung = static_cast<Rung>(number);
        bool any = false;
        for (const Explanation::Row& row : answer.rows) {
            if (row.rung != name_of(rung)) continue;
            console.result(line_of(row, rung));
            any = true;
        }
        const bool exact_is_stale = rung == Rung::exact && answer.rung == Rung::exact_stale;
        if (!any && rung < answer.rung && !exact_is_stale && !nothing_on(rung).empty())
            console.result(fmt::format("  {:<16}  {}", name_of(rung), nothing_on(rung)));
    }
    for (const auto& [problem, differs] : answer.closest)
        console.result(fmt::format("  {:<16}  {}: {}", "closest", problem, differs));
}

nlohmann::json json_of(const Explanation& answer, const Instance& instance) {
    nlohmann::json rows = nlohmann::json::array(), closest = nlohmann::json::array();
    for (const Explanation::Row& row : answer.rows)
        rows.push_back({{"rung", row.rung},
                        {"config", config_from_text(row.config)},
                        {"time_us", row.time_us},
                        {"state", row.state},
                        {"refused", row.refused},
                        {"chosen", row.chosen},
                        {"layer", row.layer},
                        {"device", row.device},
                        {"problem", row.problem},
                        {"why", row.why},
                        {"distance", row.distance},
                        {"imported", row.imported}});
    for (const auto& [problem, differs] : answer.closest)
        closest.push_back({{"problem", problem}, {"differs", differs}});
    const auto stored = std::ranges::count_if(
        answer.rows, [](const Explanation::Row& row) { return row.rung != name_of(Rung::default_config); });
    return {{"op", instance.op().name},
            {"problem", instance.problem()},
            {"source", source_of(answer.rung)},
            {"config", config_from_text(answer.config)},
            {"why", answer.why},
            {"layer", name_of(answer.layer)},
            {"candidates", stored},
            {"rows", rows},
            {"closest", closest}};
}

/// Those of the system layer that can be read.
std::vector<Store> machine_databases(Console& console) {
    std::vector<Store> stores;
    for (const auto& path : system_databases()) {
        std::error_code unreadable;
        if (!std::filesystem::exists(path, unreadable) && !unreadable) continue;
        try {
            stores.push_back(Store::open({.path = path, .mode = Store::Mode::read}));
        } catch (const Error& error) {
            console.warning(fmt::format("{}; it is ignored", error.what()));
        }
    }
    return stores;
}

/// What a dispatcher would launch for a problem here, and what else there is: the dispatcher's own ladder answers.
int explain_problem(const Request& request, const Session& session, Store& store, const PresentGpu& gpu,
                    Console& console) {
    std::vector<Store> machine = machine_databases(console);
    std::vector<LayeredStore> stores{{&store, Layer::user}};
    for (Store& one : machine) stores.push_back({&one, Layer::system});
    for (const AskedProblem& problem : session.problems()) {
        const Instance instance = Session::instance(problem, gpu.identity.limits);
        const Explanation answer = explanation_of(instance, stores, gpu.identity);
        console.result(fmt::format("{} {} on {}", instance.op().name, problem_words(instance, " "), gpu.identity.name));
        print(answer, console);
        if (answer.rung > Rung::exact && answer.rung <= Rung::default_config)
            console.result(fmt::format("help: autotune tune {} {}{}      # makes it exact", instance.op().name,
                                       shell_word(problem_words(instance, ",")), same_flags(request)));
        if (console.json()) console.json_line(json_event("why", json_of(answer, instance)));
    }
    return 0;
}

}  // namespace

int why_with(const Request& request, Console& console, const BenchSource& source) {
    const Session session{request, console};
    Store store = session.open_store(Store::Mode::read);
    return request.trial ? explain_trial(request, session, store, console)
                         : explain_problem(request, session, store, source.gpus(session).front(), console);
}

int run_why(const Request& request, Console& console) { return why_with(request, console, real_benches()); }

}  // namespace autotune

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "autotune/error.h"
#include "tools/format.h"
#include "tools/json_events.h"
#include "tools/session.h"
#include "tools/subcommands.h"

namespace autotune {
namespace {

Error nothing(const std::string& message, const std::string& help) {
    return {Error::Kind::nothing_found, message, help};
}

StoredRun run_of(const Request& request, const Store& store) {
    if (request.run) {
        if (const auto run = store.run(static_cast<RunId>(*request.run))) return *run;
        throw nothing(fmt::format("there is no run {}", *request.run), "autotune why OP, without --run: the last");
    }
    const std::vector<StoredRun> runs = store.runs(request.op);
    if (runs.empty())
        throw nothing(
            request.op.empty() ? "nothing was tuned yet" : fmt::format("nothing of '{}' was tuned yet", request.op),
            "autotune tune softmax");
    return runs.front();
}

std::string problem_argument(const ProblemIdentity& problem) {
    std::string text;
    for (const auto& [name, value] : problem.fields)
        text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, to_text(value));
    return text;
}

std::string indented(const std::string& text) {
    std::string out = "  ";
    for (const char c : text) out += c == '\n' ? std::string{"\n  "} : std::string{c};
    return out;
}

void print(const StoredRun& run, const StoredTrial& trial, Console& console) {
    const Outcome& o = trial.outcome;
    console.result(fmt::format("run {}, trial {}: {} on {} {}, {}", run.id, trial.ordinal, trial.config.text(),
                               run.problem.op, run.problem.text(), run.device.name));
    console.result(fmt::format("  outcome    {}{}", info(o.ending).words, o.reason.empty() ? "" : ": " + o.reason));
    if (o.time_us > 0)
        console.result(fmt::format("  time       {}{} in {}", o.ending == Ending::dropped ? "more than " : "",
                                   format_time(o.time_us), format_count(o.samples_us.size(), "sample", "samples")));
    if (o.registers)
        console.result(fmt::format("  resources  {} registers, {} spilled, {} shared, {} an SM", o.registers,
                                   format_bytes(static_cast<std::uint64_t>(o.spill_bytes)),
                                   format_bytes(static_cast<std::uint64_t>(o.shared_bytes)),
                                   format_count(static_cast<std::size_t>(o.blocks_per_sm), "block", "blocks")));
    console.result(fmt::format("  took       compile {:.0f} ms, check {:.1f} ms, time {:.1f} ms", o.compile_ms,
                               o.check_ms, o.time_ms));
    if (!o.log.empty()) console.result(fmt::format("  log\n{}", indented(o.log)));
    console.result(fmt::format("help: autotune bench {} {} --config '{}'", run.problem.op,
                               problem_argument(run.problem), trial.config.text()));
}

nlohmann::json json_of(const StoredRun& run, const StoredTrial& trial) {
    const Outcome& o = trial.outcome;
    return {{"run", run.id},
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
}

int explain_trial(const Request& request, const Store& store, Console& console) {
    const StoredRun run = run_of(request, store);
    const auto trial = store.trial(run.id, *request.trial);
    if (!trial)
        throw nothing(fmt::format("run {} has no trial {}; it has {}, from 1", run.id, *request.trial, run.trials),
                      "autotune why OP --trial 1");
    print(run, *trial, console);
    if (console.json()) console.json_line(json_event("trial", json_of(run, *trial)));
    return 0;
}

/// What a dispatcher would launch for a problem here, and what else there is.
int explain_problem(const Session& session, const Store& store, Console& console) {
    const PresentGpu gpu = session.gpus().front();
    for (const AskedProblem& problem : session.problems()) {
        const Instance instance = Session::instance(problem, gpu.identity.limits);
        const std::vector<Record> records =
            store.records({.op = instance.op().name, .device_fp = gpu.identity.fp, .problem_key = instance.key()},
                          session.today({&instance.op()}));
        const Record* chosen = nullptr;
        std::vector<std::string> rows;
        for (const Record& record : records) {
            const std::optional<std::string> objection = instance.objection(record.config);
            if (!chosen && !objection) chosen = &record;
            rows.push_back(fmt::format("  {:<9} {}   {}   {}{}", record.fresh() ? "exact" : "stale",
                                       record.config.text(), format_time(record.time_us),
                                       objection        ? "not valid here: " + *objection
                                       : record.fresh() ? name_of(record.verified)
                                                        : record.stale,
                                       chosen == &record ? "   <- chosen" : ""));
        }
        const std::string answer =
            chosen ? fmt::format("{}, {}", chosen->fresh() ? "exact" : "stale", chosen->config.text())
                   : fmt::format("default, {}", instance.default_config().text());
        console.result(fmt::format("{} {} on {}\nanswer: {}", instance.op().name, instance.problem().text(),
                                   gpu.identity.name, answer));
        if (records.empty()) console.result("  exact     none for this problem on this GPU");
        for (const std::string& row : rows) console.result(row);
        if (!chosen)
            console.result(fmt::format("help: autotune {} {}      # makes it exact", instance.op().name,
                                       problem_argument(problem_of(instance))));
        if (console.json())
            console.json_line(json_event("why", {{"op", instance.op().name},
                                                 {"problem", instance.problem()},
                                                 {"source", chosen ? chosen->fresh() ? "exact" : "stale" : "default"},
                                                 {"config", chosen ? chosen->config : instance.default_config()},
                                                 {"candidates", records.size()}}));
    }
    return 0;
}

}  // namespace

int run_why(const Request& request, Console& console) {
    const Session session{request, console};
    const Store store = session.open_store(Store::Mode::read);
    return request.trial ? explain_trial(request, store, console) : explain_problem(session, store, console);
}

}  // namespace autotune

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>

#include "cache/sharing/taking_in.h"
#include "tools/db.h"
#include "tools/format.h"
#include "tools/json_events.h"
#include "tools/session.h"
#include "tools/subcommands.h"
#include "tuner/statistics.h"

namespace autotune {
namespace {

struct DiffFlags {
    std::vector<std::string> files, ops;
    std::string fail_on;
};

/// The best record of each problem on each GPU, by op, GPU and key.
using BestRecords = std::map<std::tuple<std::string, std::string, std::vector<std::byte>>, Record>;

/// Read as merge reads, into memory: a file that is compared may be as hostile as one that is taken in.
BestRecords best_records(const std::string& file, const Session& session, Console& console) {
    Store store = Store::in_memory();
    const TakenIn taken = take_in(store, {file}, {.ops = &session.ops(), .trust = Trust::own}).front();
    if (taken.refused > 0)
        console.warning(fmt::format("{} of '{}' are not compared: {}", format_count(taken.refused, "record", "records"),
                                    file, taken.named.front().reason));
    BestRecords best;
    for (Record& record : store.records({.winners_only = true}, session.today(session.ops().all())))
        best.try_emplace({record.source.op, record.device.fp, record.problem.key}, std::move(record));
    return best;
}

/// How the second time differs from the first, from their intervals.
std::string_view difference_of(const Record& first, const Record& second) {
    const double ratio = second.time_us / first.time_us;
    const bool apart = second.high_us < first.low_us || first.high_us < second.low_us;
    if (ratio > 1 - same_within && ratio < 1 + same_within) return "same";
    if (!apart) return "uncertain";
    return ratio < 1 ? "faster" : "slower";
}

class DiffCommand {
public:
    DiffCommand(const DiffFlags& flags, const Request& request, Console& console)
        : flags_{flags}, console_{console}, session_{request, console} {}

    int run() {
        const BestRecords first = best_records(flags_.files[0], session_, console_),
                          second = best_records(flags_.files[1], session_, console_);
        for (const auto& [key, record] : first) {
            const auto found = second.find(key);
            tell(&record, found == second.end() ? nullptr : &found->second);
        }
        for (const auto& [key, record] : second)
            if (!first.contains(key)) tell(nullptr, &record);
        std::string counts;
        for (const auto& [verdict, count] : verdicts_)
            counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, verdict);
        console_.result(fmt::format("{}: {}", format_count(problems_, "problem", "problems"),
                                    counts.empty() ? "neither has a record" : counts));
        console_.json_line(json_event("db_diff_summary", {{"problems", problems_}, {"verdicts", verdicts_}}));
        const bool differs = problems_ != verdicts_["same"];
        const bool failed = flags_.fail_on == "any" ? differs : flags_.fail_on == "slower" && verdicts_["slower"] > 0;
        return failed ? exit_code(Error::Kind::check) : 0;
    }

private:
    void tell(const Record* first, const Record* second) {
        const std::string verdict{!second  ? "only in the first"
                                  : !first ? "only in the second"
                                           : difference_of(*first, *second)};
        ++problems_;
        ++verdicts_[verdict];
        const Record& either = first ? *first : *second;
        if (verdict != "same")
            console_.result(fmt::format("{:<18}  {} {}  {}  {}{}{}", verdict, either.source.op, either.problem.text(),
                                        either.device.name, first ? side_text(*first) : "",
                                        first && second ? " -> " : "", second ? side_text(*second) : ""));
        nlohmann::json event{{"op", either.source.op},
                             {"problem", either.problem.text()},
                             {"gpu", either.device.name},
                             {"verdict", verdict}};
        if (first) event["first"] = side(*first);
        if (second) event["second"] = side(*second);
        console_.json_line(json_event("db_difference", event));
    }

    static std::string side_text(const Record& record) {
        return fmt::format("{} {}", format_time(record.time_us), record.config.text());
    }
    static nlohmann::json side(const Record& record) {
        return {{"config", record.config.text()},
                {"time_us", record.time_us},
                {"low_us", record.low_us},
                {"high_us", record.high_us}};
    }

    const DiffFlags& flags_;
    Console& console_;
    Session session_;
    std::map<std::string, std::size_t> verdicts_;
    std::size_t problems_ = 0;
};

int run_db_diff(const DiffFlags& flags, const Request& given, Console& console) {
    if (flags.files.size() != 2)
        throw usage(
            fmt::format("a comparison needs two files, and {} given",
                        flags.files.size() == 1 ? std::string{"1 is"} : fmt::format("{} are", flags.files.size())),
            "autotune db diff old.db new.db");
    if (!flags.fail_on.empty() && flags.fail_on != "slower" && flags.fail_on != "any")
        throw usage(fmt::format("--fail-on is slower, any, not '{}'", flags.fail_on));
    Request request = given;
    request.ops = flags.ops;
    return DiffCommand{flags, request, console}.run();
}

DbRun declare_db_diff(CLI::App& app) {
    auto flags = std::make_shared<DiffFlags>();
    app.add_option("files", flags->files, "two databases, or JSON lines");
    app.add_option("--ops", flags->ops, "a folder with ops of your own")->allow_extra_args(false);
    app.add_option("--fail-on", flags->fail_on,
                   "slower or any: exit code 4 where the second is slower, or differs at all");
    return [flags](const Request& request, Console& console) { return run_db_diff(*flags, request, console); };
}

}  // namespace

DbVerb db_diff() {
    return {.name = "diff",
            .about = "where the best records of two databases differ",
            .example = "autotune db diff old.db new.db --fail-on slower",
            .declare = declare_db_diff};
}

}  // namespace autotune

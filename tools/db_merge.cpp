#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cache/sharing/taking_in.h"
#include "tools/db.h"
#include "tools/format.h"
#include "tools/interrupt.h"
#include "tools/json_events.h"
#include "tools/session.h"
#include "tools/subcommands.h"
#include "tools/taken_in_text.h"

namespace autotune {
namespace {

struct MergeFlags {
    std::vector<std::string> files, ops;
    std::string into, expected;
    bool dry_run = false;
};

/// The problems of the file that the store has no record of.
std::vector<std::string> missing_problems(const Request& request, Console& console, const std::string& path,
                                          const Store& store) {
    Request asking = request;
    asking.problems_file = path;
    const Session session{asking, console};
    std::vector<std::string> missing;
    for (const AskedProblem& asked : session.problems()) {
        const Instance instance = Session::instance(asked, {});
        bool found = false;
        store.scan({.op = asked.op->name, .problem_key = instance.key()}, {}, [&](const RecordView&) { found = true; });
        if (!found)
            missing.push_back(fmt::format("{} {} ({})", asked.op->name, problem_words(instance, ","), asked.origin));
    }
    return missing;
}

int tell_missing(const std::vector<std::string>& missing, Console& console) {
    constexpr std::size_t most_told = 10;
    for (std::size_t i = 0; i < missing.size() && i < most_told; ++i)
        console.result(fmt::format("missing: {}", missing[i]));
    if (missing.size() > most_told) console.result(fmt::format("missing: {} more", missing.size() - most_told));
    console.json_line(json_event("db_expected", {{"missing", missing}}));
    return missing.empty() ? 0 : exit_code(Error::Kind::check);
}

/// A merge that is tried out works on what the target would be, with nothing on disk.
Store merge_target(const MergeFlags& flags, Request& request, Console& console) {
    if (!flags.into.empty()) request.db = flags.into;
    const Session session{request, console};
    return session.open_store(flags.dry_run ? Store::Mode::read : Store::Mode::write);
}

int run_db_merge(const MergeFlags& flags, const Request& given, Console& console) {
    if (flags.files.empty()) throw usage("a merge needs files", "autotune db merge node1.db node2.db --into all.db");
    if (flags.dry_run && !flags.expected.empty())
        throw usage("--expect-problems looks at what was written, and --dry-run writes nothing", "give one of them");
    Request request = given;
    request.ops = flags.ops;
    Store store = merge_target(flags, request, console);
    const Session session{request, console};
    for (const std::string& file : flags.files) {
        std::error_code error;
        if (!store.path().empty() && std::filesystem::equivalent(file, store.path(), error))
            throw usage(fmt::format("'{}' is merged into itself", file), "name it once, with --into");
    }
    const std::vector<TakenIn> reports =
        take_in(store, {flags.files.begin(), flags.files.end()},
                {.ops = &session.ops(), .trust = Trust::own, .dry_run = flags.dry_run, .stopped = [] {
                     return interrupted() != 0;
                 }});
    const int code = tell_taken_in(reports, "db_merge", flags.dry_run, console);
    if (flags.expected.empty()) return code;
    const int missing = tell_missing(missing_problems(request, console, flags.expected, store), console);
    return missing ? missing : code;
}

DbRun declare_db_merge(CLI::App& app) {
    auto flags = std::make_shared<MergeFlags>();
    app.add_option("files", flags->files, "databases or JSON lines of your own machines");
    app.add_option("--into", flags->into, "the database they go into, made if there is none; default: that of --db");
    app.add_option("--ops", flags->ops, "a folder with ops of your own")->allow_extra_args(false);
    app.add_flag("--dry-run", flags->dry_run, "tell what would be, and write nothing");
    app.add_option("--expect-problems", flags->expected,
                   "a file with a problem a line: exit code 4 where one of them has no record then");
    return [flags](const Request& request, Console& console) { return run_db_merge(*flags, request, console); };
}

}  // namespace

DbVerb db_merge() {
    return {.name = "merge",
            .about = "join databases of your own machines: of two records of one problem the better stays",
            .example = "autotune db merge node1.db node2.db --into all.db --dry-run",
            .flags = takes_store,
            .declare = declare_db_merge};
}

}  // namespace autotune

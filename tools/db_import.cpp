#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ctime>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "cache/sharing/taking_in.h"
#include "tools/db.h"
#include "tools/format.h"
#include "tools/json_events.h"
#include "tools/session.h"
#include "tools/subcommands.h"
#include "tools/taken_in_text.h"

namespace autotune {
namespace {

struct ImportFlags {
    std::vector<std::string> files, ops;
    bool dry_run = false;
};

int run_db_import(const ImportFlags& flags, const Request& given, Console& console) {
    if (flags.files.empty()) throw usage("an import needs a file", "autotune db import softmax.jsonl");
    Request request = given;
    request.ops = flags.ops;
    const Session session{request, console};
    Store store = session.open_store(flags.dry_run ? Store::Mode::read : Store::Mode::write);
    const std::vector<TakenIn> reports =
        take_in(store, {flags.files.begin(), flags.files.end()},
                {.ops = &session.ops(), .trust = Trust::elsewhere, .dry_run = flags.dry_run});
    return tell_taken_in(reports, "db_import", flags.dry_run, console);
}

DbRun declare_db_import(CLI::App& app) {
    auto flags = std::make_shared<ImportFlags>();
    app.add_option("files", flags->files, "databases, or JSON lines as db export writes them");
    app.add_option("--ops", flags->ops, "a folder with ops of your own")->allow_extra_args(false);
    app.add_flag("--dry-run", flags->dry_run, "tell what would be, and write nothing");
    return [flags](const Request& request, Console& console) { return run_db_import(*flags, request, console); };
}

struct RevertFlags {
    std::string id;
    bool dry_run = false;
};

int run_db_revert(const RevertFlags& flags, const Request& request, Console& console) {
    if (flags.id.empty()) throw usage("which import goes is not said", "autotune db imports");
    const Session session{request, console};
    Store store = session.open_store(flags.dry_run ? Store::Mode::read : Store::Mode::write);
    const auto id = static_cast<std::int64_t>(
        whole_of("the number of an import", flags.id, 1, std::numeric_limits<std::int64_t>::max()));
    const Reverted reverted = revert_import(store, id, flags.dry_run);
    console.result(fmt::format("import {}: {} and {} {}", id, format_count(reverted.records, "record", "records"),
                               format_count(reverted.predictions, "prediction", "predictions"),
                               flags.dry_run ? "would go (dry run)" : "gone"));
    console.json_line(json_event("db_revert_import", {{"id", id},
                                                      {"records", reverted.records},
                                                      {"predictions", reverted.predictions},
                                                      {"dry_run", flags.dry_run}}));
    return 0;
}

DbRun declare_db_revert(CLI::App& app) {
    auto flags = std::make_shared<RevertFlags>();
    app.add_option("id", flags->id, "the import's number, as db imports shows it");
    app.add_flag("--dry-run", flags->dry_run, "tell what would go, and write nothing");
    return [flags](const Request& request, Console& console) { return run_db_revert(*flags, request, console); };
}

int run_db_imports(const Request& request, Console& console) {
    const Session session{request, console};
    const Store store = session.open_store(Store::Mode::read);
    for (const ImportEntry& entry : imports(store)) {
        console.result(fmt::format("import {}: {:%Y-%m-%d %H:%M} UTC, {} of {} rows taken, {} here now, sha256 {}",
                                   entry.id, fmt::gmtime(static_cast<std::time_t>(entry.when)), entry.accepted,
                                   entry.rows, entry.standing, entry.sha256.substr(0, 16)));
        console.json_line(json_event("db_import_entry", {{"id", entry.id},
                                                         {"when", entry.when},
                                                         {"policy", entry.policy},
                                                         {"sha256", entry.sha256},
                                                         {"source_uuid", entry.source_uuid},
                                                         {"rows", entry.rows},
                                                         {"accepted", entry.accepted},
                                                         {"standing", entry.standing}}));
    }
    return 0;
}

}  // namespace

DbVerb db_import() {
    return {.name = "import",
            .about = "take records of others in, each judged, ranked below what was measured here",
            .example = "autotune db import softmax.jsonl --dry-run",
            .flags = takes_store,
            .declare = declare_db_import};
}

DbVerb db_imports() {
    return {.name = "imports",
            .about = "what was imported and merged, and when",
            .example = "autotune db imports",
            .flags = takes_store,
            .run = run_db_imports};
}

DbVerb db_revert_import() {
    return {.name = "revert-import",
            .about = "take an import out again",
            .example = "autotune db revert-import 3",
            .flags = takes_store,
            .declare = declare_db_revert};
}

}  // namespace autotune

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cctype>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

#include "autotune/error.h"
#include "cache/store/location.h"
#include "cache/store/upkeep.h"
#include "tools/db.h"
#include "tools/format.h"
#include "tools/json_events.h"
#include "tools/session.h"
#include "tools/subcommands.h"

namespace autotune {
namespace {

struct PruneFlags {
    bool trials = false, stale = false, dry_run = false;
    std::string older_than;
};

/// Seconds of "90d", "12h" or "6w".
std::int64_t age_from_text(const std::string& text) {
    constexpr std::int64_t longest_days = 36'500;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string_view unit{end, static_cast<std::size_t>(text.data() + text.size() - end)};
    const std::int64_t seconds = unit == "h" ? 3600 : unit == "d" ? 24 * 3600 : unit == "w" ? 7 * 24 * 3600 : 0;
    if (error != std::errc{} || number < 0 || seconds == 0 || number > longest_days * 24 * 3600 / seconds)
        throw usage(fmt::format("'{}' is no age", text), "such as 90d, 12h or 6w");
    return number * seconds;
}

int run_db_prune(const PruneFlags& flags, const Request& given, Console& console) {
    PruneRules rules{.trials = flags.trials, .stale = flags.stale};
    if (!flags.older_than.empty()) rules.older_than = age_from_text(flags.older_than);
    if (!rules.trials && !rules.stale && !rules.older_than)
        throw usage("nothing was said to go", "give --trials, --stale or --older-than 90d; --dry-run shows what would");
    const Session session{given, console};
    if (session.open_store(Store::Mode::read).generation() == 0) {
        console.result("nothing is stored yet");
        console.json_line(json_event("db_prune", {{"dry_run", flags.dry_run},
                                                  {"records", 0},
                                                  {"waiting", 0},
                                                  {"trials", 0},
                                                  {"negatives", 0},
                                                  {"runs", 0},
                                                  {"configs", 0}}));
        return 0;
    }
    Store store = session.open_store(Store::Mode::write);
    if (!flags.dry_run && store.state().starts_with("memory"))
        throw Error{Error::Kind::store, fmt::format("{}, so nothing was removed", store.why_not_kept()),
                    "name another place with --db"};
    const Pruned gone = Upkeep{store}.prune(rules, session.today(session.ops().all()), flags.dry_run);
    console.result(fmt::format(
        "{}: {}, {}, {}", flags.dry_run ? "would go" : "removed", format_count(gone.records, "record", "records"),
        format_count(gone.trials, "trial", "trials"), format_count(gone.negatives, "refusal", "refusals")));
    if (gone.waiting > 0)
        console.result(fmt::format("and beside other records: {}",
                                   format_count(gone.waiting, "record that waits", "records that wait")));
    console.result(fmt::format("and what they alone needed: {}, {}", format_count(gone.runs, "search", "searches"),
                               format_count(gone.configs, "config", "configs")));
    console.json_line(json_event("db_prune", {{"dry_run", flags.dry_run},
                                              {"records", gone.records},
                                              {"waiting", gone.waiting},
                                              {"trials", gone.trials},
                                              {"negatives", gone.negatives},
                                              {"runs", gone.runs},
                                              {"configs", gone.configs}}));
    if (gone.not_removed > 0)
        console.note(
            fmt::format("{} damaged and cannot be removed from the file",
                        gone.not_removed == 1 ? "1 record is" : fmt::format("{} records are", gone.not_removed)),
            "autotune db salvage BROKEN.db NEW.db");
    if (!flags.dry_run) console.note("the file keeps its size until it is compacted", "autotune db compact");
    return 0;
}

DbRun declare_db_prune(CLI::App& app) {
    auto flags = std::make_shared<PruneFlags>();
    app.add_flag("--trials", flags->trials, "the outcomes of ended searches: a new one tries their configs again");
    app.add_flag("--stale", flags->stale, "records whose sources, space or compiler are others today");
    app.add_option("--older-than", flags->older_than,
                   "only those of that age (90d, 12h, 6w); alone: records and outcomes");
    app.add_flag("--dry-run", flags->dry_run, "tell what would go, and remove nothing");
    return [flags](const Request& request, Console& console) { return run_db_prune(*flags, request, console); };
}

}  // namespace

DbVerb db_prune() {
    return {.name = "prune",
            .about = "remove outcomes, stale records, or what is old; refusals of templates that are gone go with any",
            .example = "autotune db prune --trials --older-than 90d --dry-run",
            .flags = takes_store,
            .declare = declare_db_prune};
}

}  // namespace autotune

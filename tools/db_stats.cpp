#include <fmt/chrono.h>
#include <fmt/core.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "cache/store/upkeep.h"
#include "tools/db.h"
#include "tools/format.h"
#include "tools/json_events.h"
#include "tools/session.h"
#include "tools/subcommands.h"
#include "tuner/model/printable.h"

namespace autotune {
namespace {

/// "2026-11-28", or what there is to say of a date that no calendar here has.
std::string day_of(std::int64_t seconds) {
    const auto time = static_cast<std::time_t>(seconds);
    std::tm parts{};
    if (seconds <= 0 || !::gmtime_r(&time, &parts)) return "-";
    return fmt::format("{:%Y-%m-%d}", parts);
}

nlohmann::json json_of(const StoredGroup& group) {
    return {{"op", group.op},
            {"device", group.device_name},
            {"device_fp", group.device_fp},
            {"problems", group.problems},
            {"records", group.records},
            {"stale", group.stale},
            {"imported", group.imported},
            {"oldest", group.oldest},
            {"newest", group.newest}};
}

void tell(const Store& store, const Statistics& s, Console& console) {
    console.result(fmt::format("database  {}, schema {}", store.state(), s.schema));
    console.result(fmt::format("size      {} ({} unused), trials {} ({} unused)", format_bytes(s.bytes),
                               format_bytes(s.unused_bytes), format_bytes(s.trials_bytes),
                               format_bytes(s.unused_trials_bytes)));
    if (s.spool_files > 0)
        console.result(
            fmt::format("spool     {} to be taken in", format_count(s.spool_files, "file waits", "files wait")));
    std::string rows;
    for (const auto& [table, count] : s.rows) rows += fmt::format("{}{} {}", rows.empty() ? "" : ", ", table, count);
    console.result("rows      " + rows);
    if (s.groups.empty()) return;
    console.result(fmt::format("\n{:<20} {:<24} {:>9} {:>8} {:>6} {:>9}  {:<11} {}", "op", "gpu", "problems", "records",
                               "stale", "imported", "oldest", "newest"));
    for (const StoredGroup& g : s.groups)
        console.result(fmt::format("{} {} {:>9} {:>8} {:>6} {:>9}  {:<11} {}", pad_right(one_line(g.op), 20),
                                   pad_right(g.device_name, 24), g.problems, g.records, g.stale, g.imported,
                                   day_of(g.oldest), day_of(g.newest)));
}

int run_db_stats(const Request& request, Console& console) {
    const Session session{request, console};
    Store store = session.open_store(Store::Mode::read);
    const Statistics s = Upkeep{store}.statistics(session.today(session.ops().all()));
    tell(store, s, console);
    nlohmann::json groups = nlohmann::json::array();
    for (const StoredGroup& group : s.groups) groups.push_back(json_of(group));
    console.json_line(json_event("db_stats", {{"path", store.path().string()},
                                              {"state", store.state()},
                                              {"schema", s.schema},
                                              {"bytes", s.bytes},
                                              {"unused_bytes", s.unused_bytes},
                                              {"trials_bytes", s.trials_bytes},
                                              {"unused_trials_bytes", s.unused_trials_bytes},
                                              {"spool_files", s.spool_files},
                                              {"rows", s.rows},
                                              {"groups", groups}}));
    return 0;
}

}  // namespace

DbVerb db_stats() {
    return {.name = "stats",
            .about = "what the database holds: rows a table, sizes, and of each op and GPU how many are stale",
            .example = "autotune db stats",
            .flags = takes_store,
            .run = run_db_stats};
}

}  // namespace autotune

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cache/store/location.h"
#include "cache/store/upkeep.h"
#include "tools/db.h"
#include "tools/format.h"
#include "tools/json_events.h"
#include "tools/subcommands.h"

namespace autotune {
namespace {

struct SalvageFlags {
    std::string from, to;
};

int run_db_salvage(const SalvageFlags& flags, Console& console) {
    if (flags.from.empty() || flags.to.empty())
        throw usage("a salvage needs the broken file and a new one", "autotune db salvage tune.db.broken-1 new.db");
    const Salvaged s = salvage(flags.from, flags.to);
    console.result(fmt::format(
        "copied to '{}': {}, {}, {}, {} with {}", shown(flags.to), format_count(s.records, "record", "records"),
        format_count(s.predictions, "prediction", "predictions"), format_count(s.negatives, "refusal", "refusals"),
        format_count(s.runs, "search", "searches"), format_count(s.trials, "trial", "trials")));
    if (s.waiting > 0)
        console.result(fmt::format("and {} beside them", format_count(s.waiting, "row that waits", "rows that wait")));
    if (s.unreadable > 0)
        console.result(fmt::format("left out, since their checksums or parts fail: {}",
                                   format_count(s.unreadable, "row", "rows")));
    if (s.cut_off) console.result("pages are missing or broken: what stood on them is lost");
    console.json_line(json_event("db_salvage", {{"to", flags.to},
                                                {"records", s.records},
                                                {"predictions", s.predictions},
                                                {"negatives", s.negatives},
                                                {"runs", s.runs},
                                                {"trials", s.trials},
                                                {"unreadable", s.unreadable},
                                                {"cut_off", s.cut_off}}));
    return 0;
}

DbRun declare_db_salvage(CLI::App& app) {
    auto flags = std::make_shared<SalvageFlags>();
    app.add_option("from", flags->from, "the broken database; it is only read");
    app.add_option("to", flags->to, "a new file");
    return [flags](const Request&, Console& console) { return run_db_salvage(*flags, console); };
}

}  // namespace

DbVerb db_salvage() {
    return {.name = "salvage",
            .about = "copy what can be read of a broken database into a new one",
            .example = "autotune db salvage ~/.cache/autotune/1/tune.db.broken-1764000000-4711 new.db",
            .declare = declare_db_salvage};
}

}  // namespace autotune

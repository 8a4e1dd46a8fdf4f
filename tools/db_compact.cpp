#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cache/store/upkeep.h"
#include "tools/db.h"
#include "tools/format.h"
#include "tools/json_events.h"
#include "tools/session.h"
#include "tools/subcommands.h"

namespace autotune {
namespace {

bool nothing_stored(const Session& session) {
    Store store = session.open_store(Store::Mode::read);
    return store.generation() == 0 && Upkeep{store}.statistics({}).spool_files == 0;
}

void tell_json(const Compacted& done, Console& console) {
    console.json_line(
        json_event("db_compact",
                   {{"folded", done.folded}, {"bytes_before", done.bytes_before}, {"bytes_after", done.bytes_after}}));
}

int run_db_compact(const Request& request, Console& console) {
    if (request.db == "none") throw usage("there is no file to compact", "name a database with --db");
    const Session session{request, console};
    if (nothing_stored(session)) {
        console.result("nothing is stored yet");
        tell_json({}, console);
        return 0;
    }
    Store store = session.open_store(Store::Mode::write);
    const Compacted done = Upkeep{store}.compact();
    if (done.folded > 0)
        console.result(fmt::format("{} of spool files taken in", format_count(done.folded, "record", "records")));
    console.result(fmt::format("{} before, {} now", format_bytes(done.bytes_before), format_bytes(done.bytes_after)));
    tell_json(done, console);
    return 0;
}

}  // namespace

DbVerb db_compact() {
    return {.name = "compact",
            .about = "take spool files in and give unused space back",
            .example = "autotune db compact",
            .flags = takes_store,
            .run = run_db_compact};
}

}  // namespace autotune

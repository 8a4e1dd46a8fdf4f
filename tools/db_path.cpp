#include <nlohmann/json.hpp>

#include "tools/db.h"
#include "tools/json_events.h"
#include "tools/session.h"
#include "tools/subcommands.h"

namespace autotune {
namespace {

int run_db_path(const Request& request, Console& console) {
    const Session session{request, console};
    const Store store = session.open_store(Store::Mode::read);
    console.result(store.path().string());
    console.line(store.state());
    console.json_line(json_event("db_path", {{"path", store.path().string()}, {"state", store.state()}}));
    return 0;
}

}  // namespace

DbVerb db_path() {
    return {.name = "path",
            .about = "where the database is",
            .example = "autotune db path",
            .flags = takes_store,
            .run = run_db_path};
}

}  // namespace autotune

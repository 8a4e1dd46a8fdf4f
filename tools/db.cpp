#include "tools/db.h"

#include <algorithm>
#include <array>

#include "tools/subcommands.h"

namespace autotune {

std::span<const DbVerb> db_verbs() {
    static const std::array table{
        db_path(),   db_export(), db_import(), db_imports(), db_revert_import(), db_merge(), db_diff(),    db_bundle(),
        db_keygen(), db_trust(),  db_alias(),  db_stats(),   db_check(),         db_prune(), db_compact(), db_salvage(),
    };
    return table;
}

const DbVerb* db_verb_named(std::string_view name) {
    const auto found = std::ranges::find(db_verbs(), name, &DbVerb::name);
    return found == db_verbs().end() ? nullptr : &*found;
}

int run_db(const Request& request, Console& console) { return request.db_run(request, console); }

}  // namespace autotune

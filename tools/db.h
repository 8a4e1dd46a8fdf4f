#ifndef AUTOTUNE_TOOLS_DB_H
#define AUTOTUNE_TOOLS_DB_H

#include <functional>
#include <span>
#include <string_view>

#include "tools/console.h"
#include "tools/request.h"

namespace CLI {
class App;
}

namespace autotune {

/// A verb of `autotune db`, in the file of its name: tools/db_export.cpp makes db_export(). A new one is its
/// declaration below and its row in db.cpp.
struct DbVerb {
    std::string_view name, about, example;
    unsigned flags = 0;  ///< of subcommands.h: those that verbs share with subcommands, such as takes_store
    /// Adds the flags and words that are the verb's own; the answer runs it once they are parsed, and returns the exit
    /// code. Null: it has none.
    DbRun (*declare)(CLI::App& app) = nullptr;
    int (*run)(const Request& request, Console& console) = nullptr;  ///< where declare is null
};

DbVerb db_path();
DbVerb db_export();
DbVerb db_import();
DbVerb db_imports();
DbVerb db_revert_import();
DbVerb db_merge();
DbVerb db_diff();
DbVerb db_bundle();
DbVerb db_keygen();
DbVerb db_trust();
DbVerb db_alias();
DbVerb db_stats();
DbVerb db_check();
DbVerb db_prune();
DbVerb db_compact();
DbVerb db_salvage();

/// Every verb there is: parsing and help read this table.
std::span<const DbVerb> db_verbs();
const DbVerb* db_verb_named(std::string_view name);

}  // namespace autotune
#endif

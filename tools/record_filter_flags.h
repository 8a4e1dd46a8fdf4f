#ifndef AUTOTUNE_TOOLS_RECORD_FILTER_FLAGS_H
#define AUTOTUNE_TOOLS_RECORD_FILTER_FLAGS_H

#include <string>
#include <vector>

#include "cache/sharing/record_filter.h"
#include "tools/session.h"

namespace CLI {
class App;
}

namespace autotune {

/// Which records a verb is about, as the command line says it.
struct RecordFilterFlags {
    std::string gpu, where;
    std::vector<std::string> problems;
};

void add_record_filter(CLI::App& app, RecordFilterFlags& flags);
/// Throws Error{usage} for an op that there is not, and for what is no expression or no problem.
RecordFilter record_filter(const RecordFilterFlags& flags, const Request& request, const Session& session);

}  // namespace autotune
#endif

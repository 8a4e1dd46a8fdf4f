#include "tools/record_filter_flags.h"

#include <CLI/CLI.hpp>

namespace autotune {

void add_record_filter(CLI::App& app, RecordFilterFlags& flags) {
    app.add_option("--gpu", flags.gpu,
                   "of one kind: a capability such as sm_90, a part of its name, or its fingerprint");
    app.add_option("--where", flags.where, "an expression over the problem, such as 'cols >= 4096'");
    app.add_option("--problem", flags.problems, "NAME=VALUE,...: of problems with these values")
        ->allow_extra_args(false);
}

RecordFilter record_filter(const RecordFilterFlags& flags, const Request& request, const Session& session) {
    if (!request.op.empty()) session.op();  // a typo in the op is no empty answer
    RecordFilter filter{.op = request.op, .gpu = flags.gpu};
    if (!flags.where.empty()) filter.where = where_from_text(flags.where);
    for (const std::string& text : flags.problems)
        for (auto& field : problem_from_text(text)) filter.problem.push_back(std::move(field));
    return filter;
}

}  // namespace autotune

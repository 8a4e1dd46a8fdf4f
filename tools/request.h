#ifndef AUTOTUNE_TOOLS_REQUEST_H
#define AUTOTUNE_TOOLS_REQUEST_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autotune/error.h"
#include "tools/console.h"
#include "tools/shard.h"
#include "tuner/model/expression.h"
#include "tuner/model/value.h"
#include "tuner/tune.h"

namespace autotune {

/// What a user typed and is none: exit code 1.
Error usage(const std::string& message, const std::string& help = {});

/// Throws Error{usage} unless the text is a whole number from `least` to `most`. what: a flag, or what the number is.
std::uint64_t whole_of(std::string_view what, const std::string& text, std::uint64_t least, std::uint64_t most);

/// What --where takes. Throws Error{usage} with the column.
Expression where_from_text(const std::string& text);

/// A problem as typed: `rows=32768,cols=4096,dtype=bf16`; also scalars, free strides and `x.align=4`.
using ProblemText = std::vector<std::pair<std::string, Value>>;

/// Reads `NAME=VALUE,...`. Throws Error{usage} naming the part that is no pair.
ProblemText problem_from_text(std::string_view text);

/// Reads `60s`, `2m`, `1h`, `200` (trials), or both as `60s,200`. Throws Error{usage}.
Budget budget_from_text(std::string_view text);

struct Request;
/// Runs a verb of `autotune db` with the flags of its own that it was parsed with.
using DbRun = std::function<int(const Request& request, Console& console)>;

/// A command line, read. Which flags a subcommand takes stands in its row of the table in request.cpp.
struct Request {
    std::string subcommand = "tune";
    std::string op;
    std::vector<ProblemText> problems;  ///< empty: the op's default problem
    std::string problems_file;
    bool from_misses = false;  ///< the problems that applications missed on the GPU
    Shard shard{};             ///< which of the problems
    std::string gpu;
    std::string db;
    std::vector<std::string> ops;     ///< folders with ops of the user's own
    std::vector<std::string> chains;  ///< chains of element-wise steps, each an op
    ConsoleOptions console;

    std::string strategy = "guided";
    Prior prior = Prior::records;
    Budget budget;  ///< neither part given: 60 s a problem
    std::uint64_t seed = 1;
    Effort effort = Effort::normal;
    std::size_t workers = 0;  ///< compile workers; 0: one a core
    double trial_limit_s = 10, compile_limit_s = 30;
    bool fresh = false;  ///< forget what earlier runs found out

    std::string config;     ///< one config, as `query` prints it
    std::string against;    ///< bench --against: a database, a record's id or a config
    bool counters = false;  ///< bench --counters
    std::string fail_on;    ///< bench --fail-on: "slower" or empty
    std::string t1;         ///< space --t1: a file of another tuner
    std::string measured;   ///< space --measured: its results
    std::string as;         ///< query --as
    std::string where;      ///< query --where
    bool csv = false;
    bool imported = false;                      ///< verify --imported
    std::optional<std::uint64_t> run, trial;    ///< why --run, --trial
    bool show = false;                          ///< ops --show: the op's files
    std::string folder;                         ///< new DIR
    std::string output;                         ///< -o
    std::string file;                           ///< replay FILE
    std::vector<std::string> with;              ///< replay --with: the same kernel's records of other devices
    std::size_t seeds = 10, evaluations = 200;  ///< replay
    std::string shell;                          ///< completion SHELL
    DbRun db_run;                               ///< db VERB
};

/// A flag as help shows it.
struct FlagRow {
    std::vector<std::string> names;  ///< "-o", "--output"
    bool takes_value = false;
    std::string about;
};

/// A subcommand, or a verb of one as "db path", with its flags: what completion and manual pages are made of.
struct CommandRow {
    std::string name;
    std::string_view about, example;
    unsigned takes = 0;  ///< of Flags
    std::vector<FlagRow> flags;
};

/// Every command there is, in the order of help.
std::vector<CommandRow> commands();

/// What a parse gave: a request, or text to print and leave with exit code 0 (help, version).
struct Parsed {
    std::optional<Request> request;
    std::string text;
};

/// Throws Error{usage}, with the nearest word there is.
Parsed parse_request(int count, const char* const* arguments);

}  // namespace autotune
#endif

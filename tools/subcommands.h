#ifndef AUTOTUNE_TOOLS_SUBCOMMANDS_H
#define AUTOTUNE_TOOLS_SUBCOMMANDS_H

#include <span>
#include <string_view>

#include "tools/console.h"
#include "tools/request.h"

namespace autotune {

/// Each runs one subcommand, in the file of its name, and returns the exit code; what stops it is thrown as Error.
int run_tune(const Request& request, Console& console);
int run_ops(const Request& request, Console& console);
int run_space(const Request& request, Console& console);
int run_query(const Request& request, Console& console);
int run_why(const Request& request, Console& console);
int run_bench(const Request& request, Console& console);
int run_verify(const Request& request, Console& console);
int run_check(const Request& request, Console& console);
int run_build(const Request& request, Console& console);
int run_new(const Request& request, Console& console);
int run_db(const Request& request, Console& console);
int run_replay(const Request& request, Console& console);
int run_completion(const Request& request, Console& console);
int run_doctor(const Request& request, Console& console);
int run_selftest(const Request& request, Console& console);

/// Groups of flags that a subcommand takes.
enum Flags : unsigned {
    takes_op = 1,        ///< --op, --ops, --chain
    takes_problem = 2,   ///< --problem, --problems
    takes_gpu = 4,       ///< --gpu
    takes_store = 8,     ///< --db
    takes_search = 16,   ///< --strategy --fresh
    takes_config = 32,   ///< --config
    takes_query = 64,    ///< --as --where --csv
    takes_trial = 128,   ///< --run --trial
    takes_show = 256,    ///< --show
    takes_folder = 512,  ///< a folder to write
    takes_imported = 1024,
    takes_against = 2048,    ///< --against --counters --fail-on
    takes_prior = 4096,      ///< --prior
    takes_misses = 8192,     ///< --from-misses
    takes_budget = 16384,    ///< --budget
    takes_trials = 32768,    ///< --effort --seed --trial-limit
    takes_compiler = 65536,  ///< --workers --compile-limit
    takes_t1 = 1 << 22,      ///< --t1 --measured -o
    takes_replay = 1 << 21,  ///< a recorded space, --with --strategy --seed --seeds --evaluations --workers
    takes_shell = 1 << 20,   ///< a shell's name
};

struct Subcommand {
    std::string_view name, about, example;
    unsigned flags;
    int (*run)(const Request& request, Console& console);
};

/// Every subcommand there is: parsing, help and completion read this table.
std::span<const Subcommand> subcommands();
const Subcommand* subcommand_named(std::string_view name);

}  // namespace autotune
#endif

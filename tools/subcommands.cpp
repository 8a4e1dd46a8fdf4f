#include "tools/subcommands.h"

#include <algorithm>
#include <array>

namespace autotune {
namespace {

constexpr unsigned all_of_a_problem = takes_op | takes_problem | takes_gpu;
constexpr unsigned runs_kernels = takes_trials | takes_compiler;

constexpr std::array<Subcommand, 15> table{{
    {"tune", "search, check and store the fastest config of an op",
     "autotune tune softmax rows=4096,cols=4096,dtype=f32 --budget 30s",
     all_of_a_problem | takes_store | takes_search | takes_budget | takes_prior | takes_misses | runs_kernels,
     run_tune},
    {"ops", "the ops there are, their fields and variants", "autotune ops softmax", takes_op | takes_show, run_ops},
    {"space", "the configs of a problem, and what excludes the others",
     "autotune space gemm m=4096,n=4096,k=4096,dtype=bf16", all_of_a_problem | takes_t1, run_space},
    {"query", "what the database knows", "autotune query softmax --as cpp",
     takes_op | takes_gpu | takes_store | takes_query, run_query},
    {"why", "why a config was chosen, or how a trial ended", "autotune why softmax rows=30000,cols=4096,dtype=bf16",
     all_of_a_problem | takes_store | takes_trial, run_why},
    {"bench", "time configs beside the default, in one run",
     "autotune bench softmax --config 'block LANES=256 CHUNKS=2'",
     all_of_a_problem | takes_store | takes_config | takes_against | runs_kernels, run_bench},
    {"verify", "check stored records again on this GPU", "autotune verify softmax",
     takes_op | takes_gpu | takes_store | takes_imported | runs_kernels, run_verify},
    {"check", "check an op folder: load, compile and compare, without tuning", "autotune check --op matmul --ops ./ops",
     all_of_a_problem | takes_config | runs_kernels, run_check},
    {"build", "compile every config of a problem, without a GPU, and keep the binaries",
     "autotune build softmax --gpu sm_86", all_of_a_problem | takes_store | takes_budget | takes_compiler, run_build},
    {"replay", "how few evaluations a strategy needs in a space that was recorded", "autotune replay gemm__V100.csv.gz",
     takes_replay, run_replay},
    {"new", "a folder with an op to start from", "autotune new my_ops", takes_folder, run_new},
    {"db", "look after the database, and share what is in it", "autotune db path", 0, run_db},
    {"doctor", "what this machine has and lacks", "autotune doctor", takes_gpu | takes_store, run_doctor},
    {"selftest", "three good and three bad kernels on the device at hand", "autotune selftest",
     takes_gpu | runs_kernels, run_selftest},
    {"completion", "what a shell needs to complete commands, flags and problems", "autotune completion bash",
     takes_shell, run_completion},
}};

}  // namespace

std::span<const Subcommand> subcommands() { return table; }

const Subcommand* subcommand_named(std::string_view name) {
    const auto found = std::ranges::find(table, name, &Subcommand::name);
    return found == table.end() ? nullptr : &*found;
}

}  // namespace autotune

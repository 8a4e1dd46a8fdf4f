#ifndef AUTOTUNE_TOOLS_SESSION_H
#define AUTOTUNE_TOOLS_SESSION_H

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cache/store/store.h"
#include "tools/console.h"
#include "tools/request.h"
#include "tools/search.h"
#include "tuner/model/instance.h"
#include "tuner/model/op_set.h"
#include "tuner/worker/worker_bench.h"

namespace autotune {

/// A GPU that is here, or one that is emulated.
struct PresentGpu {
    int ordinal = 0;
    DeviceIdentity identity;
    std::string emulated = {};  ///< "emulated:a100"; empty: it is here
};

/// A problem asked for, with the op it is of.
struct AskedProblem {
    const Op* op = nullptr;
    ProblemText text;
    std::string origin;  ///< "shapes.txt:3"; empty: the command line
};

/// What subcommands share: the ops, the GPU, the database, all as the request names them.
class Session {
public:
    /// Loads the ops. Throws Error{usage}.
    Session(const Request& request, Console& console);

    const OpSet& ops() const noexcept { return ops_; }
    /// The op that was named, else the only one of --ops; throws Error{usage} when there is none such.
    const Op& op() const;
    /// Of --problem and --problems; the op's default problem when there is none. Throws Error{usage}.
    std::vector<AskedProblem> problems() const;

    /// The GPUs that --gpu means: an ordinal, `all`, a capability, or emulated:PART; without it, the first. Where none
    /// is of that capability, or none at all is here, an emulated one, and a warning that says so. Throws Error{device}
    /// for an ordinal that there is not, Error{usage} for what is neither.
    std::vector<PresentGpu> gpus() const;
    /// Limits for what needs no GPU: of --gpu sm_NN, else of the first GPU here. Throws Error{device}.
    DeviceLimits limits() const;

    /// `--db none` is a memory database. Warnings go to the console.
    Store open_store(Store::Mode mode) const;
    /// As `open_store`, for what is of no use without a database: throws Error{usage} where --db names none.
    Store open_present_store(Store::Mode mode) const;
    Environment environment(const DeviceIdentity* device) const;
    Today today(const std::vector<const Op*>& ops) const;
    std::string nvrtc_version() const;  ///< "13.0"; empty without
    WorkerOptions worker_options(const PresentGpu& gpu) const;
    /// For compiling alone.
    WorkerOptions worker_options() const;

    /// The problem on a device. Throws Error{usage} naming the line of the problems file it came from, also for a
    /// scalar that decides no field: what is stored holds for all of its values.
    static Instance instance(const AskedProblem& problem, const DeviceLimits& limits);
    /// The same for what runs kernels and stores nothing: any scalar may be given.
    static Instance instance_with_scalars(const AskedProblem& problem, const DeviceLimits& limits);

private:
    void note_fields_apart() const;
    PresentGpu emulated(const std::string& text) const;

    const Request& request_;
    Console& console_;
    OpSet ops_;
    mutable bool emulation_said_ = false;
};

/// Fields, scalars, free strides and alignments of a problem as typed. Throws Error{usage} for a name that is none.
std::pair<std::vector<std::pair<std::string, Value>>, Binding> split_problem(const Op& op, const ProblemText& text);

/// The problem as `split_problem` takes it back: its fields, and the free strides and alignments that are not what they
/// would be without a word.
std::string problem_words(const Instance& instance, std::string_view separator);

/// The config with its variant (the default one when none is named) and a value for each parameter: left out, its
/// default. Throws Error{usage} for what is no variant, no parameter, or not valid here.
Config complete_config(const Instance& instance, Config config);

/// 86 for "sm_86"; nullopt for anything else.
std::optional<int> capability_from_text(std::string_view text);

}  // namespace autotune
#endif

#ifndef AUTOTUNE_TUNER_WORKER_TASK_H
#define AUTOTUNE_TUNER_WORKER_TASK_H

#include <cstdint>
#include <string>
#include <vector>

#include "device/device.h"
#include "tuner/model/instance.h"
#include "tuner/model/outcome.h"

namespace autotune {

// What the tuner asks of its workers, as plain data: numbers only, never an op, an expression or a path of the user's.

/// Types of frames. A request's answer is the message named beside it, or `failed` with a sentence.
enum class Message : std::uint32_t {
    ready = 1,  ///< a worker's first word
    failed,     ///< {"message"}: an error of the worker's own
    compile,    ///< CompileTask -> compiled
    compiled,   ///< CompileAnswer
    open,       ///< {"device"}: an ordinal or emulated:PART -> opened
    opened,     ///< DeviceIdentity
    devices,    ///< lists devices without opening one -> devices
    bandwidth,  ///< -> bandwidth {"gbs"}
    prepare,    ///< ProblemTask and contents -> done
    reference,  ///< ReferenceTask and values -> done
    anchor,     ///< ReferenceTask: checked against the problem's reference -> compared
    compared,
    drop,      ///< {"slot"} -> done
    trial,     ///< TrialTask -> any number of progress, then outcome
    progress,  ///< {"phase", "expect_s"}: the parent's clock starts anew
    outcome,
    load,    ///< CandidateTask of a finalist -> done
    round,   ///< RoundTask -> round_samples
    unload,  ///< all finalists -> done
    round_samples,
    evaluate,   ///< EvaluateTask and contents: a CPU reference -> evaluated
    evaluated,  ///< {"values", "inputs", "sizes"}: values and magnitudes, then generated inputs, as memory
    refused,
    done,
};

struct CompileTask {
    SourceSpec source;
    std::string arch;  ///< of the device; the source's own wins
};

struct CompileAnswer {
    bool ok = false;
    Artefact artefact;
    std::string log;
    double milliseconds = 0;
};

/// One tensor of a problem.
struct TensorTask {
    std::string name;
    DType dtype = DType::f32;
    Role role = Role::in;
    bool present = true;
    std::vector<std::int64_t> shape, strides;
    std::uint64_t elements = 0, bytes = 0, misalign = 0;
    FillSpec fill;
    int contents = -1;  ///< number of the descriptor that holds its bytes; -1: it is filled
    Bound bound;        ///< of an output
};
bool is_read(const TensorTask& tensor) noexcept;     ///< present, and kernels read it
bool is_written(const TensorTask& tensor) noexcept;  ///< present, and kernels write it

/// A problem as the run worker holds it, under a number.
struct ProblemTask {
    int slot = 0;
    std::vector<TensorTask> tensors;
    bool rotate = true;     ///< as many sets of buffers as a cold L2 needs; else one
    bool modelled = false;  ///< nothing runs on it whole: it has no reference, and memory that is filled when touched
};

/// A compiled config bound to a problem.
struct CandidateTask {
    int slot = 0;
    int id = 0;
    std::vector<std::string> sources;  ///< of the artefacts, in order
    std::vector<Artefact> artefacts;
    LaunchSequence sequence;
    bool deterministic = true, idempotent = true;
};

struct ReferenceTask {
    /// values: descriptors 2i and 2i+1 hold value and magnitude of output i. device: `candidate` computes both into
    /// its first scratch buffers. kernel: `candidate` is a variant of the op; its magnitude is itself on |inputs|.
    enum class Kind { values, device, kernel };
    int slot = 0;
    Kind kind = Kind::values;
    CandidateTask candidate;
    bool may_be_nan = false;  ///< inputs hold special values on purpose
};

/// "the reference kernel 'sum' of sum.cu", for messages.
std::string words_of(const ReferenceTask& task);

struct TrialTask {
    CandidateTask candidate;
    bool twice = true;    ///< a second run on other poison must give the same bits
    bool measure = true;  ///< else it is checked only
    bool check = true;    ///< else it is timed only, on a problem that is modelled, or, not measured either, run once
    TimePlan plan;
    double most_ms = 0;   ///< device time for all samples together, when one is long; 0: no limit
    double floor_us = 0;  ///< faster than this is an error; 0: not known
    double expect_s = 0;  ///< of one run, for the parent's clock; 0: not known
};

struct RoundTask {
    std::vector<int> order;        ///< ids of loaded finalists
    std::vector<double> about_us;  ///< what each takes, as far as known
    TimePlan plan;
    bool watch = false;  ///< look for what disturbs the device, which takes some milliseconds
};

/// What was seen of the device while a sample was taken.
struct DeviceState {
    int other_processes = 0;
    bool throttled = false;  ///< thermal or hardware slowdown; power capping does not count
};

struct RoundSamples {
    std::vector<Samples> samples;  ///< in the order asked, up to one that failed
    DeviceState state;
    std::string failure;  ///< of the finalist behind the last sample; empty: none failed
};

/// A field as the reference sees it.
struct FieldTask {
    std::string name;
    std::int64_t integer = 0;
    double real = 0;
    std::string text;
    bool is_text = false;
};

/// A CPU reference to run: a built-in op's by name, or a user's library.
struct EvaluateTask {
    std::string op;
    std::string library;         ///< of a user's reference; empty: built in
    std::string inputs_library;  ///< of a user's input generator; empty: none
    std::vector<TensorTask> tensors;
    std::vector<FieldTask> fields;
    std::uint64_t seed = 0;
    int threads = 1;
    bool inputs_only = false;
    std::vector<std::string> sizes;  ///< dims that the generator sets: when there are any, nothing else is asked
};

/// Tensors of a problem with one seed.
std::vector<TensorTask> tensor_tasks(const Instance& instance, std::uint64_t seed);

/// Fields and scalars of a problem.
std::vector<FieldTask> field_tasks(const Instance& instance);

/// `y[0,128]` for a row-major index.
std::string element_name(const TensorTask& tensor, std::uint64_t index);

/// The ending of a fault.
Ending ending_of(DeviceFault::Kind kind);

}  // namespace autotune
#endif

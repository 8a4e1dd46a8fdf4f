/// Launches the tuned kernel for a call, or the op's default where nothing is tuned.
///
///     using namespace autotune;
///     Dispatcher dispatcher;                                                      // the user's database
///     const Handle softmax = dispatcher.prepare("softmax", {{"dtype", "bf16"}});  // once a call site
///     const std::int64_t shape[] = {rows, cols};
///     const TensorArgument tensors[] = {{x, DType::bf16, shape}, {y, DType::bf16, shape}};
///     const Decision decision = dispatcher.launch(softmax, tensors, {}, stream);  // each call
///
/// An application links autotune::dispatcher. Neither the driver nor NVRTC is linked: both are opened when first
/// needed.
#ifndef AUTOTUNE_DISPATCHER_H
#define AUTOTUNE_DISPATCHER_H

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "autotune/dtype.h"
#include "autotune/embedded_records.h"

struct CUstream_st;

namespace autotune {

class OpSet;
using Value = std::variant<bool, std::int64_t, double, std::string>;
using FieldValues = std::vector<std::pair<std::string, Value>>;

/// A tensor of a call. strides: in elements; empty means packed. An optional tensor that is absent has a null `data`.
struct TensorArgument {
    const void* data = nullptr;  ///< device memory
    DType dtype = DType::f32;
    std::span<const std::int64_t> shape{};
    std::span<const std::int64_t> strides{};
};

/// A launch value that is no key, such as alpha; converted to the type that the op declares.
struct ScalarArgument {
    ScalarArgument(double number) noexcept : real{number}, integer{whole_of(number)} {}
    ScalarArgument(std::int64_t number) noexcept : real{static_cast<double>(number)}, integer{number} {}
    ScalarArgument(int number) noexcept : ScalarArgument{std::int64_t{number}} {}
    double real;
    std::int64_t integer;

private:
    /// Towards zero; the nearest 64-bit integer for what is beyond them, 0 for NaN.
    static constexpr std::int64_t whole_of(double number) noexcept {
        if (number != number) return 0;
        if (number >= 0x1p63) return std::numeric_limits<std::int64_t>::max();
        if (number < -0x1p63) return std::numeric_limits<std::int64_t>::min();
        return static_cast<std::int64_t>(number);
    }
};

/// How good an answer is, best first. Whatever the rung, a config is checked against the very problem and GPU of the
/// call. The numbers stay as they are: other languages and stored decisions use them.
enum class Rung {
    exact = 0,            ///< tuned for this very problem on this kind of GPU, with today's source and compiler
    exact_stale = 1,      ///< the same, but source, space or compiler have changed since
    nearest = 2,          ///< tuned on this kind of GPU for a problem whose dims are close: `Decision::distance`
    sibling = 3,          ///< tuned for this problem on a GPU of the same capability, limits and nearly as many SMs
    sibling_nearest = 4,  ///< tuned on such a GPU for a problem whose dims are close
    robust = 5,           ///< loses least, in its worst case, over the problems of the op that were tuned on such GPUs
    family = 6,           ///< tuned on a GPU of the same capability's major number, whose limits are no larger
    predicted = 7,        ///< nobody has measured it: an emulator's model of such a GPU put it before the default
    default_config = 8,
    none = 9,  ///< nothing could be launched: `Decision::error` and `why` say what is in the way
};
inline constexpr std::array<std::string_view, 10> rung_names{
    "exact",  "exact, stale", "nearest",   "sibling", "sibling, nearest",
    "robust", "family",       "predicted", "default", "none"};
constexpr std::string_view name_of(Rung rung) noexcept { return rung_names[static_cast<std::size_t>(rung)]; }

/// Where an answer comes from, the nearest to the application first. The numbers stay as they are.
enum class Layer : std::uint8_t {
    pinned = 0,    ///< Dispatcher::pin
    user = 1,      ///< the user's own database
    project = 2,   ///< Options::databases
    system = 3,    ///< the machine's
    embedded = 4,  ///< what the application carries in itself
    op = 5,        ///< the op's own files: a default
};
inline constexpr std::array<std::string_view, 6> layer_names{"pinned", "user", "project", "system", "embedded", "op"};
constexpr std::string_view name_of(Layer layer) noexcept { return layer_names[static_cast<std::size_t>(layer)]; }

/// What was decided for a call. The texts live as long as the dispatcher.
struct Decision {
    Rung rung = Rung::none;
    Layer layer = Layer::op;
    bool verified = false;  ///< checked again after timing, with other seeds and ragged problems
    bool stale = false;
    bool imported = false;  ///< measured elsewhere
    bool launched = false;
    float distance = 0;         ///< octaves between the stored problem and this one, over all dims; 0: the same
    int error = 0;              ///< CUresult of the last thing that failed; 0: nothing did
    std::string_view config{};  ///< `warp_row THREADS=256 VEC=8`
    std::string_view why{};     ///< one sentence
};

/// An op with some fields fixed, made once a call site. A small value: copy it freely. Valid while its dispatcher
/// lives.
class Handle {
public:
    Handle() = default;
    explicit operator bool() const noexcept { return site_ != nullptr; }

private:
    friend class Dispatcher;
    explicit Handle(struct CallSite* site) noexcept : site_{site} {}
    struct CallSite* site_ = nullptr;
};

/// A call that will come: by its tensors and scalars as they will be, or by its problem where there are none yet.
struct ExpectedCall {
    Handle handle{};
    std::span<const TensorArgument> tensors{};
    std::span<const ScalarArgument> scalars{};
    FieldValues problem{};                             ///< without tensors: the fields that the handle leaves open
    std::vector<std::pair<std::string, int>> align{};  ///< without tensors: in bytes, by name; 16 where none is named
};

/// What became of decisions that another process made.
struct ImportedDecisions {
    std::size_t taken = 0, refused = 0;
    std::vector<std::string> why{};  ///< of the refused ones, one sentence each, the first 64
};

/// A problem that was asked for and is not tuned.
struct Miss {
    std::string op, problem;
    std::string device;
};

/// What a call does whose problem has no record on this kind of GPU.
enum class OnMiss {
    run_default,  ///< runs the best that there is without one
    tune_now,     ///< waits until `Options::tune` has tuned it; threads that call the same problem wait together
    tune_behind,  ///< runs the best that there is, while a thread of the dispatcher tunes
    fail,         ///< launches nothing
};

/// A problem to be tuned, with all that its key is made of.
struct TuneRequest {
    std::string op;
    FieldValues problem;                                        ///< every field
    std::vector<std::pair<std::string, std::int64_t>> strides;  ///< free ones, in elements
    std::vector<std::pair<std::string, int>> align;             ///< tensors aligned to less than 16 bytes
    int device = 0;                                             ///< ordinal
    std::chrono::milliseconds budget{};                         ///< of the search
    std::function<bool()> stop;                                 ///< true: the dispatcher is about to end
};

/// What the ladder saw for one problem, for `autotune why`.
struct Explanation {
    struct Row {
        std::string rung;             ///< of rung_names
        std::string problem, config;  ///< the problem that it was measured on
        double time_us = 0;           ///< 0: on many problems
        std::string state;            ///< "fresh, verified"; why it is stale
        std::string refused;          ///< why it can't be used here; empty: it can
        bool chosen = false;
        std::string layer;    ///< of layer_names
        std::string device;   ///< "NVIDIA H200": where it was measured
        std::string why;      ///< one sentence
        double distance = 0;  ///< Decision::distance
        bool imported = false;
    };
    Rung rung = Rung::default_config;
    Layer layer = Layer::op;
    std::string config, why;
    std::vector<Row> rows;
    /// The stored problems that come closest where the answer is not exact, with what differs:
    /// {"rows=4096 cols=4096 dtype=bf16", "rows 4096 there, 8192 here, measured on NVIDIA A100: SM count 108 vs 132"}.
    std::vector<std::pair<std::string, std::string>> closest;
};

/// Answers calls from a database. Any number of threads use one dispatcher at once. A call whose problem was seen
/// before takes no lock and allocates nothing (where its kernels share working memory, threads that launch on the same
/// stream take turns); the first call of a problem reads, loads and perhaps compiles.
///
/// A kernel with a [[kernel.symbol]] reads a variable of its module, which all streams share: its calls must not
/// overlap on the device. A graph keeps the working memory of the stream it was captured on: it must not run beside
/// that stream.
///
/// Want of tuning never stops an application: a config that fails to load or to launch is not used again, the next best
/// one runs, in the end the op's default. While a stream is being captured only kernels that are already loaded are
/// launched (see `ready`). Not to be used in the child of a fork.
class Dispatcher {
public:
    struct Options {
        /// Database files of the project. Rows of all layers compete: at one rung what is more trustworthy wins, of
        /// equals the nearer layer, then the faster. A file that is no database of ours is ignored with a line in the
        /// log.
        std::vector<std::string> databases{};
        bool user_database = true;  ///< the user's own as well: AUTOTUNE_DB, or ~/.cache/autotune/1/tune.db
        /// And the machine's: AUTOTUNE_SYSTEM_DB, or autotune/1/tune.db in XDG_DATA_DIRS. Never written to.
        bool system_database = true;
        /// The machine's database changes in no way while this dispatcher lives: no lock is taken and no change seen.
        /// Wrong answers follow where it does change.
        bool system_database_is_immutable = false;
        /// A database as bytes (`autotune db export` makes one), for applications that bring their tuning along. Read
        /// where it lies: it must outlive the dispatcher. What is no database of ours is ignored with a line in the
        /// log.
        std::span<const std::byte> embedded_database{};
        /// Records as a C++ table, which `autotune db export --as cpp` writes. The table must outlive the dispatcher.
        EmbeddedRecords embedded_records{};
        bool only_local = false;  ///< refuses what was measured elsewhere: imported and embedded rows
        /// Bundles that the application brings along, as files and as bytes in the program, which must outlive the
        /// dispatcher: `autotune db bundle` makes them. Naming one is trusting it: its records count like
        /// those of a database, and its binaries, which are code, are loaded before anything is compiled. Of a file
        /// that others may write to only the records count. One that is damaged is ignored whole with a line in the
        /// log.
        std::vector<std::string> bundles{};
        std::vector<std::span<const std::byte>> embedded_bundles{};
        const OpSet* ops = nullptr;  ///< null: the built-in ops. Must outlive the dispatcher
        bool predictions = true;     ///< where nothing was measured, what a model predicts goes before the default
        bool compile = true;         ///< with NVRTC, where a kernel's binary is not stored
        bool keep_binaries = true;   ///< what was compiled goes beside the user's database, if that is used
        std::size_t most_problems = 65'536;  ///< remembered; beyond it those used longest ago go

        OnMiss on_miss = OnMiss::run_default;  ///< never tunes in a capture, nor while frozen
        /// Tunes a problem and stores the records in a database that is named above; called on a thread of the
        /// dispatcher, once a problem and process. tuner_for() of autotune/tuning.h makes one.
        std::function<void(const TuneRequest&)> tune{};
        std::chrono::milliseconds tune_budget{30'000};     ///< a problem
        std::chrono::milliseconds tune_patience{120'000};  ///< how long a call waits before it runs what there is
        /// A database that takes what calls find out: configs that fail, problems that are not tuned (`autotune
        /// --from-misses`), what online tuning measured. Written on a thread of its own, and read as well. Empty: this
        /// dispatcher writes no database.
        std::string learn{};
        /// Ops that are tuned by the application's own calls, where no fresh record answers: now and then a call also
        /// tries another config, at first on memory of the dispatcher's own, its outputs compared; later in place of
        /// the one that was decided, timed. Only calls that change no input and may be run again; never in a capture,
        /// nor while frozen. A config that is better by 3 % takes over. Candidates are what won other problems here,
        /// at most 8.
        std::vector<std::string> online{};
        double online_share = 0.02;  ///< of the GPU time of a problem's calls, at most, in (0, 0.5]

        std::function<void(const std::string&)> log{};  ///< one sentence each, each said once; empty: nowhere
    };

    Dispatcher();
    /// Throws Error{usage} for a policy that wants tuning without `tune`, an unknown op or a wrong share in `online`.
    explicit Dispatcher(Options options);
    ~Dispatcher();
    Dispatcher(const Dispatcher&) = delete;
    Dispatcher& operator=(const Dispatcher&) = delete;

    /// Throws Error{usage} for an unknown op, field or choice. Fields left out are found at each call: dims from
    /// shapes, dtypes from tensors, others by the op's defaults.
    Handle prepare(std::string_view op, const FieldValues& fields = {});

    /// Launches on the stream, which belongs to the current context. tensors: in the op's order, all of them. scalars:
    /// in the op's order; those left out have the op's defaults. Throws Error{usage} for arguments that contradict the
    /// op, and nothing else.
    Decision launch(const Handle& handle, std::span<const TensorArgument> tensors,
                    std::span<const ScalarArgument> scalars, CUstream_st* stream);

    /// Decides, loads and allocates for such a call, and launches nothing: before a capture.
    Decision ready(const Handle& handle, std::span<const TensorArgument> tensors,
                   std::span<const ScalarArgument> scalars, CUstream_st* stream);

    /// The same for many calls on one stream; one decision each. A call that is expected by its problem alone has
    /// packed tensors; when it comes otherwise, with strides that say the same, nothing has to be loaded either.
    std::vector<Decision> prepare(std::span<const ExpectedCall> calls, CUstream_st* stream);

    /// Reads the databases again now; otherwise that happens on a miss, at most once a second. Nothing while frozen.
    void refresh();

    /// From now on a problem keeps the config it got, whatever databases say or a capture allows, so that graphs and
    /// eager calls run the same. A new problem is answered by what was known when this was called. Only a kernel that
    /// fails is still replaced.
    void freeze();
    /// What was decided meanwhile is decided anew at the next call.
    void thaw();
    bool frozen() const noexcept;

    /// Which config each problem got, of those that are remembered: lines of JSON for other processes, such as the
    /// ranks of one job. Equal decisions give equal bytes.
    std::vector<std::byte> export_decisions() const;
    /// Puts what another process decided before everything that the databases say, wherever it is valid here; of a
    /// problem decided on several kinds of GPU what was decided on this kind, if any. The bytes are not trusted:
    /// configs that the ops of today do not declare are refused. Throws Error{usage} and takes nothing over for bytes
    /// that are damaged or of a newer format, and while frozen.
    ImportedDecisions import_decisions(std::span<const std::byte> bytes);
    /// 64 bits over which config each problem got or was handed: equal on processes that run the same, whatever their
    /// GPUs. Takes time that grows with the problems remembered.
    std::uint64_t decision_hash() const;

    /// Has calls of an op whose problems have these values run this config ("warp_row THREADS=256 VEC=8"), whatever
    /// databases say: for experiments that must not tune themselves. Where it is not valid, or has failed, the call
    /// goes on to the databases, with a line in the log. Of several pins that fit the last one counts. Throws
    /// Error{usage} for an unknown op, field, variant, parameter or value, and while frozen.
    void pin(std::string_view op, const FieldValues& fields, std::string_view config);
    /// Drops every pin of the op; whether there was one. Throws Error{usage} while frozen.
    bool unpin(std::string_view op);

    /// Calls answered by each rung.
    std::array<std::uint64_t, rung_names.size()> counts() const noexcept;
    /// Problems that ran what was borrowed, predicted or the default, for want of a record of their own, each once, at
    /// most 4096.
    std::vector<Miss> misses() const;

    /// How a problem would be answered on a GPU. Throws Error{usage}, Error{device} where there is no such GPU.
    Explanation explain(std::string_view op, const FieldValues& problem, int device = 0) const;

    struct Impl;

private:
    std::unique_ptr<Impl> impl_;
};

/// While it lives, calls of this thread behave as if their stream were being captured.
class CaptureScope {
public:
    CaptureScope() noexcept;
    ~CaptureScope();
    CaptureScope(const CaptureScope&) = delete;
    CaptureScope& operator=(const CaptureScope&) = delete;
};

}  // namespace autotune
#endif

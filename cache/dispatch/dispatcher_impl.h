#ifndef AUTOTUNE_CACHE_DISPATCH_DISPATCHER_IMPL_H
#define AUTOTUNE_CACHE_DISPATCH_DISPATCHER_IMPL_H

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "autotune/dispatcher.h"
#include "cache/dispatch/bundled.h"
#include "cache/dispatch/call_site.h"
#include "cache/dispatch/decisions.h"
#include "cache/dispatch/grace.h"
#include "cache/dispatch/kernels.h"
#include "cache/dispatch/ladder.h"
#include "cache/dispatch/learner.h"
#include "cache/dispatch/online.h"
#include "cache/dispatch/tuning_thread.h"
#include "cache/dispatch/workspaces.h"
#include "cache/store/store.h"
#include "device/driver.h"
#include "tuner/model/op_set.h"

namespace autotune {

/// What is known of one GPU of this process; GPUs of one kind share what the databases say.
struct KnownDevice {
    DeviceIdentity identity{};
    std::string failed{};  ///< why it cannot be identified
};

/// A database that may or may not be there.
struct DatabasePlace {
    std::string path{};
    Layer layer = Layer::project;
    friend bool operator==(const DatabasePlace&, const DatabasePlace&) = default;
};

/// A config that the application forces on problems with these values.
struct Pin {
    const Op* op = nullptr;
    FieldValues fields{};
    Config config{};
};

/// The databases that can be read, as they were when they were looked at.
struct Databases {
    std::vector<Store> stores{};
    std::vector<Layer> layers{};
    std::vector<std::int64_t> generations{};
    bool locked = false;  ///< one could not be read just now, so what is known is not all
};

/// A kernel that a capture could not load. The stream is a name only: it may be gone.
struct WantedKernel {
    Instance instance;
    LadderStep candidate;
    int device = 0;
    std::size_t scalars = 0;
    CUstream stream = nullptr;
    CUcontext context = nullptr;
    int passed_over = 0;  ///< by calls in other contexts
};

/// A problem that a capture would have had tuned.
struct WantedSearch {
    std::string name;  ///< TuningThread::ask
    TuneRequest request;
};

/// What Dispatcher hides. dispatcher.cpp holds the fast path, resolving.cpp what happens when a call is new, layers.cpp
/// which databases are read, remembering.cpp the tables of plans, learning.cpp what is tuned or written for want of a record, trying.cpp what is
/// tried in calls, deciding.cpp what is frozen and handed to other processes, pinning.cpp what the application pins,
/// preparing.cpp what is loaded before its call.
struct Dispatcher::Impl {
    explicit Impl(Options given);
    ~Impl();

    // -- the fast path reads these
    Options options;
    const DriverCalls* calls = nullptr;  ///< null: no driver
    std::string no_driver;               ///< why
    int device_count = 0;
    Grace grace;
    std::unique_ptr<Workspaces> workspaces;
    std::atomic<std::uint32_t> clock{1};  ///< ticks with misses: how long ago a plan was used
    std::atomic<bool> kernels_wanted{false};
    std::atomic<bool> frozen{false};  ///< set under the mutex
    struct alignas(64) Counts {
        std::array<std::atomic<std::uint64_t>, rung_names.size()> by_rung{};
    };
    std::array<Counts, Grace::stripes> counters{};

    /// A child of a fork takes no lock either: a thread that it does not have may hold it.
    const pid_t process = ::getpid();
    bool in_child() const noexcept { return process != ::getpid(); }
    static Decision for_a_child() noexcept {
        return {.error = CUDA_ERROR_NOT_INITIALIZED, .why = "a child of a fork cannot use its parent's dispatcher"};
    }

    // -- everything below is guarded
    mutable std::mutex mutex;
    std::optional<OpSet> builtin;  ///< where the application named no ops
    const OpSet& ops() const noexcept { return options.ops ? *options.ops : *builtin; }
    std::vector<DatabasePlace> places;  ///< of databases, the nearest layer first
    Databases databases;
    std::vector<Store> embedded;  ///< Options::embedded_database and embedded_records
    std::unique_ptr<Bundled> bundled;
    std::chrono::steady_clock::time_point last_look{};
    std::unique_ptr<Kernels> kernels;
    std::vector<std::unique_ptr<CallSite>> sites;
    std::vector<std::optional<KnownDevice>> devices;
    std::map<std::string, OpKnowledge> knowledge;  ///< by op and fingerprint
    std::set<std::string> failed;                  ///< candidates that did not load or launch, by device
    std::set<std::string, std::less<>> texts;      ///< of configs in decisions: they live as long as the dispatcher
    std::set<std::string, std::less<>> reasons;    ///< likewise, up to a number of them
    std::set<std::string, std::less<>> said;       ///< log lines, each once
    std::map<std::string, Miss> missed;
    std::deque<WantedKernel> wanted;
    std::deque<WantedSearch> wanted_searches;
    Decisions imported;       ///< what other processes decided
    Decisions adopted;        ///< what online tuning found
    Decisions frozen_decisions;  ///< while frozen: what was decided since
    std::vector<Pin> pins;       ///< of the application, the last one first
    std::size_t plan_count = 0;

    enum class Purpose { launch, ready };
    /// What brought a call here that has a plan: the plan failed.
    struct Failure {
        std::string candidate{};  ///< empty: none did
        Config config{};
        CUresult status = CUDA_SUCCESS;
        bool repeatable = true;  ///< nothing that ran forbids running the whole call again
    };
    /// The call as its caller gave it.
    struct Call {
        CallSite& site;
        const Signature& signature;
        int device;
        std::span<const TensorArgument> tensors;
        std::span<const ScalarArgument> scalars;
        CUstream stream;
        Purpose purpose;
        bool capturing = false;
    };

    /// What became of one candidate in a call.
    struct Attempt {
        enum class End {
            done,
            not_loaded,     ///< nothing is loaded under capture
            not_its_fault,  ///< any other would fail as well
            half_done,      ///< some of it ran, and may not run again
            failed,         ///< it was not loaded or not launched
            unusable        ///< it cannot be had for this problem, which says nothing of the GPU
        };
        End end = End::done;
        CUresult status = CUDA_SUCCESS;
        std::string why{};
        std::shared_ptr<Plan> plan{};
    };

    void refuse_child() const;
    int current_device() const noexcept;
    CUcontext current_context() const noexcept;
    // resolving.cpp
    Decision resolve(Call call, const Failure& failure);
    std::optional<Decision> after_failure(const Call& call, const Failure& failure, const Instance& instance,
                                          const DeviceIdentity& device);
    Instance instance_of(const Call& call, const DeviceLimits& limits) const;
    /// Null: under capture, and something would have to be loaded.
    std::shared_ptr<Plan> plan_of(const Call& call, const Instance& instance, const LadderStep& candidate);
    std::vector<LadderStep> steps_of(const Call& call, const Instance& instance, const DeviceIdentity& device);
    std::vector<LadderStep> steps_of(const Call& call, const Instance& instance, const DeviceIdentity& device,
                                     std::size_t at_least);
    Decision climb(const Call& call, const Instance& instance, const DeviceIdentity& device,
                   std::vector<LadderStep> steps);
    /// Loads a candidate and launches it.
    Attempt attempt(const Call& call, const Instance& instance, const LadderStep& candidate);
    CUresult run(const Plan& plan, const Call& call, bool& begun);

    // remembering.cpp
    void keep(CallSite& site, std::shared_ptr<Plan> plan);
    void drop(CallSite& site, std::string_view candidate);
    void make_room();
    void replace_table(CallSite& site, std::shared_ptr<PlanTable> next);
    void reclaim();

    // deciding.cpp
    void put_decided_first(std::vector<LadderStep>& steps, const Instance& instance, const OpKnowledge& knows,
                           const DeviceIdentity& device) const;
    Decisions decided() const;
    void forget_plans();

    // learning.cpp
    void start_threads();
    bool is_missed(const std::vector<LadderStep>& steps, int device) const;
    void note_miss(const Instance& instance, const DeviceIdentity& device, Rung rung);
    /// Has the missed problem tuned, as on_miss says; waits for it without the lock. True: it was waited for.
    bool have_tuned(std::unique_lock<std::mutex>& lock, Call& call, const Instance& instance,
                    const DeviceIdentity& device);
    void learn_failure(const Instance& instance, const DeviceIdentity& device, const Config& config, CUresult status);

    // trying.cpp
    void start_online();
    void attach_online(Plan& plan, const Call& call, const Instance& instance, const DeviceIdentity& device,
                       const LadderStep& decided, const std::vector<LadderStep>& steps);
    CUresult online_turn(const Plan& plan, std::span<const TensorArgument> tensors,
                         std::span<const ScalarArgument> scalars, CUstream stream, const Workspace* workspace,
                         bool& begun, Decision& decision);
    void take_in(const OnlineFinding& finding);

    // pinning.cpp
    std::optional<LadderStep> pinned_step(const Instance& instance, const OpKnowledge& knows) const;
    void put_pinned_first(std::vector<LadderStep>& steps, const Instance& instance, const OpKnowledge& knows);

    // preparing.cpp
    Decision prepare_by_problem(CallSite& site, const ExpectedCall& expected, int device, CUstream stream);
    void want(const Call& call, const Instance& instance, const LadderStep& candidate);
    /// Loads what captures have asked for in vain, and has it tuned, unless the stream is being captured.
    void load_wanted(int device, CUstream stream);
    void load_wanted_now(int device);
    void note_wanted() { kernels_wanted = !wanted.empty() || (!frozen && !wanted_searches.empty()); }

    bool capturing(CUstream stream) const noexcept;
    Decision nothing(std::string why, CUresult error);
    Decision answered(std::shared_ptr<Plan> plan, const Call& call, bool keep_it);

    Kernels::Options kernel_options();
    Databases open_databases();
    void open_embedded();
    std::vector<LayeredStore> readable();
    std::vector<DatabasePlace> find_places() const;
    LadderRules rules() const noexcept {
        return {.predictions = options.predictions, .only_local = options.only_local};
    }
    enum class Look { once_a_second, now, now_and_retry };
    void look_for_news(Look look);
    const OpKnowledge& known(const Op& op, const DeviceIdentity& device);
    const KnownDevice& device_state(int device);
    void keep_frozen(const DecidedConfig& decided, int device);
    std::string_view kept_text(std::string text) { return *texts.insert(std::move(text)).first; }
    std::string_view kept_reason(std::string why);
    void log(std::string sentence);

    // -- threads: they take the mutex, and end before all of the above does
    std::unique_ptr<Learner> learner;
    std::unique_ptr<TuningThread> tuning;
    std::unique_ptr<OnlineTuner> online;
};

/// A candidate on one of the GPUs: what fails on one may well run on another.
std::string name_here(std::string_view candidate, int device);

/// A run that a dispatcher tells the store about.
RunStart run_of_dispatch(const Instance& instance, const DeviceIdentity& device, std::string strategy,
                         std::pair<int, int> nvrtc);

/// A wrong field is refused where it is said, not at the first call. Throws Error{usage}.
void refuse_unknown_field(const Op& op, const std::string& name, const Value& value);

}  // namespace autotune
#endif

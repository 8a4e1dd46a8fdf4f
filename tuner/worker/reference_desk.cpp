#include "tuner/worker/reference_desk.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "autotune/error.h"
#include "device/identity.h"
#include "tuner/loader/user_reference.h"
#include "tuner/worker/json_types.h"
#include "tuner/worker/junk.h"
#include "tuner/worker/npy.h"
#include "tuner/worker/ragged.h"

namespace autotune {
namespace {

using Clock = std::chrono::steady_clock;

/// A CPU reference that takes longer than this has its device stand-in asked.
constexpr double worth_waiting_s = 0.1;
/// What a plain loop in double does a second on one core, until one was seen.
constexpr double first_guess_flops = 4e8;
constexpr double most_small_flops = 2e8;
constexpr std::size_t most_anchors = 2;
constexpr int anchor_slot = 2;
constexpr Patience unhurried{.limit_s = longest_reference_s, .least_s = longest_reference_s};

/// Most of the machine's memory: a reference that takes ever more must leave the rest alive.
std::vector<std::string> memory_limit() {
    const auto total =
        static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    return {"--memory-bytes", std::to_string(total / 4 * 3)};
}

bool is_special(const std::vector<TensorTask>& tensors) {
    return std::ranges::any_of(tensors,
                               [](const TensorTask& tensor) { return tensor.fill.kind == FillSpec::Kind::special; });
}

/// The op's own count, or what making and reading each element in double is worth, where that is more.
double reference_work(const Instance& instance) {
    double elements = 0;
    for (const BoundTensor& tensor : instance.tensors())
        if (tensor.present) elements += static_cast<double>(tensor.elements);
    return std::max(instance.flops(), 50 * elements);
}

using Fields = std::vector<std::pair<std::string, Value>>;

void give_field(Fields& fields, const std::string& name, const Value& value) {
    for (auto& [have, old] : fields)
        if (have == name) {
            old = value;
            return;
        }
    fields.emplace_back(name, value);
}

/// Cuts the dims that may vary to `sizes`, in turn; one that is as another, and by default, is cut with it.
Fields cut_down(const Instance& instance, std::span<const std::int64_t> sizes, bool exact_too) {
    const Fields given = given_fields(instance);
    Fields fields = given;
    const auto place = [&](const std::string& name) {
        return static_cast<std::size_t>(std::ranges::find(given, name, &Fields::value_type::first) - given.begin());
    };
    std::size_t next = 0;
    for (std::size_t i = 0; i < given.size(); ++i) {
        const Field* field = instance.op().field(given[i].first);
        const auto* extent = std::get_if<std::int64_t>(&given[i].second);
        if (!field || field->kind != Field::Kind::dim || !extent || (!field->near && !exact_too)) continue;
        const std::size_t leader = place(field->fallback.bare_name().value_or(""));
        if (leader < i && given[leader].second == given[i].second)
            fields[i].second = fields[leader].second;
        else
            fields[i].second = std::min(*extent, sizes[next++ % sizes.size()]);
    }
    return fields;
}

}  // namespace

std::vector<Instance> small_problems(const Instance& instance) {
    constexpr std::array<std::int64_t, 4> odd{37, 53, 29, 67}, even{64, 32, 128, 64};
    std::vector<Fields> tries;
    for (const auto& check : instance.op().check_problems) {
        Fields fields = cut_down(instance, odd, false);
        for (const auto& [name, value] : check) {
            const Field* field = instance.op().field(name);
            if (field && field->kind == Field::Kind::dim) give_field(fields, name, value);
        }
        tries.push_back(std::move(fields));
    }
    tries.insert(tries.begin(), cut_down(instance, odd, false));
    tries.push_back(cut_down(instance, even, false));
    tries.push_back(cut_down(instance, even, true));
    std::vector<Instance> found;
    for (const Fields& fields : tries) {
        if (found.size() == most_anchors) break;
        try {
            Instance small =
                Instance::make(instance.op(), fields, instance.limits(), {.scalars = instance.binding().scalars});
            const bool is_new =
                std::ranges::none_of(found, [&](const Instance& other) { return other.problem() == small.problem(); });
            if (is_new && reference_work(small) <= most_small_flops) found.push_back(std::move(small));
        } catch (const Error&) {  // no legal problem
        }
    }
    return found;
}

ReferenceDesk::ReferenceDesk(std::filesystem::path worker, std::filesystem::path cache, RunLane& lane,
                             CompiledSources& store, StageLog& log)
    : worker_{std::move(worker)},
      cache_{std::move(cache)},
      lane_{lane},
      store_{store},
      log_{log},
      flops_per_s_{first_guess_flops * static_cast<double>(usable_threads())},
      thread_{std::make_unique<JobThread>()} {
    thread_->post([this] {
        try {
            client_ = std::make_unique<RunClient>(worker_, "--reference", memory_limit());
        } catch (const Error&) {  // said when it is needed
        }
    });
}

ReferenceDesk::~ReferenceDesk() { thread_.reset(); }

template <class Result>
Result ReferenceDesk::waited(std::future<Result> result, const std::string& op, const Waiter& waiter) {
    using namespace std::chrono_literals;
    constexpr auto patient = 10s;
    bool said = !waiter.note;
    for (const auto start = Clock::now(); result.wait_for(100ms) == std::future_status::timeout;) {
        if (waiter.stop_requested && waiter.stop_requested()) {
            abandoned_ = true;
            throw Error{Error::Kind::interrupted, fmt::format("interrupted while the reference of '{}' ran", op)};
        }
        if (said || Clock::now() - start < patient) continue;
        said = true;
        waiter.note(fmt::format("the reference of '{}' has run for {} s; it is ended after {:.0f} s", op,
                                patient.count(), longest_reference_s));
    }
    return result.get();
}

std::future<std::shared_ptr<const HeldProblem>> ReferenceDesk::begin(const Instance& instance, std::uint64_t seed,
                                                                     int slot, bool rotate) {
    return thread_->begin([this, instance, seed, slot, rotate] { return make(instance, seed, slot, rotate); });
}

std::shared_ptr<const HeldProblem> ReferenceDesk::wait(std::future<std::shared_ptr<const HeldProblem>> problem,
                                                       const std::string& op, const Waiter& waiter) {
    return waited(std::move(problem), op, waiter);
}

bool ReferenceDesk::prefers_device(const Instance& instance) const {
    return !instance.op().reference.launches.empty() && reference_work(instance) / flops_per_s_ > worth_waiting_s;
}

void ReferenceDesk::expect(const Instance& instance, const std::string& arch) {
    if (instance.op().reference.kind == Reference::Kind::cpp && prefers_device(instance))
        store_.expect(instance.reference_sources(), arch, true);
}

/// What a generator makes needs no junk: it can put its own.
HeldProblem ReferenceDesk::problem_of(const Instance& instance, std::uint64_t seed, int slot, bool rotate) {
    HeldProblem problem;
    problem.task = {.slot = slot, .tensors = tensor_tasks(instance, seed), .rotate = rotate};
    problem.reference.slot = slot;
    if (instance.op().inputs_cpp.empty()) problem.contents = junk_contents(instance, problem.task.tensors);
    return problem;
}

Instance ReferenceDesk::sized(const Instance& instance, std::uint64_t seed, const Waiter& waiter) {
    std::vector<std::string> names;
    for (const Field& field : instance.op().fields)
        if (field.from_inputs) names.push_back(field.name);
    if (names.empty()) return instance;
    // What it works with is its own: who waits may be gone before it ends.
    const std::vector<std::int64_t> sizes = waited(thread_->begin([this, instance, seed, names] {
        EvaluateTask task = evaluation_of(instance, seed, {});
        task.sizes = names;
        std::vector<Fd> none;
        return ask(instance, task, {}, none).at("sizes").get<std::vector<std::int64_t>>();
    }),
                                                   instance.op().name, waiter);
    if (sizes.size() != names.size()) throw Error{Error::Kind::internal, "the reference's worker lost its sizes"};
    Fields fields = given_fields(instance);
    for (std::size_t i = 0; i < names.size(); ++i) fields.emplace_back(names[i], sizes[i]);
    return Instance::make(instance.op(), fields, instance.limits(), instance.binding());
}

std::shared_ptr<const HeldProblem> ReferenceDesk::modelled(const Instance& instance, std::uint64_t seed,
                                                           const Waiter& waiter) {
    return waited(thread_->begin([this, instance, seed] { return without_reference(instance, seed, 0, true); }),
                  instance.op().name, waiter);
}

std::shared_ptr<const HeldProblem> ReferenceDesk::inputs(const Instance& instance, std::uint64_t seed, int slot) {
    return thread_->run([&] { return without_reference(instance, seed, slot, false); });
}

std::shared_ptr<const HeldProblem> ReferenceDesk::without_reference(const Instance& instance, std::uint64_t seed,
                                                                    int slot, bool modelled) {
    HeldProblem problem = problem_of(instance, seed, slot, false);
    problem.task.modelled = modelled;
    if (!instance.op().inputs_cpp.empty()) evaluate(instance, seed, problem, true);
    return std::make_shared<const HeldProblem>(std::move(problem));
}

std::shared_ptr<const HeldProblem> ReferenceDesk::make(const Instance& instance, std::uint64_t seed, int slot,
                                                       bool rotate) {
    const Op& op = instance.op();
    HeldProblem problem = problem_of(instance, seed, slot, rotate);
    problem.reference.may_be_nan = is_special(problem.task.tensors);
    if (!op.inputs_cpp.empty() && op.reference.kind != Reference::Kind::cpp) evaluate(instance, seed, problem, true);
    switch (op.reference.kind) {
        case Reference::Kind::none:
            throw Error{Error::Kind::usage,
                        fmt::format("op '{}' has no reference, so no result of it can be checked", op.name),
                        "add [reference] to its .toml file"};
        case Reference::Kind::kernel: {
            const Variant* variant = op.variant(op.reference.kernel);
            const std::optional<Config> config = variant ? instance.defaults_of(*variant) : std::nullopt;
            if (!config)
                throw Error{Error::Kind::usage, fmt::format("the reference of '{}', variant '{}', cannot run here",
                                                            op.name, op.reference.kernel)};
            problem.reference.kind = ReferenceTask::Kind::kernel;
            problem.reference.candidate =
                compiled(instance, instance.sources(*config), instance.launches(*config), slot);
            problem.words = fmt::format("kernel {}", op.reference.kernel);
            break;
        }
        case Reference::Kind::npy:
            problem.values = npy_values(op, problem.task.tensors);
            problem.words = "recorded values";
            break;
        case Reference::Kind::cpp:
            if (prefers_device(instance) && op.inputs_cpp.empty() && anchored(instance)) {
                problem.reference.kind = ReferenceTask::Kind::device;
                problem.reference.candidate =
                    compiled(instance, instance.reference_sources(), instance.reference_launches(), slot);
                problem.words = "device, fp64, anchored";
            } else {
                evaluate(instance, seed, problem, false);
                problem.words = "CPU, fp64";
            }
            break;
    }
    return std::make_shared<const HeldProblem>(std::move(problem));
}

EvaluateTask ReferenceDesk::evaluation_of(const Instance& instance, std::uint64_t seed,
                                          const std::vector<TensorTask>& tensors) {
    const Op& op = instance.op();
    const auto compiled = [&](const std::string& file) {
        if (cache_.empty())
            throw Error{Error::Kind::usage,
                        fmt::format("there is no folder to keep the compiled '{}' in: HOME is not set", file),
                        "export AUTOTUNE_CACHE_DIR=/a/folder/of/yours"};
        return compile_user_code(op, file, {.cache = cache_ / "host"}).string();
    };
    EvaluateTask task{.op = op.name,
                      .tensors = tensors,
                      .fields = field_tasks(instance),
                      .seed = seed,
                      .threads = static_cast<int>(usable_threads())};
    if (op.reference.kind == Reference::Kind::cpp && has_user_code(op, op.reference.cpp))
        task.library = compiled(op.reference.cpp);
    else if (op.reference.kind == Reference::Kind::cpp && !op.reference.cpp.empty())
        task.op = std::filesystem::path{op.reference.cpp}.stem().string();
    if (!op.inputs_cpp.empty()) task.inputs_library = compiled(op.inputs_cpp);
    return task;
}

/// Asks the reference's worker. answered: the memory that came with the answer.
nlohmann::json ReferenceDesk::ask(const Instance& instance, const EvaluateTask& task, const std::vector<Fd>& contents,
                                  std::vector<Fd>& answered) {
    std::vector<int> fds;
    for (const Fd& fd : contents) fds.push_back(fd.get());
    try {
        if (!client_ || !client_->alive())
            client_ = std::make_unique<RunClient>(worker_, "--reference", memory_limit());
        Patience patience = unhurried;
        patience.abandoned = &abandoned_;
        Frame frame = client_->ask(Message::evaluate, task, fds, patience);
        answered = std::move(frame.fds);
        return frame.json();
    } catch (const WorkerLost& e) {
        throw Error{Error::Kind::usage,
                    fmt::format("the C++ reference of '{}' failed: {}", instance.op().name, e.what())};
    }
}

/// Runs the C++ reference; its values, and inputs that a generator made, become the problem's.
void ReferenceDesk::evaluate(const Instance& instance, std::uint64_t seed, HeldProblem& problem, bool inputs_only) {
    const StageLog::Span span{log_, "reference on the CPU"};
    EvaluateTask task = evaluation_of(instance, seed, problem.task.tensors);
    task.inputs_only = inputs_only;
    const auto start = Clock::now();
    std::vector<Fd> fds;
    const nlohmann::json body = ask(instance, task, problem.contents, fds);
    const auto values = body.at("values").get<std::size_t>(), inputs = body.at("inputs").get<std::size_t>();
    if (values + inputs != fds.size()) throw Error{Error::Kind::internal, "the reference's worker lost its results"};
    for (std::size_t i = 0; i < values; ++i) problem.values.push_back(std::move(fds[i]));
    for (std::size_t i = 0; i < inputs; ++i) problem.contents.push_back(std::move(fds[values + i]));
    const double took_s = std::chrono::duration<double>(Clock::now() - start).count();
    if (took_s > 0.02) flops_per_s_ = reference_work(instance) / took_s;
    if (inputs == 0) return;
    int next = 0;
    for (TensorTask& tensor : problem.task.tensors)
        if (tensor.present && (tensor.role == Role::in || tensor.role == Role::inout)) tensor.contents = next++;
}

CandidateTask ReferenceDesk::compiled(const Instance& instance, std::vector<SourceSpec> sources,
                                      LaunchSequence sequence, int slot) {
    const StageLog::Span span{log_, "reference compiled"};
    const BinariesResult result = store_.get(std::move(sources), arch_name(instance.limits().cc));
    throw_obstacle(result.obstacle);
    if (!result.binaries)
        throw Error{Error::Kind::usage,
                    fmt::format("the source that the reference kernel of '{}' lies in does not compile: {}",
                                instance.op().name, result.failure.reason)};
    return {.slot = slot,
            .sources = result.binaries->sources,
            .artefacts = result.binaries->artefacts,
            .sequence = std::move(sequence)};
}

/// Whether the device reference may be believed for problems of this kind; false when no small problem can tell.
bool ReferenceDesk::anchored(const Instance& instance) {
    std::string key = instance.op().name;
    for (const SourceSpec& source : instance.reference_sources()) key += ' ' + source.hash();
    for (const auto& [name, value] : instance.problem().fields)
        if (const Field* field = instance.op().field(name); field && field->kind != Field::Kind::dim)
            key += fmt::format(" {}={}", name, to_text(value));
    if (anchored_.contains(key)) return true;
    const std::vector<Instance> small = small_problems(instance);
    if (small.empty()) return false;
    for (const Instance& problem : small) anchor(problem);
    anchored_.insert(key);
    return true;
}

void ReferenceDesk::anchor(const Instance& small) {
    constexpr std::uint64_t seed = 0x5eed;
    HeldProblem problem = problem_of(small, seed, anchor_slot, false);
    evaluate(small, seed, problem, false);
    const ReferenceTask device{
        .slot = anchor_slot,
        .kind = ReferenceTask::Kind::device,
        .candidate = compiled(small, small.reference_sources(), small.reference_launches(), anchor_slot)};
    const auto comparisons = lane_.thread().run([&] {
        const StageLog::Span span{log_, "reference held against the CPU's"};
        lane_.prepare(problem.task, problem.contents);
        lane_.set_reference(problem.reference, problem.values);
        auto found = lane_.ask(Message::anchor, device, unhurried).json().get<std::vector<Comparison>>();
        lane_.drop(anchor_slot);
        return found;
    });
    for (const Comparison& comparison : comparisons)
        if (comparison.bad > 0)
            throw Error{Error::Kind::usage, fmt::format("the device reference of '{}' disagrees with its C++ reference "
                                                        "on {}: element {} is {:.6g}, not {:.6g}",
                                                        small.op().name, small.problem().text(), comparison.first_bad,
                                                        comparison.got, comparison.want)};
}

}  // namespace autotune

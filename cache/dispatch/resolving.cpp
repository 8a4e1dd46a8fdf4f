// What happens when a call is new, or its plan has failed: everything that may lock, allocate, read, compile and load.
#include <fmt/core.h>

#include <algorithm>

#include "autotune/error.h"
#include "cache/dispatch/dispatcher_impl.h"
#include "device/identity.h"
#include "tuner/model/call.h"

namespace autotune {

namespace {

constexpr std::size_t most_whys = 16'384;
/// Stored configs that a call looks at first: so many in a row seldom fail. If they do, it looks at all.
constexpr std::size_t most_candidates = 4, all_candidates = ~std::size_t{};

std::vector<ObservedTensor> observed(const Op& op, std::span<const TensorArgument> tensors) {
    if (tensors.size() != op.tensors.size())
        throw Error{Error::Kind::usage, fmt::format("op '{}' takes {} tensors, the call brought {}", op.name,
                                                    op.tensors.size(), tensors.size())};
    std::vector<ObservedTensor> out;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const TensorArgument& tensor = tensors[i];
        if (!tensor.data) continue;  // an optional one that is absent
        out.push_back({.name = op.tensors[i].name,
                       .dtype = tensor.dtype,
                       .shape = tensor.shape,
                       .strides = tensor.strides,
                       .address = reinterpret_cast<std::uint64_t>(tensor.data)});
    }
    return out;
}

FieldValues scalar_values(const Op& op, std::span<const ScalarArgument> scalars) {
    if (scalars.size() > op.scalars.size())
        throw Error{Error::Kind::usage, fmt::format("op '{}' takes {} scalars, the call brought {}", op.name,
                                                    op.scalars.size(), scalars.size())};
    FieldValues values;
    for (std::size_t i = 0; i < scalars.size(); ++i) {
        if (info(op.scalars[i].dtype).floating)
            values.emplace_back(op.scalars[i].name, scalars[i].real);
        else
            values.emplace_back(op.scalars[i].name, scalars[i].integer);
    }
    return values;
}

bool is_stored(const LadderStep& step) noexcept { return step.refused.empty() && step.rung != Rung::default_config; }

/// Whether worse rungs may have been left out.
bool was_cut(const std::vector<LadderStep>& steps) {
    return static_cast<std::size_t>(std::ranges::count_if(steps, is_stored)) >= most_candidates;
}

/// Whether another config may do better. What the context, the stream or an earlier kernel is to blame for would fail
/// with every config, and none of them is forgotten for it.
bool blames_candidate(CUresult status) noexcept {
    switch (status) {
        case CUDA_ERROR_INVALID_VALUE:
        case CUDA_ERROR_OUT_OF_MEMORY:
        case CUDA_ERROR_INVALID_IMAGE:
        case CUDA_ERROR_NO_BINARY_FOR_GPU:
        case CUDA_ERROR_INVALID_PTX:
        case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
        case CUDA_ERROR_INVALID_SOURCE:
        case CUDA_ERROR_NOT_FOUND:
        case CUDA_ERROR_NOT_SUPPORTED:
        case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
        case CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING:
        case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
        case CUDA_ERROR_INVALID_CLUSTER_SIZE:
            return true;
        default:
            return false;
    }
}

}  // namespace

std::string name_here(std::string_view candidate, int device) { return fmt::format("{} {}", device, candidate); }

const OpKnowledge& Dispatcher::Impl::known(const Op& op, const DeviceIdentity& device) {
    OpKnowledge& knows = knowledge[op.name + ' ' + device.fp];
    if (knows.today.templates.empty() || (!knows.snapshot.complete() && !frozen))
        knows = read_knowledge(readable(), op, device, rules());
    return knows;
}

const KnownDevice& Dispatcher::Impl::device_state(int device) {
    std::optional<KnownDevice>& state = devices.at(static_cast<std::size_t>(device));
    if (!state) {
        state.emplace();
        try {
            state->identity = identify(device);
        } catch (const std::exception& error) {
            state->failed = error.what();
        }
    }
    return *state;
}

// -- one call

Decision Dispatcher::Impl::nothing(std::string why, CUresult error) {
    counters[Grace::stripe()].by_rung[static_cast<std::size_t>(Rung::none)].fetch_add(1, std::memory_order_relaxed);
    return {.rung = Rung::none, .error = static_cast<int>(error), .why = kept_reason(std::move(why))};
}

/// Most name the problem that they are of, and a server may meet new ones for ever.
std::string_view Dispatcher::Impl::kept_reason(std::string why) {
    if (const auto found = reasons.find(why); found != reasons.end()) return *found;
    if (reasons.size() >= most_whys) return "explain() says why: more reasons were given than are kept";
    return *reasons.insert(std::move(why)).first;
}

Instance Dispatcher::Impl::instance_of(const Call& call, const DeviceLimits& limits) const {
    const Op& op = *call.site.op;
    return instance_of_call(op, observed(op, call.tensors), limits, call.site.fields, scalar_values(op, call.scalars));
}

std::shared_ptr<Plan> Dispatcher::Impl::plan_of(const Call& call, const Instance& instance,
                                                const LadderStep& candidate) {
    const auto set = kernels->get(instance, candidate.config, call.device, candidate.compilers, call.capturing);
    if (!set) return nullptr;
    auto plan = std::make_shared<Plan>();
    const auto words = call.signature.words();
    plan->signature.assign(words.begin(), words.end());
    plan->hash = hash_words(words);
    plan->candidate = name_here(candidate.name, call.device);
    const Variant* variant = instance.op().variant(candidate.config.variant);
    plan->repeatable = !variant || variant->idempotent;
    fill_plan(*plan, instance, candidate.config, *kernels, *set, call.scalars.size());
    std::string why = candidate.why;
    const bool measured = candidate.rung < Rung::predicted && candidate.layer != Layer::pinned;
    const bool other_compiler = measured && !candidate.stale && set->compiled_otherwise;
    const Rung rung = other_compiler && candidate.rung == Rung::exact ? Rung::exact_stale : candidate.rung;
    if (other_compiler) why += ", but measured with another NVRTC or for another part than it is compiled with now";
    plan->decided = {.op = instance.op().name,
                     .device_fp = device_state(call.device).identity.fp,
                     .problem_key = instance.key(),
                     .problem = instance.problem().text(),
                     .config = candidate.config,
                     .rung = rung,
                     .verified = candidate.verified,
                     .stale = candidate.stale || other_compiler};
    plan->decision = {.rung = rung,
                      .layer = candidate.layer,
                      .verified = candidate.verified,
                      .stale = candidate.stale || other_compiler,
                      .imported = candidate.imported,
                      .distance = candidate.distance,
                      .config = kept_text(candidate.config.text()),
                      .why = kept_reason(std::move(why))};
    return plan;
}

CUresult Dispatcher::Impl::run(const Plan& plan, const Call& call, bool& begun) {
    begun = false;
    const Workspace* workspace = nullptr;
    if (plan.workspace_bytes) {
        workspace = call.capturing ? workspaces->find(call.stream, call.device, plan.workspace_bytes)
                                   : workspaces->ensure(call.stream, call.device, plan.workspace_bytes);
        if (!workspace) return call.capturing ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (call.purpose == Purpose::ready) return CUDA_SUCCESS;
    return launch_plan(*calls, plan, call.tensors, call.scalars, call.stream, workspace, begun);
}

Decision Dispatcher::Impl::answered(std::shared_ptr<Plan> plan, const Call& call, bool keep_it) {
    Decision decision = plan->decision;
    decision.launched = call.purpose == Purpose::launch;
    if (decision.launched)
        counters[Grace::stripe()].by_rung[static_cast<std::size_t>(decision.rung)].fetch_add(1,
                                                                                             std::memory_order_relaxed);
    if (!keep_it) return decision;
    if (frozen) keep_frozen(plan->decided, call.device);
    if (!call.site.owned->find(plan->hash, plan->signature)) keep(call.site, std::move(plan));
    return decision;
}

/// The first answer stays, unless it has failed since.
void Dispatcher::Impl::keep_frozen(const DecidedConfig& decided, int device) {
    const DecidedConfig* first = frozen_decisions.find(decided.op, decided.problem_key, decided.device_fp);
    if (first && first->device_fp == decided.device_fp &&
        !failed.contains(name_here(candidate_name(first->config, decided.problem_key), device)))
        return;
    if (frozen_decisions.size() < options.most_problems) frozen_decisions.put(decided);
}

/// A plan that worked before has failed: it goes. An answer where no other config would do better.
std::optional<Decision> Dispatcher::Impl::after_failure(const Call& call, const Failure& failure,
                                                        const Instance& instance, const DeviceIdentity& device) {
    if (!blames_candidate(failure.status))
        return nothing(fmt::format("the launch failed: {}", name_of(failure.status)), failure.status);
    if (failure.status != CUDA_ERROR_OUT_OF_MEMORY) failed.insert(failure.candidate);  // memory may come back
    learn_failure(instance, device, failure.config, failure.status);
    drop(call.site, failure.candidate);
    log(fmt::format("a kernel of '{}' failed to launch ({}), so the next config runs", call.site.op->name,
                    name_of(failure.status)));
    if (failure.repeatable) return std::nullopt;
    return nothing("a kernel failed after another one had changed the data", failure.status);
}

Decision Dispatcher::Impl::resolve(Call call, const Failure& failure) {
    if (in_child()) return for_a_child();
    std::unique_lock lock{mutex};
    if (!calls) return nothing(no_driver, CUDA_ERROR_NO_DEVICE);
    call.capturing = capturing(call.stream);
    if (!call.capturing) {
        if (!frozen) look_for_news(Look::once_a_second);
        reclaim();
        load_wanted_now(call.device);
    }
    const KnownDevice& device = device_state(call.device);
    if (!device.failed.empty()) return nothing(device.failed, CUDA_ERROR_NO_DEVICE);
    const Instance instance = instance_of(call, device.identity.limits);
    if (!failure.candidate.empty())
        if (auto end = after_failure(call, failure, instance, device.identity)) return *end;
    std::vector<LadderStep> steps = steps_of(call, instance, device.identity);
    if (is_missed(steps, call.device)) {
        if (options.on_miss == OnMiss::fail) {
            note_miss(instance, device.identity, Rung::none);
            return nothing(fmt::format("'{}' {} is not tuned on {}, and on_miss is to fail", instance.op().name,
                                       instance.problem().text(), device.identity.name),
                           CUDA_ERROR_NOT_FOUND);
        }
        if (have_tuned(lock, call, instance, device.identity)) steps = steps_of(call, instance, device.identity);
    }
    return climb(call, instance, device.identity, std::move(steps));
}

std::vector<LadderStep> Dispatcher::Impl::steps_of(const Call& call, const Instance& instance,
                                                   const DeviceIdentity& device) {
    const auto may_run = [&](const LadderStep& step) {
        return is_stored(step) && !failed.contains(name_here(step.name, call.device));
    };
    std::vector<LadderStep> steps = steps_of(call, instance, device, most_candidates);
    if (was_cut(steps) && std::ranges::none_of(steps, may_run)) return steps_of(call, instance, device, all_candidates);
    return steps;
}

std::vector<LadderStep> Dispatcher::Impl::steps_of(const Call& call, const Instance& instance,
                                                   const DeviceIdentity& device, std::size_t at_least) {
    const OpKnowledge& knows = known(*call.site.op, device);
    std::vector<LadderStep> steps = ladder(instance, knows, at_least);
    put_decided_first(steps, instance, knows, device);
    put_pinned_first(steps, instance, knows);
    return steps;
}

Dispatcher::Impl::Attempt Dispatcher::Impl::attempt(const Call& call, const Instance& instance,
                                                    const LadderStep& candidate) {
    using End = Attempt::End;
    try {
        std::shared_ptr<Plan> plan = plan_of(call, instance, candidate);
        bool begun = false;
        const CUresult status = plan ? run(*plan, call, begun) : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        if (status == CUDA_SUCCESS) return {.plan = std::move(plan)};
        if (status == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
            return {
                .end = End::not_loaded,
                .status = status,
                .why = "a stream is being captured and no kernel for this problem is loaded; ready() loads it before"};
        const End end = !blames_candidate(status)    ? End::not_its_fault
                        : begun && !plan->repeatable ? End::half_done
                                                     : End::failed;
        return {.end = end,
                .status = status,
                .why = fmt::format("'{}' did not launch: {}", candidate.config.text(), name_of(status))};
    } catch (const DeviceFailure& failure) {
        return {.end = End::failed, .status = static_cast<CUresult>(failure.fault().code), .why = failure.what()};
    } catch (const Error& error) {
        return {.end = End::unusable, .status = CUDA_ERROR_UNKNOWN, .why = error.what()};
    } catch (const EvaluationError& error) {
        return {.end = End::unusable, .status = CUDA_ERROR_INVALID_VALUE, .why = error.what()};
    }
}

/// The first step that launches.
Decision Dispatcher::Impl::climb(const Call& call, const Instance& instance, const DeviceIdentity& device,
                                 std::vector<LadderStep> steps) {
    using End = Attempt::End;
    std::string why;
    CUresult error = CUDA_SUCCESS;
    // An answer is kept unless something better was left out for a reason that passes.
    bool best = frozen || (known(*call.site.op, device).snapshot.complete() && !databases.locked);
    bool may_look_further = was_cut(steps);
    std::set<std::string> tried;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (may_look_further && steps[i].rung == Rung::default_config) {  // all before it failed
            may_look_further = false;
            steps = steps_of(call, instance, device, all_candidates);
            i = 0;
        }
        const LadderStep& candidate = steps[i];
        if (candidate.rung == Rung::default_config && why.empty()) why = candidate.refused;
        if (!candidate.refused.empty() || failed.contains(name_here(candidate.name, call.device)) ||
            !tried.insert(candidate.name).second)
            continue;
        Attempt ended = attempt(call, instance, candidate);
        if (ended.end == End::done) {
            note_miss(instance, device, ended.plan->decision.rung);
            if (online && best) attach_online(*ended.plan, call, instance, device, candidate, steps);
            return answered(std::move(ended.plan), call, best);
        }
        why = std::move(ended.why);
        error = ended.status;
        if (ended.end == End::not_loaded) {
            if (frozen) continue;  // then what runs in a graph also runs beside it
            want(call, instance, candidate);
            may_look_further = best = false;
            continue;
        }
        if (ended.end == End::not_its_fault) return nothing(std::move(why), error);
        if (ended.end != End::unusable) learn_failure(instance, device, candidate.config, error);
        if (ended.end == End::half_done) return nothing(std::move(why), error);
        log(fmt::format("a config of '{}' is left out: {}", call.site.op->name, why));
        if (error == CUDA_ERROR_OUT_OF_MEMORY)  // there may be some next time
            best = false;
        else
            failed.insert(name_here(candidate.name, call.device));
    }
    if (why.empty()) why = "every config of this problem has failed before";
    return nothing(std::move(why), error == CUDA_SUCCESS ? CUDA_ERROR_UNKNOWN : error);
}

}  // namespace autotune

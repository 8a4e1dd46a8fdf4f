#include "cache/dispatch/online.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "autotune/error.h"
#include "cache/store/json.h"
#include "device/compare.h"

namespace autotune {

namespace {

constexpr std::size_t most_tensors = 64;
constexpr std::uint64_t between_outputs = 256;
/// A first sample beyond this many times the decided config's is the last.
constexpr double hopeless = 1.5;

std::uint64_t padded(std::uint64_t bytes) { return (bytes + between_outputs - 1) / between_outputs * between_outputs; }

double median_of(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// The decided config's outputs stand for the reference, so both may be off by the bound. The reference alone knows the
/// magnitudes that an op's bound is made of, which for softmax grow with the distance to the largest input: elements of
/// the usual size stand for them where an element is small by cancellation, sixteen times over. A kernel that computes
/// something else is off by more.
Comparison compare_outputs(const BoundTensor& tensor, std::span<const std::byte> got, std::span<const std::byte> want,
                           Bound bound) {
    const std::size_t size = info(tensor.dtype).bytes;
    std::vector<double> value(tensor.elements), magnitude(tensor.elements);
    double squares = 0;
    for (std::uint64_t i = 0; i < tensor.elements; ++i) {
        const auto at = static_cast<std::size_t>(element_offset(i, tensor.shape, tensor.strides));
        value[i] = element_value(want.subspan(at * size, size), tensor.dtype);
        if (std::isfinite(value[i])) squares += value[i] * value[i];
    }
    const double usual = 4 * std::sqrt(squares / static_cast<double>(std::max<std::uint64_t>(tensor.elements, 1)));
    for (std::uint64_t i = 0; i < tensor.elements; ++i) magnitude[i] = std::max(std::abs(value[i]), usual);
    bound.of_value *= 2;
    bound.of_magnitude *= 2 * 16;
    bound.absolute *= 2;
    return compare_on_host(got, tensor.dtype, tensor.shape, tensor.strides, value, magnitude, bound, 0);
}

}  // namespace

OnlineTuner::OnlineTuner(const DriverCalls& calls, Kernels::Options kernels, double share, Hooks hooks)
    : calls_{calls}, share_{share}, hooks_{std::move(hooks)}, kernels_{calls, std::move(kernels)} {
    waiting_.reserve(most_problems);
    thread_ = std::thread{[this] { work(); }};
}

OnlineTuner::~OnlineTuner() {
    {
        const std::lock_guard lock{mutex_};
        stopping_ = true;
    }
    posted_.notify_one();
    thread_.join();
}

bool OnlineTuner::allows(const Instance& instance, const Plan& plan) {
    std::uint64_t bytes = 0;
    for (const BoundTensor& tensor : instance.tensors()) {
        if (!tensor.present) continue;
        if (tensor.role == Role::inout) return false;
        if (tensor.role == Role::out) bytes += padded(tensor.bytes);
    }
    return plan.repeatable && plan.copies.empty() && bytes > 0 && bytes <= most_output_bytes &&
           instance.tensors().size() <= most_tensors;
}

OnlineProblem* OnlineTuner::problem(const Plan& plan, const Instance& instance, const DeviceIdentity& device,
                                    int ordinal, std::size_t scalars, const LadderStep& decided,
                                    std::vector<LadderStep> candidates) {
    const std::string name = fmt::format("{} {} {}", ordinal, instance.op().name, to_hex(instance.key()));
    if (const auto known = problems_.find(name); known != problems_.end()) {
        OnlineProblem& same = *known->second;
        const bool goes_on = same.signature == plan.signature && same.decided.name == decided.name &&
                             same.next.load(std::memory_order_relaxed) != OnlineProblem::never;
        return goes_on ? &same : nullptr;
    }
    if (candidates.empty() || problems_.size() >= most_problems) return nullptr;
    auto made = std::make_unique<OnlineProblem>(instance, device, ordinal);
    made->decided = decided;
    made->signature = plan.signature;
    made->scalars = scalars;
    for (LadderStep& candidate : candidates)
        if (made->candidates.size() < most_candidates) {
            std::string text = candidate.config.text();
            made->candidates.push_back({.step = std::move(candidate), .text = std::move(text)});
        }
    for (std::size_t i = 0; i < instance.tensors().size(); ++i) {
        const BoundTensor& tensor = instance.tensors()[i];
        if (!tensor.present || tensor.role != Role::out) continue;
        made->outputs.push_back(i);
        made->scratch_bytes += padded(tensor.bytes);
    }
    return problems_.emplace(name, std::move(made)).first->second.get();
}

// -- on the caller's thread

CUresult OnlineTuner::turn(OnlineProblem& problem, const Plan& decided, std::span<const TensorArgument> tensors,
                           std::span<const ScalarArgument> scalars, CUstream stream, const Workspace* workspace,
                           const Workspaces& workspaces, bool& begun, Decision& decision) noexcept {
    using Phase = OnlineProblem::Phase;
    const auto as_decided = [&] { return launch_plan(calls_, decided, tensors, scalars, stream, workspace, begun); };
    problem.stream = stream;
    CUcontext context = nullptr;
    calls_.cuCtxGetCurrent(&context);
    if (problem.phase == Phase::opening || context != problem.context) {
        // Events belong to one context: a call in another one runs as ever.
        const CUresult status = as_decided();
        if (problem.phase == Phase::opening && status == CUDA_SUCCESS) {
            problem.context = context;
            post(problem);
        } else {
            problem.postpone();
        }
        return status;
    }
    const bool candidates_turn = problem.phase == Phase::checking || problem.phase == Phase::timing;
    const Workspace* of_candidate = nullptr;
    if (candidates_turn && problem.plan->workspace_bytes) {
        of_candidate = workspaces.find(stream, problem.ordinal, problem.plan->workspace_bytes);
        if (!of_candidate) {  // on another stream than last time
            const CUresult status = as_decided();
            problem.phase = Phase::preparing;
            post(problem);
            return status;
        }
    }
    if (problem.phase == Phase::checking)
        return check(problem, decided, tensors, scalars, stream, workspace, of_candidate, begun);
    problem.status = CUDA_SUCCESS;
    bool timed = calls_.cuEventRecord(problem.begin, stream) == CUDA_SUCCESS;
    CUresult status = CUDA_SUCCESS;
    if (candidates_turn) {
        problem.status = status = launch_plan(calls_, *problem.plan, tensors, scalars, stream, of_candidate, begun);
        if (status == CUDA_SUCCESS) {
            decision.config = problem.candidates[problem.current].text;
            decision.why = "a trial of online tuning";
            decision.verified = false;
        } else {
            status = as_decided();
        }
    } else {
        status = as_decided();
    }
    timed = timed && calls_.cuEventRecord(problem.end, stream) == CUDA_SUCCESS;
    if (status != CUDA_SUCCESS || !timed) problem.phase = Phase::done;
    post(problem);
    return status;
}

/// The candidate on scratch memory, then the call itself, then a copy of what it wrote.
CUresult OnlineTuner::check(OnlineProblem& problem, const Plan& decided, std::span<const TensorArgument> tensors,
                            std::span<const ScalarArgument> scalars, CUstream stream, const Workspace* workspace,
                            const Workspace* of_candidate, bool& begun) noexcept {
    std::array<TensorArgument, most_tensors> redirected;
    std::ranges::copy(tensors, redirected.begin());
    bool copied = calls_.cuEventRecord(problem.begin, stream) == CUDA_SUCCESS;
    const auto copy_outputs = [&](bool to_candidate) {
        CUdeviceptr to = problem.scratch + (to_candidate ? 0 : problem.scratch_bytes);
        for (const std::size_t i : problem.outputs) {
            const std::uint64_t bytes = problem.instance.tensors()[i].bytes;
            const auto from = reinterpret_cast<CUdeviceptr>(tensors[i].data);
            copied = copied && calls_.cuMemcpyDtoDAsync(to, from, bytes, stream) == CUDA_SUCCESS;
            if (to_candidate) redirected[i].data = reinterpret_cast<const void*>(to);
            to += padded(bytes);
        }
    };
    copy_outputs(true);  // elements that the op leaves alone are equal then
    bool begun_on_scratch = false;
    problem.status = launch_plan(calls_, *problem.plan, {redirected.data(), tensors.size()}, scalars, stream,
                                 of_candidate, begun_on_scratch);
    const CUresult status = launch_plan(calls_, decided, tensors, scalars, stream, workspace, begun);
    copy_outputs(false);
    copied = copied && calls_.cuEventRecord(problem.end, stream) == CUDA_SUCCESS;
    if (status != CUDA_SUCCESS || !copied) problem.phase = OnlineProblem::Phase::done;
    post(problem);
    return status;
}

void OnlineTuner::post(OnlineProblem& problem) noexcept {
    {
        const std::lock_guard lock{mutex_};
        waiting_.push_back(&problem);  // one place a problem is reserved
    }
    posted_.notify_one();
}

// -- on the tuner's thread

void OnlineTuner::work() {
    // What another thread captures forbids nothing here: this thread's calls are in no capture's way.
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    calls_.cuThreadExchangeStreamCaptureMode(&mode);
    std::vector<OnlineProblem*> opened;
    std::unique_lock lock{mutex_};
    for (;;) {
        posted_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
        if (stopping_) break;
        OnlineProblem& problem = *waiting_.front();
        waiting_.erase(waiting_.begin());
        lock.unlock();
        if (problem.phase == OnlineProblem::Phase::opening) opened.push_back(&problem);
        try {
            calls_.cuCtxSetCurrent(problem.context);
            step(problem);
        } catch (const std::exception&) {  // whatever it is, the application's calls go on as they did
            finish(problem);
        }
        lock.lock();
    }
    lock.unlock();
    for (OnlineProblem* problem : opened) {
        calls_.cuCtxSetCurrent(problem->context);
        release(*problem);
        if (problem->begin) calls_.cuEventDestroy(problem->begin);
        if (problem->end) calls_.cuEventDestroy(problem->end);
    }
    if (reading_) calls_.cuStreamDestroy(reading_);
}

void OnlineTuner::step(OnlineProblem& problem) {
    using Phase = OnlineProblem::Phase;
    switch (problem.phase) {
        case Phase::opening:
            return open(problem);
        case Phase::preparing:
            return prepare(problem);
        case Phase::checking:
            return judge_outputs(problem);
        case Phase::baseline:
        case Phase::timing:
        case Phase::rivalling:
            return take_sample(problem);
        case Phase::done:  // a call failed: what the problem holds is others' from now on
            return finish(problem);
    }
}

void OnlineTuner::open(OnlineProblem& problem) {
    if (calls_.cuEventCreate(&problem.begin, CU_EVENT_DEFAULT) != CUDA_SUCCESS ||
        calls_.cuEventCreate(&problem.end, CU_EVENT_DEFAULT) != CUDA_SUCCESS)
        return finish(problem);
    problem.phase = OnlineProblem::Phase::baseline;
    give_back(problem, 0);
}

/// Loads the current candidate, and holds memory for its check.
void OnlineTuner::prepare(OnlineProblem& problem) {
    using Phase = OnlineProblem::Phase;
    OnlineCandidate& candidate = problem.candidates.at(problem.current);
    const bool checked = problem.plan != nullptr;  // another stream's workspace is all that is missing
    if (!problem.scratch && !checked) {
        if (holders_ >= most_at_once) return problem.postpone();
        if (calls_.cuMemAlloc(&problem.scratch, 2 * problem.scratch_bytes) != CUDA_SUCCESS) {
            problem.scratch = 0;
            return finish(problem);
        }
        ++holders_;
    }
    if (!checked) {
        try {
            const auto set =
                kernels_.get(problem.instance, candidate.step.config, problem.ordinal, candidate.step.compilers, false);
            auto plan = std::make_unique<Plan>();
            fill_plan(*plan, problem.instance, candidate.step.config, kernels_, *set, problem.scalars);
            if (!plan->copies.empty()) return next_candidate(problem);
            if (!set->libraries.empty()) {
                const LoadedLibrary& library = *set->libraries.begin()->second;
                candidate.nvrtc = {library.nvrtc_major, library.nvrtc_minor};
            }
            problem.plan = std::move(plan);
        } catch (const std::exception&) {
            return next_candidate(problem);
        }
    }
    if (problem.plan->workspace_bytes &&
        !hooks_.workspace(problem.stream, problem.ordinal, problem.plan->workspace_bytes))
        return next_candidate(problem);
    problem.phase = problem.scratch ? Phase::checking : Phase::timing;
    const double copies_us = 3 * static_cast<double>(problem.scratch_bytes) /
                             (1e3 * std::max(problem.device.bandwidth_gbs, 1));  // GB/s are bytes a ns
    give_back(problem, median_of(problem.decided_us) + (problem.scratch ? copies_us : 0));
}

void OnlineTuner::judge_outputs(OnlineProblem& problem) {
    const double us = elapsed_us(problem);
    problem.spent_us += std::max(0.0, us - median_of(problem.decided_us));
    if (problem.status != CUDA_SUCCESS) {
        found(problem, OnlineFinding::Kind::launch_failed, std::string{name_of(problem.status)});
        return next_candidate(problem);
    }
    std::string why;
    const bool same = same_outputs(problem, why);
    release(problem);
    if (!same) {
        found(problem, OnlineFinding::Kind::wrong_result, why);
        return next_candidate(problem);
    }
    problem.phase = OnlineProblem::Phase::timing;
    give_back(problem, median_of(problem.decided_us));
}

void OnlineTuner::take_sample(OnlineProblem& problem) {
    using Phase = OnlineProblem::Phase;
    const double us = elapsed_us(problem);
    if (problem.phase == Phase::baseline) {
        problem.decided_us.push_back(us);
        if (problem.decided_us.size() < samples) return give_back(problem, 0);
        return prepare(problem);
    }
    if (problem.phase == Phase::rivalling) {
        problem.decided_us.push_back(us);
        problem.phase = Phase::timing;
        return give_back(problem, problem.candidates[problem.current].samples_us.back());
    }
    problem.spent_us += us;
    OnlineCandidate& candidate = problem.candidates[problem.current];
    if (problem.status != CUDA_SUCCESS) {
        candidate.samples_us.clear();
        found(problem, OnlineFinding::Kind::launch_failed, std::string{name_of(problem.status)});
        return next_candidate(problem);
    }
    candidate.samples_us.push_back(us);
    const bool lost = us > hopeless * median_of(problem.decided_us);
    if (lost || candidate.samples_us.size() >= samples) return next_candidate(problem);
    problem.phase = Phase::rivalling;
    give_back(problem, 0);
}

void OnlineTuner::next_candidate(OnlineProblem& problem) {
    problem.plan.reset();
    if (++problem.current >= problem.candidates.size()) return finish(problem);
    problem.phase = OnlineProblem::Phase::preparing;
    prepare(problem);
}

void OnlineTuner::finish(OnlineProblem& problem) {
    release(problem);
    problem.phase = OnlineProblem::Phase::done;
    const OnlineCandidate* best = nullptr;
    double best_us = problem.decided_us.empty() ? 0 : median_of(problem.decided_us) * (1 - better_by);
    for (const OnlineCandidate& candidate : problem.candidates) {
        if (candidate.samples_us.size() < samples) continue;
        const double us = median_of(candidate.samples_us);
        if (us >= best_us) continue;
        best = &candidate;
        best_us = us;
    }
    problem.give_back(OnlineProblem::never);
    if (best) tell({problem, *best, OnlineFinding::Kind::better, {}});
}

double OnlineTuner::decided_us(const OnlineProblem& problem) { return median_of(problem.decided_us); }
double OnlineTuner::time_us(const OnlineCandidate& candidate) { return median_of(candidate.samples_us); }

void OnlineTuner::release(OnlineProblem& problem) {
    if (!problem.scratch) return;
    calls_.cuMemFree(problem.scratch);
    problem.scratch = 0;
    --holders_;
}

void OnlineTuner::found(OnlineProblem& problem, OnlineFinding::Kind kind, std::string what) {
    tell({problem, problem.candidates[problem.current], kind, std::move(what)});
}

void OnlineTuner::tell(const OnlineFinding& finding) noexcept {
    try {
        hooks_.found(finding);
    } catch (const std::exception&) {  // want of memory: then it is not told
    }
}

double OnlineTuner::elapsed_us(const OnlineProblem& problem) {
    float ms = 0;
    if (calls_.cuEventSynchronize(problem.end) != CUDA_SUCCESS ||
        calls_.cuEventElapsedTime(&ms, problem.begin, problem.end) != CUDA_SUCCESS)
        throw Error{Error::Kind::device, "an event of online tuning failed"};
    return 1000.0 * static_cast<double>(ms);
}

std::vector<std::byte> OnlineTuner::read(CUdeviceptr from, std::uint64_t bytes) {
    if (!reading_ && calls_.cuStreamCreate(&reading_, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
        throw Error{Error::Kind::device, "a stream could not be made"};
    std::vector<std::byte> host(bytes);
    if (calls_.cuMemcpyDtoHAsync(host.data(), from, bytes, reading_) != CUDA_SUCCESS ||
        calls_.cuStreamSynchronize(reading_) != CUDA_SUCCESS)
        throw Error{Error::Kind::device, "outputs could not be read"};
    return host;
}

bool OnlineTuner::same_outputs(OnlineProblem& problem, std::string& why) {
    std::uint64_t at = 0;
    for (const std::size_t i : problem.outputs) {
        const BoundTensor& tensor = problem.instance.tensors()[i];
        const auto got = read(problem.scratch + at, tensor.bytes);
        const auto want = read(problem.scratch + problem.scratch_bytes + at, tensor.bytes);
        at += padded(tensor.bytes);
        const Comparison compared = compare_outputs(tensor, got, want, problem.instance.bound_of(tensor.name));
        if (compared.bad == 0) continue;
        why = fmt::format("{} of {} elements of '{}' differ from what '{}' gave, such as {} and {}", compared.bad,
                          compared.elements, tensor.name, problem.decided.config.text(), compared.got, compared.want);
        return false;
    }
    return true;
}

std::uint64_t OnlineTuner::turn_for(const OnlineProblem& problem, double more_us) const {
    const std::uint64_t now = problem.calls.load(std::memory_order_relaxed);
    if (problem.decided_us.empty() || more_us <= 0) return now + 1;
    const double needed = (problem.spent_us + more_us) / (share_ * std::max(median_of(problem.decided_us), 0.01));
    return std::max(now + 1, static_cast<std::uint64_t>(std::min(needed, 1e15)) + 1);
}

}  // namespace autotune

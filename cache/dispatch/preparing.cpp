// What is loaded before its call comes, or after the capture that wanted it.
#include <fmt/core.h>

#include <algorithm>

#include "autotune/error.h"
#include "cache/dispatch/dispatcher_impl.h"

namespace autotune {

namespace {

constexpr std::size_t most_wanted = 256;
constexpr int most_passes = 1000;  ///< its context may be gone, and each pass costs a call the lock

FieldValues fields_of(const CallSite& site, const FieldValues& problem) {
    FieldValues all = site.fields;
    for (const auto& [name, value] : problem) {
        const auto fixed = std::ranges::find(site.fields, name, [](const auto& field) { return field.first; });
        if (fixed == site.fields.end())
            all.emplace_back(name, value);
        else if (fixed->second != value)
            throw Error{Error::Kind::usage,
                        fmt::format("field '{}' of an expected call of '{}' is {}, and its handle has {}", name,
                                    site.op->name, to_text(value), to_text(fixed->second))};
    }
    return all;
}

/// Tensors as a call for the instance would bring them, at addresses that stand for their alignment alone.
std::vector<TensorArgument> tensors_of(const Instance& instance) {
    std::vector<TensorArgument> tensors;
    for (const BoundTensor& bound : instance.tensors()) {
        TensorArgument tensor{.dtype = bound.dtype, .shape = bound.shape};
        if (bound.present)
            tensor.data = reinterpret_cast<const void*>(std::uintptr_t{4096} + static_cast<unsigned>(bound.align % 16));
        if (!bound.contiguous) tensor.strides = bound.strides;
        tensors.push_back(tensor);
    }
    return tensors;
}

}  // namespace

std::vector<Decision> Dispatcher::prepare(std::span<const ExpectedCall> calls, CUstream stream) {
    std::vector<Decision> decisions;
    const int device = impl_->current_device();
    for (const ExpectedCall& expected : calls) {
        if (!expected.handle)
            throw Error{Error::Kind::usage, "a call is expected through an empty handle; prepare() makes one"};
        if (!expected.tensors.empty())
            decisions.push_back(ready(expected.handle, expected.tensors, expected.scalars, stream));
        else
            decisions.push_back(impl_->prepare_by_problem(*expected.handle.site_, expected, device, stream));
    }
    return decisions;
}

Decision Dispatcher::Impl::prepare_by_problem(CallSite& site, const ExpectedCall& expected, int device,
                                              CUstream stream) {
    if (in_child()) return for_a_child();
    DeviceLimits limits;
    {
        const std::lock_guard lock{mutex};
        if (!calls) return nothing(no_driver, CUDA_ERROR_NO_DEVICE);
        const KnownDevice& known_device = device_state(device);
        if (!known_device.failed.empty()) return nothing(known_device.failed, CUDA_ERROR_NO_DEVICE);
        limits = known_device.identity.limits;
    }
    const Instance instance =
        Instance::make(*site.op, fields_of(site, expected.problem), limits, {.align = expected.align});
    const std::vector<TensorArgument> tensors = tensors_of(instance);
    Signature signature;
    if (!signature.write(tensors, expected.scalars, site.deciding, device, current_context()))
        throw Error{Error::Kind::usage, "the tensors of a call have too many dimensions"};
    return resolve({.site = site,
                    .signature = signature,
                    .device = device,
                    .tensors = tensors,
                    .scalars = expected.scalars,
                    .stream = stream,
                    .purpose = Purpose::ready},
                   {});
}

void Dispatcher::Impl::want(const Call& call, const Instance& instance, const LadderStep& candidate) {
    const bool known_already = std::ranges::any_of(wanted, [&](const WantedKernel& other) {
        return other.candidate.name == candidate.name && other.device == call.device && other.stream == call.stream &&
               other.context == current_context();
    });
    if (known_already || wanted.size() >= most_wanted) return;
    wanted.push_back({instance, candidate, call.device, call.scalars.size(), call.stream, current_context()});
    note_wanted();
}

void Dispatcher::Impl::load_wanted(int device, CUstream stream) {
    if (in_child()) return;
    const std::lock_guard lock{mutex};
    if (!capturing(stream)) load_wanted_now(device);
}

void Dispatcher::Impl::load_wanted_now(int device) {
    const CUcontext context = current_context();
    const auto others = std::ranges::stable_partition(
        wanted, [&](const WantedKernel& kernel) { return kernel.device != device || kernel.context != context; });
    for (const WantedKernel& kernel : others) {
        try {
            const auto set =
                kernels->get(kernel.instance, kernel.candidate.config, device, kernel.candidate.compilers, false);
            Plan plan;
            fill_plan(plan, kernel.instance, kernel.candidate.config, *kernels, *set, kernel.scalars);
            if (plan.workspace_bytes) workspaces->ensure(kernel.stream, device, plan.workspace_bytes);
        } catch (const std::exception&) {
            continue;  // its next call outside a capture finds out, and says so
        }
    }
    wanted.erase(others.begin(), others.end());
    std::erase_if(wanted, [](WantedKernel& kernel) { return ++kernel.passed_over > most_passes; });
    if (!frozen) {
        for (WantedSearch& search : wanted_searches) tuning->ask(search.name, std::move(search.request), false);
        wanted_searches.clear();
    }
    note_wanted();
}

}  // namespace autotune

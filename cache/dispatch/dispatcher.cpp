#include "autotune/dispatcher.h"

#include <fmt/core.h>

#include <algorithm>

#include "autotune/error.h"
#include "cache/dispatch/dispatcher_impl.h"
#include "device/identity.h"

namespace autotune {

namespace {

thread_local int capture_scopes = 0;

Signature signature_of(std::span<const TensorArgument> tensors, std::span<const ScalarArgument> scalars,
                       const std::vector<bool>& deciding, int device, const void* context) {
    Signature signature;
    if (!signature.write(tensors, scalars, deciding, device, context))
        throw Error{Error::Kind::usage, "the tensors of a call have too many dimensions"};
    return signature;
}

/// On a clock that ticks with misses, so that a plan that is used all the time is seldom written to.
void mark_used(const Plan& plan, const std::atomic<std::uint32_t>& clock) noexcept {
    const std::uint32_t now = clock.load(std::memory_order_relaxed);
    if (plan.used.load(std::memory_order_relaxed) != now) plan.used.store(now, std::memory_order_relaxed);
}

/// The plan of a call that was seen before; null: none. Whoever asks is a reader of that stripe as long as it uses it.
const Plan* find_plan(CallSite& site, std::size_t stripe, std::span<const TensorArgument> tensors,
                      std::span<const ScalarArgument> scalars, int device, const void* context) {
    std::atomic<const Plan*>& hint = site.hints[stripe].plan;
    const Plan* plan = hint.load(std::memory_order_seq_cst);
    if (plan && !plan->gone.load(std::memory_order_acquire) &&
        is_signature_of(plan->signature, tensors, scalars, site.deciding, device, context))
        return plan;
    const Signature signature = signature_of(tensors, scalars, site.deciding, device, context);
    plan = site.table.load(std::memory_order_seq_cst)->find(hash_words(signature.words()), signature.words());
    if (plan) hint.store(plan, std::memory_order_seq_cst);
    return plan;
}

}  // namespace

void refuse_unknown_field(const Op& op, const std::string& name, const Value& value) {
    const Field* field = op.field(name);
    if (!field)
        throw Error{Error::Kind::usage, fmt::format("op '{}' has no field '{}'", op.name, name),
                    fmt::format("autotune ops {}", op.name)};
    if (field->kind == Field::Kind::choice && std::ranges::find(field->choices, value) == field->choices.end())
        throw Error{Error::Kind::usage,
                    fmt::format("'{}' is no choice of field '{}' of op '{}'", to_text(value), name, op.name),
                    fmt::format("autotune ops {}", op.name)};
    const auto* number = std::get_if<std::int64_t>(&value);
    if (field->kind == Field::Kind::dim && (!number || *number < 1))
        throw Error{
            Error::Kind::usage,
            fmt::format("field '{}' of op '{}' is a dimension and is given '{}': it takes a whole number from 1", name,
                        op.name, to_text(value)),
            fmt::format("autotune ops {}", op.name)};
}

CaptureScope::CaptureScope() noexcept { ++capture_scopes; }
CaptureScope::~CaptureScope() { --capture_scopes; }

Dispatcher::Dispatcher() : Dispatcher{Options{}} {}
Dispatcher::Dispatcher(Options options) : impl_{std::make_unique<Impl>(std::move(options))} {}
Dispatcher::~Dispatcher() = default;

Handle Dispatcher::prepare(std::string_view op_name, const FieldValues& fields) {
    impl_->refuse_child();
    const std::lock_guard lock{impl_->mutex};
    const Op& op = impl_->ops().find(op_name);
    for (const auto& site : impl_->sites)
        if (site->op == &op && site->fields == fields) return Handle{site.get()};
    for (const auto& [name, value] : fields) refuse_unknown_field(op, name, value);
    auto site = std::make_unique<CallSite>();
    site->op = &op;
    site->fields = fields;
    site->deciding = deciding_scalars(op);
    site->publish(std::make_shared<PlanTable>(16));
    impl_->sites.push_back(std::move(site));
    return Handle{impl_->sites.back().get()};
}

Decision Dispatcher::launch(const Handle& handle, std::span<const TensorArgument> tensors,
                            std::span<const ScalarArgument> scalars, CUstream stream) {
    if (!handle) throw Error{Error::Kind::usage, "a call was made through an empty handle; prepare() makes one"};
    CallSite& site = *handle.site_;
    Impl& impl = *impl_;
    const int device = impl.current_device();
    const void* const context = impl.current_context();
    Impl::Failure failure;
    {
        const std::size_t stripe = Grace::stripe();
        const Grace::Reader reader{impl.grace, stripe};
        const Plan* plan = find_plan(site, stripe, tensors, scalars, device, context);
        if (plan) mark_used(*plan, impl.clock);
        const Workspace* workspace =
            plan && plan->workspace_bytes ? impl.workspaces->find(stream, device, plan->workspace_bytes) : nullptr;
        if (plan && (workspace || !plan->workspace_bytes)) {
            bool begun = false;
            Decision decision = plan->decision;
            const CUresult status = plan->online && plan->online->due()
                                        ? impl.online_turn(*plan, tensors, scalars, stream, workspace, begun, decision)
                                        : launch_plan(*impl.calls, *plan, tensors, scalars, stream, workspace, begun);
            if (status == CUDA_SUCCESS) {
                impl.counters[stripe].by_rung[static_cast<std::size_t>(plan->decision.rung)].fetch_add(
                    1, std::memory_order_relaxed);
                decision.launched = true;
                if (impl.kernels_wanted.load(std::memory_order_relaxed)) impl.load_wanted(device, stream);
                return decision;
            }
            failure = {.candidate = plan->candidate,
                       .config = plan->decided.config,
                       .status = status,
                       .repeatable = plan->repeatable || !begun};
        }
    }
    return impl.resolve({.site = site,
                         .signature = signature_of(tensors, scalars, site.deciding, device, context),
                         .device = device,
                         .tensors = tensors,
                         .scalars = scalars,
                         .stream = stream,
                         .purpose = Impl::Purpose::launch},
                        failure);
}

Decision Dispatcher::ready(const Handle& handle, std::span<const TensorArgument> tensors,
                           std::span<const ScalarArgument> scalars, CUstream stream) {
    if (!handle) throw Error{Error::Kind::usage, "a call was made through an empty handle; prepare() makes one"};
    const int device = impl_->current_device();
    return impl_->resolve(
        {.site = *handle.site_,
         .signature = signature_of(tensors, scalars, handle.site_->deciding, device, impl_->current_context()),
         .device = device,
         .tensors = tensors,
         .scalars = scalars,
         .stream = stream,
         .purpose = Impl::Purpose::ready},
        {});
}

void Dispatcher::refresh() {
    if (impl_->in_child()) return;
    const std::lock_guard lock{impl_->mutex};
    if (!impl_->frozen) impl_->look_for_news(Impl::Look::now_and_retry);
}

std::array<std::uint64_t, rung_names.size()> Dispatcher::counts() const noexcept {
    std::array<std::uint64_t, rung_names.size()> sums{};
    for (const Impl::Counts& stripe : impl_->counters)
        for (std::size_t rung = 0; rung < sums.size(); ++rung)
            sums[rung] += stripe.by_rung[rung].load(std::memory_order_relaxed);
    return sums;
}

std::vector<Miss> Dispatcher::misses() const {
    if (impl_->in_child()) return {};
    const std::lock_guard lock{impl_->mutex};
    std::vector<Miss> misses;
    for (const auto& [name, miss] : impl_->missed) misses.push_back(miss);
    return misses;
}

Explanation Dispatcher::explain(std::string_view op_name, const FieldValues& problem, int device) const {
    impl_->refuse_child();
    const std::lock_guard lock{impl_->mutex};
    const DeviceIdentity identity = identify(device);
    const std::vector<LayeredStore> stores = impl_->readable();
    const Instance instance = Instance::make(impl_->ops().find(op_name), problem, identity.limits);
    std::vector<LadderStep> pinned;
    if (auto step = impl_->pinned_step(instance, impl_->known(instance.op(), identity)))
        pinned.push_back(std::move(*step));
    return explanation_of(instance, stores, identity, impl_->rules(), std::move(pinned));
}

void Dispatcher::Impl::refuse_child() const {
    if (in_child()) throw Error{Error::Kind::usage, std::string{for_a_child().why}};
}

int Dispatcher::Impl::current_device() const noexcept {
    if (device_count <= 1) return 0;
    CUdevice device = 0;
    return calls->cuCtxGetDevice(&device) == CUDA_SUCCESS ? static_cast<int>(device) : 0;
}

CUcontext Dispatcher::Impl::current_context() const noexcept {
    CUcontext context = nullptr;
    if (calls) calls->cuCtxGetCurrent(&context);
    return context;
}

bool Dispatcher::Impl::capturing(CUstream stream) const noexcept {
    if (capture_scopes > 0) return true;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    // The legacy stream cannot be asked while another is captured: that is an answer too.
    return calls->cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace autotune

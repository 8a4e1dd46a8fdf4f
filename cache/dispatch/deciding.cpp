// Which config each problem got: kept while frozen, handed to other processes and taken over from them.
#include <fmt/core.h>

#include <algorithm>

#include "autotune/error.h"
#include "cache/dispatch/dispatcher_impl.h"

namespace autotune {

void Dispatcher::freeze() {
    impl_->refuse_child();
    const std::lock_guard lock{impl_->mutex};
    if (impl_->frozen) return;
    impl_->look_for_news(Impl::Look::once_a_second);
    // A problem that comes later is answered by what is known now, so all that may be asked is read now.
    for (const auto& site : impl_->sites)
        for (int device = 0; device < impl_->device_count; ++device)
            if (const KnownDevice& known = impl_->device_state(device); known.failed.empty())
                impl_->known(*site->op, known.identity);
    impl_->frozen_decisions = impl_->decided();
    impl_->frozen = true;
    impl_->note_wanted();
}

void Dispatcher::thaw() {
    impl_->refuse_child();
    const std::lock_guard lock{impl_->mutex};
    if (!impl_->frozen) return;
    impl_->frozen = false;
    impl_->frozen_decisions.clear();
    impl_->forget_plans();
    impl_->note_wanted();
}

bool Dispatcher::frozen() const noexcept { return impl_->frozen; }

std::vector<std::byte> Dispatcher::export_decisions() const {
    impl_->refuse_child();
    const std::lock_guard lock{impl_->mutex};
    return impl_->decided().bytes();
}

std::uint64_t Dispatcher::decision_hash() const {
    impl_->refuse_child();
    const std::lock_guard lock{impl_->mutex};
    return impl_->decided().hash();
}

ImportedDecisions Dispatcher::import_decisions(std::span<const std::byte> bytes) {
    Decisions decisions = Decisions::read(bytes);
    impl_->refuse_child();
    const std::lock_guard lock{impl_->mutex};
    if (impl_->frozen)
        throw Error{Error::Kind::usage, "decisions cannot be taken over while they are frozen; thaw() comes before"};
    ImportedDecisions out;
    out.refused = decisions.refuse_unknown(impl_->ops(), out.why);
    out.taken = decisions.size();
    impl_->imported.take_over(decisions);
    impl_->forget_plans();
    return out;
}

/// Plans are the newest word; what was handed in counts where none has been asked for yet.
Decisions Dispatcher::Impl::decided() const {
    Decisions all = imported;
    all.take_over(frozen_decisions);
    for (const auto& site : sites)
        for (const auto& plan : site->owned->plans())
            if (!failed.contains(plan->candidate)) all.put(plan->decided);
    return all;
}

void Dispatcher::Impl::forget_plans() {
    for (const auto& site : sites) replace_table(*site, std::make_shared<PlanTable>(16));
    plan_count = 0;
}

/// Unless today's op, this GPU or this very problem refuses it.
void Dispatcher::Impl::put_decided_first(std::vector<LadderStep>& steps, const Instance& instance,
                                         const OpKnowledge& knows, const DeviceIdentity& device) const {
    const std::string& op = instance.op().name;
    const DecidedConfig* decided = frozen ? frozen_decisions.find(op, instance.key(), device.fp) : nullptr;
    if (!decided || decided->device_fp != device.fp) decided = imported.find(op, instance.key(), device.fp);
    const bool own = !decided;
    if (own) decided = adopted.find(op, instance.key(), device.fp);
    if (!decided || (own && decided->device_fp != device.fp)) return;
    // A record that came since is of a longer search, or of this very one.
    if (own &&
        std::ranges::any_of(steps, [](const LadderStep& s) { return s.rung == Rung::exact && s.refused.empty(); }))
        return;
    const bool elsewhere = decided->device_fp != device.fp;
    LadderStep step{.rung = elsewhere ? std::max(decided->rung, Rung::exact_stale) : decided->rung,
                    .config = decided->config,
                    .verified = decided->verified,
                    .stale = decided->stale || elsewhere,
                    .why = own ? std::string{"measured by this process, in its own calls"}
                               : fmt::format("decided by another process{}, where it was '{}'",
                                             elsewhere ? " on another GPU" : "", name_of(decided->rung))};
    step.layer = Layer::pinned;
    judge(step, instance, knows);
    if (!step.refused.empty()) return;
    const auto same = std::ranges::find(steps, step.name, &LadderStep::name);
    if (same != steps.end() && same->refused.empty() && same->rung <= Rung::exact_stale) {
        std::rotate(steps.begin(), same, same + 1);
        return;
    }
    step.compilers = same != steps.end() ? same->compilers : knows.compilers;
    steps.insert(steps.begin(), std::move(step));
}

}  // namespace autotune

// The tables of plans: what is remembered, for how long, and how it is replaced under its readers.
#include <algorithm>

#include "cache/dispatch/dispatcher_impl.h"

namespace autotune {

/// Plans that are not in the next table are marked: hints to them may stay for long, as threads that repeat one call
/// look at nothing else.
void Dispatcher::Impl::replace_table(CallSite& site, std::shared_ptr<PlanTable> next) {
    const std::shared_ptr<const PlanTable> before = site.owned;
    std::vector<const Plan*> stay;
    for (const auto& plan : next->plans()) stay.push_back(plan.get());
    std::ranges::sort(stay);
    site.publish(std::move(next));
    for (const auto& plan : before->plans())
        if (!std::ranges::binary_search(stay, plan.get())) plan->gone.store(true, std::memory_order_release);
    grace.retire(before);
    reclaim();
}

void Dispatcher::Impl::reclaim() {
    grace.reclaim([this] {
        for (const auto& site : sites) site->forget();
    });
}

void Dispatcher::Impl::keep(CallSite& site, std::shared_ptr<Plan> plan) {
    if (plan_count >= options.most_problems) make_room();
    plan->used.store(clock.load(std::memory_order_relaxed), std::memory_order_relaxed);
    // The table that readers see only ever gains plans, which they may watch; any other change makes a new one.
    auto& table = const_cast<PlanTable&>(*site.owned);
    if (table.full()) {
        auto larger = std::make_shared<PlanTable>(4 * (table.plans().size() + 1));
        for (const auto& old : table.plans()) larger->add(old);
        larger->add(std::move(plan));
        replace_table(site, std::move(larger));
    } else {
        table.add(std::move(plan));
    }
    ++plan_count;
    clock.fetch_add(1, std::memory_order_relaxed);
}

/// Forgets the half of all plans that were used longest ago.
void Dispatcher::Impl::make_room() {
    std::vector<std::uint32_t> uses;
    for (const auto& site : sites)
        for (const auto& plan : site->owned->plans()) uses.push_back(plan->used.load(std::memory_order_relaxed));
    if (uses.empty()) return;
    const auto middle = uses.begin() + static_cast<std::ptrdiff_t>(uses.size() / 2);
    std::nth_element(uses.begin(), middle, uses.end());
    plan_count = 0;
    for (const auto& site : sites) {
        std::vector<std::shared_ptr<const Plan>> stay;
        for (const auto& plan : site->owned->plans())
            if (plan->used.load(std::memory_order_relaxed) > *middle) stay.push_back(plan);
        auto smaller = std::make_shared<PlanTable>(std::max<std::size_t>(16, 4 * (stay.size() + 1)));
        for (auto& plan : stay) smaller->add(std::move(plan));
        plan_count += stay.size();
        replace_table(*site, std::move(smaller));
    }
}

void Dispatcher::Impl::drop(CallSite& site, std::string_view candidate) {
    auto without = std::make_shared<PlanTable>(4 * (site.owned->plans().size() + 1));
    for (const auto& plan : site.owned->plans())
        if (plan->candidate != candidate) without->add(plan);
    plan_count -= site.owned->plans().size() - without->plans().size();
    replace_table(site, std::move(without));
}

}  // namespace autotune

// Configs of other problems and of other GPUs, for a problem that nobody has tuned on this one.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "cache/dispatch/split_key.h"
#include "cache/dispatch/step_list.h"

namespace autotune {
namespace {

constexpr std::size_t most_lenders = 8;        ///< problems that one kind of GPU may lend from
constexpr std::size_t most_robust_tried = 32;  ///< configs of a ranking that are judged

std::string_view kinship(Similarity similarity) noexcept {
    return similarity == Similarity::sibling ? "a sibling" : "of the same family";
}

const Neighbours& made(std::optional<Neighbours>& neighbours, const StepList& steps, const Snapshot& snapshot) {
    if (!neighbours) neighbours.emplace(steps.instance().op(), snapshot, steps.known().rules.only_local);
    return *neighbours;
}

/// Where a neighbour was found: on this kind of GPU, or on a relative.
struct Lender {
    Neighbours::Found found;
    std::size_t order = 0;  ///< of the relatives
    const Relative* relative = nullptr;
};

void find_lenders(std::vector<Lender>& out, const Neighbours& neighbours, const SplitKey& key, std::size_t order,
                  const Relative* relative) {
    std::array<Neighbours::Found, most_lenders> found;
    const std::size_t count = neighbours.nearest(key, found);
    for (std::size_t i = 0; i < count; ++i) out.push_back({found[i], order, relative});
}

/// Rows of a lender that are fresh, or those that are stale.
void add_rows(StepList& steps, const Lender& lender, Rung rung) {
    const Snapshot& snapshot = lender.relative ? lender.relative->snapshot : steps.known().snapshot;
    const Snapshot::Problem& problem = snapshot.problems()[lender.found.problem];
    std::vector<std::byte> whole;
    const std::string text = problem_text(steps.instance().op(), snapshot.key(problem, whole));
    const float distance = static_cast<float>(lender.found.distance) / octave;
    for (const SnapshotRow& row : snapshot.rows(problem)) {
        if (steps.enough()) return;
        if (!beat_default(row) || snapshot.fresh(row) == lender.found.stale) continue;
        LadderStep step = step_of(snapshot, row, rung);
        step.distance = distance;
        step.problem = text;
        const std::string where = lender.relative ? fmt::format("on {}, {}, ", lender.relative->device.name,
                                                                kinship(lender.relative->similarity))
                                                  : "";
        step.why =
            fmt::format("tuned {}for {}, {:.2f} octaves away{}", where, text, distance, reservations(snapshot, row));
        if (lender.relative) step.device = lender.relative->device.name;
        steps.add(std::move(step), lender.relative ? &lender.relative->negatives : nullptr);
    }
}

void add_lenders(StepList& steps, std::vector<Lender> lenders, Rung rung) {
    std::ranges::stable_sort(lenders, [](const Lender& a, const Lender& b) {
        return std::tuple{a.found.stale, a.found.distance, a.order} <
               std::tuple{b.found.stale, b.found.distance, b.order};
    });
    for (const Lender& lender : lenders) add_rows(steps, lender, rung);
}

/// This very problem, on relatives: fresh rows of all come before stale ones of any.
void add_exact_of_relatives(StepList& steps, Similarity similarity, Rung rung) {
    for (const bool stale : {false, true})
        for (const Relative& relative : steps.known().relatives) {
            if (relative.similarity != similarity) continue;
            for (const SnapshotRow& row : relative.snapshot.find(steps.instance().key())) {
                if (steps.enough()) return;
                if (relative.snapshot.fresh(row) == stale) continue;
                LadderStep step = step_of(relative.snapshot, row, rung);
                step.device = relative.device.name;
                step.why = fmt::format("tuned for this problem on {}, {}{}", relative.device.name, kinship(similarity),
                                       reservations(relative.snapshot, row));
                steps.add(std::move(step), &relative.negatives);
            }
        }
}

void add_ranking(StepList& steps, std::span<const Snapshot* const> snapshots,
                 std::span<const std::set<std::string>* const> negatives, const RobustConfigs& robust, Rung rung,
                 std::string_view gpus) {
    SplitKey key;
    if (!KeySplitter{steps.instance().op()}.split(steps.instance().key(), key)) return;
    const std::size_t problems = robust.problems(key.fixed);
    const auto ranking = robust.find(key.fixed);
    for (const RobustConfig& config : ranking.first(std::min(ranking.size(), most_robust_tried))) {
        if (steps.enough()) return;
        LadderStep step = step_of(*snapshots[config.snapshot], config.row, rung);
        step.verified = config.verified;
        step.stale = config.stale;
        step.imported = config.imported;
        step.time_us = 0;
        step.why = fmt::format("loses at most {:.0f} % on the {} tuned on {}", (config.worst - 1) * 100,
                               problems == 1 ? "one problem" : fmt::format("{} problems", problems), gpus);
        steps.add(std::move(step), negatives[config.snapshot]);
    }
}

}  // namespace

void add_nearest(StepList& steps) {
    SplitKey key;
    const OpKnowledge& known = steps.known();
    if (steps.enough() || known.snapshot.problems().empty()) return;
    if (!KeySplitter{steps.instance().op()}.split(steps.instance().key(), key)) return;
    std::vector<Lender> lenders;
    find_lenders(lenders, made(known.neighbours, steps, known.snapshot), key, 0, nullptr);
    add_lenders(steps, std::move(lenders), Rung::nearest);
}

void add_siblings(StepList& steps) { add_exact_of_relatives(steps, Similarity::sibling, Rung::sibling); }

void add_sibling_nearest(StepList& steps) {
    SplitKey key;
    if (steps.enough() || !KeySplitter{steps.instance().op()}.split(steps.instance().key(), key)) return;
    std::vector<Lender> lenders;
    std::size_t order = 0;
    for (const Relative& relative : steps.known().relatives)
        if (relative.similarity == Similarity::sibling)
            find_lenders(lenders, made(relative.neighbours, steps, relative.snapshot), key, order++, &relative);
    add_lenders(steps, std::move(lenders), Rung::sibling_nearest);
}

void add_robust(StepList& steps) {
    if (steps.enough()) return;
    const OpKnowledge& known = steps.known();
    std::vector<const Snapshot*> snapshots{&known.snapshot};
    std::vector<const std::set<std::string>*> negatives{nullptr};
    for (const Relative& relative : known.relatives)
        if (relative.similarity == Similarity::sibling) {
            snapshots.push_back(&relative.snapshot);
            negatives.push_back(&relative.negatives);
        }
    if (!known.robust) known.robust.emplace(steps.instance().op(), snapshots, known.rules.only_local);
    add_ranking(steps, snapshots, negatives, *known.robust, Rung::robust, "such GPUs");
}

void add_family(StepList& steps) {
    add_exact_of_relatives(steps, Similarity::family, Rung::family);
    if (steps.enough()) return;
    const OpKnowledge& known = steps.known();
    std::vector<const Snapshot*> snapshots;
    std::vector<const std::set<std::string>*> negatives;
    for (const Relative& relative : known.relatives)
        if (relative.similarity == Similarity::family) {
            snapshots.push_back(&relative.snapshot);
            negatives.push_back(&relative.negatives);
        }
    if (snapshots.empty()) return;
    if (!known.family) known.family.emplace(steps.instance().op(), snapshots, known.rules.only_local);
    add_ranking(steps, snapshots, negatives, *known.family, Rung::family, "GPUs of the same family");
}

}  // namespace autotune

#include "cache/dispatch/ladder.h"

#include <fmt/core.h>

#include <algorithm>

#include "autotune/error.h"
#include "cache/store/json.h"

namespace autotune {

namespace {

/// The stored config in the order and types of today's declaration, or why it cannot be had.
std::string fit_to_today(const Instance& instance, Config& config) {
    const Variant* variant = instance.op().variant(config.variant);
    if (!variant) return fmt::format("variant '{}' is gone", config.variant);
    if (config.values.size() != variant->parameters.size())
        return fmt::format("the parameters of '{}' have changed", config.variant);
    try {
        config = instance.resolve(config);
        return instance.objection(config).value_or("");
    } catch (const Error& error) {
        return error.what();
    } catch (const EvaluationError& error) {
        return error.what();
    }
}

LadderStep stored_candidate(const Instance& instance, const OpKnowledge& known, const SnapshotRow& row) {
    const std::string& stale = known.snapshot.stale(row);
    LadderStep out{.rung = stale.empty() ? Rung::exact : Rung::exact_stale,
                   .config = known.snapshot.config(row),
                   .verified = row.verified == Verified::verified,
                   .stale = !stale.empty(),
                   .imported = row.imported,
                   .time_us = static_cast<double>(row.time_ns) / 1000.0};
    out.why = stale.empty() ? "tuned for this problem" : fmt::format("tuned for this problem, but {}", stale);
    if (row.imported) out.why += ", elsewhere";
    judge(out, instance, known);
    out.compilers.emplace_back(row.nvrtc_major, row.nvrtc_minor);
    return out;
}

LadderStep predicted_candidate(const Instance& instance, const OpKnowledge& known, const PredictedConfig& row) {
    LadderStep out{.rung = Rung::predicted,
                   .config = row.config,
                   .why = fmt::format("predicted on an emulated {} and measured by nobody", row.part),
                   .time_us = row.time_us};
    judge(out, instance, known);
    if (out.refused.empty() && !row.stale.empty())
        out.refused = fmt::format("predicted before a change: {}", row.stale);
    out.compilers.emplace_back(row.nvrtc_major, row.nvrtc_minor);
    return out;
}

/// The default's candidate_name; empty where there is no default.
std::string name_of_default(const Instance& instance) {
    try {
        return candidate_name(instance.default_config(), instance.key());
    } catch (const Error& error) {
        if (error.kind() != Error::Kind::nothing_found) throw;
        return {};
    }
}

bool has_name(const std::vector<LadderStep>& rungs, std::string_view name) {
    return std::ranges::any_of(rungs, [&](const LadderStep& rung) { return rung.name == name; });
}

/// A model tells a bad config from a good one and not a good one from the best: where it puts the default among the
/// best, the default stays.
void add_predicted(const Instance& instance, const OpKnowledge& known, std::vector<LadderStep>& rungs) {
    std::vector<LadderStep> predicted;
    for (const PredictedConfig& row : known.predictions.find(instance.key()))
        predicted.push_back(predicted_candidate(instance, known, row));
    if (predicted.empty()) return;
    const bool default_as_good = has_name(predicted, name_of_default(instance));
    for (LadderStep& candidate : predicted) {
        if (candidate.refused.empty() && default_as_good)
            candidate.refused = "the model does not tell it from the default";
        if (!has_name(rungs, candidate.name)) rungs.push_back(std::move(candidate));
    }
}

LadderStep default_candidate(const Instance& instance, Config config, std::string why) {
    LadderStep out{.rung = Rung::default_config, .config = std::move(config), .why = std::move(why)};
    out.name = candidate_name(out.config, instance.key());
    return out;
}

/// The op's default, then those of its other variants. An op none of whose variants runs here is refused, no error.
void add_defaults(const Instance& instance, std::vector<LadderStep>& rungs) {
    const bool tuned = !rungs.empty();
    Config chosen;
    try {
        chosen = instance.default_config();
    } catch (const Error& error) {
        if (error.kind() != Error::Kind::nothing_found) throw;
        rungs.push_back({.rung = Rung::default_config, .refused = error.what()});
        return;
    }
    rungs.push_back(default_candidate(
        instance, chosen,
        tuned ? "no stored config can be used, so the default runs" : "not tuned on this GPU, so the default runs"));
    for (const Variant& variant : instance.op().variants) {
        if (variant.name == chosen.variant) continue;
        const auto config = instance.defaults_of(variant);
        if (config && !instance.objection(*config))
            rungs.push_back(
                default_candidate(instance, *config, "the default failed, so that of another variant runs"));
    }
}

/// Fields that differ, "rows cols"; empty keys of another form count as far away.
std::vector<std::string> differing(const ProblemIdentity& a, const ProblemIdentity& b) {
    std::vector<std::string> names;
    for (const auto& [name, value] : a.fields) {
        const auto same = std::find_if(b.fields.begin(), b.fields.end(),
                                       [&, &field = name](const auto& other) { return other.first == field; });
        if (same == b.fields.end() || same->second != value) names.push_back(name);
    }
    return names;
}

void add_closest(Explanation& out, const ProblemIdentity& problem, std::span<Store* const> stores,
                 const DeviceIdentity& device) {
    std::vector<std::pair<std::size_t, std::pair<std::string, std::string>>> found;
    std::set<std::string> seen;
    for (const Store* store : stores)
        for (const Record& record :
             store->records({.op = problem.op, .device_fp = device.fp, .winners_only = true}, {})) {
            if (record.problem.key == problem.key || !seen.insert(record.problem.text()).second) continue;
            const auto names = differing(problem, record.problem);
            std::string text;
            for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
            // Equal fields under another key: what a caller's tensors add to it, alignment or layout.
            found.push_back(
                {names.size(), {record.problem.text(), text.empty() ? "alignment or layout of a tensor" : text}});
        }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < found.size() && i < 5; ++i) out.closest.push_back(found[i].second);
}

}  // namespace

std::string candidate_name(const Config& config, std::span<const std::byte> problem_key) {
    return config.variant + ' ' + config.hash() + ' ' + to_hex(problem_key);
}

void judge(LadderStep& step, const Instance& instance, const OpKnowledge& known) {
    step.refused = fit_to_today(instance, step.config);
    step.name = candidate_name(step.config, instance.key());
    if (step.refused.empty() && known.negatives.contains(step.name)) step.refused = "it has failed on this problem";
    if (step.refused.empty() && known.negatives.contains(candidate_name(step.config, {})))
        step.refused = "it has failed on this GPU";
}

OpKnowledge read_knowledge(std::span<Store* const> stores, const Op& op, const DeviceIdentity& device,
                           bool predictions) {
    OpKnowledge known;
    known.today.templates = templates_of(op);
    known.snapshot = Snapshot::read(stores, op.name, device.fp, known.today);
    if (predictions) known.predictions = StoredPredictions::read(stores, op.name, device, known.today);
    for (const Store* store : stores) {
        try {
            for (const auto& version : store->compilers()) known.compilers.push_back(version);
            for (const Negative& negative : store->negatives(op.name, device.fp)) {
                // A failure is forgotten when its source or space changes, some also with the driver.
                if (!negative.holds_on(device)) continue;
                const auto same =
                    std::find_if(known.today.templates.begin(), known.today.templates.end(),
                                 [&](const TemplateIdentity& t) { return t.variant == negative.source.variant; });
                if (same != known.today.templates.end() && same->hash() == negative.source.hash())
                    known.negatives.insert(candidate_name(negative.config, negative.problem_key));
            }
        } catch (const std::exception&) {
            continue;  // said already where the snapshot was read
        }
    }
    return known;
}

std::vector<LadderStep> ladder(const Instance& instance, const OpKnowledge& known) {
    std::vector<LadderStep> rungs;
    for (const SnapshotRow& row : known.snapshot.find(instance.key())) {
        LadderStep candidate = stored_candidate(instance, known, row);
        if (!has_name(rungs, candidate.name)) rungs.push_back(std::move(candidate));
    }
    add_predicted(instance, known, rungs);
    add_defaults(instance, rungs);
    for (LadderStep& rung : rungs)
        rung.compilers.insert(rung.compilers.end(), known.compilers.begin(), known.compilers.end());
    return rungs;
}

Explanation explanation_of(const Instance& instance, std::span<Store* const> stores, const DeviceIdentity& device,
                           bool predictions) {
    const OpKnowledge known = read_knowledge(stores, instance.op(), device, predictions);
    const ProblemIdentity problem = problem_of(instance);
    Explanation out{.rung = Rung::none};
    for (const LadderStep& candidate : ladder(instance, known)) {
        if (out.config.empty() && candidate.rung == Rung::default_config) out.why = candidate.refused;
        const bool chosen = candidate.refused.empty() && out.config.empty();
        if (chosen) {
            out.rung = candidate.rung;
            out.config = candidate.config.text();
            out.why = candidate.why;
        }
        if (candidate.rung == Rung::default_config && !chosen) continue;
        std::string state = candidate.rung == Rung::default_config ? ""
                            : candidate.rung == Rung::predicted    ? "not measured"
                            : candidate.stale ? candidate.why.substr(candidate.why.find("but ") + 4)
                                              : "fresh";
        if (candidate.verified) state += ", verified";
        out.rows.push_back({.rung = std::string{name_of(candidate.rung)},
                            .problem = problem.text(),
                            .config = candidate.config.text(),
                            .time_us = candidate.time_us,
                            .state = std::move(state),
                            .refused = candidate.refused,
                            .chosen = chosen});
    }
    if (out.rung >= Rung::predicted) add_closest(out, problem, stores, device);
    return out;
}

}  // namespace autotune

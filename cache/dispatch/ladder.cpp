#include "cache/dispatch/ladder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "autotune/error.h"
#include "cache/dispatch/step_list.h"
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

/// What was tuned for this very problem on this kind of GPU, fresh rows first.
void add_exact(StepList& steps) {
    const Snapshot& snapshot = steps.known().snapshot;
    for (const Rung rung : {Rung::exact, Rung::exact_stale})
        for (const SnapshotRow& row : snapshot.find(steps.instance().key())) {
            if (steps.enough()) return;
            if (snapshot.fresh(row) == (rung == Rung::exact_stale)) continue;
            LadderStep step = step_of(snapshot, row, rung);
            step.why = "tuned for this problem" + reservations(snapshot, row);
            steps.add(std::move(step));
        }
}

LadderStep predicted_candidate(const Instance& instance, const OpKnowledge& known, const PredictedConfig& row) {
    LadderStep out{.rung = Rung::predicted,
                   .config = row.config,
                   .layer = row.layer,
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

/// A model tells a bad config from a good one and not a good one from the best: where it puts the default among the
/// best, the default stays.
void add_predicted(StepList& steps) {
    if (steps.enough()) return;
    std::vector<LadderStep> predicted;
    for (const PredictedConfig& row : steps.known().predictions.find(steps.instance().key()))
        predicted.push_back(predicted_candidate(steps.instance(), steps.known(), row));
    if (predicted.empty()) return;
    const std::string by_default = name_of_default(steps.instance());
    const bool default_as_good =
        std::ranges::any_of(predicted, [&](const LadderStep& step) { return step.name == by_default; });
    for (LadderStep& candidate : predicted) {
        if (candidate.refused.empty() && default_as_good)
            candidate.refused = "the model does not tell it from the default";
        if (!steps.has(candidate.name)) steps.add_judged(std::move(candidate));
    }
}

LadderStep default_candidate(const Instance& instance, Config config, std::string why) {
    LadderStep out{.rung = Rung::default_config, .config = std::move(config), .why = std::move(why)};
    out.name = candidate_name(out.config, instance.key());
    return out;
}

/// The op's default, then those of its other variants. An op none of whose variants runs here is refused, no error.
void add_defaults(StepList& steps) {
    const Instance& instance = steps.instance();
    const bool tuned = !steps.empty();
    Config chosen;
    try {
        chosen = instance.default_config();
    } catch (const Error& error) {
        if (error.kind() != Error::Kind::nothing_found) throw;
        steps.add_judged({.rung = Rung::default_config, .refused = error.what()});
        return;
    }
    steps.add_judged(default_candidate(
        instance, chosen,
        tuned ? "no stored config can be used, so the default runs" : "not tuned on this GPU, so the default runs"));
    for (const Variant& variant : instance.op().variants) {
        if (variant.name == chosen.variant) continue;
        const auto config = instance.defaults_of(variant);
        if (config && !instance.objection(*config))
            steps.add_judged(
                default_candidate(instance, *config, "the default failed, so that of another variant runs"));
    }
}

// -- what the databases say

/// The fingerprints that are the device's silicon: its own, and those that an alias joins with it.
std::vector<std::string> fingerprints_of(std::span<const LayeredStore> stores, const DeviceIdentity& device) {
    std::vector<std::pair<std::string, std::string>> pairs;
    for (const LayeredStore& layered : stores) {
        try {
            for (auto& pair : layered.store->aliases()) pairs.push_back(std::move(pair));
        } catch (const std::exception&) {
            continue;  // said already where the snapshot was read
        }
    }
    std::vector<std::string> fps{device.fp};
    for (std::size_t i = 0; i < fps.size(); ++i)  // an alias of an alias is one as well
        for (const auto& [one, other] : pairs) {
            const std::string& next = one == fps[i] ? other : one;
            if ((one == fps[i] || other == fps[i]) && std::ranges::find(fps, next) == fps.end()) fps.push_back(next);
        }
    return fps;
}

/// Every GPU that something is stored of, each once.
std::vector<DeviceIdentity> devices_of(std::span<const LayeredStore> stores, std::string_view op) {
    std::vector<DeviceIdentity> devices;
    for (const LayeredStore& layered : stores) {
        try {
            for (DeviceIdentity& found : layered.store->devices(op))
                if (std::ranges::find(devices, found.fp, &DeviceIdentity::fp) == devices.end())
                    devices.push_back(std::move(found));
        } catch (const std::exception&) {
            continue;
        }
    }
    return devices;
}

/// A failure is forgotten when its source or space changes, some also with the driver.
std::set<std::string> read_negatives(std::span<const LayeredStore> stores, std::string_view op, const std::string& fp,
                                     const DeviceIdentity& here, const Today& today) {
    std::set<std::string> names;
    for (const LayeredStore& layered : stores) {
        try {
            for (const Negative& negative : layered.store->negatives(op, fp)) {
                if (!negative.holds_on(here)) continue;
                const auto same =
                    std::ranges::find(today.templates, negative.source.variant, &TemplateIdentity::variant);
                if (same != today.templates.end() && same->hash() == negative.source.hash())
                    names.insert(candidate_name(negative.config, negative.problem_key));
            }
        } catch (const std::exception&) {
            continue;
        }
    }
    return names;
}

void read_relatives(OpKnowledge& known, std::span<const LayeredStore> stores, std::string_view op,
                    const DeviceIdentity& device, const std::vector<DeviceIdentity>& devices,
                    std::span<const std::string> own) {
    for (const DeviceIdentity& other : devices) {
        const Similarity similar = similarity(other, device);
        if (similar == Similarity::none || std::ranges::find(own, other.fp) != own.end()) continue;
        const std::string fps[] = {other.fp};
        known.relatives.push_back({.device = other,
                                   .similarity = similar,
                                   .snapshot = Snapshot::read(stores, op, fps, known.today),
                                   .negatives = read_negatives(stores, op, other.fp, device, known.today)});
    }
    std::ranges::sort(known.relatives, {}, [&](const Relative& relative) {
        return std::tuple{relative.similarity, std::abs(relative.device.limits.cc - device.limits.cc),
                          unlikeness(relative.device, device), std::string_view{relative.device.fp}};
    });
}

}  // namespace

std::string candidate_name(const Config& config, std::span<const std::byte> problem_key) {
    return config.variant + ' ' + config.hash() + ' ' + to_hex(problem_key);
}

void judge(LadderStep& step, const Instance& instance, const OpKnowledge& known) {
    step.refused = fit_to_today(instance, step.config);
    step.name = candidate_name(step.config, instance.key());
    if (known.negatives.empty()) return;
    if (step.refused.empty() && known.negatives.contains(step.name)) step.refused = "it has failed on this problem";
    if (step.refused.empty() && known.negatives.contains(candidate_name(step.config, {})))
        step.refused = "it has failed on this GPU";
}

OpKnowledge read_knowledge(std::span<const LayeredStore> stores, const Op& op, const DeviceIdentity& device,
                           const LadderRules& rules) {
    OpKnowledge known{.rules = rules};
    known.today.templates = templates_of(op);
    const std::vector<DeviceIdentity> devices = devices_of(stores, op.name);
    std::vector<std::string> own = fingerprints_of(stores, device);
    // Whoever joined what is no one silicon is not believed.
    std::erase_if(own, [&](const std::string& fp) {
        const auto at = std::ranges::find(devices, fp, &DeviceIdentity::fp);
        return fp != device.fp && at != devices.end() && at->limits.cc != device.limits.cc;
    });
    known.snapshot = Snapshot::read(stores, op.name, own, known.today);
    for (const std::string& fp : own) known.negatives.merge(read_negatives(stores, op.name, fp, device, known.today));
    read_relatives(known, stores, op.name, device, devices, own);
    if (rules.predictions) known.predictions = StoredPredictions::read(stores, op.name, device, known.today);
    for (const LayeredStore& layered : stores) {
        try {
            for (const auto& version : layered.store->compilers()) known.compilers.push_back(version);
        } catch (const std::exception&) {
            continue;
        }
    }
    return known;
}

// -- the ladder

bool StepList::has(std::string_view name) const noexcept {
    return std::ranges::any_of(steps_, [&](const LadderStep& step) { return step.name == name; });
}

void StepList::add(LadderStep step, const std::set<std::string>* elsewhere) {
    const auto is_better = [&](const LadderStep& other) {  // since it came first
        return other.refused.empty() && other.config == step.config;
    };
    if (std::ranges::any_of(steps_, is_better)) return;
    judge(step, instance_, known_);
    if (step.refused.empty() && known_.rules.only_local && step.imported)
        step.refused = "it was measured elsewhere, and only what was measured here is wanted";
    if (step.refused.empty() && elsewhere &&
        (elsewhere->contains(step.name) || elsewhere->contains(candidate_name(step.config, {}))))
        step.refused = fmt::format("it has failed on {}", step.device.empty() ? "such a GPU" : step.device);
    const auto same = std::ranges::find(steps_, step.name, &LadderStep::name);
    if (same == steps_.end() || (!same->refused.empty() && step.refused.empty())) add_judged(std::move(step));
}

void StepList::add_judged(LadderStep step) {
    if (step.refused.empty()) ++usable_;
    steps_.push_back(std::move(step));
}

LadderStep step_of(const Snapshot& snapshot, const SnapshotRow& row, Rung rung) {
    const RowProvenance& provenance = snapshot.provenance(row);
    LadderStep step{.rung = rung,
                    .config = snapshot.config(row),
                    .layer = provenance.layer,
                    .verified = provenance.verified == Verified::verified,
                    .stale = provenance.stale != 0,
                    .imported = provenance.imported,
                    .time_us = static_cast<double>(row.time_ns) / 1000.0};
    step.compilers.emplace_back(provenance.nvrtc_major, provenance.nvrtc_minor);
    return step;
}

std::string reservations(const Snapshot& snapshot, const SnapshotRow& row) {
    std::string text = snapshot.fresh(row) ? "" : fmt::format(", but {}", snapshot.stale(row));
    if (snapshot.provenance(row).imported) text += ", elsewhere";
    return text;
}

std::vector<LadderStep> ladder(const Instance& instance, const OpKnowledge& known, std::size_t wanted) {
    StepList steps{instance, known, wanted};
    add_exact(steps);
    add_nearest(steps);
    add_siblings(steps);
    add_sibling_nearest(steps);
    add_robust(steps);
    add_family(steps);
    add_predicted(steps);
    add_defaults(steps);
    std::vector<LadderStep> all = steps.take();
    for (LadderStep& step : all)
        step.compilers.insert(step.compilers.end(), known.compilers.begin(), known.compilers.end());
    return all;
}

}  // namespace autotune

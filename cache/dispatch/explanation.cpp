// The ladder for people: every rung with what there was to choose from, and what came close.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "cache/dispatch/ladder.h"
#include "tuner/model/key_reader.h"

namespace autotune {
namespace {

constexpr std::size_t most_close = 5, most_of_a_rung = 8;

using Fields = std::map<std::string, Value, std::less<>>;

Fields fields_of(std::span<const std::byte> key) {
    Fields fields;
    KeyReader reader{key};
    while (const auto field = reader.next()) fields.emplace(field->name, field->read());
    return fields;
}

/// "rows 4096 there, 30000 here: 7.3x apart where 4x is the limit".
std::string difference(const Op& op, const std::string& name, const Value& there, const Value& here) {
    std::string text = fmt::format("{} {} there, {} here", name, to_text(there), to_text(here));
    const Field* field = op.field(name);
    const auto *a = std::get_if<std::int64_t>(&there), *b = std::get_if<std::int64_t>(&here);
    if (!field || !field->near || !a || !b || *a < 1 || *b < 1) return text;
    const double apart = std::exp2(std::abs(std::log2(static_cast<double>(*a) / static_cast<double>(*b))));
    if (apart > 4) text += fmt::format(" ({:.1f}x apart, 4x is the limit)", apart);
    return text;
}

std::vector<std::string> differences(const Op& op, const Fields& there, const Fields& here) {
    std::vector<std::string> out;
    for (const auto& [name, value] : here) {
        const auto at = there.find(name);
        if (at == there.end())
            out.push_back(fmt::format("{} only here", name));
        else if (at->second != value)
            out.push_back(difference(op, name, at->second, value));
    }
    for (const auto& [name, value] : there)
        if (!here.contains(name)) out.push_back(fmt::format("{} only there", name));
    return out;
}

/// What parts two GPUs, as far as fingerprints look at it.
std::vector<std::string> differences(const DeviceIdentity& there, const DeviceIdentity& here) {
    std::vector<std::string> out;
    const auto compare = [&](std::string_view what, std::int64_t a, std::int64_t b) {
        if (a != b) out.push_back(fmt::format("{} {} vs {}", what, a, b));
    };
    const DeviceLimits &a = there.limits, &b = here.limits;
    if (there.vendor != here.vendor) out.push_back(fmt::format("vendor {} vs {}", there.vendor, here.vendor));
    compare("capability", a.cc, b.cc);
    compare("SM count", a.sm_count, b.sm_count);
    compare("GB/s", there.bandwidth_gbs, here.bandwidth_gbs);
    compare("L2 bytes", a.l2_bytes, b.l2_bytes);
    compare("shared memory a block", a.max_shared, b.max_shared);
    compare("shared memory an SM", a.shared_per_sm, b.shared_per_sm);
    compare("registers an SM", a.registers_per_sm, b.registers_per_sm);
    compare("threads an SM", a.threads_per_sm, b.threads_per_sm);
    return out;
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
    return text;
}

/// A stored problem that is not the one asked for, or not of this GPU.
struct Close {
    std::size_t fields = 0;  ///< that differ
    Similarity similarity = Similarity::none;
    std::string problem, device, differs;
    auto rank() const { return std::tuple{fields, similarity, std::string_view{problem}, std::string_view{device}}; }
};

Close close_of(const Instance& instance, const Fields& here, const DeviceIdentity& device, const RecordView& view) {
    std::vector<std::string> words = differences(instance.op(), fields_of(view.problem_key), here);
    Close out{.fields = words.size(),
              .similarity = similarity(*view.device, device),
              .problem = problem_text(instance.op(), view.problem_key),
              .device = view.device->fp};
    if (view.device->fp != device.fp) {
        const auto apart = differences(*view.device, device);
        words.push_back(fmt::format("measured on {}{}{}", view.device->name, apart.empty() ? "" : ": ", joined(apart)));
        ++out.fields;
    }
    out.differs = joined(words);
    return out;
}

void add_closest(Explanation& out, const Instance& instance, std::span<const LayeredStore> stores,
                 const DeviceIdentity& device) {
    const Fields here = fields_of(instance.key());
    std::vector<Close> best;
    for (const LayeredStore& layered : stores) {
        try {
            layered.store->scan({.op = instance.op().name}, {}, [&](const RecordView& view) {
                if (view.id.rank != 0) return;
                if (view.device->fp == device.fp && std::ranges::equal(view.problem_key, instance.key())) return;
                Close close = close_of(instance, here, device, view);
                if (std::ranges::any_of(best, [&](const Close& c) { return c.rank() == close.rank(); })) return;
                if (best.size() == most_close && !(close.rank() < best.back().rank())) return;
                if (best.size() == most_close) best.pop_back();
                const auto place = std::ranges::lower_bound(best, close.rank(), {}, &Close::rank);
                best.insert(place, std::move(close));
            });
        } catch (const std::exception&) {
            continue;  // said already where the snapshot was read
        }
    }
    for (Close& close : best) out.closest.emplace_back(std::move(close.problem), std::move(close.differs));
}

std::string state_of(const LadderStep& step) {
    if (step.rung == Rung::predicted) return "not measured";
    if (step.rung == Rung::default_config) return "";
    std::string state = "fresh";
    if (step.stale) {
        const std::size_t at = step.why.find(", but ");
        state = at == std::string::npos ? "stale" : step.why.substr(at + 6);
    }
    if (step.verified) state += ", verified";
    return state;
}

}  // namespace

Explanation explanation_of(const Instance& instance, std::span<const LayeredStore> stores, const DeviceIdentity& device,
                           const LadderRules& rules, std::vector<LadderStep> pinned) {
    const OpKnowledge known = read_knowledge(stores, instance.op(), device, rules);
    const std::string problem = problem_of(instance).text();
    Explanation out{.rung = Rung::none};
    std::vector<LadderStep> steps = std::move(pinned);
    for (LadderStep& step : ladder(instance, known)) steps.push_back(std::move(step));
    std::map<Rung, std::size_t> shown;
    for (const LadderStep& step : steps) {
        if (out.config.empty() && step.rung == Rung::default_config) out.why = step.refused;
        const bool chosen = step.refused.empty() && out.config.empty();
        if (chosen) {
            out.rung = step.rung;
            out.layer = step.layer;
            out.config = step.config.text();
            out.why = step.why;
        }
        if (step.rung == Rung::default_config && !chosen) continue;
        if (shown[step.rung]++ >= most_of_a_rung && !chosen) continue;
        out.rows.push_back({.rung = std::string{name_of(step.rung)},
                            .problem = step.problem.empty() ? problem : step.problem,
                            .config = step.config.text(),
                            .time_us = step.time_us,
                            .state = state_of(step),
                            .refused = step.refused,
                            .chosen = chosen,
                            .layer = std::string{name_of(step.layer)},
                            .device = step.device.empty() ? device.name : step.device,
                            .why = step.why,
                            .distance = step.distance,
                            .imported = step.imported});
    }
    if (out.rung > Rung::exact_stale) add_closest(out, instance, stores, device);
    return out;
}

}  // namespace autotune

#include "tools/tune_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "tools/format.h"
#include "tools/session.h"
#include "tools/suggestion.h"
#include "tuner/model/printable.h"

namespace autotune {
namespace {

constexpr std::size_t shown_finalists = 3;

/// Whether its times come from a model.
bool predicted(const Tuning& tuning) { return tuning.best && tuning.best->outcome.predicted; }

/// `+- 0.4` in the unit of the median: half of the interval's width.
std::string spread(const Ranked& finalist) {
    if (finalist.outcome.predicted) return "predicted";
    const double half = (finalist.high_us - finalist.low_us) / 2;
    return fmt::format("+- {}", format_time(half).substr(0, format_time(half).find(' ')));
}

std::string finalist_row(std::string_view label, const Ranked& finalist, std::string_view words) {
    return fmt::format("  {:<10} {} {:<9} {:<44} {}\n", label, pad_left(format_time(finalist.time_us), 9),
                       spread(finalist), words, finalist.config.text());
}

std::string tainted_words(const Ranked& finalist) { return finalist.outcome.tainted ? ", disturbed: not stored" : ""; }

/// A trial of an earlier run has no number in this one.
std::string why_trial(const Instance& instance, const Trial& trial, const Stored& stored) {
    if (trial.resumed)
        return fmt::format("autotune tune {} {} --fresh{}      # tries what earlier runs found out again",
                           instance.op().name, shell_word(problem_words(instance, ",")), stored.same_flags);
    return fmt::format("autotune why {} {} --trial {}{}", instance.op().name, shell_word(problem_words(instance, ",")),
                       trial.ordinal, stored.same_flags);
}

/// Of a default that was tried and is not among the finalists.
std::string failed_default_row(const Instance& instance, const Tuning& tuning, const Stored& stored) {
    const auto found = std::ranges::find(tuning.failures_by_example, tuning.default_config, &Trial::config);
    if (found == tuning.failures_by_example.end()) return {};
    std::string text = fmt::format("  {:<10} failed: {}", "default", info(found->outcome.ending).words);
    if (!stored.path.empty()) text += "; " + why_trial(instance, *found, stored);
    return text + "\n";
}

std::string ranking_rows(const Instance& instance, const Tuning& tuning, const Stored& stored) {
    const Ranked& best = *tuning.best;
    std::string text = finalist_row(
        "best", best, throughput(instance, best.time_us, tuning.preparation.copy_bandwidth_gbs) + tainted_words(best));
    std::size_t place = 1;
    for (const Ranked& finalist : tuning.ranking) {
        if (finalist.config == best.config || finalist.config == tuning.default_config) continue;
        if (++place > shown_finalists) break;
        const std::string words = finalist.same_as_best ? "not distinguishable from the best"
                                                        : format_speedup(finalist.time_us / best.time_us) + " slower";
        text += finalist_row(place == 2 ? "2nd" : "3rd", finalist, words + tainted_words(finalist));
    }
    if (tuning.default_result && tuning.default_result->config != best.config)
        text += finalist_row("default", *tuning.default_result,
                             tuning.default_result->same_as_best
                                 ? "not distinguishable from the best"
                                 : format_speedup(tuning.default_result->time_us / best.time_us) + " slower");
    else if (tuning.default_result)
        text += fmt::format("  {:<10} is the best\n", "default");
    else
        text += failed_default_row(instance, tuning, stored);
    return text;
}

bool is_failure(Ending ending) { return ending != Ending::timed && ending != Ending::dropped; }

/// Endings with their counts, commonest first.
std::vector<std::pair<Ending, std::size_t>> failures(const Tuning& tuning) {
    std::vector<std::pair<Ending, std::size_t>> list;
    for (const auto& [ending, count] : tuning.counts)
        if (is_failure(ending) && count) list.emplace_back(ending, count);
    std::ranges::stable_sort(list, std::greater{}, &std::pair<Ending, std::size_t>::second);
    return list;
}

std::string tried_row(const Tuning& tuning) {
    const auto count_of = [&](Ending ending) {
        const auto found = tuning.counts.find(ending);
        return found == tuning.counts.end() ? std::size_t{0} : found->second;
    };
    std::string text =
        fmt::format("  {:<10} {} of {}: {} {}", "tried", tuning.tried + tuning.resumed, tuning.space_size,
                    count_of(Ending::timed), predicted(tuning) ? "checked, their times modelled" : "timed");
    if (const std::size_t dropped = count_of(Ending::dropped)) text += fmt::format(", {} dropped early", dropped);
    std::size_t failed = 0;
    std::string reasons;
    for (const auto& [ending, count] : failures(tuning)) {
        failed += count;
        reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", count, info(ending).words);
    }
    if (failed) text += fmt::format(", {} failed ({})", failed, reasons);
    if (tuning.unfinished) text += fmt::format("; {} begun and not tried when the time was up", tuning.unfinished);
    if (tuning.asked_first) text += fmt::format("; {} of records first", tuning.asked_first);
    if (tuning.resumed) text += fmt::format("; {} known from earlier runs", tuning.resumed);
    return text + "\n";
}

/// How many were predicted, and whether the order was any good.
std::string prior_row(const Tuning& tuning) {
    if (!tuning.prior) return {};
    const PriorUse& prior = *tuning.prior;
    std::string text = fmt::format("  {:<10} {} of {} predicted in {}", "prior", prior.predicted, prior.asked,
                                   format_seconds(prior.seconds));
    if (prior.first) text += fmt::format(", the best {} tried first", prior.first);
    if (predicted(tuning)) return text + "; the times are the same model's\n";
    if (!prior.rank_correlation) return text + fmt::format("; too few of them were timed to judge it\n");
    return text + fmt::format("; rank correlation with the times {:.2f}, over {}\n", *prior.rank_correlation,
                              format_count(prior.compared, "trial", "trials"));
}

std::string verified_row(const Tuning& tuning) {
    const Verification& v = tuning.verification;
    if (tuning.interrupted) return fmt::format("  {:<10} once, before timing; the search was interrupted\n", "checked");
    if (v.inputs == 0) return fmt::format("  {:<10} once, before timing\n", "checked");
    return fmt::format("  {:<10} {} of {}, largest error {:.2f} of the bound\n", "verified",
                       format_count(static_cast<std::size_t>(v.inputs), "set of inputs", "sets of inputs"),
                       format_count(static_cast<std::size_t>(v.problems), "shape", "shapes"), v.largest_error);
}

std::string took_row(const Tuning& tuning) {
    if (predicted(tuning))
        return fmt::format("  {:<10} {}: compile {:.1f} ({}), check {:.1f}, model {:.1f}\n", "took",
                           format_seconds(tuning.elapsed_s), tuning.use.compile_s,
                           format_count(tuning.use.compile_workers, "worker", "workers"), tuning.use.check_s,
                           tuning.use.time_s);
    return fmt::format("  {:<10} {}: compile {} ({}), check {:.1f}, time {:.1f}; GPU idle {:.0f} %\n", "took",
                       format_seconds(tuning.elapsed_s), fmt::format("{:.1f}", tuning.use.compile_s),
                       format_count(tuning.use.compile_workers, "worker", "workers"), tuning.use.check_s,
                       tuning.use.time_s, tuning.use.gpu_idle_share * 100);
}

const Trial* example_of(const Tuning& tuning, Ending ending) {
    const auto found =
        std::ranges::find_if(tuning.failures_by_example, [&](const Trial& t) { return t.outcome.ending == ending; });
    return found == tuning.failures_by_example.end() ? nullptr : &*found;
}

}  // namespace

std::string device_line(int ordinal, const DeviceIdentity& device, std::string_view nvrtc) {
    if (device.emulated)
        return fmt::format("emulated: {}, sm_{}, {} SMs, NVRTC {}", device.name, device.limits.cc,
                           device.limits.sm_count, nvrtc.empty() ? "none" : nvrtc);
    return fmt::format("gpu {}: {}, sm_{}, {} SMs, driver {}, NVRTC {}", ordinal, device.name, device.limits.cc,
                       device.limits.sm_count,
                       device.driver.empty()
                           ? fmt::format("CUDA {}.{}", device.driver_version / 1000, device.driver_version % 1000 / 10)
                           : device.driver,
                       nvrtc.empty() ? "none" : nvrtc);
}

std::string problem_line(const Instance& instance, const Space& space, const Preparation& preparation) {
    std::size_t variants = 0;
    for (const Space::VariantSpace& v : space.variants()) variants += v.count > 0;
    return fmt::format("{} {}: {} valid of {:.0f} configs, {}; reference: {}", instance.op().name,
                       instance.problem().text(), space.size(), space.raw_size(),
                       format_count(variants, "variant", "variants"), preparation.reference);
}

std::string prior_line(const PriorUse& prior, const DeviceIdentity& device) {
    if (prior.model.empty())
        return fmt::format("prior: no model is like {}, sm_{}, so the search goes its usual way", device.name,
                           device.limits.cc);
    std::string text =
        fmt::format("prior: {} of {} predicted as on {} in {}", prior.predicted,
                    format_count(prior.asked, "config", "configs"), prior.model, format_seconds(prior.seconds));
    if (prior.first) text += fmt::format("; the best {} of them are tried first", prior.first);
    return text;
}

std::string throughput(const Instance& instance, double time_us, double copy_bandwidth_gbs) {
    if (time_us <= 0) return {};
    const double gbs = instance.bytes() / time_us * 1e-3;
    // More than about a hundred flops a byte is arithmetic's business on every GPU there is; less is memory's.
    if (instance.flops() > 100 * instance.bytes()) return format_rate(instance.flops() / time_us * 1e6);
    if (instance.bytes() <= 0) return {};
    if (copy_bandwidth_gbs <= 0) return format_bandwidth(gbs);
    return fmt::format("{}, {:.2f} of copy bandwidth", format_bandwidth(gbs), gbs / copy_bandwidth_gbs);
}

std::string new_best_line(const Instance& instance, const Trial& trial, double default_us, bool of_default) {
    const double time_us = trial.outcome.time_us;
    const std::string speedup = default_us > 0 ? format_speedup(default_us / time_us) + " default" : std::string{};
    return fmt::format("new best {}  {}  {}  {:<56} (trial {}{})", pad_left(format_time(time_us), 10),
                       pad_left(throughput(instance, time_us, 0), 13), pad_left(speedup, 13), trial.config.text(),
                       trial.ordinal, of_default ? ", the default" : "");
}

std::string trial_line(const Trial& trial) {
    const Outcome& o = trial.outcome;
    if (o.ok()) return fmt::format("trial {}: {}  {}", trial.ordinal, format_time(o.time_us), trial.config.text());
    return fmt::format("trial {} left out, {}: {}  {}", trial.ordinal, info(o.ending).words, trial.config.text(),
                       o.reason);
}

std::string why_not_stored(const Tuning& tuning, const Stored& stored) {
    if (!stored.lost.empty()) return stored.lost;
    if (stored.path.empty()) return stored.nowhere;
    if (stored.records || stored.kept_better) return {};
    if (!tuning.best) return "no config passed";
    if (tuning.tried + tuning.resumed <= 1 && tuning.space_size > 1)
        return "only the default was tried, which is no search; a larger --budget tries more";
    return fmt::format("every finalist was disturbed: {}", tuning.best->outcome.reason);
}

std::string summary(const Instance& instance, const DeviceIdentity& device, const Tuning& tuning,
                    const Stored& stored) {
    std::string text = fmt::format("{} {} on {}{}\n", instance.op().name, instance.problem().text(), device.name,
                                   device.emulated ? ", EMULATED: times are predicted, not measured" : "");
    text += ranking_rows(instance, tuning, stored) + tried_row(tuning) + prior_row(tuning) + verified_row(tuning) +
            took_row(tuning);
    if (!tuning.stopped.empty()) text += fmt::format("  {:<10} {}\n", "stopped", tuning.stopped);
    if (!stored.lost.empty()) return text + "not stored\n";
    if (const std::string why = why_not_stored(tuning, stored); !why.empty())
        return text + fmt::format("not stored: {}\n", why);
    if (stored.records)
        text += fmt::format("stored in {}\n", stored.path);
    else
        text += fmt::format("not stored: {} holds a more trustworthy record of this problem\n", stored.path);
    return text + fmt::format("next: autotune query {} --as cpp{}\n", instance.op().name, stored.same_flags);
}

std::string failure_summary(const Instance& instance, const Tuning& tuning, const Stored& stored) {
    std::string text;
    const auto list = failures(tuning);
    for (const auto& [ending, count] : list) {
        const Trial* example = example_of(tuning, ending);
        text += fmt::format("  {:>4}  {:<18} first: {}\n", count, info(ending).words,
                            example ? fmt::format("{}: {}", example->config.text(), example->outcome.reason) : "");
    }
    if (list.empty()) text += fmt::format("  no config was tried within the budget\n");
    const Trial* example = list.empty() ? nullptr : example_of(tuning, list.front().first);
    if (example && !stored.path.empty()) text += fmt::format("help: {}\n", why_trial(instance, *example, stored));
    return text;
}

}  // namespace autotune

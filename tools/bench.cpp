#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "autotune/error.h"
#include "cache/store/stored_problem.h"
#include "tools/bench_source.h"
#include "tools/counters_text.h"
#include "tools/format.h"
#include "tools/interrupt.h"
#include "tools/json_events.h"
#include "tools/launch_figures.h"
#include "tools/subcommands.h"
#include "tools/tune_report.h"
#include "tuner/statistics.h"

namespace autotune {
namespace {

int rounds_for(Effort effort) { return effort == Effort::quick ? 15 : effort == Effort::normal ? 41 : 201; }

/// Configs of one problem that are timed side by side; the others are compared with the first.
struct Match {
    Instance instance;
    std::vector<Config> configs;
};

/// How a config compares with the first, from the interval of the ratio of their times.
enum class Verdict { baseline, faster, slower, same, uncertain };
constexpr std::array<std::string_view, 5> verdict_names{"baseline", "faster", "slower", "same", "uncertain"};

Verdict verdict_of(const Interval& ratio) {
    if (ratio.high < 1 - same_within) return Verdict::faster;
    if (ratio.low > 1 + same_within) return Verdict::slower;
    return ratio.low > 1 - same_within && ratio.high < 1 + same_within ? Verdict::same : Verdict::uncertain;
}

std::string words_of(Verdict verdict, const Interval& ratio, std::string_view baseline) {
    switch (verdict) {
        case Verdict::baseline:
            return std::string{baseline};
        case Verdict::faster:
            return fmt::format("{} faster", format_speedup(1 / ratio.median));
        case Verdict::slower:
            return fmt::format("{} slower", format_speedup(ratio.median));
        case Verdict::same:
        case Verdict::uncertain:
            return std::string{verdict_names[static_cast<std::size_t>(verdict)]};
    }
    return {};
}

class BenchCommand {
public:
    BenchCommand(const Request& request, Console& console, const BenchSource& source)
        : request_{request},
          console_{console},
          session_{request, console},
          gpu_{source.gpus(session_).front()},
          bench_{source.bench(session_, gpu_)},
          store_{session_.open_store(Store::Mode::read)} {}

    int run() {
        console_.line(device_line(gpu_.ordinal, gpu_.identity, session_.nvrtc_version()));
        for (const Match& match : matches()) {
            hold(match);
            if (interrupted()) return interrupted();
        }
        if (failed_) return exit_code(Error::Kind::nothing_found);
        return slower_ && request_.fail_on == "slower" ? exit_code(Error::Kind::check) : 0;
    }

private:
    // ---- Who competes.

    std::vector<Match> matches() {
        const std::string& against = request_.against;
        if (against.empty())
            return for_each_problem([&](const Instance& instance) { return beside_default(instance); });
        if (const auto id = RecordKey::parse(against)) return against_record(*id);
        if (against.find('=') != std::string::npos || has_variant(against))
            return for_each_problem([&](const Instance& instance) {
                return challenge(instance, complete_config(instance, config_from_text(against)));
            });
        if (std::filesystem::exists(against)) return against_database();
        throw usage(fmt::format("--against '{}' is no database file, no record and no config", against),
                    "a record's number is the id that autotune query --json shows");
    }

    template <class Make>
    std::vector<Match> for_each_problem(const Make& make) const {
        std::vector<Match> matches;
        for (const AskedProblem& problem : session_.problems())
            matches.push_back(make(Session::instance_with_scalars(problem, gpu_.identity.limits)));
        return matches;
    }

    bool problems_given() const { return !request_.problems.empty() || !request_.problems_file.empty(); }
    bool has_variant(const std::string& name) const { return !request_.op.empty() && session_.op().variant(name); }

    /// The config that was named, else all that the database holds for this problem, and the default before them.
    Match beside_default(const Instance& instance) const {
        Match match{.instance = instance, .configs = {instance.default_config()}};
        const auto add = [&](const Config& config) {
            if (std::ranges::find(match.configs, config) == match.configs.end()) match.configs.push_back(config);
        };
        if (!request_.config.empty())
            add(complete_config(instance, config_from_text(request_.config)));
        else
            for (const Record& record : usable_records(store_, instance)) add(record.config);
        if (request_.config.empty() && match.configs.size() == 1 &&
            !store_.records({.op = instance.op().name, .problem_key = instance.key(), .predicted = true}, {}).empty())
            console_.note("of this problem predictions are stored, and no records to time beside the default",
                          "autotune query shows them; --config takes one");
        return match;
    }

    /// The config that was named, else the best one stored, else the default, against `baseline`.
    Match challenge(const Instance& instance, const Config& baseline) const {
        if (!request_.config.empty())
            return {instance, {baseline, complete_config(instance, config_from_text(request_.config))}};
        const std::vector<Record> records = usable_records(store_, instance);
        return {instance, {baseline, records.empty() ? instance.default_config() : records.front().config}};
    }

    std::vector<Match> against_record(const RecordKey& id) {
        const auto record = store_.record(id, {});
        if (!record)
            throw usage(fmt::format("there is no record {}", request_.against),
                        "autotune query --json shows their ids");
        const Op& op = session_.ops().find(record->source.op);
        if (!problems_given()) return {against_stored(*record, instance_of(record->problem, op, gpu_.identity.limits))};
        return for_each_problem([&](const Instance& instance) { return against_stored(*record, instance); });
    }

    Match against_stored(const Record& record, const Instance& instance) const {
        if (&instance.op() != &session_.ops().find(record.source.op))
            throw usage(fmt::format("record {} is of '{}', not of '{}'", record.id.text(), record.source.op,
                                    instance.op().name));
        return challenge(instance, complete_config(instance, record.config));
    }

    /// Every problem of the other database on this GPU, or those that were asked for.
    std::vector<Match> against_database() {
        const Store other =
            Store::open({.path = request_.against, .mode = Store::Mode::read, .warn = [this](const std::string& text) {
                             console_.warning(text);
                         }});
        std::vector<Match> matches;
        const auto add = [&](const Instance& instance) {
            const std::vector<Record> records = usable_records(other, instance);
            if (!records.empty()) matches.push_back(challenge(instance, records.front().config));
        };
        if (problems_given()) {
            for (const AskedProblem& problem : session_.problems())
                add(Session::instance_with_scalars(problem, gpu_.identity.limits));
        } else {
            if (!request_.op.empty()) session_.op();  // a typo in the op is no empty answer
            for (const Record& record :
                 other.records({.op = request_.op, .device_fp = gpu_.identity.fp, .winners_only = true}, {}))
                if (const Op* op = session_.ops().find_or_null(record.source.op)) try {
                        add(instance_of(record.problem, *op, gpu_.identity.limits));
                    } catch (const Error& e) {
                        console_.warning(fmt::format("record {} is left out: {}", record.id.text(), e.what()));
                    }
        }
        if (matches.empty())
            throw Error{Error::Kind::nothing_found,
                        fmt::format("{} holds no usable record for {}{}", request_.against, gpu_.identity.name,
                                    request_.op.empty() ? "" : fmt::format(" of '{}'", request_.op)),
                        fmt::format("autotune query --db {}", request_.against)};
        return matches;
    }

    /// Best first.
    std::vector<Record> usable_records(const Store& store, const Instance& instance) const {
        std::vector<Record> records =
            store.records({.op = instance.op().name, .device_fp = gpu_.identity.fp, .problem_key = instance.key()},
                          session_.today({&instance.op()}));
        std::erase_if(records, [&](const Record& r) { return instance.objection(r.config).has_value(); });
        return records;
    }

    // ---- The match.

    void hold(const Match& match) {
        preparation_ = bench_->prepare(match.instance);
        console_.result(fmt::format("{} {}", match.instance.op().name, problem_words(match.instance, " ")));
        // Each is checked before it is timed.
        std::vector<Config> sound;
        for (const Config& config : match.configs) bench_->submit(config);
        for (const Config& config : match.configs) {
            if (interrupted()) return;
            Outcome outcome = bench_->next({});
            if (outcome.ok()) {
                sound.push_back(config);
                continue;
            }
            failed_ = true;
            explain(*bench_, config, outcome);
            console_.result(fmt::format("  {:<18} {}: {}", info(outcome.ending).words, config.text(), outcome.reason));
            if (console_.json())
                console_.json_line(json_event("bench", {{"op", match.instance.op().name},
                                                        {"problem", match.instance.problem()},
                                                        {"config", config},
                                                        {"outcome", info(outcome.ending).name},
                                                        {"reason", outcome.reason}}));
        }
        if (sound.empty() || interrupted()) return;
        std::vector<Outcome> outcomes = bench_->rounds(sound, rounds_for(request_.effort));
        const std::string_view first = sound.front() != match.configs.front() ? "the first that is right"
                                       : request_.against.empty()             ? "default"
                                                                              : "against";
        for (std::size_t i = 0; i < sound.size(); ++i) {
            if (outcomes[i].samples_us.empty()) {
                failed_ = true;
                explain(*bench_, sound[i], outcomes[i]);
                console_.result(fmt::format("  {:<18} {}: {}", info(outcomes[i].ending).words, sound[i].text(),
                                            outcomes[i].reason));
                continue;
            }
            const Interval ratio = outcomes.front().samples_us.size() == outcomes[i].samples_us.size()
                                       ? paired_ratio(outcomes[i].samples_us, outcomes.front().samples_us)
                                       : Interval{};
            const Verdict verdict = i == 0             ? Verdict::baseline
                                    : ratio.median > 0 ? verdict_of(ratio)
                                                       : Verdict::uncertain;
            slower_ = slower_ || verdict == Verdict::slower;
            print(match.instance, sound[i], outcomes[i], ratio, verdict, first);
        }
    }

    void print(const Instance& instance, const Config& config, const Outcome& outcome, const Interval& ratio,
               Verdict verdict, std::string_view first) {
        const Interval time = median_interval(outcome.samples_us);
        const std::string words = words_of(verdict, ratio, first) + (outcome.tainted ? ", disturbed" : "") +
                                  (outcome.predicted ? ", predicted" : "");
        const std::optional<Outcome> counted = request_.counters ? std::optional{bench_->count(config)} : std::nullopt;
        console_.result(fmt::format("  {} [{}, {}]  {:<40} {:<14} {}", pad_left(format_time(time.median), 10),
                                    format_time(time.low), format_time(time.high),
                                    throughput(instance, time.median, preparation_.copy_bandwidth_gbs), words,
                                    config.text()));
        if (counted) print(*counted);
        if (!console_.json()) return;
        nlohmann::json fields = {{"op", instance.op().name},
                                 {"problem", instance.problem()},
                                 {"config", config},
                                 {"time_us", time.median},
                                 {"low_us", time.low},
                                 {"high_us", time.high},
                                 {"verdict", verdict_names[static_cast<std::size_t>(verdict)]},
                                 {"words", words},
                                 {"tainted", outcome.tainted},
                                 {"samples_us", outcome.samples_us}};
        if (counted && counted->ok())
            fields["counters"] = counters_value(counted->counters, gpu_.identity.limits);
        else if (counted)
            fields["not_counted"] = counted->reason;
        fields[request_.against.empty() ? "over_default" : "over_against"] = ratio.median;
        console_.json_line(json_event("bench", fields));
    }

    /// Counts are the emulator's, whatever the time is: that is said above each table.
    void print(const Outcome& counted) {
        if (!counted.ok() || counted.counters.empty())
            return console_.result(fmt::format("    no counters: {}: {}", info(counted.ending).words, counted.reason));
        console_.result(gpu_.identity.emulated
                            ? "    counters of this config, from the same blocks as its time"
                            : "    counters of this config, from an emulator that ran the PTX of the same compile; the "
                              "time is the GPU's");
        std::string text = counters_text(counted.counters, gpu_.identity.limits);
        if (text.ends_with('\n')) text.pop_back();
        console_.result(text);
    }

    const Request& request_;
    Console& console_;
    Session session_;
    PresentGpu gpu_;
    std::unique_ptr<Bench> bench_;
    Store store_;
    Preparation preparation_;
    bool failed_ = false, slower_ = false;
};

}  // namespace

int bench_with(const Request& request, Console& console, const BenchSource& source) {
    return BenchCommand{request, console, source}.run();
}

int run_bench(const Request& request, Console& console) { return bench_with(request, console, real_benches()); }

}  // namespace autotune

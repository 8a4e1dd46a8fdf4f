#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "autotune/error.h"
#include "cache/sharing/pending_binaries.h"
#include "cache/store/identity.h"
#include "cache/store/stored_problem.h"
#include "tools/bench_source.h"
#include "tools/format.h"
#include "tools/interrupt.h"
#include "tools/json_events.h"
#include "tools/run_keeper.h"
#include "tools/session.h"
#include "tools/subcommands.h"
#include "tools/tune_report.h"
#include "tuner/statistics.h"

namespace autotune {
namespace {

class VerifyCommand {
public:
    VerifyCommand(const Request& request, Console& console, const BenchSource& source)
        : request_{request},
          console_{console},
          source_{source},
          session_{request, console},
          store_{session_.open_present_store(Store::Mode::write)} {}

    int run() {
        for (const PresentGpu& gpu : source_.gpus(session_)) verify_on(gpu);
        console_.result(fmt::format("{}, {} failed{}",
                                    format_count(verified_ + failed_, "record checked", "records checked"), failed_,
                                    request_.imported ? fmt::format(", {} now measured here", taken_over_) : ""));
        if (verified_ + failed_ == 0)
            if (const std::size_t predicted = store_.records({.op = request_.op, .predicted = true}, {}).size())
                console_.note(fmt::format("{} stored, and a prediction is no record: there is nothing to verify",
                                          format_count(predicted, "prediction is", "predictions are")),
                              "tune on a GPU to have records");
        if (binaries_ > 0)
            console_.line(
                fmt::format("{} of others passed, and may run now", format_count(binaries_, "binary", "binaries")));
        if (console_.json()) console_.json_line(json_event("summary", {{"verified", verified_}, {"failed", failed_}}));
        if (interrupted()) return interrupted();
        return failed_ ? exit_code(Error::Kind::check) : 0;
    }

private:
    void verify_on(const PresentGpu& gpu) {
        const std::vector<const Op*> ops =
            request_.op.empty() ? session_.ops().all() : std::vector<const Op*>{&session_.op()};
        const std::unique_ptr<Bench> bench = source_.bench(session_, gpu);
        if (request_.imported && !gpu.identity.emulated) {
            const Environment here = session_.environment(&gpu.identity);
            pending_ = std::make_unique<PendingBinaries>(store_.binaries_folder(), here.nvrtc_major, here.nvrtc_minor);
            bench->use_ready([&pending = *pending_](const SourceSpec& source, const std::string& arch) {
                return pending.find(source, arch);
            });
        }
        for (const Op* op : ops) {
            // One preparation serves all ranks of a problem.
            std::map<std::vector<std::byte>, std::vector<Record>> by_problem;
            for (const Record& record :
                 store_.records({.op = op->name, .device_fp = gpu.identity.fp}, session_.today({op})))
                by_problem[record.problem.key].push_back(record);
            // What was imported may be faster than what it waits behind, which only a measurement of here can say.
            if (request_.imported)
                for (const Record& record : store_.records(
                         {.op = op->name, .device_fp = gpu.identity.fp, .waiting = true}, session_.today({op})))
                    if (!record.local() && !was_tried_here(*op, record, gpu))
                        by_problem[record.problem.key].push_back(record);
            for (const auto& [key, records] : by_problem) {
                if (interrupted()) return;
                if (!request_.imported)
                    verify_problem(*bench, *op, records, gpu);
                else if (const std::vector<Record> others = not_measured_here(records); others.empty())
                    continue;
                else if (gpu.identity.emulated)
                    verify_problem(*bench, *op, others, gpu);
                else
                    take_over(*bench, *op, others, effort_of_here(records), gpu);
            }
        }
    }

    void verify_problem(Bench& bench, const Op& op, const std::vector<Record>& records, const PresentGpu& gpu) {
        problem_ = records.front().problem.text();
        const std::optional<Instance> made = made_again(records, op, gpu);
        if (!made) return;
        const Instance& instance = *made;
        problem_ = problem_words(instance, " ");
        bool prepared = false;
        for (const Record& record : records) {
            if (const auto objection = instance.objection(record.config)) {
                report(record, *objection, Ending::not_valid, gpu);
                continue;
            }
            if (!prepared) bench.prepare(instance);
            prepared = true;
            bench.submit(record.config);
            Outcome outcome = bench.next({});
            if (!outcome.ok() && outcome.ending != Ending::dropped) {
                explain(bench, record.config, outcome);
                report(record, outcome.reason, outcome.ending, gpu);
                continue;
            }
            const Verification v = bench.verify(record.config);
            if (v.failure)
                report(record, fmt::format("{}: {}", v.failed_on, v.failure->reason), v.failure->ending, gpu);
            else
                accept(record, v, gpu);
        }
    }

    /// The imported records of a problem whose configs no record of this machine has, best first.
    static std::vector<Record> not_measured_here(const std::vector<Record>& records) {
        std::vector<Record> others;
        for (const Record& record : records) {
            const auto same = [&](const Record& other) { return other.config == record.config; };
            if (!record.local() && std::ranges::none_of(others, same) &&
                std::ranges::none_of(records, [&](const Record& other) { return other.local() && same(other); }))
                others.push_back(record);
        }
        return others;
    }

    bool was_tried_here(const Op& op, const Record& record, const PresentGpu& gpu) const {
        const RunStart start{.device = gpu.identity,
                             .environment = session_.environment(&gpu.identity),
                             .templates = templates_of(op),
                             .problem = record.problem};
        return std::ranges::any_of(store_.known_outcomes(start),
                                   [&](const auto& known) { return known.first == record.config; });
    }

    /// As much as was put into the records that what is timed now competes with: then the faster stands.
    static SearchEffort effort_of_here(const std::vector<Record>& records) {
        SearchEffort effort = SearchEffort::quick;
        for (const Record& record : records)
            if (record.local()) effort = std::max(effort, record.run.effort);
        return effort;
    }

    /// Checks and times the configs of others beside the default, as the finals of a search would, and stores what
    /// stands as measured here: their own rows give way to it.
    void take_over(Bench& bench, const Op& op, const std::vector<Record>& records, SearchEffort effort,
                   const PresentGpu& gpu) {
        problem_ = records.front().problem.text();
        const std::optional<Instance> made = made_again(records, op, gpu);
        if (!made) return;
        const Instance& instance = *made;
        problem_ = problem_words(instance, " ");
        const Preparation preparation = bench.prepare(instance);
        RunKeeper keeper{store_, start_of(instance, records, effort, gpu)};
        std::vector<Candidate> candidates = checked_once(bench, instance, records, gpu, keeper);
        time_in_rounds(bench, candidates);
        RunEnd end{.method = preparation.method, .reference = preparation.reference};
        for (const Record& record : records) {
            end.evaluated = std::max(end.evaluated, record.evaluated);
            end.space_size = std::max({end.space_size, record.space_size, std::size_t{2}});
        }
        std::vector<Failed> failed;
        for (const Candidate& candidate : candidates) end_with(bench, instance, candidate, end, failed);
        if (end.finalists.empty()) end.evaluated = 0;  // else the store would rank what was timed, right or wrong
        const RunSummary kept = keeper.finish(end);
        if (const std::optional<Error>& trouble = keeper.trouble()) throw *trouble;
        taken_over_ += kept.records;
        // Behind the end of the run, which takes what was timed for sound.
        for (const Failed& one : failed)
            report_run(*one.record, one.reason, one.ending, pending_->drop(instance, one.record->config) > 0, gpu);
    }

    /// A config that takes part in the finals; that of the default belongs to no record of others.
    struct Candidate {
        Config config;
        const Record* record = nullptr;
        bool is_default = false;
        Outcome outcome{};
    };

    /// A config that was timed and is wrong all the same.
    struct Failed {
        const Record* record;
        std::string reason;
        Ending ending;
    };

    RunStart start_of(const Instance& instance, const std::vector<Record>& records, SearchEffort effort,
                      const PresentGpu& gpu) const {
        return {.device = gpu.identity,
                .environment = session_.environment(&gpu.identity),
                .templates = templates_of(instance.op()),
                .problem = problem_of(instance),
                .info = {.strategy = "verify",
                         .seed = request_.seed,
                         .budget = std::to_string(records.size()),
                         .effort = effort}};
    }

    std::vector<Candidate> checked_once(Bench& bench, const Instance& instance, const std::vector<Record>& records,
                                        const PresentGpu& gpu, RunKeeper& keeper) {
        std::vector<Candidate> candidates;
        const Config first = instance.default_config();
        const auto try_one = [&](const Config& config, const Record* record) {
            bench.submit(config);
            Outcome outcome = bench.next({});
            if (outcome.ok()) {
                keeper.keep(config, outcome);
                candidates.push_back({config, record, config == first, std::move(outcome)});
                return;
            }
            const bool foreign = pending_->drop(instance, config) > 0;
            if (!foreign) keeper.keep(config, outcome);
            if (!record) return;
            explain(bench, config, outcome);
            report_run(*record, outcome.reason, outcome.ending, foreign, gpu);
        };
        for (const Record& record : records)
            if (const auto objection = instance.objection(record.config))
                report(record, *objection, Ending::not_valid, gpu);
            else
                try_one(record.config, &record);
        if (!candidates.empty() && std::ranges::find(candidates, first, &Candidate::config) == candidates.end())
            try_one(first, nullptr);
        return candidates;
    }

    static void time_in_rounds(Bench& bench, std::vector<Candidate>& candidates) {
        constexpr int rounds = 20;
        std::vector<Config> configs;
        for (const Candidate& candidate : candidates) configs.push_back(candidate.config);
        if (configs.empty()) return;
        std::vector<Outcome> outcomes = bench.rounds(configs, rounds);
        for (std::size_t i = 0; i < candidates.size() && i < outcomes.size(); ++i)
            if (!outcomes[i].samples_us.empty()) candidates[i].outcome = std::move(outcomes[i]);
    }

    void end_with(Bench& bench, const Instance& instance, const Candidate& candidate, RunEnd& end,
                  std::vector<Failed>& failed) {
        const Outcome& outcome = candidate.outcome;
        if (!outcome.ok() || outcome.samples_us.empty()) {
            if (candidate.record)
                failed.push_back({candidate.record, outcome.reason, outcome.ending});
            else
                pending_->drop(instance, candidate.config);
            return;
        }
        const Interval interval = median_interval(outcome.samples_us);
        if (candidate.is_default) end.default_us = interval.median;
        const Verification v = bench.verify(candidate.config);
        if (v.failure) {
            if (candidate.record)
                failed.push_back(
                    {candidate.record, fmt::format("{}: {}", v.failed_on, v.failure->reason), v.failure->ending});
            else
                pending_->drop(instance, candidate.config);
            return;
        }
        binaries_ += pending_->accept(instance, candidate.config);
        end.finalists.push_back({.config = candidate.config,
                                 .time_us = interval.median,
                                 .low_us = interval.low,
                                 .high_us = interval.high,
                                 .samples = static_cast<int>(outcome.samples_us.size()),
                                 .max_error = std::max(outcome.max_error, v.largest_error),
                                 .tainted = outcome.tainted,
                                 .verified = Verified::verified});
        if (candidate.record) say_verified(*candidate.record, v, interval.median);
    }

    /// The problem as it was tuned, with its alignments and layouts; nullopt, and said of each record, when the op no
    /// longer has it.
    std::optional<Instance> made_again(const std::vector<Record>& records, const Op& op, const PresentGpu& gpu) {
        try {
            return instance_of(records.front().problem, op, gpu.identity.limits);
        } catch (const Error& e) {
            for (const Record& record : records) say_failed(record, e.what(), Ending::not_valid);
            return std::nullopt;
        }
    }

    /// What was checked elsewhere, or before its timing only, ranks among the verified from now on, and what failed
    /// before is refused no longer.
    void accept(const Record& record, const Verification& v, const PresentGpu& gpu) {
        if (!gpu.identity.emulated) store_.strike_negative(named(record, gpu));
        Record checked = record;
        checked.verified = Verified::verified;
        checked.max_error = std::max(record.max_error, v.largest_error);
        if (record.verified != Verified::verified && !gpu.identity.emulated) store_.put({&checked, 1});
        say_verified(record, v, std::nullopt);
    }

    /// time_us: what it takes here, where that was timed.
    void say_verified(const Record& record, const Verification& v, std::optional<double> time_us) {
        ++verified_;
        console_.result(fmt::format(
            "ok    {} {}   {}   {} of {}, largest error {:.2f} of the bound{}", record.source.op, problem_,
            record.config.text(), format_count(static_cast<std::size_t>(v.inputs), "set of inputs", "sets of inputs"),
            format_count(static_cast<std::size_t>(v.problems), "shape", "shapes"), v.largest_error,
            time_us ? fmt::format(", {} here, {} there", format_time(*time_us), format_time(record.time_us)) : ""));
        if (!console_.json()) return;
        nlohmann::json event{{"id", record.id.text()},
                             {"op", record.source.op},
                             {"config", record.config},
                             {"ok", true},
                             {"largest_error", v.largest_error}};
        if (time_us) event["time_us"] = *time_us;
        console_.json_line(json_event("verified", event));
    }

    /// A config on a problem, under the op's files of today: what a check tells about, even where the record is of
    /// older ones.
    Negative named(const Record& record, const PresentGpu& gpu) const {
        const Op& op = session_.ops().find(record.source.op);
        const Variant* variant = op.variant(record.config.variant);
        return {.device_fp = gpu.identity.fp,
                .source = variant ? template_of(op, *variant) : record.source,
                .problem_key = record.problem.key,
                .config = record.config};
    }

    /// foreign: it was a binary of others that failed, and is gone: that says nothing of the
    /// config.
    void report_run(const Record& record, const std::string& reason, Ending ending, bool foreign,
                    const PresentGpu& gpu) {
        if (!foreign) return report(record, reason, ending, gpu);
        say_failed(record, reason + "; it was the imported binary, which is dropped", ending);
    }

    /// A record that fails now must not be dispatched any more, unless it is memory that is short at the moment. What
    /// an emulator finds of the records of a real GPU is said and changes nothing.
    void report(const Record& record, const std::string& reason, Ending ending, const PresentGpu& gpu) {
        say_failed(record, reason, ending);
        if (ending == Ending::out_of_memory || gpu.identity.emulated) return;
        Negative negative = named(record, gpu);
        negative.ending = ending;
        store_.put_negative(negative, session_.environment(&gpu.identity));
    }

    void say_failed(const Record& record, const std::string& reason, Ending ending) {
        ++failed_;
        console_.result(fmt::format("fail  {} {}   {}   {}: {}", record.source.op, problem_, record.config.text(),
                                    info(ending).words, reason));
        if (console_.json())
            console_.json_line(json_event("verified", {{"id", record.id.text()},
                                                       {"op", record.source.op},
                                                       {"config", record.config},
                                                       {"ok", false},
                                                       {"outcome", info(ending).name},
                                                       {"reason", reason}}));
    }

    const Request& request_;
    Console& console_;
    const BenchSource& source_;
    Session session_;
    Store store_;
    std::string problem_;  ///< the one at hand, for people
    std::size_t verified_ = 0, failed_ = 0;
    std::unique_ptr<PendingBinaries> pending_;  ///< with --imported, on a GPU
    std::size_t binaries_ = 0;                  ///< of others that passed
    std::size_t taken_over_ = 0;                ///< records that are measured here from now on
};

}  // namespace

int verify_with(const Request& request, Console& console, const BenchSource& source) {
    return VerifyCommand{request, console, source}.run();
}

int run_verify(const Request& request, Console& console) { return verify_with(request, console, real_benches()); }

}  // namespace autotune

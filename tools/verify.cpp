#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "autotune/error.h"
#include "cache/store/identity.h"
#include "cache/store/stored_problem.h"
#include "tools/bench_source.h"
#include "tools/format.h"
#include "tools/interrupt.h"
#include "tools/json_events.h"
#include "tools/session.h"
#include "tools/subcommands.h"
#include "tools/tune_report.h"

namespace autotune {
namespace {

class VerifyCommand {
public:
    VerifyCommand(const Request& request, Console& console, const BenchSource& source)
        : request_{request},
          console_{console},
          source_{source},
          session_{request, console},
          store_{session_.open_store(Store::Mode::write)} {}

    int run() {
        for (const PresentGpu& gpu : source_.gpus(session_)) verify_on(gpu);
        console_.result(fmt::format("{}, {} failed",
                                    format_count(verified_ + failed_, "record checked", "records checked"), failed_));
        if (console_.json()) console_.json_line(json_event("summary", {{"verified", verified_}, {"failed", failed_}}));
        if (interrupted()) return interrupted();
        return failed_ ? exit_code(Error::Kind::check) : 0;
    }

private:
    void verify_on(const PresentGpu& gpu) {
        const std::vector<const Op*> ops =
            request_.op.empty() ? session_.ops().all() : std::vector<const Op*>{&session_.op()};
        const std::unique_ptr<Bench> bench = source_.bench(session_, gpu);
        for (const Op* op : ops) {
            // One preparation serves all ranks of a problem.
            std::map<std::vector<std::byte>, std::vector<Record>> by_problem;
            for (const Record& record :
                 store_.records({.op = op->name, .device_fp = gpu.identity.fp}, session_.today({op})))
                if (!request_.imported || !record.local()) by_problem[record.problem.key].push_back(record);
            for (const auto& [key, records] : by_problem) {
                if (interrupted()) return;
                verify_problem(*bench, *op, records, gpu);
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
        ++verified_;
        if (!gpu.identity.emulated) store_.strike_negative(named(record, gpu));
        Record checked = record;
        checked.verified = Verified::verified;
        checked.max_error = std::max(record.max_error, v.largest_error);
        if (record.verified != Verified::verified && !gpu.identity.emulated) store_.put({&checked, 1});
        console_.result(fmt::format(
            "ok    {} {}   {}   {} of {}, largest error {:.2f} of the bound", record.source.op, problem_,
            record.config.text(), format_count(static_cast<std::size_t>(v.inputs), "set of inputs", "sets of inputs"),
            format_count(static_cast<std::size_t>(v.problems), "shape", "shapes"), v.largest_error));
        if (console_.json())
            console_.json_line(json_event("verified", {{"id", record.id.text()},
                                                       {"op", record.source.op},
                                                       {"config", record.config},
                                                       {"ok", true},
                                                       {"largest_error", v.largest_error}}));
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
};

}  // namespace

int verify_with(const Request& request, Console& console, const BenchSource& source) {
    return VerifyCommand{request, console, source}.run();
}

int run_verify(const Request& request, Console& console) { return verify_with(request, console, real_benches()); }

}  // namespace autotune

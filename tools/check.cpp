#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "autotune/error.h"
#include "tools/format.h"
#include "tools/interrupt.h"
#include "tools/json_events.h"
#include "tools/session.h"
#include "tools/subcommands.h"
#include "tools/tune_report.h"
#include "tuner/worker/worker_bench.h"

namespace autotune {
namespace {

/// The config that was named, else each variant's defaults, where they hold.
std::vector<Config> configs_of(const Request& request, const Instance& instance, Console& console) {
    if (!request.config.empty()) return {complete_config(instance, config_from_text(request.config))};
    std::vector<Config> configs;
    for (const Variant& variant : instance.op().variants) {
        const std::optional<Config> config = instance.defaults_of(variant);
        const std::optional<std::string> objection =
            config ? instance.objection(*config) : std::optional<std::string>{"needs " + variant.needs.text()};
        if (objection)
            console.result(fmt::format("  {:<14} not valid for this problem: {}", variant.name, *objection));
        else
            configs.push_back(*config);
    }
    return configs;
}

class CheckCommand {
public:
    CheckCommand(const Request& request, Console& console)
        : request_{request},
          console_{console},
          session_{request, console},
          gpu_{session_.gpus().front()},
          bench_{make_worker_bench(session_.worker_options(gpu_))} {}

    int run() {
        for (const AskedProblem& problem : problems()) {
            if (interrupted()) break;
            check(problem);
        }
        if (interrupted()) return interrupted();
        return failed_ ? exit_code(Error::Kind::check) : 0;
    }

private:
    std::vector<AskedProblem> problems() const {
        std::vector<AskedProblem> problems = session_.problems();
        // A folder is checked at its own list of problems too.
        if (request_.problems.empty() && request_.problems_file.empty())
            for (const auto& fields : session_.op().check_problems)
                problems.push_back({.op = &session_.op(), .text = fields, .origin = {}});
        return problems;
    }

    void check(const AskedProblem& problem) {
        const Instance instance = bench_->sized(Session::instance(problem, gpu_.identity.limits));
        heading(instance);
        const std::vector<Config> configs = configs_of(request_, instance, console_);
        if (configs.empty()) return;
        bench_->prepare(instance);
        for (const Config& config : configs) bench_->submit(config);
        for (const Config& config : configs) {
            if (interrupted()) return;
            Outcome outcome = bench_->next({});
            if (outcome.ok() && !interrupted()) {
                const Verification v = bench_->verify(config);
                if (v.failure) {
                    outcome = *v.failure;
                    outcome.reason = fmt::format("{}: {}", v.failed_on, outcome.reason);
                }
            } else if (!outcome.ok() && !interrupted()) {
                explain(*bench_, config, outcome);
            }
            row(instance, config, outcome);
        }
    }

    void heading(const Instance& instance) {
        console_.result(fmt::format("{} {}", instance.op().name, instance.problem().text()));
    }

    void row(const Instance& instance, const Config& config, const Outcome& o) {
        const bool ok = o.ok() || o.ending == Ending::dropped;
        failed_ = failed_ || !ok;
        std::string facts = o.registers ? fmt::format("{} registers, {} spilled, {} shared", o.registers,
                                                      format_bytes(static_cast<std::uint64_t>(o.spill_bytes)),
                                                      format_bytes(static_cast<std::uint64_t>(o.shared_bytes)))
                                        : std::string{};
        if (o.time_us > 0) facts += fmt::format(", {}{}", format_time(o.time_us), o.predicted ? " predicted" : "");
        console_.result(
            fmt::format("  {:<14} {}   {}", ok ? "right" : info(o.ending).words, config.text(), ok ? facts : o.reason));
        if (!ok && !o.log.empty()) console_.trial_line(o.log);
        if (console_.json())
            console_.json_line(json_event("check", {{"op", instance.op().name},
                                                    {"problem", instance.problem()},
                                                    {"config", config},
                                                    {"ok", ok},
                                                    {"outcome", info(o.ending).name},
                                                    {"reason", o.reason},
                                                    {"log", o.log},
                                                    {"registers", o.registers},
                                                    {"spill_bytes", o.spill_bytes},
                                                    {"shared_bytes", o.shared_bytes}}));
    }

    const Request& request_;
    Console& console_;
    Session session_;
    PresentGpu gpu_;
    std::unique_ptr<Bench> bench_;
    bool failed_ = false;
};

}  // namespace

int run_check(const Request& request, Console& console) { return CheckCommand{request, console}.run(); }

}  // namespace autotune

#include <fmt/format.h>

#include <algorithm>
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

/// A problem to check at.
struct CheckProblem {
    AskedProblem problem;
    bool asked = true;  ///< false: one of the op's own list
};

class CheckCommand {
public:
    CheckCommand(const Request& request, Console& console)
        : request_{request},
          console_{console},
          session_{request, console},
          gpu_{session_.gpus().front()},
          bench_{make_worker_bench(session_.worker_options(gpu_))} {}

    int run() {
        for (const CheckProblem& each : problems()) {
            if (interrupted()) break;
            check(each);
        }
        if (interrupted()) return interrupted();
        if (!checked_)
            throw Error{Error::Kind::nothing_found,
                        fmt::format("nothing was checked: no default of '{}' is valid", session_.op().name)};
        return failed_ ? exit_code(Error::Kind::check) : 0;
    }

private:
    std::vector<CheckProblem> problems() const {
        std::vector<CheckProblem> problems;
        for (const AskedProblem& problem : session_.problems()) problems.push_back({.problem = problem});
        // A folder is checked at its own list of problems too.
        if (request_.problems.empty() && request_.problems_file.empty())
            for (const auto& fields : session_.op().check_problems)
                problems.push_back({.problem = {.op = &session_.op(), .text = fields, .origin = {}}, .asked = false});
        return problems;
    }

    void check(const CheckProblem& each) {
        const Instance instance = bench_->sized(Session::instance_with_scalars(each.problem, gpu_.identity.limits));
        heading(instance);
        const std::vector<Config> configs = configs_of(instance, each.asked);
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

    /// The config that was named, else each variant's defaults, where they hold.
    std::vector<Config> configs_of(const Instance& instance, bool asked) {
        if (request_.config.empty()) {
            std::vector<Config> configs;
            for (const Variant& variant : instance.op().variants)
                if (const auto config = valid_config(instance, variant, {})) configs.push_back(*config);
            return configs;
        }
        Config named = config_from_text(request_.config);
        if (asked) {
            const Config config = complete_config(instance, named);
            named_variant_ = config.variant;
            return {config};
        }
        // It need not hold for every problem of the op's own list.
        const auto config = valid_config(instance, *instance.op().variant(named_variant_), named.values);
        return config ? std::vector{*config} : std::vector<Config>{};
    }

    /// The variant's defaults but for the values named; nullopt, and said, where that is not valid.
    std::optional<Config> valid_config(const Instance& instance, const Variant& variant,
                                       const std::vector<std::pair<std::string, Value>>& named) {
        std::optional<Config> config = instance.defaults_of(variant);
        std::string objection = "needs " + variant.needs.text();
        if (config) {
            for (auto& [name, value] : config->values)
                if (const auto given = std::ranges::find(named, name, &std::pair<std::string, Value>::first);
                    given != named.end())
                    value = given->second;
            objection = instance.objection(*config).value_or("");
            if (objection.empty()) return config;
        }
        console_.result(fmt::format("  {:<14} not valid for this problem: {}", variant.name, objection));
        return std::nullopt;
    }

    void heading(const Instance& instance) {
        console_.result(fmt::format("{} {}", instance.op().name, instance.problem().text()));
    }

    void row(const Instance& instance, const Config& config, const Outcome& o) {
        const bool ok = o.ok() || o.ending == Ending::dropped;
        failed_ = failed_ || !ok;
        checked_ = true;
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
    std::string named_variant_;  ///< of the config that was named, which may leave it out
    bool failed_ = false, checked_ = false;
};

}  // namespace

int run_check(const Request& request, Console& console) { return CheckCommand{request, console}.run(); }

}  // namespace autotune

#include "cache/store/trials.h"

#include <fmt/core.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "cache/store/crc32.h"
#include "cache/store/entities.h"
#include "cache/store/json.h"
#include "cache/store/shared_rows.h"
#include "tuner/model/counters_json.h"

namespace autotune {

using nlohmann::json;

namespace {

constexpr std::size_t longest_log = 64 * 1024;

std::span<const std::byte> bytes_of(const std::vector<double>& samples) { return std::as_bytes(std::span{samples}); }

std::vector<double> samples_from(std::span<const std::byte> bytes) {
    std::vector<double> samples(bytes.size() / sizeof(double));
    if (!samples.empty()) std::memcpy(samples.data(), bytes.data(), samples.size() * sizeof(double));
    return samples;
}

json facts_of(const Outcome& o) {
    json facts = {{"reason", o.reason},
                  {"method", o.method},
                  {"max_error", o.max_error},
                  {"compile_ms", o.compile_ms},
                  {"check_ms", o.check_ms},
                  {"time_ms", o.time_ms},
                  {"registers", o.registers},
                  {"spill_bytes", o.spill_bytes},
                  {"shared_bytes", o.shared_bytes},
                  {"blocks_per_sm", o.blocks_per_sm},
                  {"clock_mhz", o.clock_mhz},
                  {"time_us", o.time_us}};
    if (!o.counters.empty()) facts["counters"] = o.counters;
    return facts;
}

/// JSON writes what is not finite as null.
double number(const json& facts, const char* name) {
    const auto found = facts.find(name);
    return found != facts.end() && found->is_number() ? found->get<double>() : 0.0;
}

/// Those of another version, which may lack a sum, are left out.
void read_counters(const json& counters, Outcome& o) {
    try {
        counters.get_to(o.counters);
    } catch (const json::exception&) {
        o.counters.clear();
    }
}

void read_facts(const json& facts, Outcome& o) {
    o.reason = facts.value("reason", std::string{});
    o.method = facts.value("method", std::string{});
    o.max_error = number(facts, "max_error");
    o.compile_ms = number(facts, "compile_ms");
    o.check_ms = number(facts, "check_ms");
    o.time_ms = number(facts, "time_ms");
    o.time_us = number(facts, "time_us");
    o.registers = facts.value("registers", 0);
    o.spill_bytes = facts.value("spill_bytes", 0);
    o.shared_bytes = facts.value("shared_bytes", 0);
    o.blocks_per_sm = facts.value("blocks_per_sm", 0);
    o.clock_mhz = number(facts, "clock_mhz");
    if (const auto counters = facts.find("counters"); counters != facts.end()) read_counters(*counters, o);
}

std::uint32_t crc_of_trial(std::string_view config_hash, std::string_view ending, std::span<const std::byte> samples,
                           std::string_view facts, bool predicted, bool tainted) {
    return Crc32{}
        .add(crc32(config_hash))
        .add(crc32(ending))
        .add(samples)
        .add(crc32(facts))
        .add(predicted)
        .add(tainted)
        .value();
}

}  // namespace

void put_trial(Database& trials, RunId run, std::int64_t source, std::string_view op, const StoredTrial& trial) {
    const Outcome& outcome = trial.outcome;
    const std::string facts = facts_of(outcome).dump(-1, ' ', false, json::error_handler_t::replace);
    const std::string_view ending = info(outcome.ending).name;
    const std::int64_t config = intern(trials, op, trial.config);
    trials
        .query(
            "INSERT INTO trial (run, config, template, ordinal, outcome, time_ns, samples, predicted, tainted, ended, "
            "facts_json, log, crc) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13) ON CONFLICT DO UPDATE SET "
            "template = ?3, outcome = ?5, time_ns = ?6, samples = ?7, predicted = ?8, tainted = ?9, ended = ?10, "
            "facts_json = ?11, log = ?12, crc = ?13")
        .bind(run, config, source, trial.ordinal, ending, nanoseconds(outcome.time_us), bytes_of(outcome.samples_us),
              outcome.predicted, outcome.tainted, trial.ended, facts,
              std::string_view{outcome.log}.substr(0, longest_log),
              crc_of_trial(trial.config.hash(), ending, bytes_of(outcome.samples_us), facts, outcome.predicted,
                           outcome.tainted))
        .run();
}

std::vector<std::string> faults_of_trials(Database& trials) {
    std::vector<std::string> faults;
    Entities entities{trials};
    Query row =
        trials.query("SELECT config, outcome, samples, predicted, tainted, facts_json, crc, run, ordinal FROM trial");
    while (row.step()) {
        const auto* config = entities.config(row.integer(0));
        const bool sound =
            config && crc_of_trial(config->hash, row.text(1), row.blob(2), row.text(5), row.integer(3) != 0,
                                   row.integer(4) != 0) == static_cast<std::uint32_t>(row.integer(6));
        if (!sound)
            faults.push_back(fmt::format("the checksum of trial {} of run {} fails", row.integer(8), row.integer(7)));
    }
    return faults;
}

void scan_trials(Database& trials, RunId run, const std::function<void(const TrialRow&)>& sink, std::int64_t ordinal) {
    Entities entities{trials};
    Query row = trials.query(
        "SELECT config, template, ordinal, outcome, samples, predicted, tainted, ended, facts_json, log, crc FROM "
        "trial "
        "WHERE run = ?1 AND ?2 IN (0, ordinal) ORDER BY ordinal");
    row.bind(run, ordinal);
    while (row.step()) {
        const auto* config = entities.config(row.integer(0));
        const std::optional<Ending> ending = ending_named(row.text(3));
        if (!config || !ending) continue;
        const bool predicted = row.integer(5) != 0, tainted = row.integer(6) != 0;
        if (crc_of_trial(config->hash, row.text(3), row.blob(4), row.text(8), predicted, tainted) !=
            static_cast<std::uint32_t>(row.integer(10)))
            continue;
        TrialRow out{
            .source = row.integer(1),
            .trial = {
                .ordinal = static_cast<std::size_t>(row.integer(2)), .config = config->value, .ended = row.integer(7)}};
        Outcome& outcome = out.trial.outcome;
        read_facts(json::parse(row.text(8)), outcome);
        outcome.ending = *ending;
        outcome.samples_us = samples_from(row.blob(4));
        outcome.predicted = predicted;
        outcome.tainted = tainted;
        outcome.log = row.text(9);
        sink(out);
    }
}

}  // namespace autotune

#include "cache/sharing/anonymise.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "cache/store/rows.h"

namespace autotune {

namespace {

/// What searches, checks and operating systems are called here.
constexpr std::array<std::string_view, 44> our_words{
    "guided",   "bayesian",   "portfolio", "local", "genetic", "differential", "swarm",    "annealing", "halving",
    "random",   "exhaustive", "model",     "then",  "verify",  "online",       "recorded", "values",    "device",
    "anchored", "CPU",        "fp64",      "the",   "config",  "that",         "ran",      "before",    "reference",
    "free",     "locked",     "cold",      "warm",  "graph",   "events",       "modelled", "Linux",     "x86_64",
    "aarch64",  "ms",         "s",         "m",     "h",       "atol",         "rtol",     "eager"};

bool is_number(std::string_view word) {
    const std::size_t unit = std::min(word.find_first_not_of("0123456789.e+-"), word.size());
    const std::string_view rest = word.substr(unit);
    return unit > 0 && (rest.empty() || rest == "s" || rest == "m" || rest == "h" || rest == "ms");
}

/// The text where it is made of known words and numbers, else nothing.
std::string known(const std::string& text) {
    constexpr std::string_view between = " ,:{}\"";
    std::string_view rest = text;
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find_first_of(between), rest.size());
        const std::string_view word = rest.substr(0, end);
        if (!word.empty() && !is_number(word) && std::ranges::find(our_words, word) == our_words.end()) return {};
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return text;
}

void anonymise(RunInfo& run) {
    run.host_hash.clear();
    for (std::string* text :
         {&run.strategy, &run.budget, &run.clock_policy, &run.l2_policy, &run.method, &run.reference, &run.tolerance})
        *text = known(*text);
}

/// Nothing where it is no version: others could have written anything there.
void keep_version(std::string& text) {
    if (text.find_first_not_of("0123456789.") != std::string::npos) text.clear();
}

void anonymise(Environment& environment) {
    keep_version(environment.driver);
    keep_version(environment.tool_version);
    environment.os = known(environment.os);
}

std::vector<std::int64_t> ids_of(Database& db, std::string_view sql) {
    std::vector<std::int64_t> ids;
    Query row = db.query(sql);
    while (row.step()) ids.push_back(row.integer(0));
    return ids;
}

/// Two that differed in such a text alone become one.
void anonymise_environments(Database& db) {
    Entities entities{db};
    for (const std::int64_t id : ids_of(db, "SELECT id FROM env")) {
        const auto* there = entities.environment(id);
        if (!there) continue;
        Environment environment = there->value;
        anonymise(environment);
        if (environment == there->value) continue;
        const std::int64_t to = intern(db, environment);
        db.query("UPDATE run SET env = ?1 WHERE env = ?2").bind(to, id).run();
        db.query("UPDATE OR REPLACE negative SET env = ?1 WHERE env = ?2").bind(to, id).run();
        db.query("DELETE FROM env WHERE id = ?").bind(id).run();
    }
}

void anonymise_runs(Database& db) {
    Entities entities{db};
    for (const std::int64_t id : ids_of(db, "SELECT id FROM run")) {
        const auto* there = entities.run(id);
        if (!there) continue;
        RunInfo run = there->info;
        anonymise(run);
        db.query(
              "UPDATE run SET host_hash = ?, strategy = ?, budget = ?, clock_policy = ?, l2_policy = ?, graph_mode = "
              "?, reference = ?, tolerance = ? WHERE id = ?")
            .bind(run.host_hash, run.strategy, run.budget, run.clock_policy, run.l2_policy, run.method, run.reference,
                  run.tolerance, id)
            .run();
    }
}

}  // namespace

void anonymise(DeviceIdentity& device) {
    device.name = model_of(device);
    if (device.mig.find_first_not_of("MIG 0123456789g.b+me") != std::string::npos) device.mig.clear();
    keep_version(device.driver);
    device.pci_id.clear();
    device.uuid.clear();
}

void anonymise(Record& record) {
    anonymise(record.run);
    anonymise(record.environment);
    anonymise(record.device);
    record.source.manifest.clear();
}

void anonymise(Database& db) {
    Entities entities{db};
    for (const std::int64_t id : ids_of(db, "SELECT id FROM device")) {
        const auto* there = entities.device(id);
        if (!there) continue;
        DeviceIdentity device = there->value;
        anonymise(device);
        describe(db, id, device);
    }
    anonymise_runs(db);
    anonymise_environments(db);
    db.execute("UPDATE template SET manifest_json = '{}'");
}

}  // namespace autotune

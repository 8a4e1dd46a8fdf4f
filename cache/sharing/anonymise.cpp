#include "cache/sharing/anonymise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "cache/store/crc32.h"
#include "cache/store/entities.h"
#include "cache/store/shared_rows.h"

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

/// Of a checksum that has a setting's share in it: `change` is that of the old one and that of the new.
std::string changed_crc(std::uint32_t change) {
    // SQL has no exclusive or.
    return fmt::format("(crc | {0}) - (crc & {0})", short_crc(change));
}

/// Two that differed in such a text alone become one.
void anonymise_settings(Database& db) {
    Entities entities{db};
    for (const std::int64_t id : ids_of(db, "SELECT id FROM setting")) {
        const auto* there = entities.setting(id);
        const auto* device = there ? entities.device(there->device) : nullptr;
        const auto* environment = there ? entities.environment(there->environment) : nullptr;
        if (!device || !environment) continue;
        Environment told = environment->value;
        RunInfo run = there->info;
        anonymise(told);
        anonymise(run);
        run.origin = there->local ? "local" : "import";
        const SharedRow to = intern_setting(
            db, {.device = there->device, .environment = intern(db, told), .predicted = there->predicted, .run = run},
            device->hash, told.hash());
        if (to.id == id) continue;
        for (const char* table : {"run", "record"})
            db.execute(fmt::format("UPDATE {} SET setting = {}, crc = {} WHERE setting = {}", table, to.id,
                                   changed_crc(there->crc ^ to.crc), id)
                           .c_str());
        db.query("DELETE FROM setting WHERE id = ?").bind(id).run();
    }
}

/// Of those that a negative names, too.
void anonymise_environments(Database& db) {
    Entities entities{db};
    for (const std::int64_t id : ids_of(db, "SELECT id FROM env")) {
        const auto* there = entities.environment(id);
        if (!there) continue;
        Environment environment = there->value;
        anonymise(environment);
        if (environment == there->value) continue;
        db.query("UPDATE OR REPLACE negative SET env = ?1 WHERE env = ?2").bind(intern(db, environment), id).run();
        db.query("DELETE FROM env WHERE id = ?").bind(id).run();
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
    anonymise_settings(db);
    anonymise_environments(db);
    db.execute("UPDATE template SET manifest_json = '{}'");
}

}  // namespace autotune

#include <algorithm>
#include <set>
#include <tuple>

#include "cache/store/store_impl.h"
#include "cache/store/trials.h"

namespace autotune {

namespace {

void check_references(Database& tune, std::vector<std::string>& faults) {
    Query row = tune.query("SELECT \"table\", parent, count(*) FROM pragma_foreign_key_check GROUP BY 1, 2");
    while (row.step())
        faults.push_back(fmt::format("{} of '{}' speak of rows of '{}' that are not there",
                                     row.integer(2) == 1 ? "1 row" : fmt::format("{} rows", row.integer(2)),
                                     row.text(0), row.text(1)));
}

/// Rows that many records share; one that cannot be read, or does not fit its hash, makes all its records misses.
void check_hashes(Database& tune, std::vector<std::string>& faults) {
    Entities entities{tune};
    const auto check_all = [&](const char* table, const char* fault, const auto& is_sound) {
        std::vector<std::int64_t> ids;
        {
            Query row = tune.query(fmt::format("SELECT id FROM {}", table));
            while (row.step()) ids.push_back(row.integer(0));
        }
        for (const std::int64_t id : ids)
            if (!is_sound(id)) faults.push_back(fmt::format("row {} of '{}' {}", id, table, fault));
    };
    constexpr const char *hash = "does not fit its hash", *crc = "fails its checksum";
    check_all("config", hash, [&](std::int64_t id) { return entities.config(id) != nullptr; });
    check_all("template", hash, [&](std::int64_t id) { return entities.source(id) != nullptr; });
    check_all("env", hash, [&](std::int64_t id) { return entities.environment(id) != nullptr; });
    check_all("device", crc, [&](std::int64_t id) { return entities.device(id) != nullptr; });
    check_all("form", crc, [&](std::int64_t id) { return entities.form(id) != nullptr; });
    check_all("setting", hash, [&](std::int64_t id) { return entities.setting(id) != nullptr; });
    Query row = tune.query("SELECT uuid FROM run");
    while (row.step()) {
        const auto uuid = uuid_of(row.blob(0));
        if (!uuid)
            faults.emplace_back("the uuid of a run is none");
        else if (!Entities{tune}.run(*uuid))
            faults.push_back(fmt::format("run {} fails its checksum", text_of(*uuid)));
    }
}

/// Of one problem on one device, in a dispatcher's order. A predicted time has no noise: the least is the best, also by
/// less than compare() tells apart, and of equal ones that which its search put first.
bool predicted_better(const Record& a, const Record& b) {
    const auto rank = [](const Record& r) {
        return std::tuple{
            r.verified == Verified::elsewhere,       !r.fresh(), -r.environment.emulator, r.time_us, r.id.rank,
            r.config.variant + ' ' + r.config.hash()};
    };
    return rank(a) < rank(b);
}

}  // namespace

void Store::scan(const RecordQuery& query, const Today& today,
                 const std::function<void(const RecordView&)>& sink) const {
    impl_->ask([&] {
        const auto broken = [&](const RecordKey& key) {
            if (!query.waiting) impl_->broken.push_back(key);
        };
        scan_records(impl_->tune(), query, today, sink, broken, query.waiting ? Seat::beside : Seat::standing);
    });
}

std::vector<Record> Store::records(const RecordQuery& query, const Today& today) const {
    std::vector<Record> records;
    scan(query, today, [&](const RecordView& view) {
        Record record = to_record(view);
        if (matches(query.where, record.problem)) records.push_back(std::move(record));
    });
    std::stable_sort(records.begin(), records.end(), [&](const Record& a, const Record& b) {
        if (a.source.op != b.source.op) return a.source.op < b.source.op;
        if (a.id.problem != b.id.problem) return a.id.problem < b.id.problem;
        if (a.id.device != b.id.device) return a.id.device < b.id.device;
        return query.predicted ? predicted_better(a, b) : better(a, b);
    });
    if (query.winners_only)
        records.erase(std::unique(records.begin(), records.end(),
                                  [](const Record& a, const Record& b) {
                                      return a.id.problem == b.id.problem && a.id.device == b.id.device;
                                  }),
                      records.end());
    return records;
}

std::size_t Store::left_out() const { return std::set<RecordKey>{impl_->broken.begin(), impl_->broken.end()}.size(); }

std::optional<Record> Store::record(const RecordKey& key, const Today& today) const {
    std::optional<Record> record = impl_->ask([&] { return record_at(impl_->tune(), key); });
    if (record) record->stale = stale_reason(record->source, record->environment, today);
    return record;
}

std::vector<std::pair<int, int>> Store::compilers() const {
    return impl_->ask([&]() -> std::vector<std::pair<int, int>> {
        std::vector<std::pair<int, int>> versions;
        Query row = impl_->tune().query(
            "SELECT DISTINCT nvrtc_major, nvrtc_minor FROM env WHERE nvrtc_major > 0 ORDER BY 1 DESC, 2 DESC");
        while (row.step()) versions.emplace_back(static_cast<int>(row.integer(0)), static_cast<int>(row.integer(1)));
        return versions;
    });
}

std::vector<Negative> Store::negatives(std::string_view op, std::string_view device_fp) const {
    return impl_->ask([&]() -> std::vector<Negative> {
        std::vector<Negative> negatives;
        Entities entities{impl_->tune()};
        Query row = impl_->tune().query(
            "SELECT n.template, n.config, n.outcome, n.form, n.env, n.numbers FROM negative n JOIN device d ON d.id = "
            "n.device JOIN template t ON t.id = n.template WHERE t.op = ? AND d.fp = ?");
        row.bind(op, device_fp);
        while (row.step()) {
            const auto* source = entities.source(row.integer(0));
            const auto* config = entities.config(row.integer(1));
            const auto ending = ending_named(row.text(2));
            const auto* environment = entities.environment(row.integer(4));
            const auto* form = row.integer(3) == 0 ? nullptr : entities.form(row.integer(3));
            if (!source || !config || !ending || !environment) continue;
            std::vector<std::byte> key;
            if (row.integer(3) != 0 && (!form || !form->form.put_together(text_of_blob(row.blob(5)), key))) continue;
            negatives.push_back({.device_fp = std::string{device_fp},
                                 .source = source->value,
                                 .problem_key = std::move(key),
                                 .config = config->value,
                                 .ending = *ending,
                                 .environment = environment->value});
        }
        return negatives;
    });
}

namespace {

std::optional<StoredRun> stored_run(Entities& entities, const Entities::RunRow* run, Database& trials) {
    if (!run) return std::nullopt;
    const auto* device = entities.device(run->device);
    const auto* environment = entities.environment(run->environment);
    auto problem = entities.problem(run->problem);
    if (!device || !environment || !problem) return std::nullopt;
    StoredRun out{.id = run->number.value_or(0),
                  .info = run->info,
                  .device = device->value,
                  .environment = environment->value,
                  .problem = std::move(*problem),
                  .finished = run->info.ended != 0};
    out.device.emulated = run->predicted;
    if (run->number)
        out.trials = static_cast<std::size_t>(
            trials.integer_of("SELECT count(*) FROM trial WHERE run = ?", *run->number).value_or(0));
    return out;
}

}  // namespace

std::optional<StoredRun> Store::run(RunId id) const {
    return impl_->ask([&] {
        Entities entities{impl_->tune()};
        return stored_run(entities, entities.run(id), impl_->trials());
    });
}

std::vector<StoredRun> Store::runs(std::string_view op) const {
    return impl_->ask([&]() -> std::vector<StoredRun> {
        std::vector<RunUuid> uuids;
        {
            Query row = impl_->tune().query(
                "SELECT r.uuid FROM run r JOIN form f ON f.id = r.form WHERE ?1 IN ('', f.op) ORDER BY r.number DESC, "
                "r.started DESC, r.uuid");
            row.bind(op);
            while (row.step()) uuids.push_back(uuid_of(row.blob(0)).value_or(RunUuid{}));
        }
        Entities entities{impl_->tune()};
        std::vector<StoredRun> runs;
        for (const RunUuid& uuid : uuids)
            if (auto found = stored_run(entities, entities.run(uuid), impl_->trials()))
                runs.push_back(std::move(*found));
        return runs;
    });
}

std::vector<StoredTrial> Store::trials(RunId run) const {
    return impl_->ask([&]() -> std::vector<StoredTrial> {
        std::vector<StoredTrial> trials;
        scan_trials(impl_->trials(), run, [&](const TrialRow& row) { trials.push_back(row.trial); });
        return trials;
    });
}

std::optional<StoredTrial> Store::trial(RunId run, std::size_t ordinal) const {
    return impl_->ask([&]() -> std::optional<StoredTrial> {
        std::optional<StoredTrial> found;
        if (ordinal == 0) return found;
        scan_trials(
            impl_->trials(), run, [&](const TrialRow& row) { found = row.trial; }, static_cast<std::int64_t>(ordinal));
        return found;
    });
}

std::map<std::string, std::int64_t> Store::row_counts() const {
    return impl_->ask([&]() -> std::map<std::string, std::int64_t> {
        std::map<std::string, std::int64_t> counts;
        for (const char* table : {"device", "env", "template", "form", "config", "setting", "run", "record", "negative",
                                  "predicted", "import_log"})
            counts[table] = impl_->tune().integer_of(fmt::format("SELECT count(*) FROM {}", table)).value_or(0);
        counts["trial"] = impl_->trials().integer_of("SELECT count(*) FROM trial").value_or(0);
        return counts;
    });
}

std::vector<std::string> Store::check() const {
    std::vector<std::string> faults;
    for (Database* database : {&impl_->tune(), &impl_->trials()}) {
        const char* which = database == &impl_->tune() ? "tune" : "trials";
        try {
            Query row = database->query("PRAGMA integrity_check(20)");
            while (row.step())
                if (row.text(0) != "ok") faults.push_back(fmt::format("{}: {}", which, row.text(0)));
        } catch (const DatabaseFailure& failure) {
            faults.push_back(fmt::format("{}: {}", which, failure.what()));
        }
    }
    if (!faults.empty()) return faults;
    return impl_->ask([&] {
        check_references(impl_->tune(), faults);
        check_hashes(impl_->tune(), faults);
        scan_records(
            impl_->tune(), {}, {}, [](const RecordView&) {},
            [&](const RecordKey& key) {
                faults.push_back(fmt::format("the checksum of record {} fails", key.text()));
            });
        scan_records(
            impl_->tune(), {}, {}, [](const RecordView&) {},
            [&](const RecordKey& key) {
                faults.push_back(fmt::format("the checksum of a row that waits beside record {} fails", key.text()));
            },
            Seat::beside);
        const std::vector<std::string> of_trials = faults_of_trials(impl_->trials());
        faults.insert(faults.end(), of_trials.begin(), of_trials.end());
        return faults;
    });
}

}  // namespace autotune

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "autotune/error.h"
#include "cache/store/location.h"
#include "cache/store/migration.h"
#include "cache/store/opening.h"
#include "cache/store/rows.h"
#include "cache/store/schema.h"
#include "cache/store/store_impl.h"
#include "cache/store/trials.h"
#include "cache/store/upkeep.h"

namespace autotune {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t batch_size = 1000;

/// A view or trigger could make reading do anything, so there may be none.
Database open_broken(const fs::path& path) {
    Database database = Database::open_damaged(path);
    const auto others =
        database.integer_of("SELECT count(*) FROM sqlite_schema WHERE type NOT IN ('table', 'index') OR rootpage < 1");
    if (others.value_or(0) != 0)
        throw Error{Error::Kind::usage, fmt::format("'{}' holds more than autotune's tables", shown(path)),
                    "nothing of it can be taken safely"};
    return database;
}

/// Carries rows over, with ids of the new file for those of the broken one.
class Salvage {
public:
    Salvage(Database& from, Store::Impl& to) : from_{from}, to_{to}, entities_{from} {}

    Salvaged run(Database* trials) {
        copy_imports();
        copy_runs();
        copy_records();
        copy_predictions();
        copy_negatives();
        copy_descriptions();
        if (trials) copy_trials(*trials);
        return out_;
    }

private:
    /// Reads until the end or until a broken page; false: that.
    template <class Read>
    bool read_on(const Read& read) {
        try {
            read();
            return true;
        } catch (const DatabaseFailure& failure) {
            if (!failure.corrupt() && !failure.refused()) throw;  // the new file's disk is full, say
            out_.cut_off = true;
            return false;
        }
    }

    std::vector<std::int64_t> ids_of(const char* table) {
        std::vector<std::int64_t> ids;
        for (const char* order : {"ASC", "DESC"}) {  // a broken page in the middle is met from both sides
            const bool whole = read_on([&] {
                Query row = from_.query(fmt::format("SELECT id FROM {} NOT INDEXED ORDER BY id {}", table, order));
                while (row.step()) ids.push_back(row.integer(0));
            });
            if (whole) break;
        }
        std::sort(ids.begin(), ids.end());
        ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
        return ids;
    }

    /// With their numbers, which rows name.
    void copy_imports() {
        const std::vector<std::int64_t> ids = ids_of("import_log");
        to_.write(false, [&] {
            for (const std::int64_t id : ids) read_on([&] { copy_import(id); });
        });
    }

    void copy_import(std::int64_t id) {
        Query row = from_.query(
            "SELECT source_uuid, sha256, \"when\", policy, rows_in, accepted, rejected_json FROM import_log WHERE id = "
            "?");
        row.bind(id);
        if (!row.step()) return;
        to_.tune()
            .query(
                "INSERT OR REPLACE INTO import_log (id, source_uuid, sha256, \"when\", policy, rows_in, accepted, "
                "rejected_json) VALUES (?,?,?,?,?,?,?,?)")
            .bind(id, row.text(0), row.text(1), row.integer(2),
                  !tells_imports_ && row.text(3) == "merge" ? old_merge : row.text(3), row.integer(4), row.integer(5),
                  row.text(6))
            .run();
    }

    /// Where the line of an import is lost, one that says only its number lets its rows be taken out.
    void require_import(std::int64_t id) {
        if (id > 0)
            to_.tune()
                .query(
                    "INSERT INTO import_log (id, source_uuid, sha256, \"when\", policy, rows_in, accepted, "
                    "rejected_json) VALUES (?,'','',0,'import',0,0,'{}') ON CONFLICT DO NOTHING")
                .bind(id)
                .run();
    }

    /// Who brought a run or a row. In schema 1 only the origin of its run says so.
    std::int64_t import_of(std::int64_t told, const RunInfo& run) const {
        constexpr std::string_view before = "import:";
        if (tells_imports_ || !run.origin.starts_with(before)) return told;
        std::int64_t id = 0;
        std::from_chars(run.origin.data() + before.size(), run.origin.data() + run.origin.size(), id);
        return id;
    }

    /// What imports called GPUs.
    void copy_descriptions() {
        if (!tells_imports_) return;
        to_.write(false, [&] {
            read_on([&] {
                Query row = from_.query(
                    "SELECT device, import, name, vendor, core_khz, mig, ecc, pci_id, attrs_json FROM device_beside");
                while (row.step()) {
                    const auto* device = entities_.device(row.integer(0));
                    if (!device) continue;
                    require_import(row.integer(1));
                    to_.tune()
                        .query(
                            "INSERT OR REPLACE INTO device_beside (device, import, name, vendor, core_khz, mig, ecc, "
                            "pci_id, attrs_json) VALUES (?,?,?,?,?,?,?,?,?)")
                        .bind(intern(to_.tune(), device->value), row.integer(1), row.text(2), row.text(3),
                              row.integer(4), row.text(5), row.integer(6), row.text(7), row.text(8))
                        .run();
                }
            });
        });
    }

    void copy_runs() {
        const std::vector<std::int64_t> ids = ids_of("run");
        to_.write(false, [&] {
            for (const std::int64_t id : ids) copy_run(id);
        });
        out_.runs = runs_.size();
        out_.unreadable += ids.size() - runs_.size();
    }

    void copy_run(std::int64_t id) {
        const auto* run = entities_.run(id);
        const auto* device = run ? entities_.device(run->device) : nullptr;
        const auto* environment = run ? entities_.environment(run->environment) : nullptr;
        std::optional<ProblemIdentity> problem;
        if (run) read_on([&] { problem = entities_.problem(run->problem); });
        if (!device || !environment || !problem) return;
        std::int64_t told = 0;
        if (tells_imports_)
            read_on([&] { told = from_.integer_of("SELECT import FROM run WHERE id = ?", id).value_or(0); });
        Database& db = to_.tune();
        const auto there = db.integer_of("SELECT id FROM run WHERE uuid = ?", run->info.uuid);
        runs_[id] = there ? *there
                          : insert_run(db, run->info, intern(db, device->value), intern(db, environment->value),
                                       intern(db, *problem), run->predicted, import_of(told, run->info));
        require_import(import_of(told, run->info));
    }

    void put(std::int64_t import, std::vector<Record>& records) {
        if (records.empty()) return;
        to_.write(false, [&] {
            require_import(import);
            to_.put_rows(records, import);
        });
        records.clear();
    }
    void put_rest() {
        for (auto& [import, records] : batches_) put(import, records);
    }

    void take(const RecordView& view, std::size_t& counter) {
        const std::int64_t import = import_of(view.import, *view.run);
        std::vector<Record>& batch = batches_[import];
        try {
            batch.push_back(to_record(view));
            ++counter;
        } catch (const std::exception&) {
            ++out_.unreadable;  // its problem's text is damaged
        }
        if (batch.size() >= batch_size) put(import, batch);
    }

    void copy_records() {
        copy_records(Seat::standing, out_.records);
        if (tells_imports_) copy_records(Seat::beside, out_.waiting);
    }

    void copy_records(Seat seat, std::size_t& copied) {
        const std::size_t unreadable = out_.unreadable;
        const auto broken = [this](const RecordKey&) { ++out_.unreadable; };
        const Today nothing;
        const bool whole = read_on([&] {
            scan_records(
                from_, {}, nothing, [&](const RecordView& view) { take(view, copied); }, broken, seat);
        });
        put_rest();
        if (whole) return;
        // Behind a broken page the rows of each problem are looked for by their key.
        copied = 0;
        out_.unreadable = unreadable;
        for (const std::int64_t device : ids_of("device"))
            for (const std::int64_t source : ids_of("template"))
                for (const std::int64_t problem : ids_of("problem"))
                    read_on([&] {
                        scan_problem(
                            from_, {.device = device, .source = source, .problem = problem},
                            [&](const RecordView& view) { take(view, copied); }, broken, seat);
                    });
        put_rest();
    }

    void copy_predictions() {
        copy_predictions(Seat::standing, out_.predictions);
        if (tells_imports_) copy_predictions(Seat::beside, out_.waiting);
    }

    void copy_predictions(Seat seat, std::size_t& copied) {
        read_on([&] {
            scan_records(
                from_, {.predicted = true}, {}, [&](const RecordView& view) { take(view, copied); },
                [](const RecordKey&) {}, seat);
        });
        put_rest();
    }

    void copy_negatives() {
        to_.write(false, [&] {
            out_.negatives = 0;
            std::size_t met = 0;
            read_on([&] {
                Query row = from_.query("SELECT device, template, config, problem, env, outcome, run FROM negative");
                for (; row.step(); ++met) out_.negatives += copy_negative(row) ? 1 : 0;
            });
            out_.unreadable += met - out_.negatives;
        });
    }

    /// The run of a refusal; one that an application met has none.
    std::optional<std::int64_t> new_run(const Query& negative) const {
        const auto run = negative.null(6) ? runs_.end() : runs_.find(negative.integer(6));
        return run == runs_.end() ? std::nullopt : std::optional{run->second};
    }

    bool copy_negative(const Query& row) {
        const auto* device = entities_.device(row.integer(0));
        const auto* source = entities_.source(row.integer(1));
        const auto* config = entities_.config(row.integer(2));
        const auto* environment = entities_.environment(row.integer(4));
        std::optional<ProblemIdentity> problem;
        const bool of_all_problems = row.integer(3) == 0;
        if (!of_all_problems) read_on([&] { problem = entities_.problem(row.integer(3)); });
        if (!device || !source || !config || !environment || !ending_named(row.text(5))) return false;
        if (!of_all_problems && !problem) return false;
        Database& db = to_.tune();
        db.query(
              "INSERT OR REPLACE INTO negative (device, template, config, problem, env, outcome, run) VALUES "
              "(?,?,?,?,?,?,?)")
            .bind(intern(db, device->value), intern(db, source->value), intern(db, source->value.op, config->value),
                  problem ? intern(db, *problem) : 0, intern(db, environment->value), row.text(5), new_run(row))
            .run();
        return true;
    }

    void copy_trials(Database& trials) {
        to_.write(false, [&] {
            for (const std::int64_t id : ids_of("template"))
                if (const auto* source = entities_.source(id)) sources_[id] = intern(to_.tune(), source->value);
        });
        to_.write(true, [&] {
            out_.trials = 0;
            for (const auto& [old_run, new_run] : runs_) {
                const auto problem = to_.tune().integer_of("SELECT problem FROM run WHERE id = ?", new_run);
                read_on([&, from = old_run, to = new_run] {
                    scan_trials(trials, from, [&](const TrialRow& row) {
                        const auto source = sources_.find(row.source);
                        if (source == sources_.end() || !problem) return;
                        put_trial(to_.trials(), to, *problem, source->second, entities_.source(row.source)->value.op,
                                  row.trial);
                        ++out_.trials;
                    });
                });
            }
        });
    }

    Database& from_;
    Store::Impl& to_;
    Entities entities_;
    Salvaged out_;
    const bool tells_imports_ = schema_of(from_) > 1;
    std::map<std::int64_t, std::vector<Record>> batches_;  ///< by who brought them
    std::map<std::int64_t, std::int64_t> runs_, sources_;  ///< ids of the new file by those of the broken one
};

std::optional<Database> trials_beside(const fs::path& from) {
    try {
        Database trials = open_broken(trials_path(from));
        return trials;
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

}  // namespace

Salvaged salvage(const fs::path& from, const fs::path& to) {
    std::error_code error;
    const FileKind kind = probe(from).kind;
    if (kind == FileKind::absent || kind == FileKind::unreadable)
        throw Error{Error::Kind::usage, fmt::format("'{}' cannot be read", shown(from)), "name a broken database"};
    if (fs::exists(to, error))
        throw Error{Error::Kind::usage, fmt::format("'{}' is there already", shown(to)), "name a new file"};
    if (kind == FileKind::foreign || kind == FileKind::newer)
        throw Error{Error::Kind::usage,
                    fmt::format("'{}' is {}", shown(from),
                                kind == FileKind::newer ? "of a newer autotune" : "no autotune database"),
                    "name a broken database of this version"};
    try {
        Database broken = open_broken(from);
        std::optional<Database> trials = trials_beside(from);
        Store store = Store::open({.path = to});
        return Upkeep::copy_readable(broken, trials ? &*trials : nullptr, store);
    } catch (const DatabaseFailure& failure) {
        throw Error{Error::Kind::store, fmt::format("nothing of '{}' can be read: {}", shown(from), failure.what())};
    }
}

Salvaged Upkeep::copy_readable(Database& from, Database* trials, Store& to) {
    return Salvage{from, *to.impl_}.run(trials);
}

}  // namespace autotune

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "autotune/error.h"
#include "cache/store/location.h"
#include "cache/store/opening.h"
#include "cache/store/rows.h"
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
        copy_runs();
        copy_records();
        copy_predictions();
        copy_negatives();
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
        Database& db = to_.tune();
        const auto there = db.integer_of("SELECT id FROM run WHERE uuid = ?", run->info.uuid);
        runs_[id] = there ? *there
                          : insert_run(db, run->info, intern(db, device->value), intern(db, environment->value),
                                       intern(db, *problem), run->predicted);
    }

    void put(std::vector<Record>& records) {
        if (records.empty()) return;
        to_.write(false, [&] { to_.put_rows(records); });
        records.clear();
    }

    void take(const RecordView& view, std::size_t& counter) {
        try {
            batch_.push_back(to_record(view));
            ++counter;
        } catch (const std::exception&) {
            ++out_.unreadable;  // its problem's text is damaged
        }
        if (batch_.size() >= batch_size) put(batch_);
    }

    void copy_records() {
        const auto broken = [this](const RecordKey&) { ++out_.unreadable; };
        const Today nothing;
        const bool whole = read_on([&] {
            scan_records(
                from_, {}, nothing, [&](const RecordView& view) { take(view, out_.records); }, broken);
        });
        put(batch_);
        if (whole) return;
        // Behind a broken page the rows of each problem are looked for by their key.
        out_.records = 0;
        out_.unreadable = 0;
        for (const std::int64_t device : ids_of("device"))
            for (const std::int64_t source : ids_of("template"))
                for (const std::int64_t problem : ids_of("problem"))
                    read_on([&] {
                        scan_problem(
                            from_, {.device = device, .source = source, .problem = problem},
                            [&](const RecordView& view) { take(view, out_.records); }, broken);
                    });
        put(batch_);
    }

    void copy_predictions() {
        read_on([&] {
            scan_records(
                from_, {.predicted = true}, {}, [&](const RecordView& view) { take(view, out_.predictions); },
                [](const RecordKey&) {});
        });
        put(batch_);
    }

    void copy_negatives() {
        to_.write(false, [&] {
            out_.negatives = 0;
            std::size_t met = 0;
            read_on([&] {
                Query row = from_.query("SELECT device, template, config, problem, env, outcome FROM negative");
                for (; row.step(); ++met) out_.negatives += copy_negative(row) ? 1 : 0;
            });
            out_.unreadable += met - out_.negatives;
        });
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
              "(?,?,?,?,?,?,NULL)")
            .bind(intern(db, device->value), intern(db, source->value), intern(db, source->value.op, config->value),
                  problem ? intern(db, *problem) : 0, intern(db, environment->value), row.text(5))
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
    std::vector<Record> batch_;
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

#include "cache/store/upkeep.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "cache/store/fold_lock.h"
#include "cache/store/location.h"
#include "cache/store/opening.h"
#include "cache/store/schema.h"
#include "cache/store/spool.h"
#include "cache/store/store_impl.h"

namespace autotune {

namespace fs = std::filesystem;

namespace {

std::uint64_t size_of(const fs::path& file) {
    std::error_code error;
    const auto size = fs::file_size(file, error);
    return error ? 0 : size;
}

std::uint64_t unused_bytes_of(Database& database) {
    return static_cast<std::uint64_t>(database.integer_of("PRAGMA freelist_count").value_or(0) *
                                      database.integer_of("PRAGMA page_size").value_or(0));
}

/// Ends a transaction whose changes were only counted.
struct NothingIsChanged {};

std::size_t removed_by(Database& database, std::string_view sql) {
    database.query(sql).run();
    return static_cast<std::size_t>(database.changes());
}

/// Later than that after everything stored, a clock is wrong rather than the database old.
constexpr std::int64_t longest_rest_s = std::int64_t{10} * 365 * 24 * 3600;

/// Of what the database speaks last; dates ahead of the clock do not count.
std::int64_t newest_date(Database& tune, std::int64_t now) {
    return tune
        .integer_of(
            "SELECT max(coalesce((SELECT max(tuned_at) FROM record WHERE tuned_at <= ?1), 0), coalesce((SELECT "
            "max(started) FROM run WHERE started <= ?1), 0))",
            now)
        .value_or(0);
}

bool is_known(const Today& today, std::string_view op) {
    return std::ranges::any_of(today.templates, [&](const TemplateIdentity& t) { return t.op == op; });
}

/// Whether rules take what is of that age; `named`: whether their kinds name it. Without kinds age alone decides.
bool takes(const PruneRules& rules, bool named, bool old) {
    const bool by_age_alone = !rules.trials && !rules.stale;
    return (named || (by_age_alone && rules.older_than)) && (!rules.older_than || old);
}

struct DoomedRecords {
    std::vector<RecordKey> named;                             ///< by a rule
    std::vector<RecordKey> damaged;                           ///< their keys may be, too
    std::vector<std::pair<RecordKey, std::int64_t>> waiting;  ///< with who brought them; by a rule
};
DoomedRecords doomed_records(Database& tune, const PruneRules& rules, const Today& today, std::int64_t before) {
    DoomedRecords doomed;
    const auto is_named = [&](const RecordView& view) {
        const bool stale = rules.stale && !view.stale.empty() && is_known(today, view.source->op);
        return takes(rules, stale, view.tuned_at < before);
    };
    scan_records(
        tune, {.with_problem = false}, today,
        [&](const RecordView& view) {
            if (is_named(view)) doomed.named.push_back(view.id);
        },
        [&](const RecordKey& key) { doomed.damaged.push_back(key); });
    scan_records(
        tune, {.with_problem = false}, today,
        [&](const RecordView& view) {
            if (is_named(view)) doomed.waiting.emplace_back(view.id, view.import);
        },
        [](const RecordKey&) {}, Seat::beside);
    return doomed;
}

/// In the place of a removed row the next of its key may stand, and be doomed as well. A damaged key may lead to a
/// sound row, which stays, or to none.
void remove_records(Store::Impl& impl, const PruneRules& rules, const Today& today, std::int64_t before, Pruned& out) {
    out.records = out.waiting = 0;
    for (;;) {
        const DoomedRecords doomed = doomed_records(impl.tune(), rules, today, before);
        std::size_t removed = 0;
        // First, so that none of them stands for a moment.
        for (const auto& [key, import] : doomed.waiting)
            out.waiting += Contest{impl.tune()}.remove_waiting(key, import) ? 1 : 0;
        for (const RecordKey& key : doomed.named) removed += impl.remove(key) ? 1 : 0;
        for (const RecordKey& key : doomed.damaged) removed += impl.remove_if_damaged(key) ? 1 : 0;
        out.records += removed;
        out.not_removed = doomed.named.size() + doomed.damaged.size() - removed;
        if (removed == 0) break;
    }
}

/// A "wrong result" dies with its template.
std::size_t remove_gone_negatives(Database& tune, const Today& today) {
    std::set<std::int64_t> gone;
    {
        Query row = tune.query("SELECT id, hash, op FROM template");
        while (row.step()) {
            const bool is_todays = std::ranges::any_of(
                today.templates, [&](const TemplateIdentity& t) { return t.hash() == row.text(1); });
            if (!is_todays && is_known(today, row.text(2))) gone.insert(row.integer(0));
        }
    }
    std::size_t count = 0;
    for (const std::int64_t id : gone) {
        tune.query("DELETE FROM negative WHERE template = ?").bind(id).run();
        count += static_cast<std::size_t>(tune.changes());
    }
    return count;
}

/// Rows that nothing refers to. A search under way holds ids of its run and templates, so these stay.
void remove_orphans(Database& tune, const std::set<std::int64_t>& runs_with_trials, Pruned& out) {
    std::vector<RunUuid> idle;
    {
        Query row = tune.query(
            "SELECT uuid, number FROM run WHERE ended <> 0 AND uuid NOT IN (SELECT run FROM record UNION SELECT run "
            "FROM record_beside UNION SELECT run FROM predicted UNION SELECT run FROM predicted_beside) AND (number IS "
            "NULL OR number NOT IN (SELECT run FROM negative WHERE run IS NOT NULL))");
        while (row.step())
            if (const auto uuid = uuid_of(row.blob(0)); uuid && !runs_with_trials.contains(row.integer(1)))
                idle.push_back(*uuid);
    }
    for (const RunUuid& uuid : idle)
        tune.query("DELETE FROM run WHERE uuid = ?").bind(std::span<const std::byte>{uuid}).run();
    out.runs = idle.size();
    constexpr std::string_view rows[] = {"record", "record_beside", "predicted", "predicted_beside", "negative"};
    const auto remove_unnamed = [&](std::string_view table, std::string_view column, std::string_view more) {
        std::string named;
        for (const std::string_view of : rows)
            if (column != "setting" || of.starts_with("record"))
                named += fmt::format("SELECT {} FROM {} UNION ", column, of);
        return removed_by(tune, fmt::format("DELETE FROM {} WHERE id NOT IN ({}{})", table, named, more));
    };
    out.configs = remove_unnamed("config", "config", "SELECT NULL WHERE false");
    remove_unnamed("setting", "setting", "SELECT setting FROM run");
    remove_unnamed("form", "form", "SELECT form FROM run");
}

}  // namespace

Statistics Upkeep::statistics(const Today& today) const {
    Store::Impl& impl = *store_.impl_;
    Statistics out{.rows = store_.row_counts()};
    if (const fs::path& path = impl.opened.path; !path.empty()) {
        out.bytes = size_of(path);
        out.trials_bytes = size_of(trials_path(path));
        out.spool_files = spool_files(spool_folder(path)).size();
    }
    std::map<std::pair<std::string, std::string>, std::pair<StoredGroup, std::set<ProblemRef>>> groups;
    store_.scan({.with_problem = false}, today, [&](const RecordView& view) {
        auto& [group, problems] = groups[{view.source->op, view.device->fp}];
        if (group.records++ == 0) {
            group.op = view.source->op;
            group.device_fp = view.device->fp;
            group.device_name = view.device->name;
            group.oldest = group.newest = view.tuned_at;
        }
        group.stale += view.stale.empty() ? 0 : 1;
        group.imported += view.order.local ? 0 : 1;
        group.oldest = std::min(group.oldest, view.tuned_at);
        group.newest = std::max(group.newest, view.tuned_at);
        problems.insert(view.id.problem);
    });
    for (auto& [key, value] : groups) {
        value.first.problems = value.second.size();
        out.groups.push_back(std::move(value.first));
    }
    return impl.ask([&] {
        Database& file = impl.on_disk ? *impl.on_disk : impl.tune();
        out.schema = static_cast<int>(file.integer_of("PRAGMA user_version").value_or(0));
        out.unused_bytes = unused_bytes_of(file);
        out.unused_trials_bytes = unused_bytes_of(impl.trials());
        return std::move(out);
    });
}

Pruned Upkeep::prune(const PruneRules& rules, const Today& today, bool dry_run) {
    Store::Impl& impl = *store_.impl_;
    const std::int64_t now = impl.now();
    const std::int64_t before = now - rules.older_than.value_or(0);
    if (rules.older_than) {
        const std::int64_t newest = impl.ask([&] { return newest_date(impl.tune(), now); });
        if (newest > 0 && now - newest > longest_rest_s)
            throw Error{Error::Kind::usage,
                        fmt::format("this computer's clock is {} years after the newest record in {}, so nothing is "
                                    "removed for its age",
                                    (now - newest) / (longest_rest_s / 10), impl.name()),
                        "set the clock, or prune by another rule"};
    }
    Pruned out;
    const auto in_transaction = [&](bool in_trials, const std::function<void()>& body) {
        try {
            impl.write(in_trials, [&] {
                body();
                if (dry_run) throw NothingIsChanged{};
            });
        } catch (const NothingIsChanged&) {
        }
    };
    std::set<std::int64_t> runs_with_trials, unfinished;
    in_transaction(true, [&] {
        // Now that no other can write a trial: a search that began before this one's turn has its run by then.
        unfinished.clear();
        {
            Query row = impl.tune().query("SELECT number FROM run WHERE ended = 0 AND number IS NOT NULL");
            while (row.step()) unfinished.insert(row.integer(0));
        }
        Database& db = impl.trials();
        std::vector<std::int64_t> doomed;
        {
            Query row = db.query("SELECT run, max(ended) FROM trial GROUP BY run");
            while (row.step()) {
                const bool old = row.integer(1) < before, aged = rules.older_than && old;
                const bool named = rules.trials && (aged || !unfinished.contains(row.integer(0)));
                if (takes(rules, named, old)) doomed.push_back(row.integer(0));
            }
        }
        out.trials = 0;
        for (const std::int64_t run : doomed) {
            db.query("DELETE FROM trial WHERE run = ?").bind(run).run();
            out.trials += static_cast<std::size_t>(db.changes());
        }
        if (!doomed.empty()) removed_by(db, "DELETE FROM config WHERE id NOT IN (SELECT config FROM trial)");
        runs_with_trials.clear();
        Query row = db.query("SELECT DISTINCT run FROM trial");
        while (row.step()) runs_with_trials.insert(row.integer(0));
    });
    in_transaction(false, [&] {
        Database& db = impl.tune();
        remove_records(impl, rules, today, before, out);
        impl.broken.clear();
        out.negatives = remove_gone_negatives(db, today);
        remove_orphans(db, runs_with_trials, out);
        impl.count_generation();
    });
    return out;
}

Compacted Upkeep::compact() {
    Store::Impl& impl = *store_.impl_;
    Compacted out;
    const fs::path path = impl.opened.path, trials = trials_path(path);
    out.bytes_before = size_of(path) + size_of(trials);
    if (impl.opened.where == Opened::Where::spool) {
        fold_shared(out);
    } else if (impl.opened.may_write) {
        out.folded = store_.fold_spools();
        for (const bool in_trials : {false, true}) {
            std::optional<WriterLock>& lock = in_trials ? impl.trials_lock : impl.tune_lock;
            const WriterTurn turn{*lock, impl.patience};
            if (!turn.held()) throw impl.locked_error(in_trials, lock->holder());
            try {
                Database& db = in_trials ? impl.trials() : impl.tune();
                db.execute("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
            } catch (const DatabaseFailure& failure) {
                throw impl.error_of(failure, "compacted", in_trials);
            }
        }
    } else {
        throw Error{Error::Kind::store, fmt::format("nothing can be compacted: {}", impl.why_not_kept()),
                    "name a database that you may write to with --db"};
    }
    out.bytes_after = size_of(path) + size_of(trials);
    return out;
}

/// SQLite's locks mean nothing between hosts, so no file that others read is ever changed: a new one with everything in
/// it takes its name. What the reader of this process had absorbed from the spool is in its copy already.
void Upkeep::fold_shared(Compacted& out) {
    Store::Impl& impl = *store_.impl_;
    const fs::path path = impl.opened.path;
    const FoldLock lock{path};
    const fs::path making = fmt::format("{}.new-{}-{}", path.string(), ::getpid(), random_uuid().substr(0, 8));
    std::vector<std::pair<fs::path, SpoolContents>> read;
    impl.read_spools([&](const fs::path& file, const SpoolContents& contents) { read.emplace_back(file, contents); });
    if (read.empty()) return;
    try {
        // Another process may have folded since this one copied the file, so it begins with what is there now.
        Store::Impl fresh{.options = impl.options, .opened = open_for_folding(path, making, impl.options)};
        {
            Transaction transaction{fresh.tune()};
            for (const auto& [file, contents] : read) {
                fresh.put_rows(contents.records);
                out.folded += contents.records.size();
            }
            fresh.count_generation();
            transaction.commit();
        }
        fresh.tune().execute("VACUUM; PRAGMA journal_mode = DELETE");
    } catch (const DatabaseFailure& failure) {
        remove_database(making);
        throw impl.error_of(failure, "compacted");
    }
    if (!put_in_place(making, path)) {
        remove_database(making);
        throw Error{Error::Kind::store, fmt::format("'{}' could not be replaced by its compacted copy", shown(path)),
                    "see whether the folder may be written to"};
    }
    for (const auto& [file, contents] : read) {
        std::error_code error;
        if (contents.refused == 0)
            fs::remove(file, error);
        else
            set_spool_aside(file);
    }
}

std::vector<std::string> faults_of(const fs::path& database) {
    const FileProbe found = probe(database);
    const std::string name = shown(database);
    switch (found.kind) {
        case FileKind::absent: {
            const std::string link = link_to_nothing(database);
            throw Error{
                Error::Kind::usage,
                link.empty() ? fmt::format("there is no database at '{}'", name) : fmt::format("'{}' {}", name, link),
                "name one with --db"};
        }
        case FileKind::foreign:
            throw Error{Error::Kind::usage, fmt::format("'{}' is no autotune database", name), "name one with --db"};
        case FileKind::newer:
            throw Error{Error::Kind::usage,
                        fmt::format("'{}' has schema {}, this program knows {}", name, found.schema, schema_version),
                        "check it with the autotune that wrote it"};
        case FileKind::unreadable:
            throw Error{Error::Kind::usage, fmt::format("'{}' cannot be read: {}", name, found.trouble),
                        "name one with --db"};
        case FileKind::truncated:
            return {"tune: the file is shorter than its header says"};
        case FileKind::ours:
            break;
    }
    std::vector<std::string> faults;
    try {
        const Store store = Store::open({.path = database, .mode = Store::Mode::read, .warn = [&](const auto& warning) {
                                             faults.push_back("trials: " + warning);
                                         }});
        const std::vector<std::string> found_in = store.check();
        faults.insert(faults.end(), found_in.begin(), found_in.end());
    } catch (const Error& error) {
        if (error.kind() != Error::Kind::store || error.help() == locked_help) throw;
        faults.emplace_back(error.what());
    }
    return faults;
}

}  // namespace autotune

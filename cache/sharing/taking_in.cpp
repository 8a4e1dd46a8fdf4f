#include "cache/sharing/taking_in.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "autotune/error.h"
#include "cache/sharing/read_database.h"
#include "cache/sharing/read_lines.h"
#include "cache/sharing/row_pipe.h"
#include "cache/store/entities.h"
#include "cache/store/location.h"
#include "cache/store/schema.h"
#include "tuner/model/hashing.h"
#include "tuner/model/printable.h"

namespace autotune {

namespace {

/// A file that was opened and hashed, whichever kind it is.
struct OpenedFile {
    std::string name;
    std::optional<ForeignDatabase> database;
    std::optional<ForeignLines> lines;
    std::string whole_sha256{}, bundle_uuid{};  ///< whole_sha256: where a part of the file is read

    const std::string& sha256() const {
        if (!whole_sha256.empty()) return whole_sha256;
        return database ? database->sha256() : lines->sha256();
    }
    std::string uuid() const { return database ? database->uuid() : bundle_uuid; }
};

bool is_uuid(std::string_view text) {
    return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

OpenedFile opened_bundle(std::span<const std::byte> bytes, const std::string& name, const TakingInOptions& options) {
    const Bundle bundle = Bundle::view(bytes, name);
    if (bundle.record_count() == 0)
        throw Error{Error::Kind::usage, fmt::format("'{}' is not taken in: it holds no record", name)};
    if (options.see_bundle) options.see_bundle(bundle);
    const auto lines = std::as_bytes(std::span{bundle.record_lines()});
    return {.name = name,
            .database = std::nullopt,
            .lines = ForeignLines::of({lines.begin(), lines.end()}, name),
            .whole_sha256 = sha256_hex(bytes),
            .bundle_uuid = is_uuid(bundle.db_uuid()) ? bundle.db_uuid() : ""};
}

OpenedFile opened_bytes(std::vector<std::byte> bytes, const std::string& name, const TakingInOptions& options) {
    if (is_bundle(bytes)) return opened_bundle(bytes, name, options);
    constexpr std::array mark{std::byte{0xef}, std::byte{0xbb}, std::byte{0xbf}};  // editors put it before UTF-8
    OpenedFile file{.name = name, .database = std::nullopt, .lines = std::nullopt};
    if (bytes.size() > mark.size() && std::equal(mark.begin(), mark.end(), bytes.begin())) {
        file.whole_sha256 = sha256_hex(std::span<const std::byte>{bytes});
        bytes.erase(bytes.begin(), bytes.begin() + mark.size());
    }
    if (!bytes.empty() && bytes.front() == std::byte{'{'})
        file.lines = ForeignLines::of(std::move(bytes), name);
    else
        file.database = ForeignDatabase::of(std::move(bytes), name, options.limits);
    return file;
}

OpenedFile opened_file(const std::filesystem::path& path, const TakingInOptions& options) {
    ForeignDatabase::require_settled(path);
    return opened_bytes(read_foreign_file(path, options.limits.bytes), shown(path), options);
}

void count_row(TakenIn& report, std::size_t number, std::string_view op, const std::string& why,
               const TakingInOptions& options) {
    constexpr std::size_t most_reasons = 100;
    if (++report.rows > options.most_rows)
        throw Error{Error::Kind::usage,
                    fmt::format("'{}' is not taken in: it has more than {} records", report.file, options.most_rows)};
    if (why.empty()) return;
    ++report.refused;
    if (report.named.size() < options.most_named) report.named.push_back({number, printable(op.substr(0, 64)), why});
    const bool room = report.reasons.size() < most_reasons || report.reasons.contains(why);
    ++report.reasons[room ? why : "others"];
}

/// A file that is imported again is the same import: it brings back what has gone of it, and nothing twice.
std::int64_t begin_log(Database& db, const OpenedFile& file, Trust trust, std::int64_t now) {
    const std::string_view policy = trust == Trust::own ? "merge" : "import";
    if (const auto same =
            db.integer_of("SELECT id FROM import_log WHERE sha256 = ? AND policy = ?", file.sha256(), policy))
        return *same;
    db.query(
          "INSERT INTO import_log (source_uuid, sha256, \"when\", policy, rows_in, accepted, rejected_json) VALUES "
          "(?,?,?,?,0,0,'{}')")
        .bind(file.uuid(), file.sha256(), now, policy)
        .run();
    return db.last_id();
}

void end_log(Database& db, TakenIn& report, std::int64_t id) {
    report.import_id = id;
    nlohmann::json reasons = nlohmann::json::object();
    for (const auto& [reason, count] : report.reasons) reasons[reason] = count;
    // What an import brings back was counted when it came first.
    db.query(
          "UPDATE import_log SET rows_in = ?1, accepted = iif(accepted = 0, ?2, max(accepted, ?2, (SELECT count(*) "
          "FROM "
          "record WHERE import = ?4) + (SELECT count(*) FROM predicted WHERE import = ?4))), rejected_json = ?3 WHERE "
          "id = ?4")
        .bind(report.rows, report.added + report.better,
              reasons.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), id)
        .run();
}

TakenIn take_in_one(Database& target, OpenedFile& file, const TakingInOptions& options) {
    TakenIn report{.file = file.name, .sha256 = file.sha256(), .source_uuid = file.uuid()};
    const Judge judge{*options.ops};
    target.execute("SAVEPOINT file");
    const std::int64_t id = begin_log(target, file, options.trust, std::time(nullptr));
    Intake intake{target, options.trust, id};
    std::vector<IncomingRow> sound;
    std::vector<std::string> why;
    // Told in the order of the file.
    const auto put = [&](std::vector<JudgedRow>& rows) {
        if (options.stopped && options.stopped())
            throw Error{Error::Kind::interrupted, fmt::format("interrupted: nothing of '{}' is taken in", report.file),
                        "give the same command again"};
        sound.clear();
        for (JudgedRow& row : rows)
            if (row.refused.empty()) sound.push_back(std::move(row.row));
        intake.put(sound, why);
        std::size_t next = 0;
        for (const JudgedRow& row : rows) {
            const bool is_sound = row.refused.empty();
            count_row(report, row.number, is_sound ? sound[next].source->value.op : row.op,
                      is_sound ? why[next] : row.refused, options);
            if (is_sound) ++next;
        }
    };
    RowPipe pipe{put};
    pipe.run([&] {
        const auto sink = [&](IncomingRow& row) {
            std::string refused = objection(row);
            const std::size_t number = row.number;
            std::string op = refused.empty() ? std::string{} : row.source->value.op;
            pipe.push({.number = number, .op = std::move(op), .refused = std::move(refused), .row = std::move(row)});
        };
        const auto refuse = [&](std::size_t number, const std::string& reason) {
            pipe.push({.number = number, .refused = reason});
        };
        const auto all_read = [&] { pipe.drain(); };
        if (file.database) {
            file.database->begin_checks();
            read_database(*file.database, judge, sink, all_read);
            file.database->require_soundness();
        } else {
            file.lines->read(judge, sink, refuse, all_read);
        }
    });
    report.added = intake.taken().added;
    report.better = intake.taken().better;
    report.not_better = intake.taken().not_better;
    if (intake.kept_any())
        end_log(target, report, id);
    else
        target.execute("ROLLBACK TO file");  // nothing is left of parts of rows that were not taken
    target.execute("RELEASE file");
    return report;
}

std::vector<TakenIn> take_in_opened(Store& store, std::vector<OpenedFile>& files, const TakingInOptions& options) {
    std::vector<TakenIn> reports;
    const auto all = [&](Database& target) {
        reports.clear();
        for (OpenedFile& file : files) reports.push_back(take_in_one(target, file, options));
    };
    if (options.dry_run) {
        Database scratch = Database::in_memory();
        store.inspect([&](Database& tune) { scratch.copy_from(tune); });
        Transaction transaction{scratch};
        all(scratch);
        for (TakenIn& report : reports) report.import_id = 0;
    } else {
        store.transact(all);
    }
    return reports;
}

}  // namespace

std::vector<TakenIn> take_in(Store& store, const std::vector<std::filesystem::path>& files,
                             const TakingInOptions& options) {
    std::vector<OpenedFile> opened;
    for (const std::filesystem::path& file : files) opened.push_back(opened_file(file, options));
    return take_in_opened(store, opened, options);
}

TakenIn take_in_bytes(Store& store, std::vector<std::byte> bytes, const std::string& name,
                      const TakingInOptions& options) {
    std::vector<OpenedFile> opened;
    opened.push_back(opened_bytes(std::move(bytes), name, options));
    return take_in_opened(store, opened, options).front();
}

namespace {

/// Runs of which no row is left go; of the others it is told who brings them now.
void let_go_of_runs(Database& db, std::int64_t import_id) {
    constexpr std::string_view rows =
        "(SELECT run, import FROM record UNION ALL SELECT run, import FROM record_beside UNION ALL SELECT run, import "
        "FROM predicted UNION ALL SELECT run, import FROM predicted_beside)";
    db.query(fmt::format("DELETE FROM run WHERE import = ? AND uuid NOT IN (SELECT run FROM {})", rows))
        .bind(import_id)
        .run();
    std::vector<std::pair<RunUuid, std::int64_t>> kept;
    {
        Query row = db.query(fmt::format(
            "SELECT run, min(import) FROM {} WHERE run IN (SELECT uuid FROM run WHERE import = ?) GROUP BY run", rows));
        row.bind(import_id);
        while (row.step())
            if (const auto uuid = uuid_of(row.blob(0))) kept.emplace_back(*uuid, row.integer(1));
    }
    for (const auto& [run, import] : kept)
        db.query("UPDATE run SET import = ?1 WHERE uuid = ?2").bind(import, std::span<const std::byte>{run}).run();
}

std::map<std::int64_t, std::size_t> rows_by_import(Database& db, std::string_view beside) {
    std::map<std::int64_t, std::size_t> counts;
    for (const char* table : {"record", "predicted"}) {
        Query row =
            db.query(fmt::format("SELECT import, count(*) FROM {}{} WHERE import > 0 GROUP BY import", table, beside));
        while (row.step()) counts[row.integer(0)] += static_cast<std::size_t>(row.integer(1));
    }
    return counts;
}

}  // namespace

Reverted revert_import(Store& store, std::int64_t import_id, bool dry_run) {
    Reverted reverted;
    const auto take_out = [&](Database& db) {
        if (!db.integer_of("SELECT 1 FROM import_log WHERE id = ?", import_id))
            throw Error{Error::Kind::usage, fmt::format("there is no import {}", import_id), "autotune db imports"};
        if (db.integer_of("SELECT 1 FROM import_log WHERE id = ? AND policy = ?", import_id, old_merge))
            throw Error{Error::Kind::usage,
                        fmt::format("merge {} was made by an older autotune, which did not keep what it brought, so it "
                                    "cannot be taken out",
                                    import_id),
                        "autotune db imports lists those that can: all but each 'old merge'"};
        Contest contest{db};
        const auto records = contest.take_out_records(import_id), predictions = contest.take_out_predictions(import_id);
        reverted = {.records = records.rows, .predictions = predictions.rows, .back = records.back + predictions.back};
        forget_descriptions(db, import_id);
        let_go_of_runs(db, import_id);
        db.query("DELETE FROM import_log WHERE id = ?").bind(import_id).run();
    };
    if (dry_run) {
        Database scratch = Database::in_memory();
        store.inspect([&](Database& tune) { scratch.copy_from(tune); });
        take_out(scratch);
    } else {
        store.transact(take_out);
    }
    return reverted;
}

std::vector<ImportEntry> imports(const Store& store) {
    std::vector<ImportEntry> entries;
    store.inspect([&](Database& db) {
        const auto standing = rows_by_import(db, ""), waiting = rows_by_import(db, "_beside");
        const auto of = [](const std::map<std::int64_t, std::size_t>& counts, std::int64_t id) {
            const auto found = counts.find(id);
            return found == counts.end() ? 0 : found->second;
        };
        Query row = db.query(
            "SELECT id, \"when\", source_uuid, sha256, policy, rows_in, accepted, rejected_json FROM import_log "
            "ORDER BY id");
        while (row.step())
            entries.push_back({.id = row.integer(0),
                               .when = row.integer(1),
                               .source_uuid = std::string{row.text(2)},
                               .sha256 = std::string{row.text(3)},
                               .policy = std::string{row.text(4)},
                               .rows = static_cast<std::size_t>(row.integer(5)),
                               .accepted = static_cast<std::size_t>(row.integer(6)),
                               .standing = of(standing, row.integer(0)),
                               .beside = of(waiting, row.integer(0)),
                               .rejected_json = std::string{row.text(7)}});
    });
    return entries;
}

}  // namespace autotune

#include "cache/sharing/taking_in.h"

#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>

#include "autotune/error.h"
#include "cache/sharing/read_database.h"
#include "cache/sharing/read_lines.h"
#include "cache/store/location.h"
#include "tuner/model/hashing.h"
#include "tuner/model/printable.h"

namespace autotune {

namespace {

/// A file that was opened and hashed, whichever kind it is.
struct OpenedFile {
    std::string name;
    std::optional<ForeignDatabase> database;
    std::optional<ForeignLines> lines;
    std::string bundle_sha256{}, bundle_uuid{};

    const std::string& sha256() const {
        if (!bundle_sha256.empty()) return bundle_sha256;
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
            .bundle_sha256 = sha256_hex(bytes),
            .bundle_uuid = is_uuid(bundle.db_uuid()) ? bundle.db_uuid() : ""};
}

OpenedFile opened_bytes(std::vector<std::byte> bytes, const std::string& name, const TakingInOptions& options) {
    if (is_bundle(bytes)) return opened_bundle(bytes, name, options);
    OpenedFile file{.name = name, .database = std::nullopt, .lines = std::nullopt};
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

void count_row(TakenIn& report, Taken taken, std::size_t number, std::string_view op, const std::string& why,
               const TakingInOptions& options) {
    constexpr std::size_t most_reasons = 100;
    if (++report.rows > options.most_rows)
        throw Error{Error::Kind::usage,
                    fmt::format("'{}' is not taken in: it has more than {} records", report.file, options.most_rows)};
    switch (taken) {
        case Taken::added:
            ++report.added;
            return;
        case Taken::better:
            ++report.better;
            return;
        case Taken::not_better:
            ++report.not_better;
            return;
        case Taken::refused:
            break;
    }
    ++report.refused;
    if (report.named.size() < options.most_named) report.named.push_back({number, printable(op.substr(0, 64)), why});
    const bool room = report.reasons.size() < most_reasons || report.reasons.contains(why);
    ++report.reasons[room ? why : "others"];
}

std::int64_t begin_log(Database& db, const OpenedFile& file, Trust trust, std::int64_t now) {
    db.query(
          "INSERT INTO import_log (source_uuid, sha256, \"when\", policy, rows_in, accepted, rejected_json) VALUES "
          "(?,?,?,?,0,0,'{}')")
        .bind(file.uuid(), file.sha256(), now, trust == Trust::own ? "merge" : "import")
        .run();
    return db.last_id();
}

void end_log(Database& db, TakenIn& report, std::int64_t id) {
    if (report.added + report.better == 0) {
        db.query("DELETE FROM import_log WHERE id = ?").bind(id).run();
        db.query("DELETE FROM run WHERE origin = ?").bind(fmt::format("import:{}", id)).run();  // of rows not taken
        return;
    }
    report.import_id = id;
    nlohmann::json reasons = nlohmann::json::object();
    for (const auto& [reason, count] : report.reasons) reasons[reason] = count;
    db.query("UPDATE import_log SET rows_in = ?, accepted = ?, rejected_json = ? WHERE id = ?")
        .bind(report.rows, report.added + report.better,
              reasons.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), id)
        .run();
}

TakenIn take_in_one(Database& target, OpenedFile& file, const TakingInOptions& options) {
    TakenIn report{.file = file.name, .sha256 = file.sha256(), .source_uuid = file.uuid()};
    const Judge judge{*options.ops};
    const std::int64_t id = begin_log(target, file, options.trust, std::time(nullptr));
    Intake intake{target, judge, options.trust, id};
    std::string why;
    const auto sink = [&](IncomingRow& row, std::size_t number) {
        const Taken taken = intake.put(row, why);
        count_row(report, taken, number, row.source->value.op, why, options);
    };
    if (file.database)
        read_database(*file.database, judge, sink);
    else
        file.lines->read(judge, sink, [&](std::size_t number, const std::string& reason) {
            count_row(report, Taken::refused, number, {}, reason, options);
        });
    end_log(target, report, id);
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

Reverted revert_import(Store& store, std::int64_t import_id, bool dry_run) {
    const std::string origin = fmt::format("import:{}", import_id);
    Reverted reverted;
    const auto of_this_import = [&](std::string_view what, std::string_view table) {
        return fmt::format("{} FROM {} WHERE run IN (SELECT id FROM run WHERE origin = ?)", what, table);
    };
    const auto count = [&](Database& db) {
        const auto policy = db.text_of(fmt::format("SELECT policy FROM import_log WHERE id = {}", import_id));
        if (policy.empty())
            throw Error{Error::Kind::usage, fmt::format("there is no import {}", import_id), "autotune db imports"};
        reverted.records =
            static_cast<std::size_t>(db.integer_of(of_this_import("SELECT count(*)", "record"), origin).value_or(0));
        reverted.predictions =
            static_cast<std::size_t>(db.integer_of(of_this_import("SELECT count(*)", "predicted"), origin).value_or(0));
    };
    if (dry_run) {
        store.inspect(count);
        return reverted;
    }
    store.transact([&](Database& db) {
        count(db);
        for (const char* table : {"record", "predicted"}) db.query(of_this_import("DELETE", table)).bind(origin).run();
        db.query("DELETE FROM run WHERE origin = ? AND id NOT IN (SELECT run FROM negative WHERE run IS NOT NULL)")
            .bind(origin)
            .run();
        db.query("DELETE FROM import_log WHERE id = ?").bind(import_id).run();
    });
    return reverted;
}

std::vector<ImportEntry> imports(const Store& store) {
    std::vector<ImportEntry> entries;
    store.inspect([&](Database& db) {
        Query row = db.query(
            "SELECT i.id, i.\"when\", i.source_uuid, i.sha256, i.policy, i.rows_in, i.accepted, i.rejected_json, "
            "(SELECT count(*) FROM record WHERE run IN (SELECT id FROM run WHERE origin = 'import:' || i.id)) + "
            "(SELECT count(*) FROM predicted WHERE run IN (SELECT id FROM run WHERE origin = 'import:' || i.id)) "
            "FROM import_log i ORDER BY i.id");
        while (row.step())
            entries.push_back({.id = row.integer(0),
                               .when = row.integer(1),
                               .source_uuid = std::string{row.text(2)},
                               .sha256 = std::string{row.text(3)},
                               .policy = std::string{row.text(4)},
                               .rows = static_cast<std::size_t>(row.integer(5)),
                               .accepted = static_cast<std::size_t>(row.integer(6)),
                               .standing = static_cast<std::size_t>(row.integer(8)),
                               .rejected_json = std::string{row.text(7)}});
    });
    return entries;
}

}  // namespace autotune

#include <fmt/format.h>
#include <set>
#include <vector>

#include "cache/sharing/anonymise.h"
#include "cache/sharing/exports.h"
#include "cache/sharing/file_in_making.h"
#include "cache/store/contest.h"
#include "cache/store/database.h"
#include "cache/store/entities.h"
#include "cache/store/opening.h"
#include "cache/store/record_rows.h"

namespace autotune {

namespace {

void keep_ids(Database& db, const char* table, const std::set<std::int64_t>& ids) {
    db.execute(fmt::format("CREATE TEMP TABLE {} (id INTEGER PRIMARY KEY)", table).c_str());
    for (const std::int64_t id : ids) db.query(fmt::format("INSERT INTO {} VALUES (?)", table)).bind(id).run();
}

std::set<std::int64_t> ids_taken(Database& db, const RecordFilter& filter) {
    std::set<std::int64_t> ids;
    Entities entities{db};
    Query row = db.query("SELECT id FROM device");
    while (row.step())
        if (const auto* device = entities.device(row.integer(0)); device && filter.takes(device->value))
            ids.insert(row.integer(0));
    return ids;
}

/// Problems that rows speak of and the filter takes, as a table.
void keep_problems(Database& db, const RecordFilter& filter) {
    db.execute(
        "CREATE TEMP TABLE kept_problem (form INTEGER, numbers BLOB, PRIMARY KEY (form, numbers)) WITHOUT ROWID;"
        "INSERT OR IGNORE INTO kept_problem SELECT form, numbers FROM record UNION SELECT form, numbers FROM predicted "
        "UNION SELECT form, numbers FROM run UNION SELECT form, numbers FROM negative");
    db.query("DELETE FROM kept_problem WHERE form NOT IN (SELECT id FROM form WHERE ?1 IN ('', op))")
        .bind(filter.op)
        .run();
    if (filter.problem.empty() && filter.where.empty()) return;
    std::vector<ProblemRef> all;
    {
        Query row = db.query("SELECT form, numbers FROM kept_problem");
        while (row.step()) all.push_back({.form = row.integer(0), .numbers = text_of_blob(row.blob(1))});
    }
    Entities entities{db};
    for (const ProblemRef& ref : all)
        if (const auto problem = entities.problem(ref); !problem || !filter.takes(*problem))
            db.query("DELETE FROM kept_problem WHERE form = ? AND numbers = ?").bind(ref.form, ref.blob()).run();
}

void remove_damaged(Database& db) {
    std::vector<RecordKey> damaged;
    scan_records(
        db, {}, {}, [](const RecordView&) {}, [&](const RecordKey& key) { damaged.push_back(key); });
    static const std::string sql = SeatSql<RecordSeats>::clear(false);
    for (const RecordKey& key : damaged) {
        Query query = db.query(sql);
        RecordSeats::bind_key(query, key);
        query.run();
    }
}

constexpr const char* remove_others = R"sql(
DELETE FROM record_beside;
DELETE FROM predicted_beside;
DELETE FROM device_beside;
UPDATE record SET import = 0 WHERE import <> 0;
UPDATE predicted SET import = 0 WHERE import <> 0;
UPDATE run SET import = 0 WHERE import <> 0;
DELETE FROM record WHERE device NOT IN (SELECT id FROM kept_device)
    OR (form, numbers) NOT IN (SELECT form, numbers FROM kept_problem);
DELETE FROM predicted WHERE (form, numbers) NOT IN (SELECT form, numbers FROM kept_problem)
    OR run NOT IN (SELECT uuid FROM run WHERE setting IN
        (SELECT id FROM setting WHERE device IN (SELECT id FROM kept_device)));
DELETE FROM negative WHERE device NOT IN (SELECT id FROM kept_device)
    OR form <> 0 AND (form, numbers) NOT IN (SELECT form, numbers FROM kept_problem)
    OR template NOT IN (SELECT template FROM record UNION SELECT template FROM predicted);
UPDATE negative SET run = NULL;
DELETE FROM run WHERE uuid NOT IN (SELECT run FROM record UNION SELECT run FROM predicted);
UPDATE run SET number = NULL WHERE number IS NOT NULL;
DELETE FROM setting WHERE id NOT IN (SELECT setting FROM run UNION SELECT setting FROM record);
DELETE FROM config WHERE id NOT IN (SELECT config FROM record UNION SELECT config FROM predicted UNION SELECT config FROM negative);
DELETE FROM form WHERE id NOT IN (SELECT form FROM record UNION SELECT form FROM predicted UNION SELECT form FROM run UNION SELECT form FROM negative);
DELETE FROM template WHERE id NOT IN (SELECT template FROM record UNION SELECT template FROM predicted UNION SELECT template FROM negative);
DELETE FROM env WHERE id NOT IN (SELECT env FROM setting UNION SELECT env FROM negative);
DELETE FROM device WHERE id NOT IN (SELECT device FROM setting UNION SELECT device FROM record UNION SELECT device FROM negative);
UPDATE device SET own = 1;
DELETE FROM import_log;
DROP TABLE kept_device;
DROP TABLE kept_problem;
)sql";

}  // namespace

std::size_t export_database(const Store& store, const ExportOptions& options, const std::filesystem::path& to) {
    const FileInMaking file{to};
    Database copy = Database::in_memory();
    store.inspect([&](Database& tune) { copy.copy_from(tune); });
    try {
        copy.execute("BEGIN");
        remove_damaged(copy);
        keep_ids(copy, "kept_device", ids_taken(copy, options.filter));
        keep_problems(copy, options.filter);
        copy.execute(remove_others);
        if (options.anonymise) anonymise(copy);
        copy.query("UPDATE meta SET value = ? WHERE key = 'db_uuid'").bind(random_uuid()).run();
        copy.query("UPDATE meta SET value = '0' WHERE key = 'generation'").run();
        copy.execute("COMMIT");
        copy.query("VACUUM INTO ?").bind(file.making().string()).run();
    } catch (const DatabaseFailure& failure) {
        file.fail(failure);
    }
    file.appear();
    return static_cast<std::size_t>(copy.integer_of("SELECT count(*) FROM record").value_or(0)) +
           static_cast<std::size_t>(copy.integer_of("SELECT count(*) FROM predicted").value_or(0));
}

}  // namespace autotune

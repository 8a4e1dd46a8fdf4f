#include <fmt/format.h>
#include <set>
#include <vector>

#include "cache/sharing/anonymise.h"
#include "cache/sharing/exports.h"
#include "cache/sharing/file_in_making.h"
#include "cache/store/database.h"
#include "cache/store/opening.h"
#include "cache/store/rows.h"

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

std::set<std::int64_t> problems_taken(Database& db, const RecordFilter& filter) {
    std::set<std::int64_t> ids;
    std::vector<std::int64_t> all;
    {
        Query row = db.query("SELECT id FROM problem WHERE ?1 IN ('', op)");
        row.bind(filter.op);
        while (row.step()) all.push_back(row.integer(0));
    }
    Entities entities{db};
    const bool any = filter.problem.empty() && filter.where.empty();
    for (const std::int64_t id : all) {
        const auto problem = any ? std::nullopt : entities.problem(id);
        if (any || (problem && filter.takes(*problem))) ids.insert(id);
    }
    return ids;
}

void remove_damaged(Database& db) {
    std::vector<RecordKey> damaged;
    scan_records(
        db, {}, {}, [](const RecordView&) {}, [&](const RecordKey& key) { damaged.push_back(key); });
    for (const RecordKey& key : damaged)
        db.query(
              "DELETE FROM record WHERE device = ? AND template = ? AND problem = ? AND nvrtc_major = ? AND "
              "nvrtc_minor = ? AND rank = ?")
            .bind(key.device, key.source, key.problem, key.nvrtc_major, key.nvrtc_minor, key.rank)
            .run();
}

constexpr const char* remove_others = R"sql(
DELETE FROM record_beside;
DELETE FROM predicted_beside;
DELETE FROM device_beside;
UPDATE record SET import = 0 WHERE import <> 0;
UPDATE predicted SET import = 0 WHERE import <> 0;
UPDATE run SET import = 0 WHERE import <> 0;
DELETE FROM record WHERE device NOT IN (SELECT id FROM kept_device) OR problem NOT IN (SELECT id FROM kept_problem);
DELETE FROM predicted WHERE problem NOT IN (SELECT id FROM kept_problem)
    OR run NOT IN (SELECT id FROM run WHERE device IN (SELECT id FROM kept_device));
DELETE FROM negative WHERE device NOT IN (SELECT id FROM kept_device)
    OR problem NOT IN (SELECT id FROM kept_problem UNION SELECT 0)
    OR template NOT IN (SELECT template FROM record UNION SELECT template FROM predicted);
UPDATE negative SET run = NULL;
DELETE FROM run WHERE id NOT IN (SELECT run FROM record UNION SELECT run FROM predicted);
DELETE FROM config WHERE id NOT IN (SELECT config FROM record UNION SELECT config FROM predicted UNION SELECT config FROM negative);
DELETE FROM problem WHERE id NOT IN (SELECT problem FROM record UNION SELECT problem FROM predicted UNION SELECT problem FROM run UNION SELECT problem FROM negative);
DELETE FROM template WHERE id NOT IN (SELECT template FROM record UNION SELECT template FROM predicted UNION SELECT template FROM negative);
DELETE FROM env WHERE id NOT IN (SELECT env FROM run UNION SELECT env FROM negative);
DELETE FROM device WHERE id NOT IN (SELECT device FROM run UNION SELECT device FROM record UNION SELECT device FROM negative);
UPDATE run SET origin = 'import' WHERE origin <> 'local';
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
        keep_ids(copy, "kept_problem", problems_taken(copy, options.filter));
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

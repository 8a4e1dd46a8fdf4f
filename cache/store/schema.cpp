#include "cache/store/schema.h"

#include <fmt/core.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "cache/store/database.h"
#include "cache/store/old_schemas.h"
#include "tuner/model/printable.h"

namespace autotune {

/// Rows are many where problems and runs are, so these say nothing twice: a problem is the form of its key and the
/// numbers in it, and stands in the record's own key; what runs have in common is their setting. A run that began here
/// has a number, which is that of its trials.
/// Who brought a row: 0, this store itself; else an import, by its number. Of those that compete for a key the best
/// stands in its table, and the others wait in the one of that name with _beside. Key columns come first,
/// since SQLite 3.40's integrity_check reports false NULLs otherwise.
const char* const tune_schema = R"sql(
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE device (
    id INTEGER PRIMARY KEY,
    fp TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    vendor TEXT NOT NULL,
    cc INTEGER NOT NULL,
    sm INTEGER NOT NULL,
    core_khz INTEGER NOT NULL,
    bw_gbs INTEGER NOT NULL,
    l2 INTEGER NOT NULL,
    smem_block INTEGER NOT NULL,
    smem_sm INTEGER NOT NULL,
    regs_sm INTEGER NOT NULL,
    threads_sm INTEGER NOT NULL,
    mem_gib REAL NOT NULL,
    mig TEXT NOT NULL,
    ecc INTEGER NOT NULL,
    pci_id TEXT NOT NULL,
    attrs_json TEXT NOT NULL,
    own INTEGER NOT NULL,
    crc INTEGER NOT NULL
) STRICT;
CREATE TABLE env (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    nvrtc_major INTEGER NOT NULL,
    nvrtc_minor INTEGER NOT NULL,
    driver TEXT NOT NULL,
    runtime INTEGER NOT NULL,
    emulator INTEGER NOT NULL,
    tool_version TEXT NOT NULL,
    os TEXT NOT NULL
) STRICT;
CREATE TABLE template (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    op TEXT NOT NULL,
    variant TEXT NOT NULL,
    source_hash TEXT NOT NULL,
    space_hash TEXT NOT NULL,
    abi INTEGER NOT NULL,
    manifest_json TEXT NOT NULL
) STRICT;
CREATE TABLE form (
    id INTEGER PRIMARY KEY,
    op TEXT NOT NULL,
    layout BLOB NOT NULL,
    names_json TEXT NOT NULL,
    crc INTEGER NOT NULL,
    UNIQUE (op, layout)
) STRICT;
CREATE TABLE config (
    id INTEGER PRIMARY KEY,
    op TEXT NOT NULL,
    variant TEXT NOT NULL,
    hash TEXT NOT NULL,
    body_json TEXT NOT NULL,
    UNIQUE (op, variant, hash)
) STRICT;
CREATE TABLE setting (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    device INTEGER NOT NULL REFERENCES device,
    env INTEGER NOT NULL REFERENCES env,
    predicted INTEGER NOT NULL,
    local INTEGER NOT NULL,
    strategy TEXT NOT NULL,
    budget TEXT NOT NULL,
    effort TEXT NOT NULL,
    clock_policy TEXT NOT NULL,
    locked_mhz INTEGER NOT NULL,
    l2_policy TEXT NOT NULL,
    graph_mode TEXT NOT NULL,
    tolerance TEXT NOT NULL,
    reference TEXT NOT NULL,
    host_hash TEXT NOT NULL
) STRICT;
CREATE TABLE run (
    uuid BLOB PRIMARY KEY NOT NULL,
    setting INTEGER NOT NULL REFERENCES setting,
    form INTEGER NOT NULL REFERENCES form,
    numbers BLOB NOT NULL,
    number INTEGER,
    started INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    seed INTEGER NOT NULL,
    power_w REAL NOT NULL,
    temp_max REAL NOT NULL,
    import INTEGER NOT NULL,
    crc INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX run_by_number ON run (number) WHERE number IS NOT NULL;
CREATE INDEX run_by_problem ON run (form, numbers) WHERE number IS NOT NULL;
CREATE TABLE record (
    device INTEGER NOT NULL REFERENCES device,
    template INTEGER NOT NULL REFERENCES template,
    form INTEGER NOT NULL REFERENCES form,
    numbers BLOB NOT NULL,
    nvrtc_major INTEGER NOT NULL,
    nvrtc_minor INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    import INTEGER NOT NULL,
    config INTEGER NOT NULL REFERENCES config,
    time_ns INTEGER NOT NULL,
    lo_ns INTEGER NOT NULL,
    hi_ns INTEGER NOT NULL,
    samples INTEGER NOT NULL,
    default_ns INTEGER,
    evaluated INTEGER NOT NULL,
    space_size INTEGER NOT NULL,
    verified INTEGER NOT NULL,
    max_err REAL NOT NULL,
    run BLOB NOT NULL REFERENCES run,
    setting INTEGER NOT NULL REFERENCES setting,
    tuned_at INTEGER NOT NULL,
    crc INTEGER NOT NULL,
    PRIMARY KEY (device, template, form, numbers, nvrtc_major, nvrtc_minor, rank)
) STRICT, WITHOUT ROWID;
CREATE TABLE record_beside (
    device INTEGER NOT NULL REFERENCES device,
    template INTEGER NOT NULL REFERENCES template,
    form INTEGER NOT NULL REFERENCES form,
    numbers BLOB NOT NULL,
    nvrtc_major INTEGER NOT NULL,
    nvrtc_minor INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    import INTEGER NOT NULL,
    config INTEGER NOT NULL REFERENCES config,
    time_ns INTEGER NOT NULL,
    lo_ns INTEGER NOT NULL,
    hi_ns INTEGER NOT NULL,
    samples INTEGER NOT NULL,
    default_ns INTEGER,
    evaluated INTEGER NOT NULL,
    space_size INTEGER NOT NULL,
    verified INTEGER NOT NULL,
    max_err REAL NOT NULL,
    run BLOB NOT NULL REFERENCES run,
    setting INTEGER NOT NULL REFERENCES setting,
    tuned_at INTEGER NOT NULL,
    crc INTEGER NOT NULL,
    PRIMARY KEY (device, template, form, numbers, nvrtc_major, nvrtc_minor, rank, import)
) STRICT, WITHOUT ROWID;
CREATE TABLE negative (
    device INTEGER NOT NULL REFERENCES device,
    template INTEGER NOT NULL REFERENCES template,
    config INTEGER NOT NULL REFERENCES config,
    form INTEGER NOT NULL,
    numbers BLOB NOT NULL,
    env INTEGER NOT NULL REFERENCES env,
    outcome TEXT NOT NULL,
    run INTEGER,
    PRIMARY KEY (device, template, config, form, numbers, env)
) STRICT, WITHOUT ROWID;
CREATE TABLE predicted (
    device_model TEXT NOT NULL,
    template INTEGER NOT NULL REFERENCES template,
    form INTEGER NOT NULL REFERENCES form,
    numbers BLOB NOT NULL,
    model_version TEXT NOT NULL,
    rank INTEGER NOT NULL,
    import INTEGER NOT NULL,
    config INTEGER NOT NULL REFERENCES config,
    time_ns INTEGER NOT NULL,
    checked INTEGER NOT NULL,
    run BLOB NOT NULL REFERENCES run,
    PRIMARY KEY (device_model, template, form, numbers, model_version, rank)
) STRICT, WITHOUT ROWID;
CREATE TABLE predicted_beside (
    device_model TEXT NOT NULL,
    template INTEGER NOT NULL REFERENCES template,
    form INTEGER NOT NULL REFERENCES form,
    numbers BLOB NOT NULL,
    model_version TEXT NOT NULL,
    rank INTEGER NOT NULL,
    import INTEGER NOT NULL,
    config INTEGER NOT NULL REFERENCES config,
    time_ns INTEGER NOT NULL,
    checked INTEGER NOT NULL,
    run BLOB NOT NULL REFERENCES run,
    PRIMARY KEY (device_model, template, form, numbers, model_version, rank, import)
) STRICT, WITHOUT ROWID;
CREATE TABLE device_beside (
    device INTEGER NOT NULL REFERENCES device,
    import INTEGER NOT NULL REFERENCES import_log,
    name TEXT NOT NULL,
    vendor TEXT NOT NULL,
    core_khz INTEGER NOT NULL,
    mig TEXT NOT NULL,
    ecc INTEGER NOT NULL,
    pci_id TEXT NOT NULL,
    attrs_json TEXT NOT NULL,
    PRIMARY KEY (device, import)
) STRICT, WITHOUT ROWID;
CREATE TABLE import_log (
    id INTEGER PRIMARY KEY,
    source_uuid TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    "when" INTEGER NOT NULL,
    policy TEXT NOT NULL,
    rows_in INTEGER NOT NULL,
    accepted INTEGER NOT NULL,
    rejected_json TEXT NOT NULL
) STRICT;
)sql";

const char* const trials_schema = R"sql(
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE config (
    id INTEGER PRIMARY KEY,
    op TEXT NOT NULL,
    variant TEXT NOT NULL,
    hash TEXT NOT NULL,
    body_json TEXT NOT NULL,
    UNIQUE (op, variant, hash)
) STRICT;
CREATE TABLE trial (
    run INTEGER NOT NULL,
    config INTEGER NOT NULL REFERENCES config,
    template INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    time_ns INTEGER NOT NULL,
    samples BLOB NOT NULL,
    predicted INTEGER NOT NULL,
    tainted INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    facts_json TEXT NOT NULL,
    log TEXT NOT NULL,
    crc INTEGER NOT NULL,
    PRIMARY KEY (run, config)
) STRICT;
)sql";

std::string statement_of(std::string_view schema, std::string_view made) {
    const std::size_t at = schema.find(fmt::format("{} ", made));
    const std::size_t begin = schema.rfind("CREATE ", at);
    return std::string{schema.substr(begin, schema.find(';', begin) - begin)};
}

std::vector<std::string_view> tables_of(std::string_view schema) {
    constexpr std::string_view before = "CREATE TABLE ";
    std::vector<std::string_view> names;
    for (std::size_t at = 0; (at = schema.find(before, at)) != std::string_view::npos;) {
        at += before.size();
        names.push_back(schema.substr(at, schema.find_first_of(" (", at) - at));
    }
    return names;
}

namespace {

bool is_word(char c) noexcept { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// A statement without what says nothing in ours: blanks that part no words, and quotes around a plain name.
std::string bare(std::string_view sql) {
    std::string out;
    bool blank = false;
    for (std::size_t i = 0; i < sql.size(); ++i) {
        const char c = sql[i];
        if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
            blank = true;
            continue;
        }
        std::string_view word = sql.substr(i, 1);
        if (c == '"') {
            const std::string_view name = sql.substr(i + 1, sql.find('"', i + 1) - i - 1);
            if (!name.empty() && std::ranges::all_of(name, is_word)) {
                word = name;
                i += name.size() + 1;
            }
        }
        if (blank && is_word(word.front()) && !out.empty() && is_word(out.back())) out += ' ';
        blank = false;
        out += word;
    }
    return out;
}

/// Throws where a schema is none of ours.
class SchemaComparison {
public:
    SchemaComparison(Database& database, std::string_view schema) : database_{database}, schema_{schema} {}

    void run() {
        SchemaRows found = schema_rows(database_);
        const SchemaRows& ours = our_schema_rows(schema_);
        if (found == ours) return;
        // Another process may bring the file up to date between two reads: rows are of the version that stands before
        // and behind them.
        std::int64_t version = version_told();
        for (std::int64_t before = version - 1; before != version;) {
            before = version;
            found = schema_rows(database_);
            version = version_told();
        }
        if (found == ours) return;
        require_nothing_that_runs(found);
        if (version < schema_version) return;
        for (const std::string_view table : tables_of(schema_))
            if (std::ranges::none_of(found, [&](const auto& row) { return is_table(row, table); }))
                throw strange(fmt::format("it lacks the table '{}'", table));
        if (version > schema_version) return;
        for (const Row& row : found)
            if (!ours.contains(row)) {
                const auto& [type, name, table, sql] = row;
                const bool known = std::ranges::any_of(
                    ours, [&](const Row& one) { return std::get<0>(one) == type && std::get<1>(one) == name; });
                throw known ? strange(fmt::format("the {} '{}' is made otherwise", type, shown_name(name)))
                            : strange(row);
            }
        for (const Row& row : ours)
            if (!found.contains(row))
                throw strange(fmt::format("it lacks the {} '{}'", std::get<0>(row), std::get<1>(row)));
    }

private:
    using Row = SchemaRows::value_type;
    static DatabaseFailure strange(const std::string& why) { return DatabaseFailure{SQLITE_CORRUPT, why}; }
    static std::string shown_name(std::string_view name) { return one_line(name.substr(0, 64)); }
    static DatabaseFailure strange(const Row& row) {
        return strange(fmt::format("it holds the {} '{}', which no database of autotune has", std::get<0>(row),
                                   shown_name(std::get<1>(row))));
    }
    std::int64_t version_told() { return database_.integer_of("PRAGMA user_version").value_or(0); }
    static bool is_table(const Row& row, std::string_view name) {
        return std::get<0>(row) == "table" && std::get<1>(row) == name;
    }

    /// Views in the place of tables, triggers, virtual tables and columns that are worked out.
    void require_nothing_that_runs(const SchemaRows& found) {
        for (const Row& row : found)
            if (std::get<0>(row) != "table" && std::get<0>(row) != "index") throw strange(row);
        Query page = database_.query("SELECT type, name FROM sqlite_schema WHERE NOT rootpage > 0");
        if (page.step()) throw strange(fmt::format("it holds the virtual table '{}'", page.text(1)));
        for (const Row& row : found) {
            if (std::get<0>(row) != "table") continue;
            Query column = database_.query("SELECT name FROM pragma_table_xinfo(?) WHERE hidden > 0");
            column.bind(std::get<1>(row));
            if (column.step())
                throw strange(fmt::format("column '{}' of '{}' is worked out", column.text(0), std::get<1>(row)));
        }
    }

    Database& database_;
    std::string_view schema_;
};

}  // namespace

SchemaRows schema_rows(Database& database) {
    SchemaRows rows;
    Query row = database.query("SELECT type, name, tbl_name, sql FROM sqlite_schema");
    while (row.step()) {
        if (row.text(3) == "CREATE TABLE sqlite_stat1(tbl,idx,stat)") continue;
        rows.emplace(row.text(0), row.text(1), row.text(2), bare(row.text(3)));
        if (rows.size() > 64) break;  // ours has fewer: it differs already
    }
    return rows;
}

const SchemaRows& our_schema_rows(std::string_view schema) {
    static const std::map<std::string_view, SchemaRows> ours = [] {
        std::map<std::string_view, SchemaRows> made;
        for (const char* text : {tune_schema_1, tune_schema_2, tune_schema, trials_schema}) {
            Database database = Database::in_memory();
            database.execute(text);
            made.emplace(text, schema_rows(database));
        }
        return made;
    }();
    return ours.at(schema);
}

const SchemaRows& tune_schema_rows(int version) {
    constexpr std::array schemas{&tune_schema_1, &tune_schema_2, &tune_schema};
    static_assert(schemas.size() == schema_version);
    return our_schema_rows(*schemas.at(static_cast<std::size_t>(version - 1)));
}

void require_our_schema(Database& database, std::string_view schema) { SchemaComparison{database, schema}.run(); }

}  // namespace autotune

#include "cache/store/schema.h"

#include <fmt/core.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cache/store/database.h"
#include "tuner/model/printable.h"

namespace autotune {

namespace {

constexpr char tune_schema_1[] = R"sql(
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
    attrs_json TEXT NOT NULL
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
CREATE TABLE problem (
    id INTEGER PRIMARY KEY,
    op TEXT NOT NULL,
    key BLOB NOT NULL,
    d0 INTEGER, d1 INTEGER, d2 INTEGER, d3 INTEGER, d4 INTEGER, d5 INTEGER, d6 INTEGER, d7 INTEGER,
    text_json TEXT NOT NULL,
    UNIQUE (op, key)
) STRICT;
CREATE TABLE config (
    id INTEGER PRIMARY KEY,
    op TEXT NOT NULL,
    variant TEXT NOT NULL,
    hash TEXT NOT NULL,
    body_json TEXT NOT NULL,
    UNIQUE (op, variant, hash)
) STRICT;
CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    uuid TEXT NOT NULL UNIQUE,
    device INTEGER NOT NULL REFERENCES device,
    env INTEGER NOT NULL REFERENCES env,
    problem INTEGER NOT NULL REFERENCES problem,
    started INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    strategy TEXT NOT NULL,
    seed INTEGER NOT NULL,
    budget TEXT NOT NULL,
    effort TEXT NOT NULL,
    clock_policy TEXT NOT NULL,
    locked_mhz INTEGER NOT NULL,
    power_w REAL NOT NULL,
    temp_max REAL NOT NULL,
    l2_policy TEXT NOT NULL,
    graph_mode TEXT NOT NULL,
    tolerance TEXT NOT NULL,
    reference TEXT NOT NULL,
    host_hash TEXT NOT NULL,
    origin TEXT NOT NULL,
    predicted INTEGER NOT NULL
) STRICT;
CREATE INDEX run_by_subject ON run (device, problem);
CREATE TABLE record (
    device INTEGER NOT NULL REFERENCES device,
    template INTEGER NOT NULL REFERENCES template,
    problem INTEGER NOT NULL REFERENCES problem,
    nvrtc_major INTEGER NOT NULL,
    nvrtc_minor INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    config INTEGER NOT NULL REFERENCES config,
    time_ns INTEGER NOT NULL,
    lo_ns INTEGER NOT NULL,
    hi_ns INTEGER NOT NULL,
    samples INTEGER NOT NULL,
    default_ns INTEGER,
    evaluated INTEGER NOT NULL,
    space_size INTEGER NOT NULL,
    effort INTEGER NOT NULL,
    verified INTEGER NOT NULL,
    max_err REAL NOT NULL,
    run INTEGER NOT NULL REFERENCES run,
    tuned_at INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    crc INTEGER NOT NULL,
    PRIMARY KEY (device, template, problem, nvrtc_major, nvrtc_minor, rank)
) STRICT, WITHOUT ROWID;
CREATE TABLE negative (
    device INTEGER NOT NULL REFERENCES device,
    template INTEGER NOT NULL REFERENCES template,
    config INTEGER NOT NULL REFERENCES config,
    problem INTEGER NOT NULL,
    env INTEGER NOT NULL REFERENCES env,
    outcome TEXT NOT NULL,
    run INTEGER,
    PRIMARY KEY (device, template, config, problem, env)
) STRICT, WITHOUT ROWID;
CREATE TABLE predicted (
    device_model TEXT NOT NULL,
    template INTEGER NOT NULL REFERENCES template,
    problem INTEGER NOT NULL REFERENCES problem,
    model_version TEXT NOT NULL,
    rank INTEGER NOT NULL,
    config INTEGER NOT NULL REFERENCES config,
    time_ns INTEGER NOT NULL,
    checked INTEGER NOT NULL,
    run INTEGER NOT NULL REFERENCES run,
    PRIMARY KEY (device_model, template, problem, model_version, rank)
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

/// Who brought a row: 0, this store itself; else an import, by its number. Of those that compete for a key the best
/// stands in its table, and the others wait in the one of that name with _beside. Key columns come first,
/// since SQLite 3.40's integrity_check reports false NULLs otherwise.
constexpr char tune_additions_2[] = R"sql(
ALTER TABLE run ADD COLUMN import INTEGER NOT NULL DEFAULT 0;
ALTER TABLE record ADD COLUMN import INTEGER NOT NULL DEFAULT 0;
ALTER TABLE predicted ADD COLUMN import INTEGER NOT NULL DEFAULT 0;
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
CREATE TABLE record_beside (
    device INTEGER NOT NULL REFERENCES device,
    template INTEGER NOT NULL REFERENCES template,
    problem INTEGER NOT NULL REFERENCES problem,
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
    effort INTEGER NOT NULL,
    verified INTEGER NOT NULL,
    max_err REAL NOT NULL,
    run INTEGER NOT NULL REFERENCES run,
    tuned_at INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    crc INTEGER NOT NULL,
    PRIMARY KEY (device, template, problem, nvrtc_major, nvrtc_minor, rank, import)
) STRICT, WITHOUT ROWID;
CREATE TABLE predicted_beside (
    device_model TEXT NOT NULL,
    template INTEGER NOT NULL REFERENCES template,
    problem INTEGER NOT NULL REFERENCES problem,
    model_version TEXT NOT NULL,
    rank INTEGER NOT NULL,
    import INTEGER NOT NULL,
    config INTEGER NOT NULL REFERENCES config,
    time_ns INTEGER NOT NULL,
    checked INTEGER NOT NULL,
    run INTEGER NOT NULL REFERENCES run,
    PRIMARY KEY (device_model, template, problem, model_version, rank, import)
) STRICT, WITHOUT ROWID;
)sql";

/// Two literals as one.
template <std::size_t A, std::size_t B>
constexpr std::array<char, A + B - 1> joined(const char (&a)[A], const char (&b)[B]) {
    std::array<char, A + B - 1> out{};
    std::copy(a, a + A - 1, out.begin());
    std::copy(b, b + B, out.begin() + (A - 1));
    return out;
}
constexpr auto tune_schema_2 = joined(tune_schema_1, tune_additions_2);

}  // namespace

const char* const tune_schema = tune_schema_2.data();
const char* const tune_additions_to_1 = tune_additions_2;

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
    problem INTEGER NOT NULL,
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
    PRIMARY KEY (run, problem, config)
) STRICT;
)sql";

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

/// Why a schema that is not ours to the letter is none of ours.
class SchemaComparison {
public:
    SchemaComparison(Database& database, std::string_view schema, const SchemaRows& found)
        : database_{database}, schema_{schema}, found_{found} {}

    void run() {
        const std::int64_t version = database_.integer_of("PRAGMA user_version").value_or(0);
        require_nothing_that_runs();
        if (version < schema_version) return;
        for (const std::string_view table : tables_of(schema_)) {
            if (std::ranges::none_of(found_, [&](const auto& row) { return is_table(row, table); }))
                throw strange(fmt::format("it lacks the table '{}'", table));
            if (version == schema_version) require_same_columns(table);
        }
        if (version == schema_version) require_nothing_more();
    }

private:
    using Row = SchemaRows::value_type;
    static DatabaseFailure strange(const std::string& why) { return DatabaseFailure{SQLITE_CORRUPT, why}; }
    static DatabaseFailure strange(const Row& row) {
        return strange(fmt::format("it holds the {} '{}', which no database of autotune has", std::get<0>(row),
                                   one_line(std::string_view{std::get<1>(row)}.substr(0, 64))));
    }
    static bool is_table(const Row& row, std::string_view name) {
        return std::get<0>(row) == "table" && std::get<1>(row) == name;
    }

    /// Views in the place of tables, triggers, virtual tables and columns that are worked out.
    void require_nothing_that_runs() {
        for (const Row& row : found_)
            if (std::get<0>(row) != "table" && std::get<0>(row) != "index") throw strange(row);
        Query page = database_.query("SELECT type, name FROM sqlite_schema WHERE NOT rootpage > 0");
        if (page.step()) throw strange(fmt::format("it holds the virtual table '{}'", page.text(1)));
        for (const Row& row : found_) {
            if (std::get<0>(row) != "table") continue;
            Query column = database_.query("SELECT name FROM pragma_table_xinfo(?) WHERE hidden > 0");
            column.bind(std::get<1>(row));
            if (column.step())
                throw strange(fmt::format("column '{}' of '{}' is worked out", column.text(0), std::get<1>(row)));
        }
    }

    using Columns = std::set<std::tuple<std::string, std::string, std::int64_t, std::string, std::int64_t>>;
    static Columns columns_of(Database& database, std::string_view table) {
        Columns columns;
        Query row = database.query("SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_xinfo(?)");
        row.bind(table);
        while (row.step()) columns.emplace(row.text(0), row.text(1), row.integer(2), row.text(3), row.integer(4));
        Query kind = database.query("SELECT wr, strict FROM pragma_table_list(?)");
        kind.bind(table);
        while (kind.step()) columns.emplace("", "", kind.integer(0), "", kind.integer(1));
        return columns;
    }
    void require_same_columns(std::string_view table) {
        Database ours = Database::in_memory();
        ours.execute(std::string{schema_}.c_str());
        if (columns_of(database_, table) != columns_of(ours, table))
            throw strange(fmt::format("the table '{}' has other columns", table));
    }

    /// Of what a migration left, the letters may differ. A word that ours does not have, such as CHECK or COLLATE, may
    /// not be there.
    void require_nothing_more() {
        const SchemaRows& ours = our_schema_rows(schema_);
        const std::set<std::string> words = words_of(schema_);
        for (const Row& row : found_) {
            if (ours.contains(row)) continue;
            const bool known = std::ranges::any_of(ours, [&](const Row& one) {
                return is_table(one, std::get<1>(row)) && is_table(row, std::get<1>(row));
            });
            if (!known) throw strange(row);
            for (const std::string& word : words_of(std::get<3>(row)))
                if (!words.contains(word))
                    throw strange(fmt::format("the table '{}' is made with '{}'", std::get<1>(row), word));
        }
        for (const Row& row : ours)
            if (std::get<0>(row) == "index" && !found_.contains(row))
                throw strange(fmt::format("it lacks the index '{}'", std::get<1>(row)));
    }
    static std::set<std::string> words_of(std::string_view sql) {
        std::set<std::string> words;
        std::string word;
        for (const char c : sql) {
            const bool part = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
            if (part) {
                word += c;
            } else if (!word.empty()) {
                words.insert(std::exchange(word, {}));
            }
        }
        return words;
    }

    Database& database_;
    std::string_view schema_;
    const SchemaRows& found_;
};

}  // namespace

SchemaRows schema_rows(Database& database) {
    SchemaRows rows;
    Query row = database.query("SELECT type, name, tbl_name, sql FROM sqlite_schema");
    while (row.step()) {
        if (row.text(3) == "CREATE TABLE sqlite_stat1(tbl,idx,stat)") continue;
        rows.emplace(row.text(0), row.text(1), row.text(2), row.text(3));
        if (rows.size() > 64) break;  // ours has fewer: it differs already
    }
    return rows;
}

const SchemaRows& our_schema_rows(std::string_view schema) {
    const auto made = [](const char* text) {
        Database database = Database::in_memory();
        database.execute(text);
        return schema_rows(database);
    };
    static const SchemaRows tune = made(tune_schema), trials = made(trials_schema);
    return schema == tune_schema ? tune : trials;
}

const SchemaRows& tune_schema_rows(int version) {
    if (version == schema_version) return our_schema_rows(tune_schema);
    static const SchemaRows first = [] {
        Database database = Database::in_memory();
        database.execute(tune_schema_1);
        return schema_rows(database);
    }();
    return first;
}

void require_our_schema(Database& database, std::string_view schema) {
    const SchemaRows found = schema_rows(database);
    if (found != our_schema_rows(schema)) SchemaComparison{database, schema, found}.run();
}

}  // namespace autotune

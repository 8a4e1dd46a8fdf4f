#include "cache/store/released_steps.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "cache/store/crc32.h"
#include "cache/store/database.h"
#include "cache/store/entities.h"
#include "cache/store/json.h"
#include "cache/store/key_form.h"
#include "cache/store/schema.h"
#include "cache/store/seats.h"
#include "cache/store/shared_rows.h"

namespace autotune {

namespace {

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

}  // namespace

void tell_who_brought_rows(Database& tune) {
    tune.execute(tune_additions_2);
    tune.query("UPDATE import_log SET policy = ? WHERE policy = 'merge'").bind(old_merge).run();
    tune.execute(R"sql(
UPDATE run SET import = CAST(substr(origin, 8) AS INTEGER) WHERE origin GLOB 'import:[0-9]*';
UPDATE record SET import = (SELECT import FROM run WHERE id = record.run)
    WHERE run IN (SELECT id FROM run WHERE import > 0);
UPDATE predicted SET import = (SELECT import FROM run WHERE id = predicted.run)
    WHERE run IN (SELECT id FROM run WHERE import > 0);
INSERT INTO device_beside SELECT DISTINCT d.id, r.import, d.name, d.vendor, d.core_khz, d.mig, d.ecc, d.pci_id,
    d.attrs_json FROM device d JOIN run r ON r.device = d.id WHERE r.import > 0;
)sql");
}

namespace {

/// Sets the tables aside and makes them anew, empty.
void make_anew(Database& db, std::string_view schema, std::span<const std::string_view> old,
               std::span<const std::string_view> made) {
    // Else what names a table would follow it to its other name.
    db.execute("PRAGMA legacy_alter_table = ON");
    for (const std::string_view table : old)
        db.execute(fmt::format("ALTER TABLE {0} RENAME TO old_{0}", table).c_str());
    db.execute("PRAGMA legacy_alter_table = OFF");
    for (const std::string_view what : made) db.execute(statement_of(schema, what).c_str());
}

/// Carries the rows of schema 2 over.
class Retelling {
public:
    explicit Retelling(Database& db) : db_{db} {}

    void run() {
        constexpr std::array<std::string_view, 8> old{"device",        "problem",  "run",       "record",
                                                      "record_beside", "negative", "predicted", "predicted_beside"};
        constexpr std::array<std::string_view, 11> made{
            "TABLE device",        "TABLE form",           "TABLE setting",         "TABLE run",
            "INDEX run_by_number", "INDEX run_by_problem", "TABLE record",          "TABLE record_beside",
            "TABLE negative",      "TABLE predicted",      "TABLE predicted_beside"};
        db_.execute("DROP INDEX run_by_subject");
        make_anew(db_, tune_schema, old, made);
        devices();
        environments();
        problems();
        runs();
        for (const char* table : {"record", "record_beside"}) records(table);
        for (const char* table : {"predicted", "predicted_beside"}) predictions(table);
        negatives();
        for (const std::string_view table : old) db_.execute(fmt::format("DROP TABLE old_{}", table).c_str());
    }

private:
    struct Run {
        std::string text;  ///< its uuid as it was
        RunUuid uuid{};
        SharedRow setting{};
        SearchEffort effort{};
    };
    struct Problem {
        ProblemRef ref{};
        std::uint32_t crc = 0;
    };

    void devices() {
        db_.execute(
            "INSERT INTO device SELECT id, fp, name, vendor, cc, sm, core_khz, bw_gbs, l2, smem_block, smem_sm, "
            "regs_sm, threads_sm, mem_gib, mig, ecc, pci_id, attrs_json, EXISTS (SELECT 1 FROM old_run r WHERE "
            "r.device "
            "= d.id AND r.import = 0), 0 FROM old_device d");
        std::unordered_map<std::int64_t, std::uint32_t> crcs;
        {
            const std::string sql = fmt::format("SELECT {}, id FROM device", device_columns);
            Query row = db_.query(sql);
            while (row.step()) {
                fps_[row.integer(16)] = row.text(0);
                try {
                    crcs[row.integer(16)] = crc_of(read_device(row));
                } catch (const std::exception&) {  // it was damaged, and stays so
                }
            }
        }
        for (const auto& [id, crc] : crcs) db_.query("UPDATE device SET crc = ? WHERE id = ?").bind(crc, id).run();
    }

    void environments() {
        Query row = db_.query("SELECT id, hash FROM env");
        while (row.step()) environments_[row.integer(0)] = row.text(1);
    }

    void problems() {
        std::string layout;
        std::unordered_map<std::string, std::int64_t> forms;
        Query row = db_.query("SELECT id, op, key, text_json FROM old_problem ORDER BY id");
        while (row.step()) {
            Problem& problem = problems_[row.integer(0)];
            problem.crc = crc32(row.blob(2));
            KeyForm::split(row.blob(2), layout, problem.ref.numbers);
            const auto [at, is_new] = forms.try_emplace(std::string{row.text(1)} + '\0' + layout);
            if (is_new) {
                std::vector<std::string> names;
                try {
                    ProblemIdentity told;
                    read_problem_json(parse_json(row.text(3)), told);
                    names = names_of(told);
                } catch (const std::exception&) {
                    names = names_in(row.blob(2));
                }
                at->second = intern_form(db_, row.text(1), layout, names);
            }
            problem.ref.form = at->second;
        }
    }

    void runs() {
        std::unordered_map<std::string, SharedRow> settings;
        Query row = db_.query(
            "SELECT uuid, device, env, problem, started, ended, strategy, seed, budget, effort, clock_policy, "
            "locked_mhz, power_w, temp_max, l2_policy, graph_mode, tolerance, reference, host_hash, origin, predicted, "
            "import, id FROM old_run ORDER BY id");
        while (row.step()) {
            const auto text = [&row](int column) { return std::string{row.text(column)}; };
            const RunInfo info{.uuid = text(0),
                               .strategy = text(6),
                               .seed = static_cast<std::uint64_t>(row.integer(7)),
                               .budget = text(8),
                               .effort = search_effort_named(row.text(9)).value_or(SearchEffort::normal),
                               .clock_policy = text(10),
                               .locked_mhz = static_cast<int>(row.integer(11)),
                               .power_w = row.real(12),
                               .temperature_max = row.real(13),
                               .l2_policy = text(14),
                               .method = text(15),
                               .reference = text(17),
                               .tolerance = text(16),
                               .host_hash = text(18),
                               .origin = text(19),
                               .started = row.integer(4),
                               .ended = row.integer(5)};
            const Setting setting{.device = row.integer(1),
                                  .environment = row.integer(2),
                                  .predicted = row.integer(20) != 0,
                                  .run = info};
            const std::string &fp = fps_[setting.device], &environment = environments_[setting.environment];
            const auto [at, is_new] =
                settings.try_emplace(hash_of_setting(fp, environment, setting.predicted, setting.local(), info));
            if (is_new) at->second = intern_setting(db_, setting, fp, environment);
            const std::int64_t import = row.integer(21), id = row.integer(22);
            const auto problem = problems_.find(row.integer(3));
            insert_run(db_, info, problem == problems_.end() ? ProblemRef{} : problem->second.ref, at->second,
                       import == 0 && setting.local() ? std::optional{id} : std::nullopt, import);
            runs_[id] = {.text = info.uuid, .uuid = run_uuid(info.uuid), .setting = at->second, .effort = info.effort};
        }
    }

    void records(std::string_view table) {
        const std::string insert =
            fmt::format("INSERT OR IGNORE INTO {} ({}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", table,
                        SeatSql<RecordSeats>::list(RecordSeats::count));
        const std::string select = fmt::format(
            "SELECT device, template, problem, nvrtc_major, nvrtc_minor, rank, import, config, time_ns, lo_ns, hi_ns, "
            "samples, default_ns, evaluated, space_size, verified, max_err, run, tuned_at, crc FROM old_{}",
            table);
        Query row = db_.query(select);
        while (row.step()) {
            const auto problem = problems_.find(row.integer(2));
            const auto run = runs_.find(row.integer(17));
            if (problem == problems_.end() || run == runs_.end()) continue;
            RecordRow out{.key = {.device = row.integer(0),
                                  .source = row.integer(1),
                                  .problem = problem->second.ref,
                                  .nvrtc_major = static_cast<int>(row.integer(3)),
                                  .nvrtc_minor = static_cast<int>(row.integer(4)),
                                  .rank = static_cast<int>(row.integer(5))},
                          .config = row.integer(7),
                          .run = run->second.uuid,
                          .setting = run->second.setting,
                          .time_ns = row.integer(8),
                          .low_ns = row.integer(9),
                          .high_ns = row.integer(10),
                          .samples = row.integer(11),
                          .default_ns = row.null(12) ? -1 : row.integer(12),
                          .evaluated = row.integer(13),
                          .space_size = row.integer(14),
                          .verified = row.integer(15),
                          .tuned_at = row.integer(18),
                          .max_error = row.real(16),
                          .crc = static_cast<std::uint32_t>(row.integer(19))};
            if (text_of(out.run) != run->second.text) tell_of_run(out, problem->second.crc, run->second);
            Query put = db_.query(insert);
            for (int i = 0; i < RecordSeats::count; ++i)
                RecordSeats::give(out, row.integer(6), i, [&](const auto& value) { put.bind_at(i + 1, value); });
            put.run();
        }
    }

    /// Where the uuid of a sound row's run is another one now, its checksum is too.
    void tell_of_run(RecordRow& row, std::uint32_t problem, const Run& run) {
        const auto text = [this](std::string_view sql, std::int64_t id) {
            Query found = db_.query(sql);
            found.bind(id);
            return found.step() ? std::string{found.text(0)} : std::string{};
        };
        CrcParts parts{.device = crc32(fps_[row.key.device]),
                       .source = crc32(text("SELECT hash FROM template WHERE id = ?", row.key.source)),
                       .problem = problem,
                       .config = crc32(text("SELECT variant || ' ' || hash FROM config WHERE id = ?", row.config)),
                       .run = crc32(run.text)};
        const std::array<std::int64_t, 13> numbers{row.key.nvrtc_major,
                                                   row.key.nvrtc_minor,
                                                   row.key.rank,
                                                   row.time_ns,
                                                   row.low_ns,
                                                   row.high_ns,
                                                   row.samples,
                                                   row.default_ns,
                                                   row.evaluated,
                                                   row.space_size,
                                                   static_cast<std::int64_t>(run.effort),
                                                   row.verified,
                                                   row.tuned_at};
        if (crc_of_row(parts, numbers, row.max_error) != row.crc) return;
        parts.run = crc_of(row.run);
        row.crc = crc_of_row(parts, numbers, row.max_error);
    }

    void predictions(std::string_view table) {
        const std::string insert = fmt::format("INSERT OR IGNORE INTO {} ({}) VALUES (?,?,?,?,?,?,?,?,?,?,?)", table,
                                               SeatSql<PredictionSeats>::list(PredictionSeats::count));
        Query row = db_.query(fmt::format(
            "SELECT device_model, template, problem, model_version, rank, import, config, time_ns, checked, run FROM "
            "old_{}",
            table));
        while (row.step()) {
            const auto problem = problems_.find(row.integer(2));
            const auto run = runs_.find(row.integer(9));
            if (problem == problems_.end() || run == runs_.end()) continue;
            const PredictionRow out{.key = {.model = std::string{row.text(0)},
                                            .source = row.integer(1),
                                            .problem = problem->second.ref,
                                            .model_version = std::string{row.text(3)},
                                            .rank = row.integer(4)},
                                    .config = row.integer(6),
                                    .time_ns = row.integer(7),
                                    .checked = row.integer(8) != 0,
                                    .run = run->second.uuid};
            Query put = db_.query(insert);
            for (int i = 0; i < PredictionSeats::count; ++i)
                PredictionSeats::give(out, row.integer(5), i, [&](const auto& value) { put.bind_at(i + 1, value); });
            put.run();
        }
    }

    void negatives() {
        Query row = db_.query("SELECT device, template, config, problem, env, outcome, run FROM old_negative");
        while (row.step()) {
            const auto found = problems_.find(row.integer(3));
            if (row.integer(3) != 0 && found == problems_.end()) continue;
            const ProblemRef of = row.integer(3) == 0 ? ProblemRef{} : found->second.ref;
            db_.query(
                   "INSERT OR IGNORE INTO negative (device, template, config, form, numbers, env, outcome, run) VALUES "
                   "(?,?,?,?,?,?,?,?)")
                .bind(row.integer(0), row.integer(1), row.integer(2), of.form, of.blob(), row.integer(4), row.text(5),
                      row.null(6) ? std::nullopt : std::optional{row.integer(6)})
                .run();
        }
    }

    Database& db_;
    std::unordered_map<std::int64_t, std::string> fps_, environments_;  ///< hashes by id
    std::unordered_map<std::int64_t, Problem> problems_;
    std::unordered_map<std::int64_t, Run> runs_;
};

}  // namespace

void say_nothing_twice(Database& tune) { Retelling{tune}.run(); }

void leave_problems_to_runs(Database& trials) {
    constexpr std::array<std::string_view, 1> old{"trial"}, made{"TABLE trial"};
    make_anew(trials, trials_schema, old, made);
    trials.execute(
        "INSERT OR IGNORE INTO trial SELECT run, config, template, ordinal, outcome, time_ns, samples, predicted, "
        "tainted, ended, facts_json, log, crc FROM old_trial; DROP TABLE old_trial");
}

}  // namespace autotune

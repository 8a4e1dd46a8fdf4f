#include "cache/store/rows.h"

#include <fmt/core.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "cache/store/crc32.h"
#include "cache/store/json.h"
#include "cache/store/row_feed.h"

namespace autotune {

namespace {

/// The id the select gives, else that of the row that insert makes.
template <class Select, class Insert>
std::int64_t id_of(Database& database, Select&& select, Insert&& insert) {
    if (const std::optional<std::int64_t> id = select()) return *id;
    insert();
    return database.last_id();
}

/// A text of the user's may be no UTF-8: the key holds it as it is, people see a replacement.
std::string dumped(const nlohmann::json& out) {
    return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// The first eight whole numbers among the fields: range queries use them.
std::array<std::optional<std::int64_t>, 8> dims_of(const ProblemIdentity& problem) {
    std::array<std::optional<std::int64_t>, 8> dims;
    std::size_t next = 0;
    for (const auto& [name, value] : problem.fields)
        if (const auto* number = std::get_if<std::int64_t>(&value); number && next < dims.size())
            dims[next++] = *number;
    return dims;
}

/// Runs `read` once an id; damaged JSON is as good as no row.
template <class Cache, class Read>
auto* cached(Cache& cache, std::int64_t id, Read&& read) {
    auto found = cache.find(id);
    if (found == cache.end()) {
        found = cache.emplace(id, std::nullopt).first;
        try {
            found->second = read();
        } catch (const std::exception&) {
            found->second.reset();
        }
    }
    return found->second ? &*found->second : nullptr;
}

}  // namespace

std::string model_of(const DeviceIdentity& device) {
    return fmt::format("sm_{}, {} SMs", device.limits.cc, device.limits.sm_count);
}

std::string attributes_text(const DeviceIdentity& device) { return device_attributes(device).dump(); }

std::int64_t intern(Database& database, const DeviceIdentity& d) {
    return id_of(
        database, [&] { return database.integer_of("SELECT id FROM device WHERE fp = ?", d.fp); },
        [&] {
            const DeviceLimits& l = d.limits;
            database
                .query(
                    "INSERT INTO device (fp, name, vendor, cc, sm, core_khz, bw_gbs, l2, smem_block, smem_sm, regs_sm, "
                    "threads_sm, mem_gib, mig, ecc, pci_id, attrs_json) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")
                .bind(d.fp, d.name, d.vendor, l.cc, l.sm_count, d.core_khz, d.bandwidth_gbs, l.l2_bytes, l.max_shared,
                      l.shared_per_sm, l.registers_per_sm, l.threads_per_sm,
                      static_cast<double>(l.memory_bytes) / (1024.0 * 1024.0 * 1024.0), d.mig, d.ecc, d.pci_id,
                      attributes_text(d))
                .run();
        });
}

std::int64_t intern(Database& database, const Environment& e) {
    const std::string hash = e.hash();
    return id_of(
        database, [&] { return database.integer_of("SELECT id FROM env WHERE hash = ?", hash); },
        [&] {
            database
                .query(
                    "INSERT INTO env (hash, nvrtc_major, nvrtc_minor, driver, runtime, emulator, tool_version, os) "
                    "VALUES (?,?,?,?,?,?,?,?)")
                .bind(hash, e.nvrtc_major, e.nvrtc_minor, e.driver, e.runtime, e.emulator, e.tool_version, e.os)
                .run();
        });
}

std::int64_t intern(Database& database, const TemplateIdentity& t) {
    const std::string hash = t.hash();
    return id_of(
        database, [&] { return database.integer_of("SELECT id FROM template WHERE hash = ?", hash); },
        [&] {
            database
                .query(
                    "INSERT INTO template (hash, op, variant, source_hash, space_hash, abi, manifest_json) "
                    "VALUES (?,?,?,?,?,?,?)")
                .bind(hash, t.op, t.variant, t.source_hash, t.space_hash, t.abi, t.manifest)
                .run();
        });
}

std::int64_t intern(Database& database, const ProblemIdentity& p) {
    const std::span<const std::byte> key{p.key};
    return id_of(
        database, [&] { return database.integer_of("SELECT id FROM problem WHERE op = ? AND key = ?", p.op, key); },
        [&] {
            const auto d = dims_of(p);
            database
                .query(
                    "INSERT INTO problem (op, key, d0, d1, d2, d3, d4, d5, d6, d7, text_json) VALUES "
                    "(?,?,?,?,?,?,?,?,?,?,?)")
                .bind(p.op, key, d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7], problem_json_text(p))
                .run();
        });
}

namespace {

class FedProblems : public FedRows {
public:
    FedProblems(std::span<const ProblemIdentity* const> problems, std::int64_t first_id) : first_id_{first_id} {
        rows_.reserve(problems.size());
        for (const ProblemIdentity* p : problems)
            rows_.push_back({.problem = p, .dims = dims_of(*p), .text = problem_json_text(*p)});
    }
    std::size_t count() const noexcept override { return rows_.size(); }
    std::int64_t mark(std::size_t row) const noexcept override { return id(row); }
    std::int64_t id(std::size_t row) const noexcept { return first_id_ + static_cast<std::int64_t>(row); }
    void give(sqlite3_context* to, std::size_t row, int column) const noexcept override {
        const Row& r = rows_[row];
        const auto text = [to](std::string_view value) {
            sqlite3_result_text64(to, value.data() ? value.data() : "", value.size(), SQLITE_STATIC, SQLITE_UTF8);
        };
        if (column == 0) return sqlite3_result_int64(to, id(row));
        if (column == 1) return text(r.problem->op);
        if (column == 2)
            return sqlite3_result_blob64(to,
                                         r.problem->key.empty() ? static_cast<const void*>("") : r.problem->key.data(),
                                         r.problem->key.size(), SQLITE_STATIC);
        constexpr int first_dim = 3, text_column = 11;
        if (column == text_column) return text(r.text);
        if (column > text_column) return;
        if (const auto& dim = r.dims[static_cast<std::size_t>(column - first_dim)]) sqlite3_result_int64(to, *dim);
    }

private:
    struct Row {
        const ProblemIdentity* problem;
        std::array<std::optional<std::int64_t>, 8> dims;
        std::string text;
    };
    std::vector<Row> rows_;
    std::int64_t first_id_;
};

}  // namespace

std::vector<std::int64_t> intern(Database& database, std::span<const ProblemIdentity* const> problems) {
    constexpr std::size_t few = 8;
    constexpr std::int64_t largest_id = std::int64_t{1} << 62;  // of a damaged file; ids after it would not be larger
    const std::int64_t last = database.integer_of("SELECT max(id) FROM problem").value_or(0);
    std::vector<std::int64_t> ids;
    ids.reserve(problems.size());
    if (problems.size() <= few || last < 0 || last > largest_id) {
        for (const ProblemIdentity* problem : problems) ids.push_back(intern(database, *problem));
        return ids;
    }
    const FedProblems rows{problems, last + 1};
    for (std::size_t i = 0; i < problems.size(); ++i) ids.push_back(rows.id(i));
    const std::vector<std::size_t> met =
        feed(database,
             "INSERT INTO problem (id, op, key, d0, d1, d2, d3, d4, d5, d6, d7, text_json) SELECT c0, c1, c2, c3, c4, "
             "c5, c6, c7, c8, c9, c10, c11 FROM autotune_feed(?1) WHERE true ON CONFLICT DO UPDATE SET op = op WHERE "
             "autotune_feed_met(?1, excluded.id)",
             rows);
    for (const std::size_t i : met) ids[i] = intern(database, *problems[i]);
    return ids;
}

std::int64_t intern(Database& database, std::string_view op, const Config& config) {
    const std::string hash = config.hash();
    return id_of(
        database,
        [&] {
            return database.integer_of("SELECT id FROM config WHERE op = ? AND variant = ? AND hash = ?", op,
                                       config.variant, hash);
        },
        [&] {
            database.query("INSERT INTO config (op, variant, hash, body_json) VALUES (?,?,?,?)")
                .bind(op, config.variant, hash, dumped(to_json(config)))
                .run();
        });
}

bool is_of_here(Database& database, std::int64_t device) {
    return database.integer_of("SELECT 1 FROM run WHERE device = ? AND import = 0 LIMIT 1", device).has_value();
}

void describe(Database& database, std::int64_t id, const DeviceIdentity& d) {
    database
        .query(
            "UPDATE device SET name = ?, vendor = ?, mig = ?, pci_id = ?, core_khz = ?, ecc = ?, attrs_json = ? "
            "WHERE id = ?")
        .bind(d.name, d.vendor, d.mig, d.pci_id, d.core_khz, d.ecc, attributes_text(d), id)
        .run();
}

void mend(Database& database, std::int64_t id, const DeviceIdentity& d) {
    Entities entities{database};
    const auto* there = entities.device(id);
    if (there && there->value.name == d.name && there->value.vendor == d.vendor && there->value.mig == d.mig &&
        there->value.pci_id == d.pci_id && there->value.core_khz == d.core_khz && there->value.ecc == d.ecc &&
        attributes_text(there->value) == attributes_text(d))
        return;
    describe(database, id, d);
}

void mend(Database& database, std::int64_t id, const Environment& e) {
    if (Entities{database}.environment(id)) return;
    database
        .query(
            "UPDATE env SET nvrtc_major = ?, nvrtc_minor = ?, driver = ?, runtime = ?, emulator = ?, tool_version = ?, "
            "os = ? WHERE id = ?")
        .bind(e.nvrtc_major, e.nvrtc_minor, e.driver, e.runtime, e.emulator, e.tool_version, e.os, id)
        .run();
}

void mend(Database& database, std::int64_t id, const TemplateIdentity& t) {
    if (Entities{database}.source(id)) return;
    database
        .query(
            "UPDATE template SET op = ?, variant = ?, source_hash = ?, space_hash = ?, abi = ?, manifest_json = ? "
            "WHERE id = ?")
        .bind(t.op, t.variant, t.source_hash, t.space_hash, t.abi, t.manifest, id)
        .run();
}

void mend(Database& database, std::int64_t id, const ProblemIdentity& p) {
    if (Entities{database}.problem(id)) return;
    database.query("UPDATE problem SET text_json = ? WHERE id = ?").bind(dumped(to_json(p)), id).run();
}

void mend(Database& database, std::int64_t id, const Config& config) {
    if (Entities{database}.config(id)) return;
    database.query("UPDATE config SET body_json = ? WHERE id = ?").bind(dumped(to_json(config)), id).run();
}

std::int64_t insert_run(Database& database, const RunInfo& r, std::int64_t device, std::int64_t environment,
                        std::int64_t problem, bool predicted, std::int64_t import) {
    database
        .query(
            "INSERT INTO run (uuid, device, env, problem, started, ended, strategy, seed, budget, effort, "
            "clock_policy, "
            "locked_mhz, power_w, temp_max, l2_policy, graph_mode, tolerance, reference, host_hash, origin, predicted, "
            "import) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")
        .bind(r.uuid, device, environment, problem, r.started, r.ended, r.strategy, r.seed, r.budget, name_of(r.effort),
              r.clock_policy, r.locked_mhz, r.power_w, r.temperature_max, r.l2_policy, r.method, r.tolerance,
              r.reference, r.host_hash, r.origin, predicted, import)
        .run();
    return database.last_id();
}

Interning::Part Interning::device(const DeviceIdentity& device) {
    const auto [at, is_new] = devices_.try_emplace(device.fp);
    if (is_new) {
        at->second = {.id = intern(database_, device), .crc = crc32(device.fp)};
        if (!is_of_here(database_, at->second.id)) describe(database_, at->second.id, device);
    }
    return at->second;
}

Interning::Part Interning::environment(const Environment& environment) {
    for (const auto& [known, part] : environments_)
        if (known == environment) return part;
    environments_.emplace_back(environment, Part{.id = intern(database_, environment)});
    return environments_.back().second;
}

Interning::Part Interning::source(const TemplateIdentity& source) {
    name_.assign(source.op).append(1, '\0').append(source.variant).append(1, '\0');
    name_.append(source.source_hash).append(1, '\0').append(source.space_hash).append(1, '\0');
    name_.append(reinterpret_cast<const char*>(&source.abi), sizeof source.abi);
    const auto [at, is_new] = sources_.try_emplace(name_);
    if (is_new) at->second = {.id = intern(database_, source), .crc = crc32(source.hash())};
    return at->second;
}

Interning::Part Interning::config(std::string_view op, const Config& config) {
    name_.assign(op).append(1, '\0').append(config.variant);
    for (const auto& [parameter, value] : config.values) {
        name_.append(1, '\0').append(parameter).append(1, static_cast<char>(value.index()));
        if (const auto* number = std::get_if<std::int64_t>(&value)) {
            name_.append(reinterpret_cast<const char*>(number), sizeof *number);
        } else {
            // With its length, so that no word reads as the next parameter.
            const std::string text = to_text(value);
            const std::size_t length = text.size();
            name_.append(reinterpret_cast<const char*>(&length), sizeof length).append(text);
        }
    }
    const auto [at, is_new] = configs_.try_emplace(name_);
    if (is_new) at->second = {.id = intern(database_, op, config), .crc = crc32(config.variant + ' ' + config.hash())};
    return at->second;
}

/// Ranks of one problem come one after another.
std::vector<Interning::Part> Interning::problems(std::span<const Record> records) {
    std::vector<const ProblemIdentity*> distinct;
    std::vector<std::size_t> places;
    for (const Record& record : records) {
        const ProblemIdentity& p = record.problem;
        if (distinct.empty() || distinct.back()->op != p.op || distinct.back()->key != p.key) distinct.push_back(&p);
        places.push_back(distinct.size() - 1);
    }
    const std::vector<std::int64_t> ids = intern(database_, distinct);
    std::vector<Part> parts;
    parts.reserve(records.size());
    for (const std::size_t place : places)
        parts.push_back({.id = ids[place], .crc = crc32(std::span<const std::byte>{distinct[place]->key})});
    return parts;
}

Interning::Part Interning::run(const Record& record, const Subject& subject) {
    const std::string& uuid = record.run.uuid;
    if (run_.id == 0 || run_uuid_ != uuid) {
        run_ = {.id = database_.integer_of("SELECT id FROM run WHERE uuid = ?", uuid).value_or(0), .crc = crc32(uuid)};
        if (run_.id == 0)
            run_.id = insert_run(database_, record.run, subject.device, subject.environment, subject.problem,
                                 record.predicted, import_);
        else if (import_ == 0)  // an import may have brought it before
            database_.query("UPDATE run SET import = 0 WHERE id = ? AND import <> 0").bind(run_.id).run();
        run_uuid_ = uuid;
    }
    return run_;
}

namespace {

class FedRuns : public FedRows {
public:
    struct Row {
        const Record* record;
        Interning::Subject subject;
    };
    FedRuns(std::span<const Row> rows, std::int64_t first_id, std::int64_t import)
        : rows_{rows}, first_id_{first_id}, import_{import} {}
    std::size_t count() const noexcept override { return rows_.size(); }
    std::int64_t mark(std::size_t row) const noexcept override { return id(row); }
    std::int64_t id(std::size_t row) const noexcept { return first_id_ + static_cast<std::int64_t>(row); }
    void give(sqlite3_context* to, std::size_t row, int column) const noexcept override {
        const auto& [record, subject] = rows_[row];
        const RunInfo& r = record->run;
        const auto number = [to](std::int64_t value) { sqlite3_result_int64(to, value); };
        const auto text = [to](std::string_view value) {
            sqlite3_result_text64(to, value.data() ? value.data() : "", value.size(), SQLITE_STATIC, SQLITE_UTF8);
        };
        switch (column) {
            case 0:
                return number(id(row));
            case 1:
                return text(r.uuid);
            case 2:
                return number(subject.device);
            case 3:
                return number(subject.environment);
            case 4:
                return number(subject.problem);
            case 5:
                return number(r.started);
            case 6:
                return number(r.ended);
            case 7:
                return text(r.strategy);
            case 8:
                return number(static_cast<std::int64_t>(r.seed));
            case 9:
                return text(r.budget);
            case 10:
                return text(name_of(r.effort));
            case 11:
                return text(r.clock_policy);
            case 12:
                return number(r.locked_mhz);
            case 13:
                return sqlite3_result_double(to, r.power_w);
            case 14:
                return sqlite3_result_double(to, r.temperature_max);
            case 15:
                return text(r.l2_policy);
            case 16:
                return text(r.method);
            case 17:
                return text(r.tolerance);
            case 18:
                return text(r.reference);
            case 19:
                return text(r.host_hash);
            case 20:
                return text(r.origin);
            case 21:
                return number(record->predicted ? 1 : 0);
            default:
                return number(import_);
        }
    }

private:
    std::span<const Row> rows_;
    std::int64_t first_id_, import_;
};

}  // namespace

std::vector<Interning::Part> Interning::runs(std::span<const Record> records, std::span<const Subject> subjects) {
    constexpr std::size_t few = 8;
    constexpr std::int64_t largest_id = std::int64_t{1} << 62;  // of a damaged file; ids after it would not be larger
    std::vector<FedRuns::Row> distinct;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < records.size(); ++i) {
        if (distinct.empty() || distinct.back().record->run.uuid != records[i].run.uuid)
            distinct.push_back({&records[i], subjects[i]});
        places.push_back(distinct.size() - 1);
    }
    std::vector<Part> of_distinct;
    of_distinct.reserve(distinct.size());
    const std::int64_t last = database_.integer_of("SELECT max(id) FROM run").value_or(0);
    if (distinct.size() <= few || last < 0 || last > largest_id) {
        for (const auto& [record, subject] : distinct) of_distinct.push_back(run(*record, subject));
    } else {
        const FedRuns rows{distinct, last + 1, import_};
        for (std::size_t i = 0; i < distinct.size(); ++i)
            of_distinct.push_back({.id = rows.id(i), .crc = crc32(distinct[i].record->run.uuid)});
        const std::vector<std::size_t> met =
            feed(database_,
                 "INSERT INTO run (id, uuid, device, env, problem, started, ended, strategy, seed, budget, effort, "
                 "clock_policy, locked_mhz, power_w, temp_max, l2_policy, graph_mode, tolerance, reference, host_hash, "
                 "origin, predicted, import) SELECT c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, "
                 "c15, c16, c17, c18, c19, c20, c21, c22 FROM autotune_feed(?1) WHERE true ON CONFLICT DO UPDATE SET "
                 "uuid = uuid WHERE autotune_feed_met(?1, excluded.id)",
                 rows);
        for (const std::size_t i : met) of_distinct[i] = run(*distinct[i].record, distinct[i].subject);
    }
    std::vector<Part> parts;
    parts.reserve(records.size());
    for (const std::size_t place : places) parts.push_back(of_distinct[place]);
    return parts;
}

const Entities::Row<DeviceIdentity>* Entities::device(std::int64_t id) {
    return cached(devices_, id, [&]() -> std::optional<Row<DeviceIdentity>> {
        Query row = database_.query(
            "SELECT fp, name, vendor, cc, sm, core_khz, bw_gbs, l2, smem_block, smem_sm, regs_sm, threads_sm, mig, "
            "ecc, "
            "pci_id, attrs_json FROM device WHERE id = ?");
        row.bind(id);
        if (!row.step()) return std::nullopt;
        DeviceIdentity d;
        read_device_attributes(nlohmann::json::parse(row.text(15)), d);
        const auto number = [&row](int column) { return static_cast<int>(row.integer(column)); };
        d.fp = row.text(0);
        d.name = row.text(1);
        d.vendor = row.text(2);
        d.limits.cc = number(3);
        d.limits.sm_count = number(4);
        d.core_khz = number(5);
        d.bandwidth_gbs = number(6);
        d.limits.l2_bytes = row.integer(7);
        d.limits.max_shared = number(8);
        d.limits.shared_per_sm = number(9);
        d.limits.registers_per_sm = number(10);
        d.limits.threads_per_sm = number(11);
        d.mig = row.text(12);
        d.ecc = row.integer(13) != 0;
        d.pci_id = row.text(14);
        return Row<DeviceIdentity>{.value = d, .hash = d.fp, .crc = crc32(d.fp)};
    });
}

const Entities::Row<Environment>* Entities::environment(std::int64_t id) {
    return cached(environments_, id, [&]() -> std::optional<Row<Environment>> {
        Query row = database_.query(
            "SELECT hash, nvrtc_major, nvrtc_minor, driver, runtime, emulator, tool_version, os FROM env WHERE id = ?");
        row.bind(id);
        if (!row.step()) return std::nullopt;
        const auto number = [&row](int column) { return static_cast<int>(row.integer(column)); };
        Row<Environment> out{.value = {.nvrtc_major = number(1),
                                       .nvrtc_minor = number(2),
                                       .driver = std::string{row.text(3)},
                                       .runtime = number(4),
                                       .emulator = number(5),
                                       .tool_version = std::string{row.text(6)},
                                       .os = std::string{row.text(7)}},
                             .hash = std::string{row.text(0)}};
        return out.value.hash() == out.hash ? std::optional{out} : std::nullopt;
    });
}

const Entities::Row<TemplateIdentity>* Entities::source(std::int64_t id) {
    return cached(sources_, id, [&]() -> std::optional<Row<TemplateIdentity>> {
        Query row = database_.query(
            "SELECT hash, op, variant, source_hash, space_hash, abi, manifest_json FROM template WHERE id = ?");
        row.bind(id);
        if (!row.step()) return std::nullopt;
        Row<TemplateIdentity> out{.value = {.op = std::string{row.text(1)},
                                            .variant = std::string{row.text(2)},
                                            .source_hash = std::string{row.text(3)},
                                            .space_hash = std::string{row.text(4)},
                                            .abi = static_cast<int>(row.integer(5)),
                                            .manifest = std::string{row.text(6)}},
                                  .hash = std::string{row.text(0)}};
        out.crc = crc32(out.hash);
        return out.value.hash() == out.hash ? std::optional{out} : std::nullopt;
    });
}

const Entities::Row<Config>* Entities::config(std::int64_t id) {
    return cached(configs_, id, [&]() -> std::optional<Row<Config>> {
        Query row = database_.query("SELECT variant, hash, body_json FROM config WHERE id = ?");
        row.bind(id);
        if (!row.step()) return std::nullopt;
        Row<Config> out{.value = config_from_json(std::string{row.text(0)}, nlohmann::json::parse(row.text(2))),
                        .hash = std::string{row.text(1)}};
        out.crc = crc32(out.value.variant + ' ' + out.hash);
        return out.value.hash() == out.hash ? std::optional{out} : std::nullopt;
    });
}

const Entities::RunRow* Entities::run(std::int64_t id) {
    return cached(runs_, id, [&]() -> std::optional<RunRow> {
        Query row = database_.query(
            "SELECT uuid, device, env, problem, started, ended, strategy, seed, budget, effort, clock_policy, "
            "locked_mhz, "
            "power_w, temp_max, l2_policy, graph_mode, tolerance, reference, host_hash, origin, predicted FROM run "
            "WHERE id = ?");
        row.bind(id);
        if (!row.step()) return std::nullopt;
        const auto text = [&row](int column) { return std::string{row.text(column)}; };
        RunRow out{.info = {.uuid = text(0),
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
                            .ended = row.integer(5)},
                   .device = row.integer(1),
                   .environment = row.integer(2),
                   .problem = row.integer(3),
                   .predicted = row.integer(20) != 0};
        out.crc = crc32(out.info.uuid);
        return out;
    });
}

std::optional<ProblemIdentity> Entities::problem(std::int64_t id) {
    Query row = database_.query("SELECT op, key, text_json FROM problem WHERE id = ?");
    row.bind(id);
    if (!row.step()) return std::nullopt;
    ProblemIdentity problem{
        .op = std::string{row.text(0)}, .key = {row.blob(1).begin(), row.blob(1).end()}, .json = {}, .fields = {}};
    try {
        read_problem_json(parse_json(row.text(2)), problem);
    } catch (const std::exception&) {
        return std::nullopt;
    }
    return problem;
}

}  // namespace autotune

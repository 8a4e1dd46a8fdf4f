#include "cache/sharing/intake.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "cache/store/crc32.h"
#include "cache/store/entities.h"
#include "cache/store/json.h"

namespace autotune {

namespace {

std::array<std::int64_t, 13> numbers_of(const RowFigures& f) {
    return {f.nvrtc_major, f.nvrtc_minor, f.rank,       f.time_ns, f.low_ns,   f.high_ns, f.samples,
            f.default_ns,  f.evaluated,   f.space_size, f.effort,  f.verified, f.tuned_at};
}

std::uint32_t crc_of_incoming(const IncomingRow& row, std::uint32_t run_crc) {
    const CrcParts parts{.device = row.device->crc,
                         .source = row.source->crc,
                         .problem = row.problem_crc,
                         .config = row.config->crc,
                         .run = run_crc};
    return crc_of_row(parts, numbers_of(row.figures), row.figures.max_error);
}

constexpr std::string_view description_columns = "name, vendor, mig, pci_id, core_khz, ecc, attrs_json";

/// Of what imports tell of a GPU that this machine has not, the largest stands, whichever came first.
void describe_by_imports(Database& db, std::int64_t device) {
    if (is_of_here(db, device)) return;
    Entities entities{db};
    const auto* there = entities.device(device);
    if (!there) return;
    DeviceIdentity told = there->value;
    {
        Query row = db.query(
            "SELECT name, vendor, mig, pci_id, core_khz, ecc, attrs_json FROM device_beside WHERE device = ?1 ORDER BY "
            "name DESC, vendor DESC, mig DESC, pci_id DESC, core_khz DESC, ecc DESC, attrs_json DESC LIMIT 1");
        row.bind(device);
        if (!row.step()) return;
        told.name = row.text(0);
        told.vendor = row.text(1);
        told.mig = row.text(2);
        told.pci_id = row.text(3);
        told.core_khz = static_cast<int>(row.integer(4));
        told.ecc = row.integer(5) != 0;
        try {
            read_device_attributes(nlohmann::json::parse(row.text(6)), told);
        } catch (const std::exception&) {  // what is damaged tells nothing
            return;
        }
    }
    describe(db, device, told);
}

}  // namespace

std::string objection(const IncomingRow& row) {
    // What a person can mend comes first: the values of the config, before the checksum that they break as well.
    for (const std::string* reason : std::initializer_list<const std::string*>{
             &row.source->refused, &row.config->refused, &row.form->refused, &row.problem_refused, &row.device->refused,
             &row.run->refused, &row.run->environment->refused})
        if (!reason->empty()) return *reason;
    if (const char* reason = row.figures.objection()) return reason;
    if (row.crc && crc_of_incoming(row, row.run->crc) != *row.crc) return "its checksum fails";
    if (row.run->device->value.fp != row.device->value.fp) return "its run was on another GPU";
    if (row.predicted) return {};
    if (row.run->environment->value.nvrtc_major != row.figures.nvrtc_major ||
        row.run->environment->value.nvrtc_minor != row.figures.nvrtc_minor)
        return "its run had another NVRTC";
    return static_cast<std::int64_t>(row.run->value.effort) == row.figures.effort ? "" : "its run had another effort";
}

void Intake::put(std::span<const IncomingRow> rows, std::vector<std::string>& why) {
    std::vector<ProblemRef> problems;
    problems.reserve(rows.size());
    for (const IncomingRow& row : rows) problems.push_back(settle(row));
    settle_runs(rows, problems);
    why.assign(rows.size(), {});
    std::vector<RecordRow> records;
    records.reserve(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        why[i] = rows[i].run->refused_here;
        if (!why[i].empty()) continue;
        if (rows[i].predicted)
            count(contest_.put(prediction_of(rows[i], problems[i]), import_id_));
        else
            records.push_back(record_of(rows[i], problems[i]));
    }
    for (const Put put : contest_.put(records, import_id_)) count(put);
}

/// Gives the row's parts their ids here. Done once a part, and only for rows that are not refused.
ProblemRef Intake::settle(const IncomingRow& row) {
    if (row.device->id == 0) settle_device(*row.device);
    if (row.source->id == 0) {
        row.source->id = intern(db_, row.source->value);
        mend(db_, row.source->id, row.source->value);
    }
    if (row.config->id == 0) {
        row.config->id = intern(db_, row.source->value.op, row.config->value);
        mend(db_, row.config->id, row.config->value);
    }
    if (Part<Environment>& environment = *row.run->environment; environment.id == 0) {
        environment.id = intern(db_, environment.value);
        mend(db_, environment.id, environment.value);
    }
    const JudgedForm& form = row.form->value;
    if (row.form->id == 0) row.form->id = intern_form(db_, form.op, form.form.layout(), form.names, true);
    return {.form = row.form->id, .numbers = row.numbers};
}

/// Of two descriptions in one file the larger counts.
void Intake::settle_device(Part<DeviceIdentity>& device) {
    device.id = intern(db_, device.value);
    if (!Entities{db_}.device(device.id)) describe(db_, device.id, device.value);
    if (is_of_here(db_, device.id)) return;
    const DeviceIdentity& d = device.value;
    db_.query(fmt::format("INSERT INTO device_beside (device, import, {0}) VALUES (?,?,?,?,?,?,?,?,?) ON CONFLICT DO "
                          "UPDATE SET ({0}) = (excluded.name, excluded.vendor, excluded.mig, excluded.pci_id, "
                          "excluded.core_khz, excluded.ecc, excluded.attrs_json) WHERE (excluded.name, "
                          "excluded.vendor, excluded.mig, excluded.pci_id, excluded.core_khz, excluded.ecc, "
                          "excluded.attrs_json) > ({0})",
                          description_columns))
        .bind(device.id, import_id_, d.name, d.vendor, d.mig, d.pci_id, d.core_khz, d.ecc, attributes_text(d))
        .run();
    describe_by_imports(db_, device.id);
}

/// A run of another's that is taken in gets a uuid made of its own, so that no row can pass for one of a run of here.
RunInfo Intake::told_here(RunPart& run) const {
    RunInfo here = run.value;
    const bool was_local = here.origin == "local";
    run.uuid = was_local && trust_ != Trust::own ? uuid_of_imported(here.uuid) : run_uuid(here.uuid);
    if (!was_local || trust_ != Trust::own) {
        here.origin = "import";
        here.host_hash.clear();  // whose machine it was says nothing here
    }
    here.uuid = text_of(run.uuid);
    run.crc_here = crc_of(run.uuid);
    return here;
}

void Intake::settle_runs(std::span<const IncomingRow> rows, std::span<const ProblemRef> problems) {
    std::vector<std::size_t> first;  // the first row of each run that is new
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (!std::exchange(rows[i].run->settled, true)) first.push_back(i);
    std::vector<RunInfo> told;
    std::vector<NewRun> runs;
    told.reserve(first.size());
    for (const std::size_t i : first) {
        RunPart& run = *rows[i].run;
        const RunInfo& here = told.emplace_back(told_here(run));
        run.setting = setting_of({.device = rows[i].device->id,
                                  .environment = run.environment->id,
                                  .predicted = rows[i].predicted,
                                  .run = here},
                                 rows[i].device->value.fp, run.environment->hash);
        runs.push_back({.info = &here, .problem = &problems[i], .uuid = run.uuid, .setting = run.setting});
    }
    for (const std::size_t k : put_runs(db_, runs, import_id_)) {
        RunPart& run = *rows[first[k]].run;
        if (differs(run, told[k], rows[first[k]].device->id))
            run.refused_here = fmt::format("its run {} is another one here", told[k].uuid);
    }
}

/// Runs of a file have few settings.
SharedRow Intake::setting_of(const Setting& setting, std::string_view device_fp, std::string_view environment_hash) {
    const auto [at, is_new] = settings_.try_emplace(
        hash_of_setting(device_fp, environment_hash, setting.predicted, setting.local(), setting.run));
    if (is_new) at->second = intern_setting(db_, setting, device_fp, environment_hash, true);
    return at->second;
}

/// Of the hash of a host, which an own export may leave out, the larger text stands.
bool Intake::differs(const RunPart& run, const RunInfo& told, std::int64_t device) {
    Entities entities{db_};
    const auto* here = entities.run(run.uuid);
    if (!here || here->device != device || here->environment != run.environment->id) return true;
    const RunInfo &a = here->info, &b = told;
    const auto content = [](const RunInfo& r) {
        return std::tie(r.strategy, r.seed, r.budget, r.effort, r.clock_policy, r.locked_mhz, r.power_w,
                        r.temperature_max, r.l2_policy, r.method, r.reference, r.tolerance, r.started, r.ended);
    };
    if (content(a) != content(b) || (a.origin == "local") != (b.origin == "local")) return true;
    if (a.host_hash < b.host_hash)
        db_.query("UPDATE run SET setting = ?, crc = ? WHERE uuid = ?")
            .bind(run.setting.id, short_crc(crc_of_run(run.uuid, a, here->problem, run.setting.crc)),
                  std::span<const std::byte>{run.uuid})
            .run();
    return false;
}

void Intake::count(Put put) {
    kept_any_ = kept_any_ || put != Put::not_better;
    ++(put == Put::added ? taken_.added : put == Put::better ? taken_.better : taken_.not_better);
}

RecordRow Intake::record_of(const IncomingRow& row, const ProblemRef& problem) const {
    RowFigures f = row.figures;
    if (trust_ == Trust::elsewhere) f.verified = static_cast<int>(Verified::elsewhere);
    const CrcParts parts{.device = row.device->crc,
                         .source = row.source->crc,
                         .problem = row.problem_crc,
                         .config = row.config->crc,
                         .run = row.run->crc_here};
    return {.key = {.device = row.device->id,
                    .source = row.source->id,
                    .problem = problem,
                    .nvrtc_major = f.nvrtc_major,
                    .nvrtc_minor = f.nvrtc_minor,
                    .rank = f.rank},
            .config = row.config->id,
            .run = row.run->uuid,
            .setting = row.run->setting,
            .time_ns = f.time_ns,
            .low_ns = f.low_ns,
            .high_ns = f.high_ns,
            .samples = f.samples,
            .default_ns = f.default_ns,
            .evaluated = f.evaluated,
            .space_size = f.space_size,
            .verified = f.verified,
            .tuned_at = f.tuned_at,
            .max_error = f.max_error,
            .crc = crc_of_row(parts, numbers_of(f), f.max_error)};
}

PredictionRow Intake::prediction_of(const IncomingRow& row, const ProblemRef& problem) const {
    return {.key = {.model = model_of(row.device->value),
                    .source = row.source->id,
                    .problem = problem,
                    .model_version = row.model_version,
                    .rank = row.figures.rank},
            .config = row.config->id,
            .time_ns = row.figures.time_ns,
            .checked = trust_ == Trust::own && row.figures.verified != static_cast<int>(Verified::elsewhere),
            .run = row.run->uuid};
}

void forget_descriptions(Database& db, std::int64_t import_id) {
    std::vector<std::int64_t> devices;
    {
        Query row = db.query("SELECT device FROM device_beside WHERE import = ?");
        row.bind(import_id);
        while (row.step()) devices.push_back(row.integer(0));
    }
    db.query("DELETE FROM device_beside WHERE import = ?").bind(import_id).run();
    for (const std::int64_t device : devices) describe_by_imports(db, device);
}

}  // namespace autotune

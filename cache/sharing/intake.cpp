#include "cache/sharing/intake.h"

#include <fmt/format.h>

#include <array>
#include <tuple>
#include <vector>

#include "cache/store/crc32.h"
#include "cache/store/rows.h"
#include "tuner/model/hashing.h"

namespace autotune {

namespace {

constexpr std::size_t uuid_digits = 32;

std::array<std::int64_t, 13> numbers_of(const RowFigures& f) {
    return {f.nvrtc_major, f.nvrtc_minor, f.rank,       f.time_ns, f.low_ns,   f.high_ns, f.samples,
            f.default_ns,  f.evaluated,   f.space_size, f.effort,  f.verified, f.tuned_at};
}

std::uint32_t crc_of_incoming(const IncomingRow& row, std::uint32_t run_crc) {
    const CrcParts parts{.device = row.device->crc,
                         .source = row.source->crc,
                         .problem = row.problem->crc,
                         .config = row.config->crc,
                         .run = run_crc};
    return crc_of_row(parts, numbers_of(row.figures), row.figures.max_error);
}

constexpr std::string_view description_columns = "name, vendor, mig, pci_id, core_khz, ecc, attrs_json";

/// Of what imports tell of a GPU that this machine has not, the largest stands, whichever came first.
void describe_by_imports(Database& db, std::int64_t device) {
    if (is_of_here(db, device)) return;
    db.query(
          fmt::format("UPDATE device SET ({0}) = (SELECT {0} FROM device_beside WHERE device = ?1 ORDER BY name DESC, "
                      "vendor DESC, mig DESC, pci_id DESC, core_khz DESC, ecc DESC, attrs_json DESC LIMIT 1) "
                      "WHERE id = ?1 AND EXISTS (SELECT 1 FROM device_beside WHERE device = ?1)",
                      description_columns))
        .bind(device)
        .run();
}

}  // namespace

std::string Intake::put(IncomingRow& row) {
    std::string why = refusal(row);
    if (why.empty()) why = settle(row);
    if (!why.empty()) return why;
    if (row.predicted)
        put_prediction_row(row);
    else
        add_record(row);
    return why;
}

TakenRows Intake::finish() {
    put_waiting();
    return taken_;
}

std::string Intake::refusal(const IncomingRow& row) const {
    // What a person can mend comes first: the values of the config, before the checksum that they break as well.
    for (const std::string* reason : {&row.source->refused, &row.config->refused, &row.problem->refused,
                                      &row.device->refused, &row.run->refused, &row.run->environment->refused})
        if (!reason->empty()) return *reason;
    if (const char* reason = row.figures.objection()) return reason;
    if (row.crc && crc_of_incoming(row, row.run->crc) != *row.crc) return "its checksum fails";
    if (row.run->device->value.fp != row.device->value.fp) return "its run was on another GPU";
    if (!row.predicted && (row.run->environment->value.nvrtc_major != row.figures.nvrtc_major ||
                           row.run->environment->value.nvrtc_minor != row.figures.nvrtc_minor))
        return "its run had another NVRTC";
    return {};
}

/// Gives the row's parts their ids here, but the problem, of which there are many. Done once a part, and only for rows
/// that are not refused.
std::string Intake::settle(IncomingRow& row) {
    if (row.device->id == 0) settle_device(*row.device);
    if (row.source->id == 0) row.source->id = intern(db_, row.source->value);
    if (row.config->id == 0) row.config->id = intern(db_, row.source->value.op, row.config->value);
    // Lines may tell one GPU in two ways: the row's own is the one that was judged and settled.
    row.run->device = row.device;
    if (row.run->environment->id == 0) row.run->environment->id = intern(db_, row.run->environment->value);
    if (row.run->id == 0) return settle_run(*row.run, row);
    return {};
}

/// Of two descriptions in one file the larger counts.
void Intake::settle_device(Part<DeviceIdentity>& device) {
    device.id = intern(db_, device.value);
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
std::string Intake::settle_run(RunPart& run, const IncomingRow& row) {
    const bool was_local = run.value.origin == "local";
    const bool local = was_local && trust_ == Trust::own;
    if (!local) {
        if (was_local) run.value.uuid = sha256_hex("import " + run.value.uuid).substr(0, uuid_digits);
        run.value.origin = fmt::format("import:{}", import_id_);
        run.value.host_hash.clear();  // whose machine it was says nothing here
    }
    run.crc_here = crc32(run.value.uuid);
    std::int64_t id = db_.integer_of("SELECT id FROM run WHERE uuid = ?", run.value.uuid).value_or(0);
    if (id == 0 && row.problem->id == 0) row.problem->id = intern(db_, row.problem->value);
    if (id == 0)
        id =
            insert_run(db_, run.value, row.device->id, run.environment->id, row.problem->id, row.predicted, import_id_);
    else if (differs(id, run))
        return run.refused = fmt::format("its run {} is another one here", run.value.uuid);
    run.id = id;
    return {};
}

/// Of the hash of a host, which an own export may leave out, the larger text stands.
bool Intake::differs(std::int64_t id, const RunPart& run) {
    Entities entities{db_};
    const auto* here = entities.run(id);
    if (!here || here->device != run.device->id || here->environment != run.environment->id) return true;
    const RunInfo &a = here->info, &b = run.value;
    const auto content = [](const RunInfo& r) {
        return std::tie(r.strategy, r.seed, r.budget, r.effort, r.clock_policy, r.locked_mhz, r.power_w,
                        r.temperature_max, r.l2_policy, r.method, r.reference, r.tolerance, r.started, r.ended);
    };
    if (content(a) != content(b) || (a.origin == "local") != (b.origin == "local")) return true;
    if (a.host_hash < b.host_hash) db_.query("UPDATE run SET host_hash = ? WHERE id = ?").bind(b.host_hash, id).run();
    return false;
}

void Intake::count(Put put) {
    kept_any_ = kept_any_ || put != Put::not_better;
    ++(put == Put::added ? taken_.added : put == Put::better ? taken_.better : taken_.not_better);
}

void Intake::add_record(const IncomingRow& row) {
    constexpr std::size_t rows_at_once = 512;
    RowFigures f = row.figures;
    if (trust_ == Trust::elsewhere) f.verified = static_cast<int>(Verified::elsewhere);
    const CrcParts parts{.device = row.device->crc,
                         .source = row.source->crc,
                         .problem = row.problem->crc,
                         .config = row.config->crc,
                         .run = row.run->crc_here};
    waiting_.push_back({.key = {.device = row.device->id,
                                .source = row.source->id,
                                .nvrtc_major = f.nvrtc_major,
                                .nvrtc_minor = f.nvrtc_minor,
                                .rank = f.rank},
                        .config = row.config->id,
                        .run = row.run->id,
                        .time_ns = f.time_ns,
                        .low_ns = f.low_ns,
                        .high_ns = f.high_ns,
                        .samples = f.samples,
                        .default_ns = f.default_ns,
                        .evaluated = f.evaluated,
                        .space_size = f.space_size,
                        .effort = f.effort,
                        .verified = f.verified,
                        .tuned_at = f.tuned_at,
                        .max_error = f.max_error,
                        .crc = crc_of_row(parts, numbers_of(f), f.max_error)});
    problems_.push_back(row.problem);
    if (waiting_.size() == rows_at_once) put_waiting();
}

void Intake::put_waiting() {
    std::vector<Part<ProblemIdentity>*> unknown;
    std::vector<const ProblemIdentity*> identities;
    for (Part<ProblemIdentity>* problem : problems_)
        if (problem->id == 0 && (unknown.empty() || unknown.back() != problem)) {
            unknown.push_back(problem);
            identities.push_back(&problem->value);
        }
    const std::vector<std::int64_t> ids = intern(db_, identities);
    for (std::size_t i = 0; i < unknown.size(); ++i) unknown[i]->id = ids[i];
    for (std::size_t i = 0; i < waiting_.size(); ++i) waiting_[i].key.problem = problems_[i]->id;
    for (const Put put : contest_.put(waiting_, import_id_)) count(put);
    waiting_.clear();
    problems_.clear();
}

void Intake::put_prediction_row(const IncomingRow& row) {
    if (row.problem->id == 0) row.problem->id = intern(db_, row.problem->value);
    count(contest_.put(
        PredictionRow{.key = {.model = model_of(row.device->value),
                              .source = row.source->id,
                              .problem = row.problem->id,
                              .model_version = std::string{row.model_version},
                              .rank = row.figures.rank},
                      .config = row.config->id,
                      .time_ns = row.figures.time_ns,
                      .checked = trust_ == Trust::own && row.figures.verified != static_cast<int>(Verified::elsewhere),
                      .run = row.run->id},
        import_id_));
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

#include "cache/sharing/intake.h"

#include <fmt/format.h>

#include <array>
#include <tuple>

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

std::optional<std::int64_t> none_below_zero(std::int64_t number) {
    return number < 0 ? std::nullopt : std::optional{number};
}

/// What two descriptions of one GPU may differ in: one of them stands, and the same one whichever came first.
auto description_of(const DeviceIdentity& d) {
    return std::tuple{d.name, d.vendor, d.mig, d.pci_id, d.core_khz, d.ecc, attributes_text(d)};
}

}  // namespace

Taken Intake::put(IncomingRow& row, std::string& why) {
    why = refusal(row);
    if (why.empty()) why = settle(row);
    if (!why.empty()) return Taken::refused;
    return row.predicted ? put_prediction_row(row) : put_record(row);
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

/// Gives the row's parts their ids here. Done once a part, and only for rows that are not refused.
std::string Intake::settle(IncomingRow& row) {
    if (row.device->id == 0) settle_device(*row.device);
    if (row.source->id == 0) row.source->id = intern(db_, row.source->value);
    if (row.problem->id == 0) row.problem->id = intern(db_, row.problem->value);
    if (row.config->id == 0) {
        row.config->id = intern(db_, row.source->value.op, row.config->value);
        configs_.emplace(row.config->id, row.config->hash);
    }
    // Lines may tell one GPU in two ways: the row's own is the one that was judged and settled.
    row.run->device = row.device;
    if (row.run->environment->id == 0) row.run->environment->id = intern(db_, row.run->environment->value);
    if (row.run->id == 0) return settle_run(*row.run, row);
    return {};
}

void Intake::settle_device(Part<DeviceIdentity>& device) {
    device.id = intern(db_, device.value);
    Entities entities{db_};
    const auto* here = entities.device(device.id);
    if (!here || description_of(here->value) >= description_of(device.value)) return;
    // How this machine's own GPUs are described is not for others to say.
    if (trust_ == Trust::elsewhere &&
        db_.integer_of("SELECT 1 FROM run WHERE device = ? AND origin = 'local' LIMIT 1", device.id))
        return;
    const DeviceIdentity& d = device.value;
    db_.query(
           "UPDATE device SET name = ?, vendor = ?, mig = ?, pci_id = ?, core_khz = ?, ecc = ?, attrs_json = ? "
           "WHERE id = ?")
        .bind(d.name, d.vendor, d.mig, d.pci_id, d.core_khz, d.ecc, attributes_text(d), device.id)
        .run();
}

/// A run of another's that is taken in gets a uuid made of its own, so that no row can pass for one of a run of here.
std::string Intake::settle_run(RunPart& run, const IncomingRow& row) {
    const bool was_local = run.value.origin == "local";
    const bool local = was_local && trust_ == Trust::own;
    if (!local) {
        if (was_local) run.value.uuid = sha256_hex("import " + run.value.uuid).substr(0, uuid_digits);
        run.value.origin = fmt::format("import:{}", import_id_);
    }
    run.crc_here = crc32(run.value.uuid);
    std::int64_t id = db_.integer_of("SELECT id FROM run WHERE uuid = ?", run.value.uuid).value_or(0);
    if (id == 0)
        id = insert_run(db_, run.value, row.device->id, run.environment->id, row.problem->id, row.predicted);
    else if (differs(id, run))
        return run.refused = fmt::format("its run {} is another one here", run.value.uuid);
    run.id = id;
    runs_[id] = {.local = local,
                 .locked_clocks = run.value.clock_policy == "locked",
                 .uuid = run.value.uuid,
                 .crc = run.crc_here};
    run.locked_clocks = runs_[id].locked_clocks;
    return {};
}

/// Of the hash of a host, which an export may leave out, the larger text stands.
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

const Intake::Standing& Intake::standing(std::int64_t run) {
    const auto [at, is_new] = runs_.try_emplace(run);
    if (is_new) {
        Query row = db_.query("SELECT origin, clock_policy, uuid FROM run WHERE id = ?");
        row.bind(run);
        if (row.step())
            at->second = {.local = row.text(0) == "local",
                          .locked_clocks = row.text(1) == "locked",
                          .uuid = std::string{row.text(2)},
                          .crc = crc32(row.text(2))};
    }
    return at->second;
}

const std::string& Intake::config_hash(std::int64_t config) {
    const auto [at, is_new] = configs_.try_emplace(config);
    if (is_new) {
        Query row = db_.query("SELECT hash FROM config WHERE id = ?");
        row.bind(config);
        if (row.step()) at->second = row.text(0);
    }
    return at->second;
}

Taken Intake::put_record(const IncomingRow& row) {
    RowFigures figures = row.figures;
    if (trust_ == Trust::elsewhere) figures.verified = static_cast<int>(Verified::elsewhere);
    const CrcParts parts{.device = row.device->crc,
                         .source = row.source->crc,
                         .problem = row.problem->crc,
                         .config = row.config->crc,
                         .run = row.run->crc_here};
    const std::uint32_t crc = crc_of_row(parts, numbers_of(figures), figures.max_error);
    const auto write = [&](std::string_view sql) {
        db_.query(sql)
            .bind(row.device->id, row.source->id, row.problem->id, figures.nvrtc_major, figures.nvrtc_minor,
                  figures.rank, row.config->id, figures.time_ns, figures.low_ns, figures.high_ns, figures.samples,
                  none_below_zero(figures.default_ns), figures.evaluated, figures.space_size, figures.effort,
                  figures.verified, figures.max_error, row.run->id, figures.tuned_at, crc)
            .run();
    };
    write(
        "INSERT OR IGNORE INTO record (device, template, problem, nvrtc_major, nvrtc_minor, rank, config, time_ns, "
        "lo_ns, hi_ns, samples, default_ns, evaluated, space_size, effort, verified, max_err, run, tuned_at, flags, "
        "crc) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,0,?)");
    if (db_.changes() > 0) return Taken::added;
    {
        Query there = db_.query(
            "SELECT config, time_ns, lo_ns, hi_ns, samples, default_ns, evaluated, space_size, effort, verified, "
            "max_err, run, tuned_at, crc FROM record WHERE device = ? AND template = ? AND problem = ? AND nvrtc_major "
            "= ? AND nvrtc_minor = ? AND rank = ?");
        there.bind(row.device->id, row.source->id, row.problem->id, figures.nvrtc_major, figures.nvrtc_minor,
                   figures.rank);
        there.step();
        // The same key means the same template and compiler: neither of the two is staler than the other.
        const auto order_of = [&](const RowFigures& f, const std::string& config, const Standing& run,
                                  std::uint32_t row_crc) {
            return OrderKey{.verified = static_cast<Verified>(f.verified),
                            .locked_clocks = run.locked_clocks,
                            .effort = static_cast<SearchEffort>(f.effort),
                            .local = run.local,
                            .time_ns = f.time_ns,
                            .tuned_at = f.tuned_at,
                            .config_hash = config,
                            .run_uuid = run.uuid,
                            .rank = f.rank,
                            .crc = row_crc};
        };
        const Standing& run = standing(there.integer(11));
        const std::string& config = config_hash(there.integer(0));
        const RowFigures known{.nvrtc_major = figures.nvrtc_major,
                               .nvrtc_minor = figures.nvrtc_minor,
                               .rank = figures.rank,
                               .time_ns = there.integer(1),
                               .low_ns = there.integer(2),
                               .high_ns = there.integer(3),
                               .samples = there.integer(4),
                               .default_ns = there.null(5) ? -1 : there.integer(5),
                               .evaluated = there.integer(6),
                               .space_size = there.integer(7),
                               .effort = there.integer(8),
                               .verified = there.integer(9),
                               .tuned_at = there.integer(12),
                               .max_error = there.real(10)};
        const auto known_crc = static_cast<std::uint32_t>(there.integer(13));
        const CrcParts known_parts{.device = parts.device,
                                   .source = parts.source,
                                   .problem = parts.problem,
                                   .config = crc32(row.config->value.variant + ' ' + config),
                                   .run = run.crc};
        // A damaged row gives way: it would be none for a reader.
        const bool sound = crc_of_row(known_parts, numbers_of(known), known.max_error) == known_crc;
        const auto incoming = order_of(figures, row.config->hash, standing(row.run->id), crc);
        if (sound && compare(order_of(known, config, run, known_crc), incoming) <= 0) return Taken::not_better;
    }
    write(
        "INSERT OR REPLACE INTO record (device, template, problem, nvrtc_major, nvrtc_minor, rank, config, time_ns, "
        "lo_ns, hi_ns, samples, default_ns, evaluated, space_size, effort, verified, max_err, run, tuned_at, flags, "
        "crc) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,0,?)");
    return Taken::better;
}

Taken Intake::put_prediction_row(const IncomingRow& row) {
    const Put put = put_prediction(
        db_, {.model = model_of(row.device->value),
              .source = row.source->id,
              .problem = row.problem->id,
              .model_version = row.model_version,
              .rank = row.figures.rank,
              .config = row.config->id,
              .time_ns = row.figures.time_ns,
              .checked = trust_ == Trust::own && row.figures.verified != static_cast<int>(Verified::elsewhere),
              .run = row.run->id});
    return put == Put::added ? Taken::added : put == Put::better ? Taken::better : Taken::not_better;
}

}  // namespace autotune

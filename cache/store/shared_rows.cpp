#include "cache/store/shared_rows.h"

#include <fmt/core.h>

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "cache/store/crc32.h"
#include "cache/store/entities.h"
#include "cache/store/json.h"
#include "cache/store/key_form.h"
#include "tuner/model/hashing.h"

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

}  // namespace

std::string model_of(const DeviceIdentity& device) {
    return fmt::format("sm_{}, {} SMs", device.limits.cc, device.limits.sm_count);
}

std::string attributes_text(const DeviceIdentity& device) { return device_attributes(device).dump(); }

std::uint32_t crc_of(const DeviceIdentity& d) {
    const DeviceLimits& l = d.limits;
    CanonicalBytes bytes;
    for (const std::string_view text : {std::string_view{d.fp}, std::string_view{d.name}, std::string_view{d.vendor},
                                        std::string_view{d.mig}, std::string_view{d.pci_id}})
        bytes.add(text);
    for (const std::int64_t number :
         {std::int64_t{l.cc}, std::int64_t{l.sm_count}, std::int64_t{d.core_khz}, std::int64_t{d.bandwidth_gbs},
          static_cast<std::int64_t>(l.l2_bytes), std::int64_t{l.max_shared}, std::int64_t{l.shared_per_sm},
          std::int64_t{l.registers_per_sm}, std::int64_t{l.threads_per_sm}, std::int64_t{d.ecc}})
        bytes.add(static_cast<std::uint64_t>(number));
    bytes.add(std::string_view{attributes_text(d)});
    return crc32(std::span<const std::byte>{bytes.bytes()});
}

std::int64_t intern(Database& database, const DeviceIdentity& d) {
    return id_of(
        database, [&] { return database.integer_of("SELECT id FROM device WHERE fp = ?", d.fp); },
        [&] {
            const DeviceLimits& l = d.limits;
            database
                .query(
                    "INSERT INTO device (fp, name, vendor, cc, sm, core_khz, bw_gbs, l2, smem_block, smem_sm, regs_sm, "
                    "threads_sm, mem_gib, mig, ecc, pci_id, attrs_json, own, crc) VALUES "
                    "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,0,?)")
                .bind(d.fp, d.name, d.vendor, l.cc, l.sm_count, d.core_khz, d.bandwidth_gbs, l.l2_bytes, l.max_shared,
                      l.shared_per_sm, l.registers_per_sm, l.threads_per_sm,
                      static_cast<double>(l.memory_bytes) / (1024.0 * 1024.0 * 1024.0), d.mig, d.ecc, d.pci_id,
                      attributes_text(d), crc_of(d))
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
    return database.integer_of("SELECT own FROM device WHERE id = ?", device).value_or(0) != 0;
}

void claim(Database& database, std::int64_t device) {
    database.query("UPDATE device SET own = 1 WHERE id = ? AND own = 0").bind(device).run();
}

void describe(Database& database, std::int64_t id, const DeviceIdentity& d) {
    const DeviceLimits& l = d.limits;
    database
        .query(
            "UPDATE device SET name = ?, vendor = ?, mig = ?, pci_id = ?, core_khz = ?, ecc = ?, attrs_json = ?, cc = "
            "?, sm = ?, bw_gbs = ?, l2 = ?, smem_block = ?, smem_sm = ?, regs_sm = ?, threads_sm = ?, crc = ? WHERE id "
            "= ?")
        .bind(d.name, d.vendor, d.mig, d.pci_id, d.core_khz, d.ecc, attributes_text(d), l.cc, l.sm_count,
              d.bandwidth_gbs, l.l2_bytes, l.max_shared, l.shared_per_sm, l.registers_per_sm, l.threads_per_sm,
              crc_of(d), id)
        .run();
}

void mend(Database& database, std::int64_t id, const DeviceIdentity& d) {
    Entities entities{database};
    const auto* there = entities.device(id);
    if (!there || crc_of(there->value) != crc_of(d)) describe(database, id, d);
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

void mend(Database& database, std::int64_t id, const Config& config) {
    if (Entities{database}.config(id)) return;
    database.query("UPDATE config SET body_json = ? WHERE id = ?").bind(dumped(to_json(config)), id).run();
}

std::string hash_of_setting(std::string_view device_fp, std::string_view environment_hash, bool predicted, bool local,
                            const RunInfo& r) {
    CanonicalBytes bytes;
    bytes.add(device_fp).add(environment_hash).add(std::uint64_t{predicted}).add(std::uint64_t{local});
    bytes.add(static_cast<std::uint64_t>(r.effort)).add(static_cast<std::uint64_t>(r.locked_mhz));
    for (const std::string* text :
         {&r.strategy, &r.budget, &r.clock_policy, &r.l2_policy, &r.method, &r.tolerance, &r.reference, &r.host_hash})
        bytes.add(std::string_view{*text});
    return bytes.sha256();
}

SharedRow intern_setting(Database& database, const Setting& s, std::string_view device_fp,
                         std::string_view environment_hash, bool mends) {
    const RunInfo& r = s.run;
    const std::string hash = hash_of_setting(device_fp, environment_hash, s.predicted, s.local(), r);
    auto id = database.integer_of("SELECT id FROM setting WHERE hash = ?", hash);
    if (id && mends && !Entities{database}.setting(*id)) {
        // With its id, which others name.
        database.query("DELETE FROM setting WHERE id = ?").bind(*id).run();
    } else if (id) {
        return {.id = *id, .crc = crc32(hash)};
    }
    database
        .query(
            "INSERT INTO setting (id, hash, device, env, predicted, local, strategy, budget, effort, clock_policy, "
            "locked_mhz, l2_policy, graph_mode, tolerance, reference, host_hash) VALUES "
            "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")
        .bind(id, hash, s.device, s.environment, s.predicted, s.local(), r.strategy, r.budget, name_of(r.effort),
              r.clock_policy, r.locked_mhz, r.l2_policy, r.method, r.tolerance, r.reference, r.host_hash)
        .run();
    return {.id = database.last_id(), .crc = crc32(hash)};
}

std::uint32_t crc_of_form(std::string_view op, std::string_view layout, std::string_view names_json) noexcept {
    return Crc32{}
        .add(std::uint64_t{op.size()})
        .add(std::as_bytes(std::span{op}))
        .add(std::uint64_t{layout.size()})
        .add(std::as_bytes(std::span{layout}))
        .add(std::as_bytes(std::span{names_json}))
        .value();
}

std::vector<std::string> names_of(const ProblemIdentity& problem) {
    std::vector<std::string> names;
    for (const auto& [name, value] : problem.fields) names.push_back(name);
    return names;
}

std::int64_t intern_form(Database& database, std::string_view op, std::string_view layout,
                         std::span<const std::string> names, bool mends) {
    const auto blob = std::as_bytes(std::span{layout});
    const auto there = database.integer_of("SELECT id FROM form WHERE op = ? AND layout = ?", op, blob);
    if (there && (!mends || Entities{database}.form(*there))) return *there;
    nlohmann::json list = nlohmann::json::array();
    if (!layout.empty())
        for (const std::string& name : names) list.push_back(name);
    const std::string text = dumped(list);
    database.query("INSERT OR REPLACE INTO form (id, op, layout, names_json, crc) VALUES (?,?,?,?,?)")
        .bind(there, op, blob, text, crc_of_form(op, layout, text))
        .run();
    return database.last_id();
}

ProblemRef intern(Database& database, const ProblemIdentity& problem, bool mends) {
    std::string layout;
    ProblemRef ref;
    KeyForm::split(problem.key, layout, ref.numbers);
    ref.form = intern_form(database, problem.op, layout, names_of(problem), mends);
    return ref;
}

std::optional<ProblemRef> find_problem(Database& database, std::string_view op, std::span<const std::byte> key) {
    std::string layout;
    ProblemRef ref;
    KeyForm::split(key, layout, ref.numbers);
    const auto form = database.integer_of("SELECT id FROM form WHERE op = ? AND layout = ?", op,
                                          std::as_bytes(std::span{std::as_const(layout)}));
    if (!form) return std::nullopt;
    ref.form = *form;
    return ref;
}

std::uint32_t crc_of_run(const RunUuid& uuid, const RunInfo& r, const ProblemRef& problem,
                         std::uint32_t setting) noexcept {
    // In one piece, since a checksum of many bytes costs less than many of a few.
    std::array<std::byte, sizeof(RunUuid) + 6 * 8> bytes;
    std::size_t at = 0;
    const auto put = [&](const auto& value) {
        std::memcpy(bytes.data() + at, &value, sizeof value);
        at += sizeof value;
    };
    put(uuid);
    put(r.started);
    put(r.ended);
    put(r.seed);
    put(r.power_w);
    put(r.temperature_max);
    put(problem.form);
    static_assert(sizeof r.started + sizeof r.ended + sizeof r.seed + sizeof r.power_w + sizeof r.temperature_max +
                      sizeof problem.form ==
                  6 * 8);
    return Crc32{}.add(std::span<const std::byte>{bytes}).add(std::as_bytes(std::span{problem.numbers})).value() ^
           setting;
}

void insert_run(Database& database, const RunInfo& r, const ProblemRef& problem, const SharedRow& setting,
                std::optional<std::int64_t> number, std::int64_t import) {
    const RunUuid uuid = run_uuid(r.uuid);
    database
        .query(
            "INSERT INTO run (uuid, setting, form, numbers, number, started, ended, seed, power_w, temp_max, import, "
            "crc) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)")
        .bind(std::span<const std::byte>{uuid}, setting.id, problem.form, problem.blob(), number, r.started, r.ended,
              r.seed, r.power_w, r.temperature_max, import, short_crc(crc_of_run(uuid, r, problem, setting.crc)))
        .run();
}

}  // namespace autotune

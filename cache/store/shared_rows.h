#ifndef AUTOTUNE_CACHE_STORE_SHARED_ROWS_H
#define AUTOTUNE_CACHE_STORE_SHARED_ROWS_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/store/database.h"
#include "cache/store/record.h"

namespace autotune {

// The rows that many others share. intern() gives the id of the row that says this, made if there is none; each is
// called inside a write transaction. mend() writes one anew that is damaged: who comes to it by its key knows what it
// says; else all that hangs on it would be a miss for ever.

std::int64_t intern(Database& database, const DeviceIdentity& device);
std::int64_t intern(Database& database, const Environment& environment);
std::int64_t intern(Database& database, const TemplateIdentity& source);
std::int64_t intern(Database& database, std::string_view op, const Config& config);
void mend(Database& database, std::int64_t id, const DeviceIdentity& device);
void mend(Database& database, std::int64_t id, const Environment& environment);
void mend(Database& database, std::int64_t id, const TemplateIdentity& source);
void mend(Database& database, std::int64_t id, const Config& config);

/// What runs have in common. The texts belong to a RunInfo.
struct Setting {
    std::int64_t device = 0, environment = 0;
    bool predicted = false;
    const RunInfo& run;

    bool local() const noexcept { return run.origin == "local"; }
};
/// A row that others hang on.
struct SharedRow {
    std::int64_t id = 0;
    std::uint32_t crc = 0;  ///< its share of a checksum
};
/// device_fp, environment_hash: of the setting's. mends: where the row that is there is damaged.
SharedRow intern_setting(Database& database, const Setting& setting, std::string_view device_fp,
                         std::string_view environment_hash, bool mends = false);
/// SHA-256, hex, of what a setting says, with its device's and environment's own hashes.
std::string hash_of_setting(std::string_view device_fp, std::string_view environment_hash, bool predicted, bool local,
                            const RunInfo& run);

/// The form of a problem's key. names  of its fields, in the op's order
std::int64_t intern_form(Database& database, std::string_view op, std::string_view layout,
                         std::span<const std::string> names, bool mends = false);
/// Of the fields.
std::vector<std::string> names_of(const ProblemIdentity& problem);
/// Of a form, over all it says.
std::uint32_t crc_of_form(std::string_view op, std::string_view layout, std::string_view names_json) noexcept;
/// What rows call a problem, interned.
ProblemRef intern(Database& database, const ProblemIdentity& problem, bool mends = false);
/// The same where it is known; nullopt: nothing here can be of it.
std::optional<ProblemRef> find_problem(Database& database, std::string_view op, std::span<const std::byte> key);

/// A checksum as a column holds it, in 4 bytes: above 2^31 SQLite takes 6.
inline std::int32_t short_crc(std::uint32_t crc) noexcept { return static_cast<std::int32_t>(crc); }
/// A row of the table of runs without its setting's share: over the rest of what it says.
std::uint32_t crc_of_run(const RunUuid& uuid, const RunInfo& run, const ProblemRef& problem,
                         std::uint32_t setting) noexcept;
/// import: the number of the one that brings it; 0: none. number: of the trials; nullopt: it did not begin here.
void insert_run(Database& database, const RunInfo& run, const ProblemRef& problem, const SharedRow& setting,
                std::optional<std::int64_t> number, std::int64_t import);

/// Whether this store itself has measured on that GPU. How its own GPUs are described is not for others to say.
bool is_of_here(Database& database, std::int64_t device);
/// From now on it is.
void claim(Database& database, std::int64_t device);
/// Writes what a device is described by, beside its figures.
void describe(Database& database, std::int64_t id, const DeviceIdentity& device);
/// What the device table has no column for, as its attrs_json.
std::string attributes_text(const DeviceIdentity& device);
/// Over all that a device's row says but whose it is.
std::uint32_t crc_of(const DeviceIdentity& device);

/// "sm_86, 84 SMs": what predictions are for.
std::string model_of(const DeviceIdentity& device);

}  // namespace autotune
#endif

#ifndef AUTOTUNE_CACHE_STORE_ENTITIES_H
#define AUTOTUNE_CACHE_STORE_ENTITIES_H

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cache/store/database.h"
#include "cache/store/key_form.h"
#include "cache/store/record.h"

namespace autotune {

/// The rows that others share, as structs, each read once and checked: a hash that fails makes it, and every record of
/// it, a miss.
class Entities {
public:
    explicit Entities(Database& database) : database_{database} {}

    template <class T>
    struct Row {
        T value;
        std::string hash;
        std::uint32_t crc = 0;
    };
    struct FormRow {
        std::string op;
        KeyForm form;
        std::vector<std::string> names;  ///< of the problem's fields, in the op's order
    };
    struct SettingRow {
        RunInfo info;  ///< without what is a run's own
        std::int64_t device = 0, environment = 0;
        bool predicted = false, local = false;
        std::uint32_t crc = 0;
    };
    struct RunRow {
        RunInfo info;
        std::uint32_t crc = 0;  ///< of its uuid
        std::int64_t setting = 0, device = 0, environment = 0;
        ProblemRef problem;
        std::optional<std::int64_t> number;
        std::int64_t import = 0;
        bool predicted = false;
    };

    // nullptr: no such row, or its contents do not fit its hash.
    const Row<DeviceIdentity>* device(std::int64_t id);
    const Row<Environment>* environment(std::int64_t id);
    const Row<TemplateIdentity>* source(std::int64_t id);
    const Row<Config>* config(std::int64_t id);
    const FormRow* form(std::int64_t id);
    const SettingRow* setting(std::int64_t id);
    const RunRow* run(const RunUuid& uuid);
    /// Of that number. Stays until the next call.
    const RunRow* run(std::int64_t number);
    std::optional<ProblemIdentity> problem(const ProblemRef& ref);

private:
    template <class T>
    using Cache = std::unordered_map<std::int64_t, std::optional<T>>;
    struct UuidHash {
        std::size_t operator()(const RunUuid& uuid) const noexcept {
            std::size_t hash = 0;
            std::memcpy(&hash, uuid.data(), sizeof hash);
            return hash;
        }
    };
    std::optional<RunRow> read_run(const RunUuid& uuid);

    Database& database_;
    Cache<Row<DeviceIdentity>> devices_;
    Cache<Row<Environment>> environments_;
    Cache<Row<TemplateIdentity>> sources_;
    Cache<Row<Config>> configs_;
    Cache<FormRow> forms_;
    Cache<SettingRow> settings_;
    std::unordered_map<RunUuid, std::optional<RunRow>, UuidHash> runs_;
};

/// The columns of a device's row, and what they say.
inline constexpr std::string_view device_columns =
    "fp, name, vendor, cc, sm, core_khz, bw_gbs, l2, smem_block, smem_sm, regs_sm, threads_sm, mig, ecc, pci_id, "
    "attrs_json";
/// Throws where attrs_json is none.
DeviceIdentity read_device(const Query& row);
/// What is in a column that holds a uuid; nullopt: it is none.
inline std::optional<RunUuid> uuid_of(std::span<const std::byte> blob) noexcept {
    RunUuid uuid;
    if (blob.size() != uuid.size()) return std::nullopt;
    std::memcpy(uuid.data(), blob.data(), uuid.size());
    return uuid;
}
/// The names of a key's fields, but of alignments and layouts, in its own order.
std::vector<std::string> names_in(std::span<const std::byte> key);
/// The problem of a key, with its fields in the order of `names`; of what is no key without any.
ProblemIdentity problem_of_key(std::string_view op, std::span<const std::byte> key, std::span<const std::string> names);
/// Whether the expression holds over the problem's key fields; an empty one does, one that has no value there does not.
bool matches(const Expression& where, const ProblemIdentity& problem);

}  // namespace autotune
#endif

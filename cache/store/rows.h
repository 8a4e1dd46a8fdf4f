#ifndef AUTOTUNE_CACHE_STORE_ROWS_H
#define AUTOTUNE_CACHE_STORE_ROWS_H

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cache/store/database.h"
#include "cache/store/store.h"

namespace autotune {

// Between structs and rows. The intern functions give the id of the row that says this, made if there is none; each is
// called inside a write transaction.

std::int64_t intern(Database& database, const DeviceIdentity& device);
std::int64_t intern(Database& database, const Environment& environment);
std::int64_t intern(Database& database, const TemplateIdentity& source);
std::int64_t intern(Database& database, const ProblemIdentity& problem);
/// Of many at once, in their order, which costs less than one after another.
std::vector<std::int64_t> intern(Database& database, std::span<const ProblemIdentity* const> problems);
std::int64_t intern(Database& database, std::string_view op, const Config& config);
/// import: the number of the one that brings it; 0: none.
std::int64_t insert_run(Database& database, const RunInfo& info, std::int64_t device, std::int64_t environment,
                        std::int64_t problem, bool predicted, std::int64_t import = 0);

/// Whether this store itself has a run of that GPU. How its own GPUs are described is not for others to say.
bool is_of_here(Database& database, std::int64_t device);
/// Writes what a device is described by, beside its figures.
void describe(Database& database, std::int64_t id, const DeviceIdentity& device);

/// What the device table has no column for, as its attrs_json.
std::string attributes_text(const DeviceIdentity& device);

/// Write a row anew that is damaged. Who comes to it by its key knows what it says; else all that hangs on it would be
/// a miss for ever.
void mend(Database& database, std::int64_t id, const DeviceIdentity& device);
void mend(Database& database, std::int64_t id, const Environment& environment);
void mend(Database& database, std::int64_t id, const TemplateIdentity& source);
void mend(Database& database, std::int64_t id, const ProblemIdentity& problem);
void mend(Database& database, std::int64_t id, const Config& config);

/// Whether the expression holds over the problem's key fields; an empty one does, one that has no value there does not.
bool matches(const Expression& where, const ProblemIdentity& problem);

/// "sm_86, 84 SMs": what predictions are for.
std::string model_of(const DeviceIdentity& device);

/// The parts of many records, each interned once. For one transaction: a rolled back one makes its ids void.
class Interning {
public:
    /// import: the number of the one that brings the records; 0: none.
    explicit Interning(Database& database, std::int64_t import = 0) : database_{database}, import_{import} {}
    struct Part {
        std::int64_t id = 0;
        std::uint32_t crc = 0;  ///< of CrcParts
    };
    Part device(const DeviceIdentity& device);
    Part environment(const Environment& environment);
    Part source(const TemplateIdentity& source);
    Part config(std::string_view op, const Config& config);
    /// One a record.
    std::vector<Part> problems(std::span<const Record> records);
    /// What a run is of, by the ids.
    struct Subject {
        std::int64_t device = 0, environment = 0, problem = 0;
    };
    /// One a record: known by its uuid; made as the record says otherwise.
    std::vector<Part> runs(std::span<const Record> records, std::span<const Subject> subjects);

private:
    Part run(const Record& record, const Subject& subject);

    Database& database_;
    std::int64_t import_;
    std::unordered_map<std::string, Part> devices_, sources_, configs_;
    std::vector<std::pair<Environment, Part>> environments_;
    std::string name_, run_uuid_;
    Part run_{};
};

/// Rows as structs, each read once and checked: a hash that fails makes it, and every record of it, a miss.
class Entities {
public:
    explicit Entities(Database& database) : database_{database} {}

    template <class T>
    struct Row {
        T value;
        std::string hash;
        std::uint32_t crc = 0;
    };
    struct RunRow {
        RunInfo info;
        std::uint32_t crc = 0;
        std::int64_t device = 0, environment = 0, problem = 0;
        bool predicted = false;
    };

    // nullptr: no such row, or its contents do not fit its hash.
    const Row<DeviceIdentity>* device(std::int64_t id);
    const Row<Environment>* environment(std::int64_t id);
    const Row<TemplateIdentity>* source(std::int64_t id);
    const Row<Config>* config(std::int64_t id);
    const RunRow* run(std::int64_t id);
    std::optional<ProblemIdentity> problem(std::int64_t id);

private:
    template <class T>
    using Cache = std::unordered_map<std::int64_t, std::optional<T>>;

    Database& database_;
    Cache<Row<DeviceIdentity>> devices_;
    Cache<Row<Environment>> environments_;
    Cache<Row<TemplateIdentity>> sources_;
    Cache<Row<Config>> configs_;
    Cache<RunRow> runs_;
};

/// Rows that stand, where readers look, or those that wait beside them: contest.h.
enum class Seat { standing, beside };

/// Every record of the query whose checksum holds; `broken` gets the keys of those whose does not.
void scan_records(Database& database, const RecordQuery& query, const Today& today,
                  const std::function<void(const RecordView&)>& sink,
                  const std::function<void(const RecordKey&)>& broken, Seat seat = Seat::standing);
/// The same of one device, template and problem, by their ids in `id`.
void scan_problem(Database& database, const RecordKey& id, const std::function<void(const RecordView&)>& sink,
                  const std::function<void(const RecordKey&)>& broken, Seat seat = Seat::standing);
/// The row at a key, which may hold anything; nullopt when it is absent or broken.
std::optional<Record> record_at(Database& database, const RecordKey& key);
/// Of a view with its problem.
Record to_record(const RecordView& view);

}  // namespace autotune
#endif

#ifndef AUTOTUNE_CACHE_STORE_INTERNING_H
#define AUTOTUNE_CACHE_STORE_INTERNING_H

#include <cstdint>
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
#include "cache/store/shared_rows.h"

namespace autotune {

/// A run to be put.
struct NewRun {
    const RunInfo* info = nullptr;
    const ProblemRef* problem = nullptr;
    RunUuid uuid{};
    SharedRow setting{};
};
/// Puts runs that did not begin here; returns the numbers of those whose uuid is there already, which stay as they are.
std::vector<std::size_t> put_runs(Database& database, std::span<const NewRun> runs, std::int64_t import);

/// The parts of many records, each interned once, and mended where its row is damaged. For one transaction: a rolled
/// back one makes its ids void.
class Interning {
public:
    /// import: the number of the one that brings the records; 0: none.
    explicit Interning(Database& database, std::int64_t import = 0) : database_{database}, import_{import} {}
    SharedRow device(const DeviceIdentity& device);
    SharedRow environment(const Environment& environment);
    SharedRow source(const TemplateIdentity& source);
    SharedRow config(std::string_view op, const Config& config);
    struct Problem {
        ProblemRef ref{};
        std::uint32_t crc = 0;  ///< of CrcParts
    };
    Problem problem(const ProblemIdentity& problem);
    struct Run {
        RunUuid uuid{};
        std::uint32_t crc = 0;  ///< of CrcParts
        SharedRow setting{};
    };
    /// That of a record, as known by its uuid, before it is put.
    Run run(const Record& record);
    /// As put_runs(). Of those that are there, whose database it is brings them now: an import may have done so before.
    void put(std::span<const NewRun> runs);

private:
    SharedRow setting(const Record& record);

    Database& database_;
    std::int64_t import_;
    std::unordered_map<std::string, SharedRow> devices_, sources_, configs_, settings_;
    std::vector<std::pair<Environment, SharedRow>> environments_;
    struct Form {
        std::string op;
        KeyForm form;
        std::int64_t id = 0;
    };
    std::vector<Form> forms_;
    std::size_t last_form_ = 0;
    // What the last record said, which mostly is the next one's too.
    struct LastDevice {
        std::string fp{};
        SharedRow row{};
    };
    std::optional<LastDevice> last_device_{};
    struct LastSource {
        TemplateIdentity source{};
        SharedRow row{};
    };
    std::optional<LastSource> last_source_{};
    struct LastRun {
        std::string uuid{};
        Run run{};
    };
    std::optional<LastRun> last_run_{};
    struct Last {
        bool any = false, predicted = false;
        std::int64_t device = 0, environment = 0;
        RunInfo run{};
        SharedRow row{};
    } last_;
    std::string name_;
};

}  // namespace autotune
#endif

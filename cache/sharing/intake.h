#ifndef AUTOTUNE_CACHE_SHARING_INTAKE_H
#define AUTOTUNE_CACHE_SHARING_INTAKE_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cache/sharing/judge.h"
#include "cache/store/contest.h"
#include "cache/store/database.h"
#include "cache/store/record.h"

namespace autotune {

/// Whose records they are.
enum class Trust {
    elsewhere,  ///< another's: what they say of checks counts for nothing, and they rank below what was measured here
    own,        ///< of this user's own machines: they keep what they say. They are judged all the same
};

/// A part that many rows share, judged once.
template <class T>
struct Part {
    T value{};
    std::string hash{};  ///< that of its row
    std::string refused{};
    std::uint32_t crc = 0;  ///< its share of a row's checksum
    std::int64_t id = 0;    ///< in the database it goes into; 0: not yet there
};

struct RunPart : Part<RunInfo> {
    Part<DeviceIdentity>* device = nullptr;
    Part<Environment>* environment = nullptr;
    std::uint32_t crc_here = 0;  ///< with the uuid that it has here
};

/// A row of elsewhere. The parts belong to whoever reads the file.
struct IncomingRow {
    Part<DeviceIdentity>* device = nullptr;
    Part<TemplateIdentity>* source = nullptr;
    Part<ProblemIdentity>* problem = nullptr;
    Part<Config>* config = nullptr;
    RunPart* run = nullptr;
    RowFigures figures{};
    bool predicted = false;
    std::string_view model_version{};
    std::optional<std::uint32_t> crc{};  ///< what the file says; a prediction in a database has none
};

/// What became of rows that were not refused.
struct TakenRows {
    std::size_t added = 0, better = 0, not_better = 0;
};

/// Puts rows of elsewhere into a database, inside a transaction of the caller's, where they compete with what is there:
/// any order and any repetition end in the same rows.
class Intake {
public:
    Intake(Database& target, const Judge& judge, Trust trust, std::int64_t import_id)
        : db_{target}, judge_{judge}, trust_{trust}, import_id_{import_id}, contest_{target} {}

    /// The reason to refuse the row; empty: it is taken, and goes in with the next few hundred. Its problem stays where
    /// it is until finish().
    std::string put(IncomingRow& row);
    /// Puts what waits; nothing of an Intake is there without.
    TakenRows finish();
    const Judge& judge() const noexcept { return judge_; }
    /// Whether it put anything there, standing or not.
    bool kept_any() const noexcept { return kept_any_; }

private:
    std::string refusal(const IncomingRow& row) const;
    std::string settle(IncomingRow& row);
    std::string settle_run(RunPart& run, const IncomingRow& row);
    void settle_device(Part<DeviceIdentity>& device);
    bool differs(std::int64_t id, const RunPart& run);
    void add_record(const IncomingRow& row);
    void put_waiting();
    void put_prediction_row(const IncomingRow& row);
    void count(Put put);

    Database& db_;
    const Judge& judge_;
    Trust trust_;
    std::int64_t import_id_;
    Contest contest_;
    std::vector<RecordRow> waiting_{};
    std::vector<Part<ProblemIdentity>*> problems_{};  ///< of those that wait
    TakenRows taken_{};
    bool kept_any_ = false;
};

/// Takes out of a device's words what an import told, as far as any did: of those that are left the largest stand.
void forget_descriptions(Database& database, std::int64_t import_id);

}  // namespace autotune
#endif

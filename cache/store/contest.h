#ifndef AUTOTUNE_CACHE_STORE_CONTEST_H
#define AUTOTUNE_CACHE_STORE_CONTEST_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "cache/store/database.h"
#include "cache/store/record.h"

namespace autotune {

/// A record as its table holds it. The ids are of interned rows.
struct RecordRow {
    RecordKey key{};
    std::int64_t config = 0, run = 0;
    std::int64_t time_ns = 0, low_ns = 0, high_ns = 0, samples = 0;
    std::int64_t default_ns = -1;  ///< -1: none
    std::int64_t evaluated = 0, space_size = 0, effort = 0, verified = 0, tuned_at = 0;
    double max_error = 0;
    std::uint32_t crc = 0;
};

struct PredictionKey {
    std::string model{};  ///< model_of(device)
    std::int64_t source = 0, problem = 0;
    std::string model_version{};
    std::int64_t rank = 0;
};
/// A prediction as its table holds it.
struct PredictionRow {
    PredictionKey key{};
    std::int64_t config = 0, time_ns = 0;
    bool checked = false;
    std::int64_t run = 0;
};

/// What became of a row: it stands alone; it stands in place of another, or waits beside it; it is worse than what is
/// here of the same bringer or of this store's own, and gone.
enum class Put { added, better, beside, not_better };

/// Where rows of one key compete, within a transaction. The best by compare() stands in its table, where readers look.
/// The best that each import brought waits beside it, and so does the best of this store's own where an import's is
/// better, so that an import can be taken out as if it had never been. A row of this
/// store deletes every import's row that is not better. `import`: the number of the import that brings a row; 0: this
/// store itself.
/// Of predictions those of own runs go first, then the faster, the smaller config, the checked one, the smaller run.
class Contest {
public:
    explicit Contest(Database& database) : db_{database} {}

    Put put(const RecordRow& row, std::int64_t import = 0);
    /// What became of each, as if they were put one after another.
    std::vector<Put> put(std::span<const RecordRow> rows, std::int64_t import = 0);
    Put put(const PredictionRow& row, std::int64_t import = 0);
    /// Whether the row of that key that stands is this one, or of predictions one of the same config and run.
    bool stands(const RecordRow& row);
    bool stands(const PredictionRow& row);

    /// Removes the row that stands, and the next best stands; false: there was none.
    bool remove(const RecordKey& key);
    /// Removes what a search ends whose best is `front`: what is here of its own, and what is not better of imports.
    void make_room(const std::vector<RecordKey>& keys, const Record& front);
    void make_room(const std::vector<PredictionKey>& keys, std::int64_t front_ns);
    /// Whether one of this store's own is better, standing or not.
    bool has_better(const std::vector<RecordKey>& keys, const Record& front);
    bool has_faster(const std::vector<PredictionKey>& keys, std::int64_t front_ns);

    /// What an import brought, and the rows that stand in its place now.
    struct TakenOut {
        std::size_t rows = 0, back = 0;
    };
    TakenOut take_out_records(std::int64_t import);
    TakenOut take_out_predictions(std::int64_t import);

private:
    template <class Row>
    struct Contender {
        Row row{};
        std::int64_t import = 0;
        bool stands = false;
    };
    /// What a run says of its rows.
    struct Run {
        bool known = false, local = true, locked_clocks = false;
        std::string uuid{};
    };

    template <class Row>
    Put contend(const Row& row, std::int64_t import);
    template <class Key>
    auto contenders(const Key& key);
    template <class Key, class Rows>
    void settle(const Key& key, const Rows& rows);
    template <class Key, class Front>
    void end_worse(const std::vector<Key>& keys, const Front& front);
    template <class Key, class Front>
    bool own_is_better(const std::vector<Key>& keys, const Front& front);
    template <class Key>
    TakenOut take_out(std::int64_t import);

    bool sound(const RecordRow& row);
    bool sound(const PredictionRow& row);
    bool better(const RecordRow& a, const RecordRow& b);
    bool better(const RecordRow& a, const OrderKey& b);
    bool better(const PredictionRow& a, const PredictionRow& b);
    bool better(const PredictionRow& a, std::int64_t front_ns);
    OrderKey order_of(const RecordRow& row);
    const Run& run(std::int64_t id);
    const std::string& config_hash(std::int64_t id);
    const std::string& template_hash(std::int64_t id);
    std::uint32_t problem_crc(std::int64_t id);
    std::uint32_t device_crc(std::int64_t id);

    Database& db_;
    std::unordered_map<std::int64_t, Run> runs_{};
    std::unordered_map<std::int64_t, std::string> configs_{}, variants_{}, templates_{};
    std::unordered_map<std::int64_t, std::uint32_t> devices_{};
    std::int64_t problem_ = 0;
    std::uint32_t problem_crc_ = 0;
};

}  // namespace autotune
#endif

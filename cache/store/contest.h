#ifndef AUTOTUNE_CACHE_STORE_CONTEST_H
#define AUTOTUNE_CACHE_STORE_CONTEST_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/store/database.h"
#include "cache/store/entities.h"
#include "cache/store/record.h"
#include "cache/store/seats.h"

namespace autotune {

/// What became of a row: it stands alone; it stands in place of another, or waits beside it; it is no better than what
/// the same bringer has here, and gone.
enum class Put { added, better, beside, not_better };

/// Where rows of one key compete, within a transaction. The best by compare() stands in its table, where readers look.
/// The best that each other bringer has waits beside it, this store itself being one: so what any of them brought can
/// be taken out as if it had never been. `import`: the number of the import that brings a row; 0: this store itself. Of
/// predictions those of own runs go first, then the faster, the smaller config, the checked one, the smaller run.
class Contest {
public:
    explicit Contest(Database& database) : db_{database}, entities_{database} {}

    Put put(const RecordRow& row, std::int64_t import = 0);
    /// What became of each, as if they were put one after another.
    std::vector<Put> put(std::span<const RecordRow> rows, std::int64_t import = 0);
    Put put(const PredictionRow& row, std::int64_t import = 0);
    /// Whether the row of that key that stands is this one, or of predictions one of the same config and run.
    bool stands(const RecordRow& row);
    bool stands(const PredictionRow& row);

    /// Removes the row that stands, and the next best stands; false: there was none.
    bool remove(const RecordKey& key);
    /// Removes the row of that bringer which waits beside; false: there was none.
    bool remove_waiting(const RecordKey& key, std::int64_t import);
    /// Removes what a search puts an end to: what is here of this store's own. What imports brought stays.
    void make_room(const std::vector<RecordKey>& keys);
    void make_room(const std::vector<PredictionKey>& keys);
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
    template <class Row>
    Put contend(const Row& row, std::int64_t import);
    template <class Key>
    auto contenders(const Key& key);
    template <class Key, class Rows>
    void settle(const Key& key, const Rows& rows);
    template <class Key>
    void end_own(const std::vector<Key>& keys);
    template <class Key, class Front>
    bool own_is_better(const std::vector<Key>& keys, const Front& front);
    template <class Key>
    TakenOut take_out(std::int64_t import);

    bool sound(RecordRow& row);
    bool sound(const PredictionRow& row);
    bool better(const RecordRow& a, const RecordRow& b);
    bool better(const RecordRow& a, const OrderKey& b);
    bool better(const PredictionRow& a, const PredictionRow& b);
    bool better(const PredictionRow& a, std::int64_t front_ns);
    OrderKey order_of(const RecordRow& row);

    Database& db_;
    Entities entities_;
    std::vector<std::byte> key_{};  ///< room for a problem's
};

}  // namespace autotune
#endif

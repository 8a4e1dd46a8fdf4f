#ifndef AUTOTUNE_CACHE_STORE_RECORD_ROWS_H
#define AUTOTUNE_CACHE_STORE_RECORD_ROWS_H

#include <functional>
#include <optional>

#include "cache/store/database.h"
#include "cache/store/store.h"

namespace autotune {

/// Rows that stand, where readers look, or those that wait beside them: contest.h.
enum class Seat { standing, beside };

/// Every record of the query whose checksum holds; `broken` gets the keys of those whose does not.
void scan_records(Database& database, const RecordQuery& query, const Today& today,
                  const std::function<void(const RecordView&)>& sink,
                  const std::function<void(const RecordKey&)>& broken, Seat seat = Seat::standing);
/// The same of one device, template and problem, by their ids in `id`.
void scan_problem(Database& database, const RecordKey& id, const std::function<void(const RecordView&)>& sink,
                  const std::function<void(const RecordKey&)>& broken, Seat seat = Seat::standing);
/// The same of one device and template, from the first to the last or, of a file with a broken page, the other way.
void scan_part(Database& database, const RecordKey& id, bool backwards,
               const std::function<void(const RecordView&)>& sink, const std::function<void(const RecordKey&)>& broken,
               Seat seat = Seat::standing);
/// The row at a key, which may hold anything; nullopt when it is absent or broken.
std::optional<Record> record_at(Database& database, const RecordKey& key);
/// Of a view with its problem.
Record to_record(const RecordView& view);

}  // namespace autotune
#endif

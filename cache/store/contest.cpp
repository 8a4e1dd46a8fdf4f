#include "cache/store/contest.h"

#include <fmt/core.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "cache/store/crc32.h"
#include "cache/store/row_feed.h"

namespace autotune {

namespace {

RecordSeats seats_of(const RecordKey&) { return {}; }
PredictionSeats seats_of(const PredictionKey&) { return {}; }
template <class Key>
using Seats = decltype(seats_of(std::declval<Key>()));

class FedRecords : public FedRows {
public:
    FedRecords(std::span<const RecordRow> rows, std::int64_t import) : rows_{rows}, import_{import} {}
    std::size_t count() const noexcept override { return rows_.size(); }
    std::int64_t mark(std::size_t row) const noexcept override {
        return short_crc(rows_[row].crc ^ rows_[row].setting.crc);
    }
    void give(sqlite3_context* to, std::size_t row, int column) const noexcept override {
        RecordSeats::give(rows_[row], import_, column, [to](const auto& value) { give_value(to, value); });
    }

private:
    std::span<const RecordRow> rows_;
    std::int64_t import_;
};

enum class Or { ignore, replace };

/// False: there is a row, and it stays.
template <class S>
bool insert(Database& db, S, const typename S::Row& row, std::int64_t import, Or otherwise, bool beside = false) {
    static const std::array<std::string, 3> sql{SeatSql<S>::insert("", false, " ON CONFLICT DO NOTHING"),
                                                SeatSql<S>::insert("OR REPLACE ", false, ""),
                                                SeatSql<S>::insert("OR REPLACE ", true, "")};
    Query query = db.query(sql[beside ? 2 : otherwise == Or::replace ? 1 : 0]);
    for (int i = 0; i < S::count; ++i) S::give(row, import, i, [&](const auto& value) { query.bind_at(i + 1, value); });
    query.run();
    return db.changes() > 0;
}

template <class S>
void clear(Database& db, S, const typename S::Key& key, bool beside) {
    static const std::array<std::string, 2> sql{SeatSql<S>::clear(false), SeatSql<S>::clear(true)};
    Query query = db.query(sql[beside ? 1 : 0]);
    S::bind_key(query, key);
    query.run();
}

}  // namespace

/// The sound rows of a key. A damaged one gives way: it would be none for a reader.
template <class Key>
auto Contest::contenders(const Key& key) {
    using S = Seats<Key>;
    static const std::array<std::string, 2> sql{SeatSql<S>::select(false), SeatSql<S>::select(true)};
    std::vector<Contender<typename S::Row>> out;
    for (const bool beside : {false, true}) {
        Query row = db_.query(sql[beside ? 1 : 0]);
        S::bind_key(row, key);
        while (row.step()) out.push_back({.row = S::row_of(row), .import = row.integer(S::import), .stands = !beside});
    }
    std::erase_if(out, [&](auto& one) { return !sound(one.row); });
    return out;
}

Put Contest::put(const RecordRow& row, std::int64_t import) {
    return insert(db_, RecordSeats{}, row, import, Or::ignore) ? Put::added : contend(row, import);
}

std::vector<Put> Contest::put(std::span<const RecordRow> rows, std::int64_t import) {
    std::vector<Put> became(rows.size(), Put::added);
    if (rows.size() <= FedRows::few) {
        std::ranges::transform(rows, became.begin(), [&](const RecordRow& row) { return put(row, import); });
        return became;
    }
    static const std::string sql = feed_sql("record", RecordSeats::columns, "import = import", "crc");
    for (const std::size_t i : feed(db_, sql, FedRecords{rows, import})) became[i] = contend(rows[i], import);
    return became;
}

Put Contest::put(const PredictionRow& row, std::int64_t import) {
    return insert(db_, PredictionSeats{}, row, import, Or::ignore) ? Put::added : contend(row, import);
}

bool Contest::stands(const RecordRow& row) {
    return std::ranges::any_of(contenders(row.key),
                               [&](const auto& one) { return one.stands && one.row.crc == row.crc; });
}
bool Contest::stands(const PredictionRow& row) {
    return std::ranges::any_of(contenders(row.key), [&](const auto& one) {
        return one.stands && one.row.config == row.config && one.row.run == row.run;
    });
}

template <class Row>
Put Contest::contend(const Row& row, std::int64_t import) {
    auto there = contenders(row.key);
    for (const auto& one : there)
        if (one.import == import && !better(row, one.row)) return Put::not_better;
    std::erase_if(there, [&](const auto& one) { return one.import == import; });
    const bool stands = std::ranges::none_of(there, [&](const auto& one) { return !better(row, one.row); });
    there.push_back({.row = row, .import = import, .stands = false});
    settle(row.key, there);
    return stands ? Put::better : Put::beside;
}

/// Makes `rows` all that there is of the key. Of equal ones that which stands goes on.
template <class Key, class Rows>
void Contest::settle(const Key& key, const Rows& rows) {
    using S = Seats<Key>;
    clear(db_, S{}, key, true);
    if (rows.empty()) return clear(db_, S{}, key, false);
    auto best = rows.begin();
    for (auto one = rows.begin(); one != rows.end(); ++one)
        if (better(one->row, best->row) || (one->stands && !better(best->row, one->row))) best = one;
    if (!best->stands) insert(db_, S{}, best->row, best->import, Or::replace);
    for (auto one = rows.begin(); one != rows.end(); ++one)
        if (one != best) insert(db_, S{}, one->row, one->import, Or::replace, true);
}

bool Contest::remove(const RecordKey& key) {
    auto rows = contenders(key);
    std::erase_if(rows, [](const auto& one) { return one.stands; });
    settle(key, rows);
    return !rows.empty() || db_.changes() > 0;
}

bool Contest::remove_waiting(const RecordKey& key, std::int64_t import) {
    static const std::string sql = fmt::format("{} AND import = ?{}", SeatSql<RecordSeats>::clear(true),
                                               static_cast<int>(RecordSeats::key_size) + 1);
    Query query = db_.query(sql);
    RecordSeats::bind_key(query, key);
    query.bind_at(static_cast<int>(RecordSeats::key_size) + 1, import);
    query.run();
    return db_.changes() > 0;
}

template <class Key>
void Contest::end_own(const std::vector<Key>& keys) {
    for (const Key& key : keys) {
        auto rows = contenders(key);
        std::erase_if(rows, [&](const auto& one) { return one.import == 0; });
        settle(key, rows);
    }
}

template <class Key, class Front>
bool Contest::own_is_better(const std::vector<Key>& keys, const Front& front) {
    return std::ranges::any_of(keys, [&](const Key& key) {
        const auto rows = contenders(key);
        return std::ranges::any_of(rows, [&](const auto& one) { return one.import == 0 && better(one.row, front); });
    });
}

void Contest::make_room(const std::vector<RecordKey>& keys) { end_own(keys); }
void Contest::make_room(const std::vector<PredictionKey>& keys) { end_own(keys); }

bool Contest::has_better(const std::vector<RecordKey>& keys, const Record& front) {
    const RecordOrder order{front};
    return own_is_better(keys, order.key);
}
bool Contest::has_faster(const std::vector<PredictionKey>& keys, std::int64_t front_ns) {
    return own_is_better(keys, front_ns);
}

/// Most keys of an import have one row: these go by one statement.
template <class Key>
Contest::TakenOut Contest::take_out(std::int64_t import) {
    using S = Seats<Key>;
    TakenOut out{
        .rows = static_cast<std::size_t>(
            db_.integer_of(fmt::format("SELECT count(*) FROM {} WHERE import = ?", S::table), import).value_or(0))};
    db_.query(fmt::format("DELETE FROM {}_beside WHERE import = ?", S::table)).bind(import).run();
    std::vector<Key> contended;
    {
        Query row =
            db_.query(fmt::format("SELECT DISTINCT {0} FROM {1}_beside WHERE ({0}) IN (SELECT {0} FROM {1} "
                                  "WHERE import = ?)",
                                  SeatSql<S>::key_columns(), S::table));
        row.bind(import);
        while (row.step()) contended.push_back(S::key_of(row));
    }
    for (const Key& key : contended) {
        auto rows = contenders(key);
        std::erase_if(rows, [&](const auto& one) { return one.import == import; });
        out.back += rows.empty() ? 0 : 1;
        settle(key, rows);
    }
    db_.query(fmt::format("DELETE FROM {} WHERE import = ?", S::table)).bind(import).run();
    return out;
}

Contest::TakenOut Contest::take_out_records(std::int64_t import) { return take_out<RecordKey>(import); }
Contest::TakenOut Contest::take_out_predictions(std::int64_t import) { return take_out<PredictionKey>(import); }

// -- the order

/// Of one that is, its parts' checksums are filled in.
bool Contest::sound(RecordRow& r) {
    const auto* device = entities_.device(r.key.device);
    const auto* source = entities_.source(r.key.source);
    const auto* config = entities_.config(r.config);
    const auto* form = entities_.form(r.key.problem.form);
    const auto* setting = entities_.setting(r.setting.id);
    if (!device || !source || !config || !form || !setting || !form->form.put_together(r.key.problem.numbers, key_))
        return false;
    const CrcParts parts{.device = device->crc,
                         .source = source->crc,
                         .problem = crc32(std::span<const std::byte>{key_}),
                         .config = config->crc,
                         .run = crc_of(r.run)};
    const std::array<std::int64_t, 13> numbers{r.key.nvrtc_major,
                                               r.key.nvrtc_minor,
                                               r.key.rank,
                                               r.time_ns,
                                               r.low_ns,
                                               r.high_ns,
                                               r.samples,
                                               r.default_ns,
                                               r.evaluated,
                                               r.space_size,
                                               static_cast<std::int64_t>(setting->info.effort),
                                               r.verified,
                                               r.tuned_at};
    r.setting.crc = setting->crc;
    r.crc ^= setting->crc;
    return crc_of_row(parts, numbers, r.max_error) == r.crc;
}

bool Contest::sound(const PredictionRow& row) { return entities_.run(row.run) && entities_.config(row.config); }

/// Of a row that outlives it. Of one template and compiler no row is staler than another.
OrderKey Contest::order_of(const RecordRow& row) {
    const auto* setting = entities_.setting(row.setting.id);
    const auto* config = entities_.config(row.config);
    const auto* source = entities_.source(row.key.source);
    OrderKey order{.verified = static_cast<Verified>(row.verified),
                   .time_ns = row.time_ns,
                   .tuned_at = row.tuned_at,
                   .run_uuid = bytes_of(row.run),
                   .rank = row.key.rank,
                   .crc = row.crc};
    if (config) order.config_hash = config->hash;
    if (source) order.template_hash = source->hash;
    if (!setting) return order;
    order.locked_clocks = setting->info.clock_policy == "locked";
    order.effort = setting->info.effort;
    order.local = setting->local;
    return order;
}

bool Contest::better(const RecordRow& a, const RecordRow& b) { return compare(order_of(a), order_of(b)) < 0; }
bool Contest::better(const RecordRow& a, const OrderKey& b) { return compare(order_of(a), b) < 0; }

bool Contest::better(const PredictionRow& a, const PredictionRow& b) {
    const auto order = [this](const PredictionRow& row) {
        const auto* run = entities_.run(row.run);
        const auto* config = entities_.config(row.config);
        return std::tuple{!run || run->info.origin != "local", row.time_ns,
                          config ? std::string_view{config->hash} : std::string_view{}, !row.checked,
                          bytes_of(row.run)};
    };
    return order(a) < order(b);
}

/// Than one of a search of here.
bool Contest::better(const PredictionRow& a, std::int64_t front_ns) {
    const auto* run = entities_.run(a.run);
    return run && run->info.origin == "local" && a.time_ns < front_ns;
}

}  // namespace autotune

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

/// The two tables of rows of one kind, and how their columns and a struct tell the same.
struct RecordSeats {
    using Row = RecordRow;
    using Key = RecordKey;
    static constexpr const char* table = "record";
    static constexpr const char* key_columns = "device, template, problem, nvrtc_major, nvrtc_minor, rank";
    static constexpr const char* at_key =
        "device = ?1 AND template = ?2 AND problem = ?3 AND nvrtc_major = ?4 AND nvrtc_minor = ?5 AND rank = ?6";
    static constexpr const char* columns =
        "device, template, problem, nvrtc_major, nvrtc_minor, rank, config, time_ns, lo_ns, hi_ns, samples, "
        "default_ns, evaluated, space_size, effort, verified, max_err, run, tuned_at, crc, import, flags";
    static constexpr const char* values = "?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,0";

    static void bind_key(Query& query, const Key& k) {
        query.bind(k.device, k.source, k.problem, k.nvrtc_major, k.nvrtc_minor, k.rank);
    }
    static Key key_of(const Query& row) {
        return {.device = row.integer(0),
                .source = row.integer(1),
                .problem = row.integer(2),
                .nvrtc_major = static_cast<int>(row.integer(3)),
                .nvrtc_minor = static_cast<int>(row.integer(4)),
                .rank = static_cast<int>(row.integer(5))};
    }
    static void bind(Query& query, const Row& r, std::int64_t import) {
        query.bind(r.key.device, r.key.source, r.key.problem, r.key.nvrtc_major, r.key.nvrtc_minor, r.key.rank,
                   r.config, r.time_ns, r.low_ns, r.high_ns, r.samples, r.default_ns, r.evaluated, r.space_size,
                   r.effort, r.verified, r.max_error, r.run, r.tuned_at, r.crc, import);
        if (r.default_ns < 0) query.bind_at(12, nullptr);
    }
    static Row row_of(const Query& row) {
        return {.key = key_of(row),
                .config = row.integer(6),
                .run = row.integer(17),
                .time_ns = row.integer(7),
                .low_ns = row.integer(8),
                .high_ns = row.integer(9),
                .samples = row.integer(10),
                .default_ns = row.null(11) ? -1 : row.integer(11),
                .evaluated = row.integer(12),
                .space_size = row.integer(13),
                .effort = row.integer(14),
                .verified = row.integer(15),
                .tuned_at = row.integer(18),
                .max_error = row.real(16),
                .crc = static_cast<std::uint32_t>(row.integer(19))};
    }
    static constexpr int import_column = 20;
};

struct PredictionSeats {
    using Row = PredictionRow;
    using Key = PredictionKey;
    static constexpr const char* table = "predicted";
    static constexpr const char* key_columns = "device_model, template, problem, model_version, rank";
    static constexpr const char* at_key =
        "device_model = ?1 AND template = ?2 AND problem = ?3 AND model_version = ?4 AND rank = ?5";
    static constexpr const char* columns =
        "device_model, template, problem, model_version, rank, config, time_ns, checked, run, import";
    static constexpr const char* values = "?,?,?,?,?,?,?,?,?,?";

    static void bind_key(Query& query, const Key& k) {
        query.bind(k.model, k.source, k.problem, k.model_version, k.rank);
    }
    static Key key_of(const Query& row) {
        return {.model = std::string{row.text(0)},
                .source = row.integer(1),
                .problem = row.integer(2),
                .model_version = std::string{row.text(3)},
                .rank = row.integer(4)};
    }
    static void bind(Query& query, const Row& r, std::int64_t import) {
        query.bind(r.key.model, r.key.source, r.key.problem, r.key.model_version, r.key.rank, r.config, r.time_ns,
                   r.checked, r.run, import);
    }
    static Row row_of(const Query& row) {
        return {.key = key_of(row),
                .config = row.integer(5),
                .time_ns = row.integer(6),
                .checked = row.integer(7) != 0,
                .run = row.integer(8)};
    }
    static constexpr int import_column = 9;
};

RecordSeats seats_of(const RecordKey&) { return {}; }
PredictionSeats seats_of(const PredictionKey&) { return {}; }
template <class Key>
using Seats = decltype(seats_of(std::declval<Key>()));

/// In the order of RecordSeats::columns.
class FedRecords : public FedRows {
public:
    FedRecords(std::span<const RecordRow> rows, std::int64_t import) : rows_{rows}, import_{import} {}
    std::size_t count() const noexcept override { return rows_.size(); }
    std::int64_t mark(std::size_t row) const noexcept override { return rows_[row].crc; }
    void give(sqlite3_context* to, std::size_t row, int column) const noexcept override {
        const RecordRow& r = rows_[row];
        if (column == 11 && r.default_ns < 0) return;
        if (column == 16) return sqlite3_result_double(to, r.max_error);
        sqlite3_result_int64(to, number(r, column));
    }

private:
    std::int64_t number(const RecordRow& r, int column) const noexcept {
        switch (column) {
            case 0:
                return r.key.device;
            case 1:
                return r.key.source;
            case 2:
                return r.key.problem;
            case 3:
                return r.key.nvrtc_major;
            case 4:
                return r.key.nvrtc_minor;
            case 5:
                return r.key.rank;
            case 6:
                return r.config;
            case 7:
                return r.time_ns;
            case 8:
                return r.low_ns;
            case 9:
                return r.high_ns;
            case 10:
                return r.samples;
            case 11:
                return r.default_ns;
            case 12:
                return r.evaluated;
            case 13:
                return r.space_size;
            case 14:
                return r.effort;
            case 15:
                return r.verified;
            case 17:
                return r.run;
            case 18:
                return r.tuned_at;
            case 19:
                return r.crc;
            case 20:
                return import_;
            default:
                return 0;  // flags
        }
    }

    std::span<const RecordRow> rows_;
    std::int64_t import_;
};

enum class Or { ignore, replace };

/// False: there is a row, and it stays.
template <class S>
bool insert(Database& db, S, const typename S::Row& row, std::int64_t import, Or otherwise, bool beside = false) {
    static const std::array<std::string, 3> sql{
        fmt::format("INSERT INTO {} ({}) VALUES ({}) ON CONFLICT DO NOTHING", S::table, S::columns, S::values),
        fmt::format("INSERT OR REPLACE INTO {} ({}) VALUES ({})", S::table, S::columns, S::values),
        fmt::format("INSERT OR REPLACE INTO {}_beside ({}) VALUES ({})", S::table, S::columns, S::values)};
    Query query = db.query(sql[beside ? 2 : otherwise == Or::replace ? 1 : 0]);
    S::bind(query, row, import);
    query.run();
    return db.changes() > 0;
}

template <class S>
void clear(Database& db, S, const typename S::Key& key, bool beside) {
    static const std::array<std::string, 2> sql{fmt::format("DELETE FROM {} WHERE {}", S::table, S::at_key),
                                                fmt::format("DELETE FROM {}_beside WHERE {}", S::table, S::at_key)};
    Query query = db.query(sql[beside ? 1 : 0]);
    S::bind_key(query, key);
    query.run();
}

}  // namespace

/// The sound rows of a key. A damaged one gives way: it would be none for a reader.
template <class Key>
auto Contest::contenders(const Key& key) {
    using S = Seats<Key>;
    static const std::array<std::string, 2> sql{
        fmt::format("SELECT {} FROM {} WHERE {}", S::columns, S::table, S::at_key),
        fmt::format("SELECT {} FROM {}_beside WHERE {}", S::columns, S::table, S::at_key)};
    std::vector<Contender<typename S::Row>> out;
    for (const bool beside : {false, true}) {
        Query row = db_.query(sql[beside ? 1 : 0]);
        S::bind_key(row, key);
        while (row.step())
            out.push_back({.row = S::row_of(row), .import = row.integer(S::import_column), .stands = !beside});
    }
    std::erase_if(out, [&](const auto& one) { return !sound(one.row); });
    return out;
}

Put Contest::put(const RecordRow& row, std::int64_t import) {
    return insert(db_, RecordSeats{}, row, import, Or::ignore) ? Put::added : contend(row, import);
}

std::vector<Put> Contest::put(std::span<const RecordRow> rows, std::int64_t import) {
    constexpr std::size_t few = 8;
    std::vector<Put> became(rows.size(), Put::added);
    if (rows.size() <= few) {
        std::ranges::transform(rows, became.begin(), [&](const RecordRow& row) { return put(row, import); });
        return became;
    }
    static const std::string sql = fmt::format(
        "INSERT INTO record ({}) SELECT c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, "
        "c17, c18, c19, c20, c21 FROM autotune_feed(?1) WHERE true ON CONFLICT DO UPDATE SET flags = 0 WHERE "
        "autotune_feed_met(?1, excluded.crc)",
        RecordSeats::columns);
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
        if ((one.import == import || one.import == 0) && !better(row, one.row)) return Put::not_better;
    std::erase_if(there,
                  [&](const auto& one) { return one.import == import || (import == 0 && !better(one.row, row)); });
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

template <class Key, class Front>
void Contest::end_worse(const std::vector<Key>& keys, const Front& front) {
    for (const Key& key : keys) {
        auto rows = contenders(key);
        std::erase_if(rows, [&](const auto& one) { return one.import == 0 || !better(one.row, front); });
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

void Contest::make_room(const std::vector<RecordKey>& keys, const Record& front) {
    const RecordOrder order{front};
    end_worse(keys, order.key);
}
void Contest::make_room(const std::vector<PredictionKey>& keys, std::int64_t front_ns) { end_worse(keys, front_ns); }

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
                                  S::key_columns, S::table));
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

bool Contest::sound(const RecordRow& r) {
    const Run& run = this->run(r.run);
    if (!run.known || config_hash(r.config).empty()) return false;
    const CrcParts parts{.device = device_crc(r.key.device),
                         .source = crc32(template_hash(r.key.source)),
                         .problem = problem_crc(r.key.problem),
                         .config = crc32(variants_[r.config] + ' ' + config_hash(r.config)),
                         .run = crc32(run.uuid)};
    const std::array<std::int64_t, 13> numbers{
        r.key.nvrtc_major, r.key.nvrtc_minor, r.key.rank,   r.time_ns, r.low_ns,   r.high_ns, r.samples,
        r.default_ns,      r.evaluated,       r.space_size, r.effort,  r.verified, r.tuned_at};
    return crc_of_row(parts, numbers, r.max_error) == r.crc;
}

bool Contest::sound(const PredictionRow& row) { return run(row.run).known && !config_hash(row.config).empty(); }

/// Of one template and compiler no row is staler than another.
OrderKey Contest::order_of(const RecordRow& row) {
    const Run& run = this->run(row.run);
    return {.verified = static_cast<Verified>(row.verified),
            .locked_clocks = run.locked_clocks,
            .effort = static_cast<SearchEffort>(row.effort),
            .local = run.local,
            .time_ns = row.time_ns,
            .tuned_at = row.tuned_at,
            .config_hash = config_hash(row.config),
            .template_hash = template_hash(row.key.source),
            .run_uuid = run.uuid,
            .rank = row.key.rank,
            .crc = row.crc};
}

bool Contest::better(const RecordRow& a, const RecordRow& b) { return compare(order_of(a), order_of(b)) < 0; }
bool Contest::better(const RecordRow& a, const OrderKey& b) { return compare(order_of(a), b) < 0; }

bool Contest::better(const PredictionRow& a, const PredictionRow& b) {
    const auto order = [this](const PredictionRow& row) {
        const Run& run = this->run(row.run);
        return std::tuple{!run.local, row.time_ns, std::string_view{config_hash(row.config)}, !row.checked,
                          std::string_view{run.uuid}};
    };
    return order(a) < order(b);
}

/// Than one of a search of here.
bool Contest::better(const PredictionRow& a, std::int64_t front_ns) { return run(a.run).local && a.time_ns < front_ns; }

const Contest::Run& Contest::run(std::int64_t id) {
    const auto [at, is_new] = runs_.try_emplace(id);
    if (is_new) {
        Query row = db_.query("SELECT origin, clock_policy, uuid FROM run WHERE id = ?");
        row.bind(id);
        if (row.step())
            at->second = {.known = true,
                          .local = row.text(0) == "local",
                          .locked_clocks = row.text(1) == "locked",
                          .uuid = std::string{row.text(2)}};
    }
    return at->second;
}

const std::string& Contest::config_hash(std::int64_t id) {
    const auto [at, is_new] = configs_.try_emplace(id);
    if (is_new) {
        Query row = db_.query("SELECT hash, variant FROM config WHERE id = ?");
        row.bind(id);
        if (row.step()) {
            at->second = row.text(0);
            variants_[id] = row.text(1);
        }
    }
    return at->second;
}

const std::string& Contest::template_hash(std::int64_t id) {
    const auto [at, is_new] = templates_.try_emplace(id);
    if (is_new) {
        Query row = db_.query("SELECT hash FROM template WHERE id = ?");
        row.bind(id);
        if (row.step()) at->second = row.text(0);
    }
    return at->second;
}

std::uint32_t Contest::device_crc(std::int64_t id) {
    const auto [at, is_new] = devices_.try_emplace(id);
    if (is_new) {
        Query row = db_.query("SELECT fp FROM device WHERE id = ?");
        row.bind(id);
        if (row.step()) at->second = crc32(row.text(0));
    }
    return at->second;
}

std::uint32_t Contest::problem_crc(std::int64_t id) {
    if (problem_ != id || id == 0) {
        Query row = db_.query("SELECT key FROM problem WHERE id = ?");
        row.bind(id);
        problem_crc_ = row.step() ? crc32(row.blob(0)) : 0;
        problem_ = id;
    }
    return problem_crc_;
}

}  // namespace autotune

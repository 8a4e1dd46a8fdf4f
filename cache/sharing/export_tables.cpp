#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <set>

#include "cache/sharing/anonymise.h"
#include "cache/sharing/exports.h"
#include "cache/sharing/file_in_making.h"
#include "cache/store/database.h"
#include "tuner/model/printable.h"

namespace autotune {

namespace {

/// What the tables tell of every record, by column.
constexpr std::array<std::string_view, 22> table_columns{
    "op",         "gpu",        "problem", "variant", "config",   "rank",    "time_us",   "low_us",
    "high_us",    "default_us", "speedup", "samples", "verified", "state",   "max_error", "evaluated",
    "space_size", "effort",     "nvrtc",   "clocks",  "origin",   "tuned_at"};

/// Names the column's type for viewers: SQLite would do without.
std::string_view type_of_column(std::string_view column) {
    for (const std::string_view real : {"time_us", "low_us", "high_us", "default_us", "speedup", "max_error"})
        if (column == real) return "REAL";
    for (const std::string_view whole : {"rank", "samples", "evaluated", "space_size"})
        if (column == whole) return "INTEGER";
    return "TEXT";
}

std::string date_text(std::int64_t seconds) {
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

/// A cell: a Value, or nothing.
using Cell = std::optional<Value>;

std::vector<Cell> cells_of(const Record& r) {
    const auto whole = [](auto number) { return Cell{static_cast<std::int64_t>(number)}; };
    const auto text = [](std::string_view words) { return Cell{printable(words)}; };
    const std::string state = r.predicted ? "predicted" : r.fresh() ? "fresh" : "stale: " + r.stale;
    return {text(r.source.op),
            text(r.device.name),
            text(r.problem.text()),
            text(r.config.variant),
            text(r.config.text()),
            whole(r.rank),
            r.time_us,
            r.low_us,
            r.high_us,
            r.default_us ? Cell{*r.default_us} : std::nullopt,
            r.default_us ? Cell{*r.default_us / r.time_us} : std::nullopt,
            whole(r.samples),
            text(name_of(r.verified)),
            text(state),
            r.max_error,
            whole(r.evaluated),
            whole(r.space_size),
            text(name_of(r.run.effort)),
            text(fmt::format("{}.{}", r.environment.nvrtc_major, r.environment.nvrtc_minor)),
            text(r.run.clock_policy),
            text(r.local() ? "local" : "import"),
            text(date_text(r.tuned_at))};
}

std::string quoted_name(std::string_view name) {
    std::string text = "\"";
    for (const char c : name) text += c == '"' ? std::string{"\"\""} : std::string{c};
    return text + '"';
}

/// Makes a table and fills it, a row at a time.
class PlainTable {
public:
    PlainTable(Database& db, const std::string& name, const std::vector<std::pair<std::string, std::string>>& columns)
        : db_{db} {
        std::string head, marks;
        for (const auto& [column, type] : columns) {
            head += fmt::format("{}{} {}", head.empty() ? "" : ", ", quoted_name(column), type);
            marks += marks.empty() ? "?" : ",?";
        }
        db_.execute(fmt::format("CREATE TABLE {} ({})", quoted_name(name), head).c_str());
        insert_ = fmt::format("INSERT INTO {} VALUES ({})", quoted_name(name), marks);
    }
    void add(const std::vector<Cell>& cells) {
        Query query = db_.query(insert_);
        int index = 0;
        for (const Cell& cell : cells) {
            ++index;
            if (!cell)
                query.bind_at(index, nullptr);
            else
                std::visit([&](const auto& value) { query.bind_at(index, value); }, *cell);
        }
        query.run();
    }

private:
    Database& db_;
    std::string insert_;
};

std::vector<std::pair<std::string, std::string>> record_columns_typed() {
    std::vector<std::pair<std::string, std::string>> columns;
    for (const std::string_view column : table_columns) columns.emplace_back(column, type_of_column(column));
    return columns;
}

/// `record_OP`: what differs from op to op has a column of its own. Names are told apart from ours, and from each other
/// whatever their case, as SQLite wants it.
void fill_op_table(Database& db, const std::string& op, const std::vector<const Record*>& records) {
    std::vector<std::string> names;
    std::set<std::string> taken;
    const auto lower = [](std::string text) {
        for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        return text;
    };
    const auto add_name = [&](const std::string& name) {
        if (taken.insert(name).second) names.push_back(name);
    };
    for (const Record* r : records)
        for (const auto& [name, value] : r->problem.fields) add_name(name);
    const std::size_t fields = names.size();
    for (const Record* r : records)
        for (const auto& [name, value] : r->config.values) add_name(name);
    std::vector<std::pair<std::string, std::string>> columns{
        {"gpu", "TEXT"}, {"variant", "TEXT"}, {"time_us", "REAL"}, {"default_us", "REAL"}, {"state", "TEXT"}};
    std::set<std::string> used{"gpu", "variant", "time_us", "default_us", "state"};
    for (std::size_t i = 0; i < names.size(); ++i) {
        std::string column = names[i];
        while (!used.insert(lower(column)).second) column = (i < fields ? "field_" : "parameter_") + column;
        columns.emplace_back(column, "");
    }
    constexpr std::size_t most_columns = 1000;
    if (columns.size() > most_columns) columns.resize(most_columns);
    PlainTable table{db, "record_" + op, columns};
    for (const Record* r : records) {
        const std::vector<Cell> all = cells_of(*r);
        std::vector<Cell> cells{all[1], all[3], all[6], all[9], all[13]};
        for (std::size_t i = 0; cells.size() < columns.size(); ++i) {
            const auto& pairs = i < fields ? r->problem.fields : r->config.values;
            const auto found = std::ranges::find(pairs, names[i], &std::pair<std::string, Value>::first);
            cells.push_back(found == pairs.end() ? std::nullopt : Cell{found->second});
        }
        table.add(cells);
    }
}

/// A reason is what a compiler or driver said, which may hold names of files: it is left out with the others.
void fill_trials(Database& db, const Store& store, const ExportOptions& options) {
    const RecordFilter& filter = options.filter;
    PlainTable table{db,
                     "trial",
                     {{"run", "INTEGER"},
                      {"op", "TEXT"},
                      {"gpu", "TEXT"},
                      {"problem", "TEXT"},
                      {"number", "INTEGER"},
                      {"variant", "TEXT"},
                      {"config", "TEXT"},
                      {"outcome", "TEXT"},
                      {"time_us", "REAL"},
                      {"reason", "TEXT"},
                      {"predicted", "INTEGER"},
                      {"ended", "TEXT"}}};
    std::map<std::string, std::int64_t> counts;
    for (StoredRun& run : store.runs(filter.op)) {
        if (!filter.takes(run.device) || !filter.takes(run.problem)) continue;
        if (options.anonymise) anonymise(run.device);
        for (const StoredTrial& trial : store.trials(run.id)) {
            const Outcome& outcome = trial.outcome;
            table.add({run.id, printable(run.problem.op), printable(run.device.name), printable(run.problem.text()),
                       static_cast<std::int64_t>(trial.ordinal), printable(trial.config.variant),
                       printable(trial.config.text()), std::string{info(outcome.ending).name},
                       outcome.time_us > 0 ? Cell{outcome.time_us} : std::nullopt,
                       options.anonymise ? std::nullopt : Cell{printable(outcome.reason)},
                       static_cast<std::int64_t>(outcome.predicted), date_text(trial.ended)});
            ++counts[std::string{info(outcome.ending).name}];
        }
    }
    PlainTable outcomes{db, "outcome", {{"name", "TEXT"}, {"words", "TEXT"}, {"trials", "INTEGER"}}};
    for (const auto& [name, count] : counts) outcomes.add({name, std::string{info(*ending_named(name)).words}, count});
}

}  // namespace

std::size_t export_flat(const Store& store, const ExportOptions& options, const std::filesystem::path& to) {
    const FileInMaking file{to};
    std::vector<Record> records;
    for_each_record(store, options.filter, options.today, [&](const Record& stored) {
        records.push_back(stored);
        if (options.anonymise) anonymise(records.back());
    });
    try {
        Database db = Database::in_memory();
        db.execute("BEGIN");
        PlainTable table{db, "record", record_columns_typed()};
        std::map<std::string, std::vector<const Record*>> by_op;
        for (const Record& record : records) {
            table.add(cells_of(record));
            by_op[record.source.op].push_back(&record);
        }
        for (const auto& [op, of_it] : by_op) fill_op_table(db, op, of_it);
        fill_trials(db, store, options);
        db.execute("COMMIT");
        db.query("VACUUM INTO ?").bind(file.making().string()).run();
    } catch (const DatabaseFailure& failure) {
        file.fail(failure);
    }
    file.appear();
    return records.size();
}

std::size_t export_csv(const Store& store, const ExportOptions& options,
                       const std::function<void(const std::string& line)>& sink) {
    std::string head;
    for (const std::string_view column : table_columns) head += fmt::format("{}{}", head.empty() ? "" : ",", column);
    sink(head);
    std::size_t count = 0;
    for_each_record(store, options.filter, options.today, [&](const Record& stored) {
        Record record = stored;
        if (options.anonymise) anonymise(record);
        std::string line;
        bool first = true;
        for (const Cell& cell : cells_of(record)) {
            if (!std::exchange(first, false)) line += ',';
            if (!cell) continue;
            if (const auto* text = std::get_if<std::string>(&*cell))
                line += quoted_name(*text);  // the same doubling of quotes
            else
                line += to_text(*cell);
        }
        sink(line);
        ++count;
    });
    return count;
}

}  // namespace autotune

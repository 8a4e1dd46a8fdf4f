#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "cache/store/crc32.h"
#include "cache/store/json.h"
#include "cache/store/pages.h"
#include "cache/store/rows.h"

namespace autotune {

namespace {

/// The ids that a query narrows to; nullopt: any.
std::vector<std::int64_t> ids_of(Database& database, std::string_view sql, std::string_view text) {
    std::vector<std::int64_t> ids;
    Query row = database.query(sql);
    row.bind(text);
    while (row.step()) ids.push_back(row.integer(0));
    return ids;
}

std::optional<std::int64_t> problem_id(Database& database, const RecordQuery& query) {
    return database.integer_of("SELECT id FROM problem WHERE op = ? AND key = ?", query.op,
                               std::span<const std::byte>{query.problem_key});
}

/// Not in schema 1, which is read as it is where a file is too broken to be brought up to date.
bool tells_imports(Database& database) { return database.integer_of("PRAGMA user_version").value_or(0) > 1; }

/// Why rows of a template and an environment are stale: worked out once a pair.
class Staleness {
public:
    explicit Staleness(const Today& today) : today_{today} {}
    std::string_view of(std::int64_t source_id, const TemplateIdentity& source, std::int64_t environment_id,
                        const Environment& environment) {
        const auto [at, is_new] = reasons_.try_emplace({source_id, environment_id});
        if (is_new) at->second = stale_reason(source, environment, today_);
        return at->second;
    }

private:
    const Today& today_;
    std::map<std::pair<std::int64_t, std::int64_t>, std::string> reasons_;
};

/// What the last few ids led to. A scan asks for the same few thousands of times.
template <class T, std::size_t size>
class Memo {
public:
    /// `fill` gives the value anew, where it lies: to copy a large one costs more than to find it.
    template <class Fill>
    const T& at(std::int64_t id, Fill&& fill) {
        Slot& slot = slots_[static_cast<std::uint64_t>(id) % size];
        if (!slot.used || slot.id != id) {
            slot.used = false;
            fill(slot.value);
            slot.used = true;
            slot.id = id;
        }
        return slot.value;
    }

private:
    struct Slot {
        bool used = false;
        std::int64_t id = 0;
        T value{};
    };
    std::vector<Slot> slots_ = std::vector<Slot>(size);
};

/// What a record's order and checksum need of its run; null where a part is missing or damaged.
struct RunParts {
    const Environment* environment = nullptr;
    const RunInfo* run = nullptr;  ///< null: its row was read no further
    std::string_view stale{};
    std::uint32_t crc = 0;
    bool locked_clocks = false, local = false;
    std::uint8_t uuid_size = 0;
    std::array<char, 40> uuid_text{};  ///< where there is no RunInfo
    std::string_view uuid() const noexcept { return run ? run->uuid : std::string_view{uuid_text.data(), uuid_size}; }
};

constexpr std::array<std::string_view, 18> record_columns{
    "problem",    "nvrtc_major", "nvrtc_minor", "rank",   "config",   "time_ns", "lo_ns", "hi_ns",    "samples",
    "default_ns", "evaluated",   "space_size",  "effort", "verified", "max_err", "run",   "tuned_at", "crc"};

/// The tables of records as they lie in the file's pages.
class RecordPages {
public:
    static std::unique_ptr<RecordPages> of(Database& database) {
        std::unique_ptr<Pages> pages = Pages::of(database);
        if (!pages) return nullptr;
        constexpr std::array<std::string_view, 1> of_problem{"key"};
        constexpr std::array<std::string_view, 4> of_run{"uuid", "env", "clock_policy", "origin"};
        const auto records = RowLayout::of(*pages, "record", record_columns);
        const auto problems = RowLayout::of(*pages, "problem", of_problem);
        const auto runs = RowLayout::of(*pages, "run", of_run);
        if (!records || !problems || !runs) return nullptr;
        return std::make_unique<RecordPages>(std::move(pages), *records, *problems, *runs);
    }
    RecordPages(std::unique_ptr<Pages> pages, const RowLayout& records, const RowLayout& problems,
                const RowLayout& runs)
        : pages_{std::move(pages)}, records_{*pages_, records}, problems_{*pages_, problems}, runs_{*pages_, runs} {}

    /// The first row of a device and a template, and those after it; false: there is none.
    bool first(std::int64_t device, std::int64_t source) { return with_problem(records_.first(device, source)); }
    bool next() { return with_problem(records_.next()); }
    const StoredRow* run(std::int64_t id) { return runs_.find(id); }

    // The row, its columns numbered as a statement's.
    std::int64_t integer(int column) const noexcept { return records_.row().integer(column); }
    double real(int column) const noexcept { return records_.row().real(column); }
    bool null(int column) const noexcept { return records_.row().null(column); }
    std::span<const std::byte> blob(int) const noexcept { return problem_->blob(0); }
    std::string_view text(int) const noexcept { return {}; }

private:
    /// A record without its problem is no row of the join.
    bool with_problem(bool there) {
        for (; there; there = records_.next())
            if ((problem_ = problems_.find(records_.row().integer(0)))) return true;
        return false;
    }

    std::unique_ptr<Pages> pages_;
    PrefixScan records_;
    RowidLookup problems_, runs_;
    const StoredRow* problem_ = nullptr;
};

/// Rows of one device and one template, with the parts that they share.
class SharedParts {
public:
    SharedParts(Entities& entities, Staleness& staleness, std::int64_t device, std::int64_t source,
                RecordPages* pages = nullptr)
        : entities_{entities},
          staleness_{staleness},
          pages_{pages},
          source_id_{source},
          device_{entities.device(device)},
          source_{entities.source(source)} {}

    /// Fills in what the rows share; false: a part is missing or damaged.
    bool fill(RecordView& view, std::int64_t config_id, std::int64_t run_id, CrcParts& crcs) {
        const auto* config = configs_.at(config_id, [&](auto*& row) { row = entities_.config(config_id); });
        const RunParts& run = runs_.at(run_id, [&](RunParts& parts) { read_run(run_id, parts); });
        if (!device_ || !source_ || !config || !run.environment) return false;
        view.device = &device_->value;
        view.source = &source_->value;
        view.config = &config->value;
        view.run = run.run;
        view.environment = run.environment;
        view.stale = run.stale;
        crcs = {.device = device_->crc,
                .source = source_->crc,
                .problem = crc_of_problem(view),
                .config = config->crc,
                .run = run.crc};
        view.order = {.verified = view.verified,
                      .fresh = view.stale.empty(),
                      .locked_clocks = run.locked_clocks,
                      .effort = view.effort,
                      .local = run.local,
                      .time_ns = view.time_ns,
                      .tuned_at = view.tuned_at,
                      .config_hash = config->hash,
                      .template_hash = source_->hash,
                      .run_uuid = run.uuid(),
                      .rank = view.id.rank,
                      .crc = view.crc};
        return true;
    }

    /// The problem as people are told it, which is beside the checksum; null: its text is damaged.
    const ProblemIdentity* problem(const RecordView& view, std::string_view text) {
        if (told_id_ != view.id.problem || !told_) {
            told_id_ = view.id.problem;
            told_.emplace(ProblemIdentity{.op = view.source->op,
                                          .key = {view.problem_key.begin(), view.problem_key.end()},
                                          .json = {},
                                          .fields = {}});
            try {
                read_problem_json(parse_json(text), *told_);
            } catch (const std::exception&) {
                told_.reset();
            }
        }
        return told_ ? &*told_ : nullptr;
    }

private:
    void read_run(std::int64_t id, RunParts& out) {
        out.run = nullptr;
        out.environment = nullptr;
        if (pages_)
            if (const StoredRow* row = pages_->run(id); row && row->text(0).size() <= out.uuid_text.size()) {
                out.uuid_size =
                    static_cast<std::uint8_t>(row->text(0).copy(out.uuid_text.data(), out.uuid_text.size()));
                return read_parts(row->integer(1), row->text(2), row->text(3), crc32(row->text(0)), out);
            }
        const auto* run = entities_.run(id);
        if (!run) return;
        out.run = &run->info;
        read_parts(run->environment, run->info.clock_policy, run->info.origin, run->crc, out);
    }
    void read_parts(std::int64_t environment_id, std::string_view clock_policy, std::string_view origin,
                    std::uint32_t crc, RunParts& out) {
        out.crc = crc;
        out.locked_clocks = clock_policy == "locked";
        out.local = origin == "local";
        if (!environment_.second || environment_.first != environment_id) {
            const auto* environment = source_ ? entities_.environment(environment_id) : nullptr;
            if (!environment) return;
            environment_ = {environment_id, &environment->value};
            stale_ = staleness_.of(source_id_, source_->value, environment_id, environment->value);
        }
        out.environment = environment_.second;
        out.stale = stale_;
    }

    /// Ranks of a problem follow each other.
    std::uint32_t crc_of_problem(const RecordView& view) {
        if (view.id.problem != problem_ || !any_) {
            problem_crc_ = crc32(view.problem_key);
            problem_ = view.id.problem;
            any_ = true;
        }
        return problem_crc_;
    }

    Entities& entities_;
    Staleness& staleness_;
    RecordPages* pages_;  ///< null: runs are asked for by statements
    std::int64_t source_id_;
    const Entities::Row<DeviceIdentity>* device_;
    const Entities::Row<TemplateIdentity>* source_;
    Memo<const Entities::Row<Config>*, 1024> configs_;
    Memo<RunParts, 128> runs_;
    std::pair<std::int64_t, const Environment*> environment_{};  ///< the last one
    std::string_view stale_{};                                   ///< with that
    std::int64_t problem_ = 0;
    std::uint32_t problem_crc_ = 0;
    bool any_ = false;
    std::int64_t told_id_ = 0;
    std::optional<ProblemIdentity> told_;
};

constexpr std::string_view problem_text = ", p.text_json";

/// Of rows of one device and template, for further conditions. The last column is who brought a row.
std::string select_records(Database& database, bool with_text, Seat seat) {
    return fmt::format(
        "SELECT r.{}, p.key{}, {} FROM record{} r JOIN problem p ON p.id = r.problem WHERE r.device = ?1 AND "
        "r.template = ?2",
        fmt::join(record_columns, ", r."), with_text ? problem_text : "", tells_imports(database) ? "r.import" : "0",
        seat == Seat::beside ? "_beside" : "");
}

/// The view of the row that stands at the query; false: its checksum or one of its parts fails.
template <class Row>
bool read_record(const Row& row, SharedParts& shared, bool with_text, RecordView& view) {
    view.id.problem = row.integer(0);
    view.id.nvrtc_major = static_cast<int>(row.integer(1));
    view.id.nvrtc_minor = static_cast<int>(row.integer(2));
    view.id.rank = static_cast<int>(row.integer(3));
    view.time_ns = row.integer(5);
    view.low_ns = row.integer(6);
    view.high_ns = row.integer(7);
    view.samples = row.integer(8);
    // A NULL reads as 0, and few defaults take no time.
    const std::int64_t default_ns = row.integer(9);
    view.default_ns = default_ns == 0 && row.null(9) ? std::nullopt : std::optional{default_ns};
    view.evaluated = row.integer(10);
    view.space_size = row.integer(11);
    const std::int64_t effort = row.integer(12), verified = row.integer(13);
    if (effort < 0 || effort > static_cast<int>(SearchEffort::full) || verified < 0 ||
        verified > static_cast<int>(Verified::verified))
        return false;
    view.effort = static_cast<SearchEffort>(effort);
    view.verified = static_cast<Verified>(verified);
    view.max_error = row.real(14);
    view.tuned_at = row.integer(16);
    view.crc = static_cast<std::uint32_t>(row.integer(17));
    view.problem_key = row.blob(18);
    CrcParts parts;
    if (!shared.fill(view, row.integer(4), row.integer(15), parts)) return false;
    const std::array<std::int64_t, 13> numbers{
        view.id.nvrtc_major, view.id.nvrtc_minor,          view.id.rank,   view.time_ns,    view.low_ns, view.high_ns,
        view.samples,        view.default_ns.value_or(-1), view.evaluated, view.space_size, effort,      verified,
        view.tuned_at};
    if (crc_of_row(parts, numbers, view.max_error) != view.crc) return false;
    if (with_text) view.problem = shared.problem(view, row.text(19));
    return !with_text || view.problem;
}

void scan_pages(RecordPages& pages, std::span<const std::int64_t> devices, std::span<const std::int64_t> sources,
                Entities& entities, Staleness& staleness, const std::function<void(const RecordView&)>& sink,
                const std::function<void(const RecordKey&)>& broken) {
    for (const std::int64_t device : devices)
        for (const std::int64_t source : sources) {
            SharedParts shared{entities, staleness, device, source, &pages};
            for (bool there = pages.first(device, source); there; there = pages.next()) {
                RecordView view{.id = {.device = device, .source = source}, .default_ns = {}};
                if (read_record(pages, shared, false, view))
                    sink(view);
                else
                    broken(view.id);
            }
        }
}

void scan_predictions(Database& database, const RecordQuery& query, const Today& today,
                      const std::function<void(const RecordView&)>& sink, Seat seat) {
    Entities entities{database};
    Staleness staleness{today};
    std::map<std::pair<std::int64_t, std::int64_t>, SharedParts> shared_by;
    Query row = database.query(fmt::format(
        "SELECT d.template, d.problem, d.model_version, d.rank, d.config, d.time_ns, d.checked, d.run, p.key, "
        "p.text_json, {} FROM predicted{} d JOIN problem p ON p.id = d.problem WHERE ?1 IN ('', p.op)",
        tells_imports(database) ? "d.import" : "0", seat == Seat::beside ? "_beside" : ""));
    row.bind(query.op);
    while (row.step()) {
        const auto key = row.blob(8);
        if (!query.problem_key.empty() &&
            !std::equal(key.begin(), key.end(), query.problem_key.begin(), query.problem_key.end()))
            continue;
        const auto* run = entities.run(row.integer(7));
        if (!run) continue;
        RecordView view{.id = {.device = run->device,
                               .source = row.integer(0),
                               .problem = row.integer(1),
                               .rank = static_cast<int>(row.integer(3))},
                        .problem_key = key,
                        .time_ns = row.integer(5),
                        .low_ns = row.integer(5),
                        .high_ns = row.integer(5),
                        .default_ns = {},
                        .samples = 1,
                        .tuned_at = run->info.ended,
                        .verified = row.integer(6) != 0 ? Verified::checked : Verified::elsewhere,
                        .predicted = true,
                        .model_version = row.text(2),
                        .import = row.integer(10)};
        SharedParts& shared =
            shared_by.try_emplace({run->device, view.id.source}, entities, staleness, run->device, view.id.source)
                .first->second;
        CrcParts parts;
        if (!shared.fill(view, row.integer(4), row.integer(7), parts)) continue;
        if (!query.device_fp.empty() && view.device->fp != query.device_fp) continue;
        view.problem = shared.problem(view, row.text(9));
        if (view.problem) sink(view);
    }
}

}  // namespace

void scan_records(Database& database, const RecordQuery& query, const Today& today,
                  const std::function<void(const RecordView&)>& sink,
                  const std::function<void(const RecordKey&)>& broken, Seat seat) {
    if (query.predicted) return scan_predictions(database, query, today, sink, seat);
    const auto devices = ids_of(database, "SELECT id FROM device WHERE ?1 IN ('', fp)", query.device_fp);
    const auto sources = ids_of(database, "SELECT id FROM template WHERE ?1 IN ('', op)", query.op);
    std::optional<std::int64_t> problem;
    if (!query.problem_key.empty()) {
        problem = problem_id(database, query);
        if (!problem) return;
    }
    Entities entities{database};
    Staleness staleness{today};
    if (!query.with_problem && !problem && seat == Seat::standing)
        if (const auto pages = RecordPages::of(database))
            return scan_pages(*pages, devices, sources, entities, staleness, sink, broken);
    const std::string sql = select_records(database, query.with_problem, seat) + (problem ? " AND r.problem = ?3" : "");
    for (const std::int64_t device : devices)
        for (const std::int64_t source : sources) {
            SharedParts shared{entities, staleness, device, source};
            Query row = database.query(sql);
            if (problem)
                row.bind(device, source, *problem);
            else
                row.bind(device, source);
            while (row.step()) {
                RecordView view{.id = {.device = device, .source = source}, .default_ns = {}};
                view.import = row.integer(query.with_problem ? 20 : 19);
                if (read_record(row, shared, query.with_problem, view))
                    sink(view);
                else
                    broken(view.id);
            }
        }
}

void scan_problem(Database& database, const RecordKey& id, const std::function<void(const RecordView&)>& sink,
                  const std::function<void(const RecordKey&)>& broken, Seat seat) {
    Entities entities{database};
    const Today nothing;
    Staleness staleness{nothing};
    SharedParts shared{entities, staleness, id.device, id.source};
    Query row = database.query(select_records(database, true, seat) + " AND r.problem = ?3");
    row.bind(id.device, id.source, id.problem);
    while (row.step()) {
        RecordView view{.id = {.device = id.device, .source = id.source}, .default_ns = {}};
        view.import = row.integer(20);
        if (read_record(row, shared, true, view))
            sink(view);
        else
            broken(view.id);
    }
}

std::optional<Record> record_at(Database& database, const RecordKey& key) {
    Query row = database.query(select_records(database, true, Seat::standing) +
                               " AND r.problem = ?3 AND r.nvrtc_major = ?4 AND r.nvrtc_minor = ?5 AND r.rank = ?6");
    row.bind(key.device, key.source, key.problem, key.nvrtc_major, key.nvrtc_minor, key.rank);
    if (!row.step()) return std::nullopt;
    Entities entities{database};
    const Today nothing;
    Staleness staleness{nothing};
    SharedParts shared{entities, staleness, key.device, key.source};
    RecordView view{.id = {.device = key.device, .source = key.source}, .default_ns = {}};
    if (!read_record(row, shared, true, view)) return std::nullopt;
    view.stale = {};
    return to_record(view);
}

Record to_record(const RecordView& view) {
    Record r{.id = view.id,
             .device = *view.device,
             .source = *view.source,
             .problem = *view.problem,
             .environment = *view.environment,
             .run = *view.run,
             .config = *view.config,
             .rank = view.id.rank,
             .default_us = {},
             .model_version = {},
             .stale = {}};
    const auto us = [](std::int64_t ns) { return static_cast<double>(ns) / 1000.0; };
    r.time_us = us(view.time_ns);
    r.low_us = us(view.low_ns);
    r.high_us = us(view.high_ns);
    r.samples = static_cast<int>(view.samples);
    if (view.default_ns) r.default_us = us(*view.default_ns);
    r.evaluated = static_cast<std::size_t>(view.evaluated);
    r.space_size = static_cast<std::size_t>(view.space_size);
    r.run.effort = view.effort;
    r.verified = view.verified;
    r.max_error = view.max_error;
    r.tuned_at = view.tuned_at;
    r.predicted = view.predicted;
    r.model_version = view.model_version;
    r.stale = view.stale;
    return r;
}

}  // namespace autotune

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "cache/store/crc32.h"
#include "cache/store/json.h"
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
template <class T>
class Memo {
public:
    template <class Make>
    const T& at(std::int64_t id, Make&& make) {
        Slot& slot = slots_[static_cast<std::uint64_t>(id) % slots_.size()];
        if (!slot.used || slot.id != id) slot = {.used = true, .id = id, .value = make()};
        return slot.value;
    }

private:
    struct Slot {
        bool used = false;
        std::int64_t id = 0;
        T value{};
    };
    std::vector<Slot> slots_ = std::vector<Slot>(1024);
};

/// A run with what hangs on it; null where a part is missing or damaged.
struct RunParts {
    const Entities::RunRow* run = nullptr;
    const Entities::Row<Environment>* environment = nullptr;
    std::string_view stale{};
    bool locked_clocks = false, local = false;
};

/// Rows of one device and one template, with the parts that they share.
class SharedParts {
public:
    SharedParts(Entities& entities, Staleness& staleness, std::int64_t device, std::int64_t source)
        : entities_{entities},
          staleness_{staleness},
          source_id_{source},
          device_{entities.device(device)},
          source_{entities.source(source)} {}

    /// Fills in what the rows share; false: a part is missing or damaged.
    bool fill(RecordView& view, std::int64_t config_id, std::int64_t run_id, CrcParts& parts) {
        const auto* config = configs_.at(config_id, [&] { return entities_.config(config_id); });
        const RunParts& run = runs_.at(run_id, [&] { return parts_of(run_id); });
        if (!device_ || !source_ || !config || !run.environment) return false;
        view.device = &device_->value;
        view.source = &source_->value;
        view.config = &config->value;
        view.run = &run.run->info;
        view.environment = &run.environment->value;
        view.stale = run.stale;
        parts = {.device = device_->crc,
                 .source = source_->crc,
                 .problem = crc_of_problem(view),
                 .config = config->crc,
                 .run = run.run->crc};
        view.order = {.verified = view.verified,
                      .fresh = view.stale.empty(),
                      .locked_clocks = run.locked_clocks,
                      .effort = view.effort,
                      .local = run.local,
                      .time_ns = view.time_ns,
                      .tuned_at = view.tuned_at,
                      .config_hash = config->hash,
                      .template_hash = source_->hash,
                      .run_uuid = view.run->uuid,
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
    RunParts parts_of(std::int64_t id) {
        const auto* run = entities_.run(id);
        const auto* environment = run ? entities_.environment(run->environment) : nullptr;
        if (!environment || !source_) return {};
        return {.run = run,
                .environment = environment,
                .stale = staleness_.of(source_id_, source_->value, run->environment, environment->value),
                .locked_clocks = run->info.clock_policy == "locked",
                .local = run->info.origin == "local"};
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
    std::int64_t source_id_;
    const Entities::Row<DeviceIdentity>* device_;
    const Entities::Row<TemplateIdentity>* source_;
    Memo<const Entities::Row<Config>*> configs_;
    Memo<RunParts> runs_;
    std::int64_t problem_ = 0;
    std::uint32_t problem_crc_ = 0;
    bool any_ = false;
    std::int64_t told_id_ = 0;
    std::optional<ProblemIdentity> told_;
};

constexpr std::string_view record_columns =
    "SELECT r.problem, r.nvrtc_major, r.nvrtc_minor, r.rank, r.config, r.time_ns, r.lo_ns, r.hi_ns, r.samples, "
    "r.default_ns, "
    "r.evaluated, r.space_size, r.effort, r.verified, r.max_err, r.run, r.tuned_at, r.crc, p.key";
constexpr std::string_view problem_text = ", p.text_json";
constexpr std::string_view record_tables =
    " FROM record r JOIN problem p ON p.id = r.problem WHERE r.device = ?1 AND r.template = ?2";

/// The view of the row that stands at the query; false: its checksum or one of its parts fails.
bool read_record(Query& row, SharedParts& shared, bool with_text, RecordView& view) {
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

void scan_predictions(Database& database, const RecordQuery& query, const Today& today,
                      const std::function<void(const RecordView&)>& sink) {
    Entities entities{database};
    Staleness staleness{today};
    std::map<std::pair<std::int64_t, std::int64_t>, SharedParts> shared_by;
    Query row = database.query(
        "SELECT d.template, d.problem, d.model_version, d.rank, d.config, d.time_ns, d.checked, d.run, p.key, "
        "p.text_json "
        "FROM predicted d JOIN problem p ON p.id = d.problem WHERE ?1 IN ('', p.op)");
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
                        .model_version = row.text(2)};
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
                  const std::function<void(const RecordKey&)>& broken) {
    if (query.predicted) return scan_predictions(database, query, today, sink);
    const auto devices = ids_of(database, "SELECT id FROM device WHERE ?1 IN ('', fp)", query.device_fp);
    const auto sources = ids_of(database, "SELECT id FROM template WHERE ?1 IN ('', op)", query.op);
    std::optional<std::int64_t> problem;
    if (!query.problem_key.empty()) {
        problem = problem_id(database, query);
        if (!problem) return;
    }
    Entities entities{database};
    Staleness staleness{today};
    const std::string sql = fmt::format("{}{}{}{}", record_columns, query.with_problem ? problem_text : "",
                                        record_tables, problem ? " AND r.problem = ?3" : "");
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
                if (read_record(row, shared, query.with_problem, view))
                    sink(view);
                else
                    broken(view.id);
            }
        }
}

void scan_problem(Database& database, const RecordKey& id, const std::function<void(const RecordView&)>& sink,
                  const std::function<void(const RecordKey&)>& broken) {
    Entities entities{database};
    const Today nothing;
    Staleness staleness{nothing};
    SharedParts shared{entities, staleness, id.device, id.source};
    Query row = database.query(fmt::format("{}{}{} AND r.problem = ?3", record_columns, problem_text, record_tables));
    row.bind(id.device, id.source, id.problem);
    while (row.step()) {
        RecordView view{.id = {.device = id.device, .source = id.source}, .default_ns = {}};
        if (read_record(row, shared, true, view))
            sink(view);
        else
            broken(view.id);
    }
}

std::optional<Record> record_at(Database& database, const RecordKey& key) {
    const std::string sql =
        fmt::format("{}{}{} AND r.problem = ?3 AND r.nvrtc_major = ?4 AND r.nvrtc_minor = ?5 AND r.rank = ?6",
                    record_columns, problem_text, record_tables);
    Query row = database.query(sql);
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

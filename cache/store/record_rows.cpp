#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <vector>

#include "cache/store/crc32.h"
#include "cache/store/entities.h"
#include "cache/store/pages.h"
#include "cache/store/record_rows.h"
#include "cache/store/seats.h"

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

/// What a record's order and checksum need of its setting; null where a part is missing or damaged.
struct SettingParts {
    const Environment* environment = nullptr;
    std::string_view stale{};
    std::uint32_t crc = 0;
    SearchEffort effort = SearchEffort::normal;
    bool locked_clocks = false, local = false;
};

using Column = RecordSeats::Column;

/// The table of records as it lies in the file's pages.
class RecordPages {
public:
    static std::unique_ptr<RecordPages> of(Database& database) {
        std::unique_ptr<Pages> pages = Pages::of(database);
        if (!pages) return nullptr;
        const auto records = RowLayout::of(*pages, RecordSeats::table, RecordSeats::columns);
        return records ? std::make_unique<RecordPages>(std::move(pages), *records) : nullptr;
    }
    RecordPages(std::unique_ptr<Pages> pages, const RowLayout& records)
        : pages_{std::move(pages)}, records_{*pages_, records} {}

    /// The first row of a device and a template, and those after it; false: there is none.
    bool first(std::int64_t device, std::int64_t source) { return records_.first(device, source); }
    bool next() { return records_.next(); }
    const StoredRow& row() const noexcept { return records_.row(); }

private:
    std::unique_ptr<Pages> pages_;
    PrefixScan records_;
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

    struct Ids {
        std::int64_t config = 0, setting = 0;
        RunUuid run{};
    };
    /// Fills in what the rows share, and the key of view.id.problem; false: a part is missing or damaged.
    bool fill(RecordView& view, const Ids& ids, CrcParts& crcs) {
        const auto* config = configs_.at(ids.config, [&](auto*& row) { row = entities_.config(ids.config); });
        const SettingParts& setting =
            settings_.at(ids.setting, [&](SettingParts& parts) { read_setting(ids.setting, parts); });
        if (!device_ || !source_ || !config || !setting.environment || !fill_key(view)) return false;
        view.device = &device_->value;
        view.source = &source_->value;
        view.config = &config->value;
        view.environment = setting.environment;
        view.effort = setting.effort;
        view.stale = setting.stale;
        view.crc ^= setting.crc;
        if (ids.run != run_ || !any_run_) {
            run_ = ids.run;
            any_run_ = true;
            run_crc_ = crc_of(run_);
        }
        crcs = {.device = device_->crc,
                .source = source_->crc,
                .problem = problem_crc_,
                .config = config->crc,
                .run = run_crc_};
        view.order = {.verified = view.verified,
                      .fresh = view.stale.empty(),
                      .locked_clocks = setting.locked_clocks,
                      .effort = view.effort,
                      .local = setting.local,
                      .time_ns = view.time_ns,
                      .tuned_at = view.tuned_at,
                      .config_hash = config->hash,
                      .template_hash = source_->hash,
                      .run_uuid = bytes_of(run_),
                      .rank = view.id.rank,
                      .crc = view.crc};
        return true;
    }

    /// What people are told of a row; false: it is damaged.
    bool tell(RecordView& view) {
        if (told_ref_ != view.id.problem || !told_) {
            told_ref_ = view.id.problem;
            told_ = entities_.problem(told_ref_);
        }
        const auto* run = entities_.run(run_);
        if (!told_ || !run) return false;
        view.problem = &*told_;
        view.run = &run->info;
        return true;
    }

private:
    /// Ranks of a problem follow each other.
    bool fill_key(RecordView& view) {
        if (!any_key_ || view.id.problem != problem_) {
            any_key_ = false;
            problem_ = view.id.problem;
            if (!form_ || form_id_ != problem_.form) {
                form_ = entities_.form(problem_.form);
                form_id_ = problem_.form;
            }
            if (!form_ || form_->op != source_->value.op || !form_->form.put_together(problem_.numbers, key_))
                return false;
            any_key_ = true;
            problem_crc_ = crc32(std::span<const std::byte>{key_});
        }
        view.problem_key = key_;
        return true;
    }
    void read_setting(std::int64_t id, SettingParts& out) {
        out = {};
        const auto* setting = entities_.setting(id);
        const auto* environment = setting ? entities_.environment(setting->environment) : nullptr;
        if (!environment || !source_) return;
        out = {.environment = &environment->value,
               .stale = staleness_.of(source_id_, source_->value, setting->environment, environment->value),
               .crc = setting->crc,
               .effort = setting->info.effort,
               .locked_clocks = setting->info.clock_policy == "locked",
               .local = setting->local};
    }

    Entities& entities_;
    Staleness& staleness_;
    std::int64_t source_id_;
    const Entities::Row<DeviceIdentity>* device_;
    const Entities::Row<TemplateIdentity>* source_;
    Memo<const Entities::Row<Config>*, 1024> configs_;
    Memo<SettingParts, 64> settings_;
    const Entities::FormRow* form_ = nullptr;
    std::int64_t form_id_ = 0;
    ProblemRef problem_{};
    std::vector<std::byte> key_;
    std::uint32_t problem_crc_ = 0, run_crc_ = 0;
    bool any_key_ = false, any_run_ = false;
    RunUuid run_{};
    ProblemRef told_ref_{};
    std::optional<ProblemIdentity> told_;
};

/// The view of the row that stands at the query; false: its checksum or one of its parts fails.
template <class Row>
bool read_record(const Row& row, SharedParts& shared, bool with_problem, RecordView& view) {
    const auto numbers_of_key = row.blob(Column::numbers);
    view.id.problem.form = row.integer(Column::form);
    view.id.problem.numbers.assign(reinterpret_cast<const char*>(numbers_of_key.data()), numbers_of_key.size());
    view.id.nvrtc_major = static_cast<int>(row.integer(Column::nvrtc_major));
    view.id.nvrtc_minor = static_cast<int>(row.integer(Column::nvrtc_minor));
    view.id.rank = static_cast<int>(row.integer(Column::rank));
    view.import = row.integer(Column::import);
    view.time_ns = row.integer(Column::time);
    view.low_ns = row.integer(Column::low);
    view.high_ns = row.integer(Column::high);
    view.samples = row.integer(Column::samples);
    // A NULL reads as 0, and few defaults take no time.
    const std::int64_t default_ns = row.integer(Column::default_time);
    view.default_ns = default_ns == 0 && row.null(Column::default_time) ? std::nullopt : std::optional{default_ns};
    view.evaluated = row.integer(Column::evaluated);
    view.space_size = row.integer(Column::space_size);
    const std::int64_t verified = row.integer(Column::verified);
    if (verified < 0 || verified > static_cast<int>(Verified::verified)) return false;
    view.verified = static_cast<Verified>(verified);
    view.max_error = row.real(Column::max_error);
    view.tuned_at = row.integer(Column::tuned_at);
    view.crc = static_cast<std::uint32_t>(row.integer(Column::crc));
    const auto uuid = uuid_of(row.blob(Column::run));
    CrcParts parts;
    if (!uuid || !shared.fill(view, {row.integer(Column::config), row.integer(Column::setting), *uuid}, parts))
        return false;
    const std::array<std::int64_t, 13> numbers{view.id.nvrtc_major,
                                               view.id.nvrtc_minor,
                                               view.id.rank,
                                               view.time_ns,
                                               view.low_ns,
                                               view.high_ns,
                                               view.samples,
                                               view.default_ns.value_or(-1),
                                               view.evaluated,
                                               view.space_size,
                                               static_cast<std::int64_t>(view.effort),
                                               verified,
                                               view.tuned_at};
    if (crc_of_row(parts, numbers, view.max_error) != view.crc) return false;
    return !with_problem || shared.tell(view);
}

void scan_pages(RecordPages& pages, std::span<const std::int64_t> devices, std::span<const std::int64_t> sources,
                Entities& entities, Staleness& staleness, const std::function<void(const RecordView&)>& sink,
                const std::function<void(const RecordKey&)>& broken) {
    RecordView view;
    for (const std::int64_t device : devices)
        for (const std::int64_t source : sources) {
            SharedParts shared{entities, staleness, device, source};
            view = {.id = {.device = device, .source = source}};
            for (bool there = pages.first(device, source); there; there = pages.next())
                if (read_record(pages.row(), shared, false, view))
                    sink(view);
                else
                    broken(view.id);
        }
}

/// Of rows of one device and template, with a further condition.
std::string select_records(Seat seat, std::string_view condition = "") {
    return fmt::format("SELECT {} FROM {} WHERE device = ?1 AND template = ?2{}",
                       SeatSql<RecordSeats>::list(RecordSeats::count),
                       SeatSql<RecordSeats>::table(seat == Seat::beside), condition);
}
constexpr std::string_view of_problem = " AND form = ?3 AND numbers = ?4";

/// What a bound query gives of one device and template.
void scan_rows(Query& row, const RecordKey& of, SharedParts& shared, bool with_problem,
               const std::function<void(const RecordView&)>& sink,
               const std::function<void(const RecordKey&)>& broken) {
    RecordView view{.id = {.device = of.device, .source = of.source}};
    while (row.step())
        if (read_record(row, shared, with_problem, view))
            sink(view);
        else
            broken(view.id);
}

void scan_predictions(Database& database, const RecordQuery& query, const Today& today,
                      const std::function<void(const RecordView&)>& sink, Seat seat) {
    using Told = PredictionSeats;
    Entities entities{database};
    Staleness staleness{today};
    std::map<std::pair<std::int64_t, std::int64_t>, SharedParts> shared_by;
    const auto problem = query.problem_key.empty() ? std::nullopt : find_problem(database, query.op, query.problem_key);
    if (!query.problem_key.empty() && !problem) return;
    Query row = database.query(
        fmt::format("SELECT {} FROM {}", SeatSql<Told>::list(Told::count), SeatSql<Told>::table(seat == Seat::beside)));
    while (row.step()) {
        const auto* run = entities.run(uuid_of(row.blob(Told::run)).value_or(RunUuid{}));
        if (!run) continue;
        const PredictionRow prediction = Told::row_of(row);
        const PredictionKey& key = prediction.key;
        if (problem && key.problem != *problem) continue;
        const auto* source = entities.source(key.source);
        if (!source || (!query.op.empty() && source->value.op != query.op)) continue;
        RecordView view{.id = {.device = run->device,
                               .source = key.source,
                               .problem = key.problem,
                               .rank = static_cast<int>(key.rank)},
                        .time_ns = prediction.time_ns,
                        .low_ns = prediction.time_ns,
                        .high_ns = prediction.time_ns,
                        .default_ns = {},
                        .samples = 1,
                        .tuned_at = run->info.ended,
                        .verified = prediction.checked ? Verified::checked : Verified::elsewhere,
                        .predicted = true,
                        .model_version = key.model_version,
                        .import = row.integer(Told::import)};
        SharedParts& shared =
            shared_by.try_emplace({run->device, view.id.source}, entities, staleness, run->device, view.id.source)
                .first->second;
        CrcParts parts;
        if (!shared.fill(view, {prediction.config, run->setting, prediction.run}, parts) || !shared.tell(view))
            continue;
        view.crc = view.order.crc = 0;
        if (!query.device_fp.empty() && view.device->fp != query.device_fp) continue;
        sink(view);
    }
}

}  // namespace

void scan_records(Database& database, const RecordQuery& query, const Today& today,
                  const std::function<void(const RecordView&)>& sink,
                  const std::function<void(const RecordKey&)>& broken, Seat seat) {
    if (query.predicted) return scan_predictions(database, query, today, sink, seat);
    const auto devices = ids_of(database, "SELECT id FROM device WHERE ?1 IN ('', fp)", query.device_fp);
    const auto sources = ids_of(database, "SELECT id FROM template WHERE ?1 IN ('', op)", query.op);
    std::optional<ProblemRef> problem;
    if (!query.problem_key.empty()) {
        problem = find_problem(database, query.op, query.problem_key);
        if (!problem) return;
    }
    Entities entities{database};
    Staleness staleness{today};
    if (!query.with_problem && !problem && seat == Seat::standing)
        if (const auto pages = RecordPages::of(database))
            return scan_pages(*pages, devices, sources, entities, staleness, sink, broken);
    const std::string sql = select_records(seat, problem ? of_problem : "");
    for (const std::int64_t device : devices)
        for (const std::int64_t source : sources) {
            SharedParts shared{entities, staleness, device, source};
            Query row = database.query(sql);
            if (problem)
                row.bind(device, source, problem->form, problem->blob());
            else
                row.bind(device, source);
            scan_rows(row, {.device = device, .source = source}, shared, query.with_problem, sink, broken);
        }
}

void scan_problem(Database& database, const RecordKey& id, const std::function<void(const RecordView&)>& sink,
                  const std::function<void(const RecordKey&)>& broken, Seat seat) {
    Entities entities{database};
    const Today nothing;
    Staleness staleness{nothing};
    SharedParts shared{entities, staleness, id.device, id.source};
    Query row = database.query(select_records(seat, of_problem));
    row.bind(id.device, id.source, id.problem.form, id.problem.blob());
    scan_rows(row, id, shared, true, sink, broken);
}

void scan_part(Database& database, const RecordKey& id, bool backwards,
               const std::function<void(const RecordView&)>& sink, const std::function<void(const RecordKey&)>& broken,
               Seat seat) {
    Entities entities{database};
    const Today nothing;
    Staleness staleness{nothing};
    SharedParts shared{entities, staleness, id.device, id.source};
    Query row = database.query(select_records(seat, backwards ? " ORDER BY form DESC, numbers DESC" : ""));
    row.bind(id.device, id.source);
    scan_rows(row, id, shared, true, sink, broken);
}

std::optional<Record> record_at(Database& database, const RecordKey& key) {
    Query row = database.query(SeatSql<RecordSeats>::select(false));
    RecordSeats::bind_key(row, key);
    if (!row.step()) return std::nullopt;
    Entities entities{database};
    const Today nothing;
    Staleness staleness{nothing};
    SharedParts shared{entities, staleness, key.device, key.source};
    RecordView view{.id = {.device = key.device, .source = key.source}};
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

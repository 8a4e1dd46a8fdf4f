#include "cache/store/interning.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>

#include "cache/store/crc32.h"
#include "cache/store/entities.h"
#include "cache/store/row_feed.h"

namespace autotune {

namespace {

/// What of a run is its setting's.
auto shared_of(const RunInfo& r) {
    return std::tie(r.strategy, r.budget, r.effort, r.clock_policy, r.locked_mhz, r.l2_policy, r.method, r.tolerance,
                    r.reference, r.host_hash);
}

constexpr std::array<std::string_view, 11> run_columns{"uuid", "setting", "form",     "numbers", "started", "ended",
                                                       "seed", "power_w", "temp_max", "import",  "crc"};

/// A run's row, away from the record that it came with: in another order those
/// would be far apart.
struct RunRow {
    RunUuid uuid{};
    std::int32_t crc = 0;
    std::size_t number = 0;  ///< of its run among those to be put
    std::int64_t setting = 0, started = 0, ended = 0, seed = 0;
    const ProblemRef* problem = nullptr;
    double power_w = 0, temperature_max = 0;
};

/// That of their tree, in which neighbours share a page. Of equal ones the first is put.
std::vector<std::uint32_t> in_order_of_uuids(std::span<const NewRun> runs) {
    struct Place {
        std::uint64_t high = 0, low = 0;  ///< its halves, so that they order as its bytes do
        std::uint32_t number = 0;
        auto operator<=>(const Place&) const = default;
    };
    const auto half = [](const RunUuid& uuid, std::size_t from) {
        std::uint64_t out = 0;
        for (std::size_t i = from; i < from + 8; ++i) out = out << 8 | std::to_integer<std::uint64_t>(uuid[i]);
        return out;
    };
    std::vector<Place> places;
    places.reserve(runs.size());
    for (const NewRun& run : runs)
        places.push_back(
            {.high = half(run.uuid, 0), .low = half(run.uuid, 8), .number = static_cast<std::uint32_t>(places.size())});
    std::ranges::sort(places);
    std::vector<std::uint32_t> numbers(places.size());
    std::ranges::transform(places, numbers.begin(), &Place::number);
    return numbers;
}

class FedRuns : public FedRows {
public:
    FedRuns(std::span<const RunRow> runs, std::int64_t import) : runs_{runs}, import_{import} {}
    std::size_t count() const noexcept override { return runs_.size(); }
    std::int64_t mark(std::size_t row) const noexcept override { return runs_[row].crc; }
    void give(sqlite3_context* to, std::size_t row, int column) const noexcept override {
        const RunRow& run = runs_[row];
        const auto number = [to](std::int64_t value) { give_value(to, value); };
        switch (column) {
            case 0:
                return give_value(to, std::span<const std::byte>{run.uuid});
            case 1:
                return number(run.setting);
            case 2:
                return number(run.problem->form);
            case 3:
                return give_value(to, run.problem->blob());
            case 4:
                return number(run.started);
            case 5:
                return number(run.ended);
            case 6:
                return number(run.seed);
            case 7:
                return give_value(to, run.power_w);
            case 8:
                return give_value(to, run.temperature_max);
            case 9:
                return number(import_);
            default:
                return number(run.crc);
        }
    }

private:
    std::span<const RunRow> runs_;
    std::int64_t import_;
};

}  // namespace

std::vector<std::size_t> put_runs(Database& database, std::span<const NewRun> runs, std::int64_t import) {
    static const std::string sql = feed_sql("run", run_columns, "import = import", "crc");
    std::vector<std::size_t> met;
    if (runs.size() > FedRows::few) {
        std::vector<RunRow> rows;
        rows.reserve(runs.size());
        for (const std::size_t i : in_order_of_uuids(runs)) {
            const auto& [info, problem, uuid, setting] = runs[i];
            rows.push_back({.uuid = uuid,
                            .crc = short_crc(crc_of_run(uuid, *info, *problem, setting.crc)),
                            .number = i,
                            .setting = setting.id,
                            .started = info->started,
                            .ended = info->ended,
                            .seed = static_cast<std::int64_t>(info->seed),
                            .problem = problem,
                            .power_w = info->power_w,
                            .temperature_max = info->temperature_max});
        }
        for (const std::size_t i : feed(database, sql, FedRuns{rows, import})) met.push_back(rows[i].number);
        std::ranges::sort(met);
        return met;
    }
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const auto& [info, problem, uuid, setting] = runs[i];
        if (database.integer_of("SELECT 1 FROM run WHERE uuid = ?", std::span<const std::byte>{uuid}))
            met.push_back(i);
        else
            insert_run(database, *info, *problem, setting, std::nullopt, import);
    }
    return met;
}

SharedRow Interning::device(const DeviceIdentity& device) {
    if (last_device_ && last_device_->fp == device.fp) return last_device_->row;
    const auto [at, is_new] = devices_.try_emplace(device.fp);
    if (is_new) {
        at->second = {.id = intern(database_, device), .crc = crc32(device.fp)};
        const bool told = is_of_here(database_, at->second.id) && Entities{database_}.device(at->second.id);
        if (!told) describe(database_, at->second.id, device);
        if (import_ == 0) claim(database_, at->second.id);
    }
    last_device_ = {.fp = device.fp, .row = at->second};
    return at->second;
}

SharedRow Interning::environment(const Environment& environment) {
    for (const auto& [known, part] : environments_)
        if (known == environment) return part;
    const std::int64_t id = intern(database_, environment);
    mend(database_, id, environment);
    environments_.emplace_back(environment, SharedRow{.id = id});
    return environments_.back().second;
}

SharedRow Interning::source(const TemplateIdentity& source) {
    const auto same = [&](const TemplateIdentity& last) {
        return last.source_hash == source.source_hash && last.space_hash == source.space_hash &&
               last.variant == source.variant && last.op == source.op && last.abi == source.abi;
    };
    if (last_source_ && same(last_source_->source)) return last_source_->row;
    name_.assign(source.op).append(1, '\0').append(source.variant).append(1, '\0');
    name_.append(source.source_hash).append(1, '\0').append(source.space_hash).append(1, '\0');
    name_.append(reinterpret_cast<const char*>(&source.abi), sizeof source.abi);
    const auto [at, is_new] = sources_.try_emplace(name_);
    if (is_new) {
        at->second = {.id = intern(database_, source), .crc = crc32(source.hash())};
        mend(database_, at->second.id, source);
    }
    last_source_ = {.source = source, .row = at->second};
    return at->second;
}

SharedRow Interning::config(std::string_view op, const Config& config) {
    name_.assign(op).append(1, '\0').append(config.variant);
    for (const auto& [parameter, value] : config.values) {
        name_.append(1, '\0').append(parameter).append(1, static_cast<char>(value.index()));
        if (const auto* number = std::get_if<std::int64_t>(&value)) {
            name_.append(reinterpret_cast<const char*>(number), sizeof *number);
        } else {
            // With its length, so that no word reads as the next parameter.
            const std::string text = to_text(value);
            const std::size_t length = text.size();
            name_.append(reinterpret_cast<const char*>(&length), sizeof length).append(text);
        }
    }
    const auto [at, is_new] = configs_.try_emplace(name_);
    if (is_new) {
        at->second = {.id = intern(database_, op, config), .crc = crc32(config.variant + ' ' + config.hash())};
        mend(database_, at->second.id, config);
    }
    return at->second;
}

Interning::Problem Interning::problem(const ProblemIdentity& problem) {
    Problem out{.crc = crc32(std::span<const std::byte>{problem.key})};
    const auto is_of = [&](const Form& one) {
        return one.op == problem.op && one.form.take_numbers(problem.key, out.ref.numbers);
    };
    if (last_form_ >= forms_.size() || !is_of(forms_[last_form_])) {
        last_form_ = static_cast<std::size_t>(std::ranges::find_if(forms_, is_of) - forms_.begin());
        if (last_form_ == forms_.size()) {
            std::string layout;
            KeyForm::split(problem.key, layout, out.ref.numbers);
            const std::int64_t id = intern_form(database_, problem.op, layout, names_of(problem), true);
            if (layout.empty()) return out.ref.form = id, out;  // no key is like another
            forms_.push_back({.op = problem.op, .form = KeyForm{layout}, .id = id});
        }
    }
    out.ref.form = forms_[last_form_].id;
    return out;
}

SharedRow Interning::setting(const Record& record) {
    const Setting setting{.device = device(record.device).id,
                          .environment = environment(record.environment).id,
                          .predicted = record.predicted,
                          .run = record.run};
    if (last_.any && last_.device == setting.device && last_.environment == setting.environment &&
        last_.predicted == setting.predicted && last_.run.origin == record.run.origin &&
        shared_of(last_.run) == shared_of(record.run))
        return last_.row;
    const std::string environment_hash = record.environment.hash();
    const auto [at, is_new] = settings_.try_emplace(
        hash_of_setting(record.device.fp, environment_hash, setting.predicted, setting.local(), record.run));
    if (is_new) at->second = intern_setting(database_, setting, record.device.fp, environment_hash, true);
    last_ = {.any = true,
             .predicted = setting.predicted,
             .device = setting.device,
             .environment = setting.environment,
             .run = record.run,
             .row = at->second};
    return last_.row;
}

Interning::Run Interning::run(const Record& record) {
    if (!last_run_ || last_run_->uuid != record.run.uuid) {
        const RunUuid uuid = run_uuid(record.run.uuid);
        last_run_ = {.uuid = record.run.uuid, .run = {.uuid = uuid, .crc = crc_of(uuid)}};
    }
    last_run_->run.setting = setting(record);
    return last_run_->run;
}

void Interning::put(std::span<const NewRun> runs) {
    for (const std::size_t i : put_runs(database_, runs, import_))
        if (import_ == 0)
            database_.query("UPDATE run SET import = 0 WHERE uuid = ? AND import <> 0")
                .bind(std::span<const std::byte>{runs[i].uuid})
                .run();
}

}  // namespace autotune

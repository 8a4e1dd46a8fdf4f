#include <fmt/core.h>
#include <algorithm>
#include <array>

#include "cache/store/contest.h"
#include "cache/store/json.h"
#include "cache/store/location.h"
#include "cache/store/spool.h"
#include "cache/store/store_impl.h"
#include "cache/store/trials.h"

namespace autotune {

namespace fs = std::filesystem;

namespace {

constexpr double rank_margin = 1.03;
constexpr std::size_t most_ranks = 8;

const TemplateIdentity* template_named(const RunStart& start, std::string_view variant) {
    for (const TemplateIdentity& t : start.templates)
        if (t.variant == variant) return &t;
    return nullptr;
}

/// Whether the failure of a trial means that the config must not be dispatched. Constraints are checked anew at each
/// dispatch, and want of memory or an early drop say nothing about the config.
bool is_negative(Ending ending) noexcept {
    switch (ending) {
        case Ending::timed:
        case Ending::dropped:
        case Ending::not_valid:
        case Ending::out_of_memory:
        case Ending::compile_timeout:
        case Ending::spilled:
        case Ending::serialised:
        case Ending::not_emulated:
            return false;
        default:
            return true;
    }
}

std::string name_of_config(const Config& config) { return config.variant + ' ' + config.hash(); }

bool same_ground(const Environment& a, const Environment& b) {
    return a.nvrtc_major == b.nvrtc_major && a.nvrtc_minor == b.nvrtc_minor && a.driver == b.driver &&
           a.runtime == b.runtime && a.emulator == b.emulator;
}

}  // namespace

// -- a search writes

ActiveRun& Store::Impl::run_at(RunId id) {
    const auto found = active.find(id);
    if (found == active.end()) throw Error{Error::Kind::internal, fmt::format("run {} is not under way", id)};
    return found->second;
}

void Store::Impl::register_run(ActiveRun& run) {
    run.device = intern(tune(), run.start.device);
    run.environment = intern(tune(), run.start.environment);
    run.problem = intern(tune(), run.start.problem, true);
    for (const TemplateIdentity& t : run.start.templates) {
        run.sources[t.variant] = intern(tune(), t);
        mend(tune(), run.sources[t.variant], t);
    }
    mend(tune(), run.device, run.start.device);
    claim(tune(), run.device);
    mend(tune(), run.environment, run.start.environment);
    run.row = tune().integer_of("SELECT max(number) FROM run WHERE number IS NOT NULL").value_or(0) + 1;
    insert_run(tune(), run.start.info, run.problem, setting_of(run), run.row, 0);
}

SharedRow Store::Impl::setting_of(const ActiveRun& run) {
    const Setting setting{
        .device = run.device, .environment = run.environment, .predicted = run.predicts(), .run = run.start.info};
    return intern_setting(tune(), setting, run.start.device.fp, run.start.environment.hash(), true);
}

RunId Store::begin_run(const RunStart& start) {
    ActiveRun run{.start = start};
    RunInfo& info = run.start.info;
    if (info.started == 0) info.started = impl_->now();
    info.uuid = info.uuid.empty() ? new_run_uuid(info.started) : text_of(run_uuid(info.uuid));
    if (info.host_hash.empty()) info.host_hash = host_hash();
    try {
        fold_spools();  // what an earlier run could not store: whoever comes to write takes it along
    } catch (const Error&) {
        // It waits on; if this file cannot be written now either, the run itself says so.
    }
    impl_->write(false, [&] { impl_->register_run(run); });
    const RunId id = run.row;
    // A power cut may have taken the last commits of tune.db and not those of trials.db: the number may not be new
    // there.
    impl_->write(true, [&] { impl_->trials().query("DELETE FROM trial WHERE run = ?").bind(id).run(); });
    impl_->active.emplace(id, std::move(run));
    return id;
}

void Store::record_trial(RunId id, const Config& config, const Outcome& outcome) {
    ActiveRun& run = impl_->run_at(id);
    const auto source = run.sources.find(config.variant);
    if (source == run.sources.end())
        throw Error{Error::Kind::internal, fmt::format("a trial of '{}' is of no variant of the run", config.variant)};
    const auto [ordinal, is_new] = run.ordinals.emplace(name_of_config(config), run.ordinals.size() + 1);
    const StoredTrial trial{.ordinal = ordinal->second, .config = config, .outcome = outcome, .ended = impl_->now()};
    impl_->write(true, [&] { put_trial(impl_->trials(), run.row, source->second, run.start.problem.op, trial); });
}

RunSummary Store::finish_run(RunId id, const RunEnd& end) {
    ActiveRun& run = impl_->run_at(id);
    RunInfo& info = run.start.info;
    info.ended = std::max(impl_->now(), info.started);  // a clock that was set back makes no run end before it began
    if (!end.method.empty()) info.method = end.method;
    if (!end.reference.empty()) info.reference = end.reference;
    info.power_w = end.power_w;
    info.temperature_max = end.temperature_max;
    const std::vector<Record> records = impl_->derive(run, end);
    RunSummary summary;
    try {
        impl_->write(false, [&] { impl_->store_end(run, records, summary); });
        impl_->active.erase(id);
    } catch (const Error& error) {
        impl_->active.erase(id);
        impl_->keep_refused(error, records);
    }
    if (impl_->opened.where == Opened::Where::spool) impl_->spool(records);
    return summary;
}

void Store::Impl::keep_refused(const Error& error, std::span<const Record> records) {
    if (error.kind() != Error::Kind::store || records.empty() || opened.path.empty()) throw Error{error};
    const fs::path file = write_spool(spool_folder(opened.path), records);
    if (file.empty())
        throw Error{Error::Kind::store, fmt::format("{}, and neither could a spool file be written", error.what()),
                    error.help()};
    throw Error{Error::Kind::store,
                fmt::format("{}, so {} in '{}'", error.what(),
                            records.size() == 1 ? "1 record waits" : fmt::format("{} records wait", records.size()),
                            shown(file)),
                "the next run that writes here takes them along"};
}

void Store::Impl::spool(std::span<const Record> records) {
    for (; !records.empty(); records = records.subspan(std::min(records.size(), most_spooled)))
        if (write_spool(spool_folder(opened.path), records.first(std::min(records.size(), most_spooled))).empty())
            throw Error{Error::Kind::store,
                        fmt::format("no spool file could be written in '{}'", shown(spool_folder(opened.path)))};
}

void Store::Impl::store_end(const ActiveRun& run, const std::vector<Record>& records, RunSummary& summary) {
    summary = {};
    const RunInfo& info = run.start.info;
    const SharedRow setting = setting_of(run);
    tune()
        .query("UPDATE run SET setting = ?, ended = ?, power_w = ?, temp_max = ?, crc = ? WHERE number = ?")
        .bind(setting.id, info.ended, info.power_w, info.temperature_max,
              short_crc(crc_of_run(run_uuid(info.uuid), info, run.problem, setting.crc)), run.row)
        .run();
    remove_broken();
    count_generation();
    if (run.predicts()) {
        if (records.empty()) return;
        summary.kept_better = !make_room_for_predictions(run, records.front());
        if (!summary.kept_better) summary.predictions = put_rows(records);
        summary.kept_better = summary.predictions == 0;
        return;
    }
    remove_negatives(run);
    summary.negatives = put_negatives(run);
    if (records.empty()) return;
    const std::vector<RecordKey> rows = rows_of(run);
    summary.kept_better = std::any_of(rows.begin(), rows.end(), [&](const RecordKey& key) {
        const std::optional<Record> standing = record_at(tune(), key);
        return standing && better(*standing, records.front());
    });
    Contest contest{tune()};
    if (contest.has_better(rows, records.front())) return;
    // Ranks of one search belong together.
    contest.make_room(rows);
    const std::size_t standing = put_rows(records);
    if (!summary.kept_better) summary.records = standing;
}

/// Ranks of one search belong together, as among records: those of an earlier one go, unless its best is faster.
bool Store::Impl::make_room_for_predictions(const ActiveRun& run, const Record& best) {
    const std::string model = model_of(run.start.device);
    std::vector<PredictionKey> keys;
    for (const auto& [variant, source] : run.sources) {
        Query row = tune().query(
            "SELECT rank FROM predicted WHERE device_model = ?1 AND template = ?2 AND form = ?3 AND numbers = ?4 AND "
            "model_version = ?5 UNION SELECT rank FROM predicted_beside WHERE device_model = ?1 AND template = ?2 AND "
            "form = ?3 AND numbers = ?4 AND model_version = ?5");
        row.bind(model, source, run.problem.form, run.problem.blob(), best.model_version);
        while (row.step())
            keys.push_back({.model = model,
                            .source = source,
                            .problem = run.problem,
                            .model_version = best.model_version,
                            .rank = row.integer(0)});
    }
    Contest contest{tune()};
    const std::int64_t time_ns = nanoseconds(best.time_us);
    if (contest.has_faster(keys, time_ns)) return false;
    contest.make_room(keys);
    return true;
}

/// Without finalists, as after an interruption: what was timed, by this run or by earlier ones that it resumed.
std::vector<Finalist> Store::Impl::finalists_of(const ActiveRun& run) {
    std::vector<Finalist> finalists;
    for (const auto& [config, outcome] : known(run.start, run.predicts())) {
        if (!outcome.ok() || outcome.time_us <= 0) continue;
        Finalist finalist{.config = config,
                          .time_us = outcome.time_us,
                          .low_us = outcome.time_us,
                          .high_us = outcome.time_us,
                          .samples = static_cast<int>(outcome.samples_us.size()),
                          .max_error = outcome.max_error};
        for (const double sample : outcome.samples_us) {
            finalist.low_us = std::min(finalist.low_us, sample);
            finalist.high_us = std::max(finalist.high_us, sample);
        }
        finalists.push_back(std::move(finalist));
    }
    return finalists;
}

std::vector<Record> Store::Impl::derive(const ActiveRun& run, const RunEnd& end) {
    if (end.evaluated <= 1 && end.space_size > 1) return {};  // the default alone, never as if it had been tuned
    std::vector<Finalist> finalists = end.finalists.empty() ? finalists_of(run) : end.finalists;
    std::erase_if(finalists, [](const Finalist& f) { return f.tainted; });
    std::stable_sort(finalists.begin(), finalists.end(),
                     [](const Finalist& a, const Finalist& b) { return a.time_us < b.time_us; });
    std::vector<Record> records;
    for (const Finalist& f : finalists) {
        const TemplateIdentity* source = template_named(run.start, f.config.variant);
        if (!source || records.size() == most_ranks || f.time_us > finalists.front().time_us * rank_margin) break;
        records.push_back({.device = run.start.device,
                           .source = *source,
                           .problem = run.start.problem,
                           .environment = run.start.environment,
                           .run = run.start.info,
                           .config = f.config,
                           .rank = static_cast<int>(records.size()),
                           .time_us = f.time_us,
                           .low_us = f.low_us,
                           .high_us = f.high_us,
                           .samples = f.samples,
                           .default_us = end.default_us,
                           .evaluated = end.evaluated,
                           .space_size = end.space_size,
                           .verified = f.verified,
                           .max_error = f.max_error,
                           .tuned_at = run.start.info.ended,
                           .predicted = run.predicts(),
                           .model_version = end.model_version});
    }
    return records;
}

/// Rows that speak of the run's problem, device and compiler and of today's templates.
std::vector<RecordKey> Store::Impl::rows_of(const ActiveRun& run) {
    std::vector<RecordKey> keys;
    const Environment& env = run.start.environment;
    for (const auto& [variant, source] : run.sources) {
        Query row = tune().query(
            "SELECT rank FROM record WHERE device = ?1 AND template = ?2 AND form = ?3 AND numbers = ?4 AND "
            "nvrtc_major = ?5 AND nvrtc_minor = ?6 UNION SELECT rank FROM record_beside WHERE device = ?1 AND template "
            "= ?2 AND form = ?3 AND numbers = ?4 AND nvrtc_major = ?5 AND nvrtc_minor = ?6");
        row.bind(run.device, source, run.problem.form, run.problem.blob(), env.nvrtc_major, env.nvrtc_minor);
        while (row.step())
            keys.push_back({.device = run.device,
                            .source = source,
                            .problem = run.problem,
                            .nvrtc_major = env.nvrtc_major,
                            .nvrtc_minor = env.nvrtc_minor,
                            .rank = static_cast<int>(row.integer(0))});
    }
    return keys;
}

void Store::Impl::remove_negative(std::int64_t device, std::int64_t source, const ProblemRef& problem,
                                  std::string_view op, const Config& config) {
    tune()
        .query(
            "DELETE FROM negative WHERE device = ? AND template = ? AND form = ? AND numbers = ? AND config = (SELECT "
            "id FROM config WHERE op = ? AND variant = ? AND hash = ?)")
        .bind(device, source, problem.form, problem.blob(), op, config.variant, config.hash())
        .run();
}

/// What this search found sound is refused no longer for what an earlier compiler, driver or accident did to it.
void Store::Impl::remove_negatives(const ActiveRun& run) {
    scan_trials(trials(), run.row, [&](const TrialRow& row) {
        if (row.trial.outcome.ok())
            remove_negative(run.device, row.source, run.problem, run.start.problem.op, row.trial.config);
    });
}

std::size_t Store::Impl::put_negatives(const ActiveRun& run) {
    std::vector<TrialRow> failed;
    scan_trials(trials(), run.row, [&](const TrialRow& row) {
        if (is_negative(row.trial.outcome.ending) && !row.trial.outcome.tainted) failed.push_back(row);
    });
    for (const TrialRow& row : failed)
        tune()
            .query(
                "INSERT OR REPLACE INTO negative (device, template, config, form, numbers, env, outcome, run) VALUES "
                "(?,?,?,?,?,?,?,?)")
            .bind(run.device, row.source, intern(tune(), run.start.problem.op, row.trial.config), run.problem.form,
                  run.problem.blob(), run.environment, info(row.trial.outcome.ending).name, run.row)
            .run();
    if (!failed.empty()) bound_negatives(run.device, run.start.problem.op, run.row);
    return failed.size();
}

/// Those that an application met have no run, and so no age, and go after those of searches.
void Store::Impl::bound_negatives(std::int64_t device, std::string_view op, std::optional<std::int64_t> put_run,
                                  std::int64_t put_config) {
    constexpr std::string_view of_them =
        "FROM negative WHERE device = ?1 AND template IN (SELECT id FROM template WHERE op = ?2)";
    const std::int64_t count = tune().integer_of(fmt::format("SELECT count(*) {}", of_them), device, op).value_or(0);
    if (count <= most_negatives) return;
    tune()
        .query(fmt::format(
            "DELETE FROM negative WHERE (device, template, config, form, numbers, env) IN (SELECT "
            "device, template, config, form, numbers, env {} ORDER BY run IS ?4 AND (run IS NOT NULL OR config = ?5), "
            "run IS NULL, run, config LIMIT ?3)",
            of_them))
        .bind(device, op, count - most_negatives, put_run, put_config)
        .run();
}

// -- what a new search need not try again

std::vector<std::pair<Config, Outcome>> Store::Impl::known(const RunStart& start, bool predicted) {
    std::vector<RunId> runs;
    Entities entities{tune()};
    if (const auto problem = find_problem(tune(), start.problem.op, start.problem.key)) {
        std::vector<RunUuid> uuids;
        {
            Query row = tune().query(
                "SELECT uuid FROM run WHERE form = ? AND numbers = ? AND number IS NOT NULL ORDER BY number");
            row.bind(problem->form, problem->blob());
            while (row.step()) uuids.push_back(uuid_of(row.blob(0)).value_or(RunUuid{}));
        }
        for (const RunUuid& uuid : uuids) {
            const auto* run = entities.run(uuid);
            const auto* device = run ? entities.device(run->device) : nullptr;
            const auto* env = run ? entities.environment(run->environment) : nullptr;
            if (device && env && device->value.fp == start.device.fp && run->predicted == predicted && run->number &&
                run->info.origin == "local" && same_ground(env->value, start.environment))
                runs.push_back(*run->number);
        }
    }
    std::vector<std::pair<Config, Outcome>> outcomes;
    std::map<std::string, std::size_t> place;
    for (const RunId run : runs)
        scan_trials(trials(), run, [&](const TrialRow& row) {
            const Outcome& outcome = row.trial.outcome;
            const auto* tried = entities.source(row.source);
            const TemplateIdentity* today = template_named(start, row.trial.config.variant);
            if (!tried || !today || !info(outcome.ending).remembered || outcome.tainted) return;
            if (tried->value.source_hash != today->source_hash || tried->value.abi != today->abi) return;
            // A measured time stands whatever else is searched; what was refused may be allowed today.
            if (!outcome.ok() && tried->value.space_hash != today->space_hash) return;
            const auto [at, is_new] = place.emplace(name_of_config(row.trial.config), outcomes.size());
            if (is_new)
                outcomes.emplace_back(row.trial.config, outcome);
            else
                outcomes[at->second].second = outcome;
        });
    return outcomes;
}

std::vector<std::pair<Config, Outcome>> Store::known_outcomes(const RunStart& start) const {
    return impl_->ask([&] { return impl_->known(start, ActiveRun{.start = start}.predicts()); });
}

}  // namespace autotune

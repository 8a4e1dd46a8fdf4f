#include "cache/sharing/read_database.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autotune/error.h"
#include "cache/store/crc32.h"
#include "cache/store/entities.h"
#include "cache/store/json.h"

namespace autotune {

namespace {

constexpr std::size_t longest_json = 1 << 16;

/// Whether a column holds what the schema says: i, r, t, b; a capital letter: or NULL. A file may hold anything.
bool typed(ColumnType type, char wanted) noexcept {
    switch (wanted) {
        case 'I':
            return type == ColumnType::integer || type == ColumnType::null;
        case 'r':
            return type == ColumnType::real;
        case 't':
            return type == ColumnType::text;
        case 'b':
            return type == ColumnType::blob;
        default:
            return type == ColumnType::integer;
    }
}

bool typed(const Query& row, std::string_view types) {
    for (std::size_t i = 0; i < types.size(); ++i)
        if (!typed(row.type(static_cast<int>(i)), types[i])) return false;
    return true;
}

/// An integer as an int; what does not fit becomes -1, which every judge refuses.
int narrow(std::int64_t number) {
    return number < 0 || number > std::numeric_limits<int>::max() ? -1 : static_cast<int>(number);
}
int narrow(const Query& row, int column) { return narrow(row.integer(column)); }

/// The columns of one of many rows.
template <std::size_t count>
class ColumnValues {
public:
    explicit ColumnValues(const Query& row) : ColumnValues{row, std::make_index_sequence<count>{}} {}
    const ColumnValue& operator[](std::size_t column) const noexcept { return columns_[column]; }
    bool typed(std::string_view types) const noexcept {
        for (std::size_t i = 0; i < types.size(); ++i)
            if (!autotune::typed(columns_[i].type(), types[i])) return false;
        return true;
    }

private:
    template <std::size_t... column>
    ColumnValues(const Query& row, std::index_sequence<column...>) : columns_{row.column(column)...} {}
    std::array<ColumnValue, count> columns_;
};

/// The parts of a database's rows, each read and judged once.
class ForeignParts {
public:
    ForeignParts(Database& database, const Judge& judge, bool old) : db_{database}, judge_{judge}, old_{old} {}

    Part<DeviceIdentity>* device(std::int64_t id) {
        return part(devices_, id, [&](Part<DeviceIdentity>& part) { return read(part, id); });
    }
    Part<Environment>* environment(std::int64_t id) {
        return part(environments_, id, [&](Part<Environment>& part) { return read(part, id); });
    }
    Part<TemplateIdentity>* source(std::int64_t id) {
        return part(sources_, id, [&](Part<TemplateIdentity>& part) { return read(part, id); });
    }
    Part<JudgedForm>* form(std::int64_t id) {
        return part(forms_, id, [&](Part<JudgedForm>& part) { return read(part, id); });
    }
    /// A problem of a schema before the third.
    struct OldProblem {
        Part<JudgedForm>* form = nullptr;
        std::string numbers{}, refused{};
        std::uint32_t crc = 0;
    };
    OldProblem* problem(std::int64_t id) {
        return part(problems_, id, [&](OldProblem& problem) { return read(problem, id); });
    }
    /// What a record's own setting adds: its run has all the rest.
    struct SettingPart : Part<RunInfo> {
        Part<DeviceIdentity>* device = nullptr;
        Part<Environment>* environment = nullptr;
    };
    SettingPart* setting(std::int64_t id) {
        return part(settings_, id, [&](SettingPart& part) { return read(part, id); });
    }
    Part<Config>* config(std::int64_t id) {
        return part(configs_, id, [&](Part<Config>& part) { return read(part, id); });
    }
    /// Of a schema before the third.
    RunPart* old_run(std::int64_t id) {
        return part(old_runs_, id, [&](RunPart& part) { return read_old(part, id); });
    }
    RunPart* run(std::span<const std::byte> blob) {
        const auto uuid = uuid_of(blob);
        if (!uuid) return &no_run_;
        return part(runs_, *uuid, [&](RunPart& part) { return read(part, *uuid); });
    }

private:
    /// Rows that follow each other mostly share a part.
    struct IdHash {
        std::size_t operator()(std::int64_t id) const noexcept { return static_cast<std::size_t>(id); }
        std::size_t operator()(const RunUuid& uuid) const noexcept {
            std::size_t hash = 0;
            std::memcpy(&hash, uuid.data(), sizeof hash);
            return hash;
        }
    };
    template <class T, class Id = std::int64_t>
    struct Table {
        std::unordered_map<Id, T, IdHash> parts{};
        Id last_id{};
        T* last = nullptr;
    };

    template <class T, class Id, class Read>
    T* part(Table<T, Id>& table, const Id& id, const Read& read) {
        if (table.last && table.last_id == id) return table.last;
        const auto [at, is_new] = table.parts.try_emplace(id);
        table.last_id = id;
        table.last = &at->second;
        if (is_new) try {
                at->second.refused = read(at->second);
            } catch (const nlohmann::json::exception&) {
                at->second.refused = "one of its parts is no JSON of ours";
            } catch (const Error& error) {
                at->second.refused = error.what();
            }
        return &at->second;
    }

    std::string read(Part<DeviceIdentity>& part, std::int64_t id) {
        Query row = db_.query(
            old_ ? "SELECT fp, name, vendor, cc, sm, core_khz, bw_gbs, l2, smem_block, smem_sm, regs_sm, threads_sm, "
                   "mig, ecc, pci_id, attrs_json, 0 FROM device WHERE id = ?"
                 : "SELECT fp, name, vendor, cc, sm, core_khz, bw_gbs, l2, smem_block, smem_sm, regs_sm, threads_sm, "
                   "mig, ecc, pci_id, attrs_json, crc FROM device WHERE id = ?");
        row.bind(id);
        if (!row.step() || !typed(row, "tttiiiiiiiiititti") || row.text(15).size() > longest_json)
            return "its GPU is missing or damaged";
        DeviceIdentity& d = part.value;
        read_device_attributes(nlohmann::json::parse(row.text(15)), d);
        d.fp = row.text(0);
        d.name = row.text(1);
        d.vendor = row.text(2);
        d.limits.cc = narrow(row, 3);
        d.limits.sm_count = narrow(row, 4);
        d.core_khz = narrow(row, 5);
        d.bandwidth_gbs = narrow(row, 6);
        d.limits.l2_bytes = row.integer(7);
        d.limits.max_shared = narrow(row, 8);
        d.limits.shared_per_sm = narrow(row, 9);
        d.limits.registers_per_sm = narrow(row, 10);
        d.limits.threads_per_sm = narrow(row, 11);
        d.mig = row.text(12);
        d.ecc = row.integer(13) != 0;
        d.pci_id = row.text(14);
        part.hash = d.fp;
        part.crc = crc32(d.fp);
        const std::string why = judge_.objection(d);
        const bool sound = old_ || crc_of(d) == static_cast<std::uint32_t>(row.integer(16));
        return why.empty() && !sound ? "its GPU fails its checksum" : why;
    }

    std::string read(Part<Environment>& part, std::int64_t id) {
        Query row = db_.query(
            "SELECT hash, nvrtc_major, nvrtc_minor, driver, runtime, emulator, tool_version, os FROM env WHERE id = ?");
        row.bind(id);
        if (!row.step() || !typed(row, "tiitiitt")) return "its environment is missing or damaged";
        part.value = {.nvrtc_major = narrow(row, 1),
                      .nvrtc_minor = narrow(row, 2),
                      .driver = std::string{row.text(3)},
                      .runtime = narrow(row, 4),
                      .emulator = narrow(row, 5),
                      .tool_version = std::string{row.text(6)},
                      .os = std::string{row.text(7)}};
        part.hash = row.text(0);
        std::string why = judge_.objection(part.value);
        return why.empty() && part.value.hash() != part.hash ? "its environment does not fit its hash" : why;
    }

    std::string read(Part<TemplateIdentity>& part, std::int64_t id) {
        Query row = db_.query("SELECT hash, op, variant, source_hash, space_hash, abi FROM template WHERE id = ?");
        row.bind(id);
        if (!row.step() || !typed(row, "ttttti")) return "its template is missing or damaged";
        part.value = {.op = std::string{row.text(1)},
                      .variant = std::string{row.text(2)},
                      .source_hash = std::string{row.text(3)},
                      .space_hash = std::string{row.text(4)},
                      .abi = narrow(row, 5)};
        part.hash = row.text(0);
        part.crc = crc32(part.hash);
        return judge_.objection(part.value, part.hash);
    }

    std::string read(Part<JudgedForm>& part, std::int64_t id) {
        Query row = db_.query("SELECT op, layout, names_json, crc FROM form WHERE id = ?");
        row.bind(id);
        if (!row.step() || !typed(row, "tbti")) return "its problem is missing or damaged";
        const auto blob = row.blob(1);
        const std::string_view layout{reinterpret_cast<const char*>(blob.data()), blob.size()};
        if (crc_of_form(row.text(0), layout, row.text(2)) != static_cast<std::uint32_t>(row.integer(3)))
            return "the form of its problem fails its checksum";
        return judge_.read_form(row.text(0), layout, part.value);
    }

    std::string read(OldProblem& problem, std::int64_t id) {
        problem.form = &no_form_;
        Query row = db_.query("SELECT op, key FROM problem WHERE id = ?");
        row.bind(id);
        if (!row.step() || !typed(row, "tb")) return "its problem is missing or damaged";
        std::string layout;
        KeyForm::split(row.blob(1), layout, problem.numbers);
        problem.crc = crc32(row.blob(1));
        const auto [at, is_new] = old_forms_.try_emplace({std::string{row.text(0)}, layout});
        problem.form = &at->second;
        if (is_new) at->second.refused = judge_.read_form(row.text(0), layout, at->second.value);
        return at->second.refused.empty() ? Judge::objection(at->second.value, problem.numbers) : std::string{};
    }

    std::string read(Part<Config>& part, std::int64_t id) {
        Query row = db_.query("SELECT op, variant, hash, body_json FROM config WHERE id = ?");
        row.bind(id);
        if (!row.step() || !typed(row, "tttt") || row.text(3).size() > longest_json)
            return "its config is missing or damaged";
        part.value = config_from_json(std::string{row.text(1)}, nlohmann::json::parse(row.text(3)));
        part.hash = row.text(2);
        part.crc = crc32(part.value.variant + ' ' + part.hash);
        return judge_.objection(row.text(0), part.value, part.hash);
    }

    std::string read(SettingPart& part, std::int64_t id) {
        part.environment = &none_;
        Query row = db_.query(
            "SELECT hash, device, env, predicted, local, strategy, budget, effort, clock_policy, locked_mhz, "
            "l2_policy, graph_mode, tolerance, reference, host_hash FROM setting WHERE id = ?");
        row.bind(id);
        if (!row.step() || !typed(row, "tiiiittttittttt")) return "its run is missing or damaged";
        const auto text = [&row](int column) { return std::string{row.text(column)}; };
        const auto effort = search_effort_named(row.text(7));
        if (!effort) return "its run's effort is no word of ours";
        const bool predicted = row.integer(3) != 0, local = row.integer(4) != 0;
        part.value = {.strategy = text(5),
                      .budget = text(6),
                      .effort = *effort,
                      .clock_policy = text(8),
                      .locked_mhz = narrow(row, 9),
                      .l2_policy = text(10),
                      .method = text(11),
                      .reference = text(13),
                      .tolerance = text(12),
                      .host_hash = text(14),
                      .origin = local ? "local" : "import"};
        part.hash = text(0);
        part.crc = crc32(part.hash);
        part.device = device(row.integer(1));
        part.environment = environment(row.integer(2));
        // Their own faults are told as theirs.
        const bool parts_stand = part.device->refused.empty() && part.environment->refused.empty();
        const bool fits =
            hash_of_setting(part.device->hash, part.environment->hash, predicted, local, part.value) == part.hash;
        return parts_stand && !fits ? "its run's setting does not fit its hash" : "";
    }

    std::string read(RunPart& part, const RunUuid& uuid) {
        part.environment = &none_;
        Query row = db_.query(
            "SELECT setting, form, numbers, started, ended, seed, power_w, temp_max, crc FROM run WHERE uuid = ?");
        row.bind(std::span<const std::byte>{uuid});
        if (!row.step() || !typed(row, "iibiiirri")) return "its run is missing or damaged";
        const SettingPart& common = *setting(row.integer(0));
        const ProblemRef problem{.form = row.integer(1), .numbers = text_of_blob(row.blob(2))};
        part.value = common.value;
        part.value.uuid = text_of(uuid);
        part.value.started = row.integer(3);
        part.value.ended = row.integer(4);
        part.value.seed = static_cast<std::uint64_t>(row.integer(5));
        part.value.power_w = row.real(6);
        part.value.temperature_max = row.real(7);
        part.hash = part.value.uuid;
        part.crc = crc_of(uuid);
        part.device = common.device;
        part.environment = common.environment;
        std::string why = common.device ? judge_.objection(part.value) : std::string{};
        if (why.empty()) why = common.refused;
        const bool fits =
            crc_of_run(uuid, part.value, problem, common.crc) == static_cast<std::uint32_t>(row.integer(8));
        return why.empty() && !fits ? "its run fails its checksum" : why;
    }

    std::string read_old(RunPart& part, std::int64_t id) {
        part.environment = &none_;
        Query row = db_.query(
            "SELECT uuid, device, env, started, ended, strategy, seed, budget, effort, clock_policy, locked_mhz, "
            "power_w, temp_max, l2_policy, graph_mode, tolerance, reference, host_hash, origin FROM run WHERE id = ?");
        row.bind(id);
        if (!row.step() || !typed(row, "tiiiititttirrtttttt")) return "its run is missing or damaged";
        const auto text = [&row](int column) { return std::string{row.text(column)}; };
        const auto effort = search_effort_named(row.text(8));
        if (!effort) return "its run's effort is no word of ours";
        part.value = {.uuid = text(0),
                      .strategy = text(5),
                      .seed = static_cast<std::uint64_t>(row.integer(6)),
                      .budget = text(7),
                      .effort = *effort,
                      .clock_policy = text(9),
                      .locked_mhz = narrow(row, 10),
                      .power_w = row.real(11),
                      .temperature_max = row.real(12),
                      .l2_policy = text(13),
                      .method = text(14),
                      .reference = text(16),
                      .tolerance = text(15),
                      .host_hash = text(17),
                      .origin = text(18),
                      .started = row.integer(3),
                      .ended = row.integer(4)};
        part.hash = part.value.uuid;
        part.crc = crc32(part.hash);
        part.device = device(row.integer(1));
        part.environment = environment(row.integer(2));
        return judge_.objection(part.value);
    }

    Database& db_;
    const Judge& judge_;
    const bool old_;
    Table<Part<DeviceIdentity>> devices_;
    Table<Part<Environment>> environments_;
    Table<Part<TemplateIdentity>> sources_;
    Table<Part<JudgedForm>> forms_;
    Table<Part<Config>> configs_;
    Table<SettingPart> settings_;
    Table<RunPart, RunUuid> runs_;
    Table<OldProblem> problems_;
    Table<RunPart> old_runs_;
    std::map<std::pair<std::string, std::string>, Part<JudgedForm>> old_forms_;  ///< by op and layout
    Part<Environment> none_{};                                                   ///< of a run that could not be read
    Part<JudgedForm> no_form_{.refused = "its problem is missing or damaged"};
    RunPart no_run_ = [this] {
        RunPart run;
        run.refused = "its run is missing or damaged";
        run.environment = &none_;
        return run;
    }();
};

/// The parts of a row fit each other: all are of one op, and the config is one of the template's variant.
void require_one_op(IncomingRow& row, Part<TemplateIdentity>& mismatch) {
    const TemplateIdentity& source = row.source->value;
    const bool parts_stand = row.source->refused.empty() && row.form->refused.empty() && row.config->refused.empty();
    if (parts_stand && row.form->value.op == source.op && row.config->value.variant == source.variant) return;
    if (parts_stand) row.source = &mismatch;
}

/// Rows of the tables of any schema, told alike.
class ForeignRows {
public:
    ForeignRows(ForeignDatabase& file, const Judge& judge, const RowSink& sink)
        : db_{file.database()}, old_{file.schema() < 3}, parts_{db_, judge, old_}, sink_{sink} {}

    void run() {
        read_records();
        read_predictions();
    }

private:
    /// `of`: a problem's id, or a form with the numbers in it.
    void take_problem(IncomingRow& in, const ColumnValue& of, const ColumnValue& in_form) {
        if (old_) {
            const auto* problem = parts_.problem(of.integer());
            in.form = problem->form;
            in.problem_refused = problem->refused;
            in.numbers = problem->numbers;
            in.problem_crc = problem->crc;
            return;
        }
        in.form = parts_.form(of.integer());
        const auto numbers = in_form.blob();
        in.numbers.assign(reinterpret_cast<const char*>(numbers.data()), numbers.size());
        if (!in.form->refused.empty()) return;
        in.problem_refused = Judge::objection(in.form->value, in.numbers);
        if (in.form->value.form.put_together(in.numbers, key_))
            in.problem_crc = crc32(std::span<const std::byte>{key_});
    }

    void read_records() {
        Query row = db_.query(
            old_ ? "SELECT device, template, config, run, nvrtc_major, nvrtc_minor, rank, time_ns, lo_ns, hi_ns, "
                   "samples, "
                   "evaluated, space_size, verified, tuned_at, crc, default_ns, max_err, problem, effort, flags FROM "
                   "record"
                 : "SELECT device, template, config, run, nvrtc_major, nvrtc_minor, rank, time_ns, lo_ns, hi_ns, "
                   "samples, "
                   "evaluated, space_size, verified, tuned_at, crc, default_ns, max_err, form, numbers, setting FROM "
                   "record");
        while (row.step()) {
            const ColumnValues<21> columns{row};
            IncomingRow in{.number = ++number_,
                           .device = parts_.device(columns[0].integer()),
                           .source = parts_.source(columns[1].integer()),
                           .config = parts_.config(columns[2].integer()),
                           .run = old_ ? parts_.old_run(columns[3].integer()) : parts_.run(columns[3].blob())};
            take_problem(in, columns[18], columns[19]);
            require_one_op(in, mismatch_);
            RowFigures& f = in.figures;
            f.rank = -1;  // refused, unless the columns hold what they should
            const bool sound = old_ ? columns.typed("iiiiiiiiiiiiiiiiIriii") && columns[20].integer() == 0
                                    : columns.typed("iiibiiiiiiiiiiiiIribi");
            if (sound) f.rank = narrow(columns[6].integer());
            f.nvrtc_major = narrow(columns[4].integer());
            f.nvrtc_minor = narrow(columns[5].integer());
            f.time_ns = columns[7].integer();
            f.low_ns = columns[8].integer();
            f.high_ns = columns[9].integer();
            f.samples = columns[10].integer();
            f.evaluated = columns[11].integer();
            f.space_size = columns[12].integer();
            f.verified = columns[13].integer();
            f.tuned_at = columns[14].integer();
            in.crc = static_cast<std::uint32_t>(columns[15].integer());
            f.default_ns = columns[16].null() ? -1 : std::max<std::int64_t>(columns[16].integer(), 0);
            f.max_error = columns[17].real();
            if (old_) {
                f.effort = columns[19].integer();
            } else {
                const auto* setting = parts_.setting(columns[20].integer());
                in.crc = *in.crc ^ setting->crc;
                f.effort = static_cast<std::int64_t>(setting->value.effort);
                if (in.run->refused.empty() && in.problem_refused.empty()) in.problem_refused = setting->refused;
            }
            sink_(in);
        }
    }

    void read_predictions() {
        constexpr std::size_t longest_model = 64;
        Query row = db_.query(
            old_ ? "SELECT template, config, run, rank, time_ns, checked, model_version, problem FROM predicted"
                 : "SELECT template, config, run, rank, time_ns, checked, model_version, form, numbers FROM predicted");
        while (row.step()) {
            IncomingRow in{.number = ++number_,
                           .source = parts_.source(row.integer(0)),
                           .config = parts_.config(row.integer(1)),
                           .run = old_ ? parts_.old_run(row.integer(2)) : parts_.run(row.blob(2)),
                           .predicted = true,
                           .model_version = std::string{row.text(6).substr(0, longest_model + 1)}};
            take_problem(in, row.column(7), row.column(old_ ? 7 : 8));
            in.device = in.run->device ? in.run->device : parts_.device(0);
            require_one_op(in, mismatch_);
            const bool sound = typed(row, old_ ? "iiiiiiti" : "iibiiitib") && in.model_version.size() <= longest_model;
            in.figures.rank = sound ? narrow(row, 3) : -1;
            in.figures.time_ns = in.figures.low_ns = in.figures.high_ns = row.integer(4);
            in.figures.samples = 1;
            in.figures.verified = static_cast<int>(row.integer(5) != 0 ? Verified::checked : Verified::elsewhere);
            sink_(in);
        }
    }

    Database& db_;
    const bool old_;  ///< of a schema whose rows name problems and runs by their ids
    ForeignParts parts_;
    const RowSink& sink_;
    Part<TemplateIdentity> mismatch_{.refused = "its parts are of different ops"};
    std::vector<std::byte> key_;
    std::size_t number_ = 0;
};

}  // namespace

void read_database(ForeignDatabase& file, const Judge& judge, const RowSink& sink,
                   const std::function<void()>& all_read) {
    file.ask([&] {
        ForeignRows rows{file, judge, sink};
        rows.run();
        all_read();
    });
}

}  // namespace autotune

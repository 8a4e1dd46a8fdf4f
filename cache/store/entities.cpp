#include "cache/store/entities.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cache/store/crc32.h"
#include "cache/store/json.h"
#include "cache/store/shared_rows.h"
#include "tuner/model/key_reader.h"

namespace autotune {

namespace {

/// Runs `read` once an id; damaged JSON is as good as no row.
template <class Cache, class Id, class Read>
auto* cached(Cache& cache, const Id& id, Read&& read) {
    auto found = cache.find(id);
    if (found == cache.end()) {
        found = cache.emplace(id, std::nullopt).first;
        try {
            found->second = read();
        } catch (const std::exception&) {
            found->second.reset();
        }
    }
    return found->second ? &*found->second : nullptr;
}

}  // namespace

DeviceIdentity read_device(const Query& row) {
    DeviceIdentity d;
    read_device_attributes(nlohmann::json::parse(row.text(15)), d);
    const auto number = [&row](int column) { return static_cast<int>(row.integer(column)); };
    d.fp = row.text(0);
    d.name = row.text(1);
    d.vendor = row.text(2);
    d.limits.cc = number(3);
    d.limits.sm_count = number(4);
    d.core_khz = number(5);
    d.bandwidth_gbs = number(6);
    d.limits.l2_bytes = row.integer(7);
    d.limits.max_shared = number(8);
    d.limits.shared_per_sm = number(9);
    d.limits.registers_per_sm = number(10);
    d.limits.threads_per_sm = number(11);
    d.mig = row.text(12);
    d.ecc = row.integer(13) != 0;
    d.pci_id = row.text(14);
    return d;
}

const Entities::Row<DeviceIdentity>* Entities::device(std::int64_t id) {
    return cached(devices_, id, [&]() -> std::optional<Row<DeviceIdentity>> {
        static const std::string sql = fmt::format("SELECT {}, crc FROM device WHERE id = ?", device_columns);
        Query row = database_.query(sql);
        row.bind(id);
        if (!row.step()) return std::nullopt;
        const DeviceIdentity d = read_device(row);
        if (crc_of(d) != static_cast<std::uint32_t>(row.integer(16))) return std::nullopt;
        return Row<DeviceIdentity>{.value = d, .hash = d.fp, .crc = crc32(d.fp)};
    });
}

const Entities::Row<Environment>* Entities::environment(std::int64_t id) {
    return cached(environments_, id, [&]() -> std::optional<Row<Environment>> {
        Query row = database_.query(
            "SELECT hash, nvrtc_major, nvrtc_minor, driver, runtime, emulator, tool_version, os FROM env WHERE id = ?");
        row.bind(id);
        if (!row.step()) return std::nullopt;
        const auto number = [&row](int column) { return static_cast<int>(row.integer(column)); };
        Row<Environment> out{.value = {.nvrtc_major = number(1),
                                       .nvrtc_minor = number(2),
                                       .driver = std::string{row.text(3)},
                                       .runtime = number(4),
                                       .emulator = number(5),
                                       .tool_version = std::string{row.text(6)},
                                       .os = std::string{row.text(7)}},
                             .hash = std::string{row.text(0)}};
        out.crc = crc32(out.hash);
        return out.value.hash() == out.hash ? std::optional{out} : std::nullopt;
    });
}

const Entities::Row<TemplateIdentity>* Entities::source(std::int64_t id) {
    return cached(sources_, id, [&]() -> std::optional<Row<TemplateIdentity>> {
        Query row = database_.query(
            "SELECT hash, op, variant, source_hash, space_hash, abi, manifest_json FROM template WHERE id = ?");
        row.bind(id);
        if (!row.step()) return std::nullopt;
        Row<TemplateIdentity> out{.value = {.op = std::string{row.text(1)},
                                            .variant = std::string{row.text(2)},
                                            .source_hash = std::string{row.text(3)},
                                            .space_hash = std::string{row.text(4)},
                                            .abi = static_cast<int>(row.integer(5)),
                                            .manifest = std::string{row.text(6)}},
                                  .hash = std::string{row.text(0)}};
        out.crc = crc32(out.hash);
        return out.value.hash() == out.hash ? std::optional{out} : std::nullopt;
    });
}

const Entities::Row<Config>* Entities::config(std::int64_t id) {
    return cached(configs_, id, [&]() -> std::optional<Row<Config>> {
        Query row = database_.query("SELECT variant, hash, body_json FROM config WHERE id = ?");
        row.bind(id);
        if (!row.step()) return std::nullopt;
        Row<Config> out{.value = config_from_json(std::string{row.text(0)}, nlohmann::json::parse(row.text(2))),
                        .hash = std::string{row.text(1)}};
        out.crc = crc32(out.value.variant + ' ' + out.hash);
        return out.value.hash() == out.hash ? std::optional{out} : std::nullopt;
    });
}

const Entities::FormRow* Entities::form(std::int64_t id) {
    return cached(forms_, id, [&]() -> std::optional<FormRow> {
        Query row = database_.query("SELECT op, layout, names_json, crc FROM form WHERE id = ?");
        row.bind(id);
        if (!row.step()) return std::nullopt;
        const auto blob = row.blob(1);
        const std::string layout{reinterpret_cast<const char*>(blob.data()), blob.size()};
        if (crc_of_form(row.text(0), layout, row.text(2)) != static_cast<std::uint32_t>(row.integer(3)))
            return std::nullopt;
        FormRow out{.op = std::string{row.text(0)}, .form = KeyForm{layout}, .names = {}};
        for (const auto& name : parse_json(row.text(2))) out.names.push_back(name.get<std::string>());
        return out.form.sound() ? std::optional{std::move(out)} : std::nullopt;
    });
}

const Entities::SettingRow* Entities::setting(std::int64_t id) {
    return cached(settings_, id, [&]() -> std::optional<SettingRow> {
        SettingRow out;
        std::string hash;
        {
            Query row = database_.query(
                "SELECT hash, device, env, predicted, local, strategy, budget, effort, clock_policy, locked_mhz, "
                "l2_policy, graph_mode, tolerance, reference, host_hash FROM setting WHERE id = ?");
            row.bind(id);
            if (!row.step()) return std::nullopt;
            const auto text = [&row](int column) { return std::string{row.text(column)}; };
            const auto effort = search_effort_named(row.text(7));
            if (!effort) return std::nullopt;
            hash = text(0);
            out = {.info = {.strategy = text(5),
                            .budget = text(6),
                            .effort = *effort,
                            .clock_policy = text(8),
                            .locked_mhz = static_cast<int>(row.integer(9)),
                            .l2_policy = text(10),
                            .method = text(11),
                            .reference = text(13),
                            .tolerance = text(12),
                            .host_hash = text(14)},
                   .device = row.integer(1),
                   .environment = row.integer(2),
                   .predicted = row.integer(3) != 0,
                   .local = row.integer(4) != 0};
        }
        const auto* d = device(out.device);
        const auto* e = environment(out.environment);
        if (!d || !e || hash_of_setting(d->hash, e->hash, out.predicted, out.local, out.info) != hash)
            return std::nullopt;
        out.crc = crc32(hash);
        return out;
    });
}

const Entities::RunRow* Entities::run(const RunUuid& uuid) {
    return cached(runs_, uuid, [&] { return read_run(uuid); });
}

const Entities::RunRow* Entities::run(std::int64_t number) {
    std::optional<RunUuid> uuid;
    {
        Query row = database_.query("SELECT uuid FROM run WHERE number = ?");
        row.bind(number);
        if (row.step()) uuid = uuid_of(row.blob(0));
    }
    return uuid ? run(*uuid) : nullptr;
}

std::optional<Entities::RunRow> Entities::read_run(const RunUuid& uuid) {
    RunRow out;
    std::uint32_t crc = 0;
    {
        Query row = database_.query(
            "SELECT setting, form, numbers, number, started, ended, seed, power_w, temp_max, import, crc FROM run "
            "WHERE uuid = ?");
        row.bind(std::span<const std::byte>{uuid});
        if (!row.step()) return std::nullopt;
        const auto numbers = row.blob(2);
        out.setting = row.integer(0);
        out.problem = {.form = row.integer(1),
                       .numbers = {reinterpret_cast<const char*>(numbers.data()), numbers.size()}};
        if (!row.null(3)) out.number = row.integer(3);
        out.info.started = row.integer(4);
        out.info.ended = row.integer(5);
        out.info.seed = static_cast<std::uint64_t>(row.integer(6));
        out.info.power_w = row.real(7);
        out.info.temperature_max = row.real(8);
        out.import = row.integer(9);
        crc = static_cast<std::uint32_t>(row.integer(10));
    }
    const SettingRow* common = setting(out.setting);
    if (!common || crc_of_run(uuid, out.info, out.problem, common->crc) != crc) return std::nullopt;
    const RunInfo own = std::exchange(out.info, common->info);
    out.info.uuid = text_of(uuid);
    out.info.started = own.started;
    out.info.ended = own.ended;
    out.info.seed = own.seed;
    out.info.power_w = own.power_w;
    out.info.temperature_max = own.temperature_max;
    out.info.origin = common->local ? "local" : out.import > 0 ? "import:" + std::to_string(out.import) : "import";
    out.crc = crc_of(uuid);
    out.device = common->device;
    out.environment = common->environment;
    out.predicted = common->predicted;
    return out;
}

std::optional<ProblemIdentity> Entities::problem(const ProblemRef& ref) {
    const FormRow* of = form(ref.form);
    std::vector<std::byte> key;
    if (!of || !of->form.put_together(ref.numbers, key)) return std::nullopt;
    return problem_of_key(of->op, key, of->names);
}

std::vector<std::string> names_in(std::span<const std::byte> key) {
    std::vector<std::string> names;
    KeyReader reader{key};
    while (const auto field = reader.next())
        if (field->name.find('.') == std::string_view::npos) names.emplace_back(field->name);
    return names;
}

ProblemIdentity problem_of_key(std::string_view op, std::span<const std::byte> key,
                               std::span<const std::string> names) {
    ProblemIdentity problem{.op = std::string{op}, .key = {key.begin(), key.end()}, .json = "{}", .fields = {}};
    KeyReader reader{key};
    std::vector<std::pair<std::string_view, Value>> found;
    nlohmann::json values = nlohmann::json::object();
    while (const auto field = reader.next()) {
        found.emplace_back(field->name, field->read());
        values[std::string{field->name}] = to_json(found.back().second);
    }
    if (!reader.whole()) return problem;
    problem.json = values.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    for (const std::string& name : names) {
        const auto at = std::ranges::find(found, name, [](const auto& pair) { return pair.first; });
        if (at != found.end()) problem.fields.emplace_back(name, at->second);
    }
    return problem;
}

namespace {

/// The key fields of a stored problem as an expression sees them.
class FieldScope : public Scope {
public:
    explicit FieldScope(const ProblemIdentity& problem) : problem_{problem} {}
    const Value* find(std::string_view name) const override {
        for (const auto& [field, value] : problem_.fields)
            if (field == name) return &value;
        return nullptr;
    }

private:
    const ProblemIdentity& problem_;
};

}  // namespace

bool matches(const Expression& where, const ProblemIdentity& problem) {
    if (where.empty()) return true;
    try {
        return where.evaluate_bool(FieldScope{problem});
    } catch (const EvaluationError&) {
        return false;
    }
}

}  // namespace autotune

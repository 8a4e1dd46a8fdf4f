#include "cache/sharing/embedded.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "cache/sharing/intake.h"
#include "cache/store/crc32.h"

namespace autotune {

namespace {

/// The config of which each value has the text that the record gives; a text that is none of a parameter's values stays
/// one, and is refused.
Config config_of_text(const Variant& variant, std::string_view text) {
    Config config{.variant = variant.name, .values = {}};
    while (!text.empty()) {
        const std::size_t end = text.find(' ');
        const std::string_view pair = text.substr(0, end);
        text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
        const std::size_t equals = pair.find('=');
        const std::string_view name = pair.substr(0, equals),
                               word = equals == std::string_view::npos ? std::string_view{} : pair.substr(equals + 1);
        Value value{std::string{word}};
        const auto parameter = std::ranges::find(variant.parameters, name, &Parameter::name);
        if (parameter != variant.parameters.end())
            for (const Value& declared : parameter->values)
                if (to_text(declared) == word) value = declared;
        config.values.emplace_back(name, value);
    }
    return config;
}

/// Of a GPU that the table only names, figures that every one could have: of no generation that is still in use, so
/// that none is like it.
DeviceIdentity described(const EmbeddedDevice& device) {
    DeviceIdentity out{.fp = std::string{device.fp}, .name = "embedded", .limits = {.cc = 30, .sm_count = 1}};
    if (device.cc == 0) return out;
    if (!device.name.empty()) out.name = device.name;
    out.bandwidth_gbs = device.bandwidth_gbs;
    out.limits.cc = device.cc;
    out.limits.sm_count = device.sm_count;
    out.limits.max_threads = device.max_threads;
    out.limits.max_shared = device.max_shared;
    out.limits.shared_per_sm = device.shared_per_sm;
    out.limits.registers_per_sm = device.registers_per_sm;
    out.limits.threads_per_sm = device.threads_per_sm;
    return out;
}

/// The parts of the table's records; equal texts share one.
class EmbeddedParts {
public:
    explicit EmbeddedParts(const OpSet& ops) : ops_{ops}, judge_{ops} {}
    const Judge& judge() const noexcept { return judge_; }

    IncomingRow row_of(const EmbeddedRecord& r) {
        IncomingRow row{.device = device(r), .source = source(r), .config = config(r)};
        row.run = run(r, row.device);
        put_problem(r, row);
        row.figures = {.nvrtc_major = r.nvrtc_major,
                       .nvrtc_minor = r.nvrtc_minor,
                       .rank = rank_of(row, r.problem_key),
                       .time_ns = r.time_ns,
                       .low_ns = r.time_ns,
                       .high_ns = r.time_ns,
                       .default_ns = r.default_ns > 0 ? r.default_ns : -1,
                       .effort = r.effort,
                       .verified = r.verified,
                       .tuned_at = r.tuned_at};
        return row;
    }

private:
    template <class T>
    using Table = std::map<std::string, T>;

    Part<DeviceIdentity>* device(const EmbeddedRecord& r) {
        const auto [at, is_new] = devices_.try_emplace(std::string{r.device.fp});
        if (is_new) {
            at->second.value = described(r.device);
            at->second.crc = crc32(r.device.fp);
            at->second.refused = judge_.objection_in_part(at->second.value);
        }
        return &at->second;
    }

    Part<TemplateIdentity>* source(const EmbeddedRecord& r) {
        TemplateIdentity identity{.op = std::string{r.op},
                                  .variant = std::string{r.variant},
                                  .source_hash = std::string{r.source_hash},
                                  .space_hash = std::string{r.space_hash},
                                  .abi = r.abi};
        const std::string hash = identity.hash();
        const auto [at, is_new] = sources_.try_emplace(hash);
        if (is_new) {
            at->second.value = std::move(identity);
            at->second.hash = hash;
            at->second.crc = crc32(hash);
            at->second.refused = judge_.objection(at->second.value, hash);
        }
        return &at->second;
    }

    void put_problem(const EmbeddedRecord& r, IncomingRow& row) {
        const auto key = std::as_bytes(std::span{r.problem_key});
        std::string layout;
        KeyForm::split(key, layout, row.numbers);
        const auto [at, is_new] = forms_.try_emplace(std::string{r.op} + '\0' + layout);
        if (is_new) at->second.refused = judge_.read_form(r.op, layout, at->second.value);
        row.form = &at->second;
        row.problem_crc = crc32(key);
        if (at->second.refused.empty()) row.problem_refused = Judge::objection(at->second.value, row.numbers);
    }

    Part<Config>* config(const EmbeddedRecord& r) {
        const auto [at, is_new] = configs_.try_emplace(fmt::format("{}\n{}\n{}", r.op, r.variant, r.config));
        if (is_new) {
            Part<Config>& part = at->second;
            const Op* op = ops_.find_or_null(r.op);
            const Variant* variant = op ? op->variant(r.variant) : nullptr;
            if (variant)
                part.value = config_of_text(*variant, r.config);
            else
                part.value.variant = r.variant;
            part.hash = part.value.hash();
            part.crc = crc32(part.value.variant + ' ' + part.hash);
            part.refused = judge_.objection(r.op, part.value, part.hash);
        }
        return &at->second;
    }

    /// One a GPU, compiler and effort: a table tells no more of them.
    RunPart* run(const EmbeddedRecord& r, Part<DeviceIdentity>* device) {
        const auto [at, is_new] =
            runs_.try_emplace(fmt::format("{} {}.{} {}", r.device.fp, r.nvrtc_major, r.nvrtc_minor, r.effort));
        if (is_new) {
            RunPart& part = at->second;
            const auto [environment, unknown] = environments_.try_emplace({r.nvrtc_major, r.nvrtc_minor});
            if (unknown) {
                environment->second.value = {.nvrtc_major = r.nvrtc_major, .nvrtc_minor = r.nvrtc_minor};
                environment->second.hash = environment->second.value.hash();
                environment->second.refused = judge_.objection(environment->second.value);
            }
            part.value = {
                .uuid = fmt::format("embedded-{}", runs_.size()),
                .effort = static_cast<SearchEffort>(std::clamp(r.effort, 0, static_cast<int>(SearchEffort::full))),
                .origin = "import"};
            part.crc = crc32(part.value.uuid);
            part.device = device;
            part.environment = &environment->second;
        }
        return &at->second;
    }

    /// Of one problem the records stand in the table best first, and each has a place of its own.
    int rank_of(const IncomingRow& row, std::string_view key) { return ranks_[{row.device, row.source, key}]++; }

    const OpSet& ops_;
    Judge judge_;
    Table<Part<DeviceIdentity>> devices_;
    Table<Part<TemplateIdentity>> sources_;
    Table<Part<JudgedForm>> forms_;
    Table<Part<Config>> configs_;
    std::map<std::pair<int, int>, Part<Environment>> environments_;
    Table<RunPart> runs_;
    std::map<std::tuple<const void*, const void*, std::string_view>, int> ranks_;
};

}  // namespace

Store embedded_store(EmbeddedRecords records, const OpSet& ops, std::vector<std::string>& refused) {
    Store store = Store::in_memory();
    store.transact([&](Database& db) {
        refused.clear();
        EmbeddedParts parts{ops};
        Intake intake{db, Trust::own, 0};
        std::vector<IncomingRow> rows;
        for (std::size_t i = 0; i < records.size(); ++i) {
            IncomingRow row = parts.row_of(records[i]);
            if (const std::string why = objection(row); !why.empty())
                refused.push_back(fmt::format("embedded record {} is not used: {}", i + 1, why));
            else
                rows.push_back(std::move(row));
        }
        std::vector<std::string> why;
        intake.put(rows, why);  // of a run of one's own making none is refused
    });
    return store;
}

}  // namespace autotune

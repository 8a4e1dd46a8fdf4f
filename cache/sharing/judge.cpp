#include "cache/sharing/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "cache/store/entities.h"
#include "device/identity.h"
#include "tuner/model/hashing.h"
#include "tuner/model/key_reader.h"
#include "tuner/model/printable.h"
#include "tuner/model/problem_key.h"

namespace autotune {

namespace {

constexpr std::size_t longest_text = 256, longest_tolerance = 4096;
constexpr std::int64_t latest_time = std::int64_t{1} << 40;  // seconds since 1970: far off, and no overflow near it
constexpr std::int64_t largest_count = std::int64_t{1} << 53;

bool is_utf8(std::string_view text) noexcept {
    for (std::size_t i = 0; i < text.size();) {
        const auto byte = static_cast<unsigned char>(text[i]);
        const std::size_t more = byte < 0x80                   ? 0
                                 : byte >= 0xc2 && byte < 0xe0 ? 1
                                 : byte >= 0xe0 && byte < 0xf0 ? 2
                                 : byte >= 0xf0 && byte < 0xf5 ? 3
                                                               : 9;
        if (more == 9 || i + more >= text.size() + (more == 0)) return false;
        for (std::size_t k = 1; k <= more; ++k)
            if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return false;
        i += more + 1;
    }
    return true;
}

/// A text as it may stand in our database and on a terminal.
bool plain(std::string_view text, std::size_t longest = longest_text) noexcept {
    return text.size() <= longest && is_utf8(text) &&
           std::ranges::none_of(text, [](char c) { return c == '\n' || c == '\t' || c == '\r'; }) &&
           !steers_a_terminal(text);
}

bool hex(std::string_view text, std::size_t digits) noexcept {
    return text.size() == digits &&
           std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

/// For a message: what a file says may be anything.
std::string in_quotes(std::string_view text) {
    constexpr std::size_t shown_bytes = 64;
    return fmt::format("'{}{}'", one_line(text.substr(0, shown_bytes)), text.size() > shown_bytes ? "..." : "");
}

std::string values_text(const std::vector<Value>& values) {
    std::string text;
    for (const Value& value : values) text += (text.empty() ? "" : ", ") + to_text(value);
    return text;
}

template <class T>
bool within(T number, T least, T most) noexcept {
    return number >= least && number <= most;
}

/// The largest dim is that of Instance::make.
constexpr std::int64_t largest_dim = std::int64_t{1} << 40;

/// Whether an op's field can have the value, which is no whole number.
bool may_be(const Field& field, const Value& value) {
    switch (field.kind) {
        case Field::Kind::dim:
            return false;
        case Field::Kind::choice:
            return std::ranges::find(field.choices, value) != field.choices.end();
        case Field::Kind::flag:
            return std::holds_alternative<bool>(value);
        case Field::Kind::text: {
            const auto* text = std::get_if<std::string>(&value);
            return text && plain(*text);
        }
    }
    return false;
}

/// What a whole number of the field may be; nullopt: it can be none.
std::optional<JudgedForm::Rule> rule_of(const Field& field) {
    if (field.kind == Field::Kind::dim) return JudgedForm::Rule{.least = 1, .most = largest_dim};
    JudgedForm::Rule rule;
    if (field.kind == Field::Kind::choice)
        for (const Value& choice : field.choices)
            if (const auto* number = std::get_if<std::int64_t>(&choice)) rule.choices.push_back(*number);
    return rule.choices.empty() ? std::nullopt : std::optional{rule};
}

/// A tensor's alignment.
std::optional<JudgedForm::Rule> rule_of_tensor(const Op& op, std::string_view name) {
    const std::size_t dot = name.rfind('.');
    const Tensor* tensor = dot == std::string_view::npos ? nullptr : op.tensor(name.substr(0, dot));
    if (!tensor || !tensor->key || name.substr(dot) != ".align") return std::nullopt;
    return JudgedForm::Rule{.least = 1, .most = 16, .power_of_two = true};
}

bool keeps(const JudgedForm::Rule& rule, std::int64_t number) noexcept {
    if (!rule.choices.empty()) return std::ranges::find(rule.choices, number) != rule.choices.end();
    return within(number, rule.least, rule.most) &&
           (!rule.power_of_two || std::has_single_bit(static_cast<std::uint64_t>(number)));
}

std::string no_such_problem(std::string_view op, std::string_view name, const Value& value) {
    return fmt::format("its problem has {}={}, which no problem of '{}' has here", printable(name),
                       in_quotes(to_text(value)), op);
}

/// "x.layout" of an op's tensors.
bool may_be_of_tensor(const Op& op, std::string_view name, const Value& value) {
    const std::size_t dot = name.rfind('.');
    const Tensor* tensor = dot == std::string_view::npos ? nullptr : op.tensor(name.substr(0, dot));
    const auto* layout = std::get_if<std::string>(&value);
    return tensor && tensor->key && name.substr(dot) == ".layout" && layout &&
           (*layout == "contiguous" || *layout == "pitched" || *layout == "other");
}

}  // namespace

std::string Judge::objection(const DeviceIdentity& d) const {
    std::string why = objection_in_part(d);
    // Records count for every GPU of the fingerprint: it has to be that of the figures which decide about them.
    if (why.empty() && fingerprint(d) != d.fp) why = "its GPU's fingerprint is not that of its figures";
    return why;
}

std::string Judge::objection_in_part(const DeviceIdentity& d) const {
    const DeviceLimits& l = d.limits;
    if (!hex(d.fp, 64)) return "its GPU's fingerprint is not 64 hexadecimal digits";
    for (const std::string* text : {&d.name, &d.vendor, &d.mig, &d.pci_id, &d.uuid, &d.driver})
        if (!plain(*text)) return fmt::format("its GPU is called {}", in_quotes(*text));
    const bool possible = within(l.cc, 30, 999) && within(l.sm_count, 1, 100'000) && within(l.warp, 1, 1024) &&
                          within(l.max_threads, 1, 1 << 20) && within(l.max_shared, 0, 1 << 30) &&
                          within(l.shared_per_sm, 0, 1 << 30) && within(l.reserved_shared, 0, 1 << 30) &&
                          within(l.registers_per_sm, 0, 1 << 30) && within(l.threads_per_sm, 0, 1 << 20) &&
                          within(l.blocks_per_sm_limit, 0, 1 << 20) && within(d.bandwidth_gbs, 0, 1 << 24) &&
                          l.l2_bytes >= 0 && l.memory_bytes >= 0 && d.core_khz >= 0 && d.memory_khz >= 0;
    return possible ? "" : "its GPU has figures that no GPU has";
}

std::string Judge::objection(const Environment& e) const {
    for (const std::string* text : {&e.driver, &e.tool_version, &e.os})
        if (!plain(*text)) return fmt::format("its environment holds {}", in_quotes(*text));
    const bool possible =
        within(e.nvrtc_major, 0, 999) && within(e.nvrtc_minor, 0, 999) && e.runtime >= 0 && e.emulator >= 0;
    return possible ? "" : "its environment has versions that there are none of";
}

std::string Judge::objection(TemplateIdentity& source, std::string_view hash) const {
    const Op* op = ops_.find_or_null(source.op);
    if (!op) return fmt::format("there is no op {} here", in_quotes(source.op));
    const Variant* variant = op->variant(source.variant);
    if (!variant) return fmt::format("{} has no variant {} here", source.op, in_quotes(source.variant));
    if (!plain(source.source_hash) || !plain(source.space_hash) || source.abi < 0)
        return "its template's hashes are too long, or hold control characters";
    if (source.hash() != hash) return "its template does not fit its hash";
    const TemplateIdentity here = template_of(*op, *variant);
    source.manifest = here.hash() == hash ? here.manifest : "{}";
    return {};
}

std::string Judge::objection(std::string_view op_name, Config& config, std::string_view hash) const {
    const Op* op = ops_.find_or_null(op_name);
    const Variant* variant = op ? op->variant(config.variant) : nullptr;
    if (!variant) return fmt::format("{} has no variant {} here", in_quotes(op_name), in_quotes(config.variant));
    const std::string damage = config.hash() == hash ? "" : "; the row's checksum fails too";
    Config ordered{.variant = variant->name, .values = {}};
    for (const Parameter& parameter : variant->parameters) {
        const auto found = std::ranges::find(config.values, parameter.name, &std::pair<std::string, Value>::first);
        if (found == config.values.end()) return fmt::format("it has no value for {}{}", parameter.name, damage);
        if (std::ranges::find(parameter.values, found->second) == parameter.values.end())
            return fmt::format("{}={} is not a value of {} ({}){}", parameter.name, in_quotes(to_text(found->second)),
                               parameter.name, values_text(parameter.values), damage);
        ordered.values.push_back(*found);
    }
    for (const auto& [name, value] : config.values)
        if (std::ranges::find(variant->parameters, name, &Parameter::name) == variant->parameters.end())
            return fmt::format("{} is no parameter of '{}'{}", in_quotes(name), variant->name, damage);
    if (config.values.size() != ordered.values.size()) return "it has two values for one parameter" + damage;
    if (!damage.empty()) return "its config does not fit its hash";
    config = std::move(ordered);
    return {};
}

std::string Judge::objection(const RunInfo& r) const {
    const bool word = !r.uuid.empty() && r.uuid.size() <= 64 && std::ranges::all_of(r.uuid, [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-';
    });
    if (!word) return "its run's uuid is not written as one";
    for (const std::string* text :
         {&r.strategy, &r.budget, &r.clock_policy, &r.l2_policy, &r.method, &r.reference, &r.host_hash, &r.origin})
        if (!plain(*text)) return fmt::format("its run holds {}", in_quotes(*text));
    if (!plain(r.tolerance, longest_tolerance)) return "its run's tolerance is too long, or holds control characters";
    if (r.origin != "local" && r.origin != "import" && !r.origin.starts_with("import:"))
        return fmt::format("its run comes from {}", in_quotes(r.origin));
    const bool possible = r.locked_mhz >= 0 && std::isfinite(r.power_w) && std::isfinite(r.temperature_max) &&
                          within<std::int64_t>(r.started, 0, latest_time) &&
                          within<std::int64_t>(r.ended, 0, latest_time);
    return possible ? "" : "its run has figures that no run has";
}

std::string Judge::read_form(std::string_view op_name, std::string_view layout, JudgedForm& out) const {
    const std::string bad = "the key of its problem does not decode";
    const Op* op = ops_.find_or_null(op_name);
    if (!op) return fmt::format("there is no op {} here", in_quotes(op_name));
    out = {.op = op->name, .form = KeyForm{layout}};
    if (layout.empty() || !out.form.sound()) return bad;
    // Read with a zero for each number.
    std::vector<std::byte> key;
    if (!out.form.put_together(std::string(out.form.holes().size(), '\0'), key)) return bad;
    KeyReader reader{key};
    if (reader.op() != op->name) return bad;
    std::vector<std::pair<std::string_view, Value>> fields;
    while (const auto next = reader.next()) {
        if (!fields.empty() && next->name <= fields.back().first) return bad;
        Value value = next->read();
        const Field* field = op->field(next->name);
        if (std::holds_alternative<std::int64_t>(value)) {
            const auto rule = !field ? rule_of_tensor(*op, next->name) : field->key ? rule_of(*field) : std::nullopt;
            if (!rule)
                return fmt::format("its problem has a number for {}, which no problem of '{}' has here",
                                   printable(next->name), op->name);
            out.rules.push_back(*rule);
        } else if (field ? !field->key || !may_be(*field, value) : !may_be_of_tensor(*op, next->name, value)) {
            return no_such_problem(op->name, next->name, value);
        }
        fields.emplace_back(next->name, std::move(value));
    }
    CanonicalBytes again;
    again.add(problem_key_version).add(op->name).add(static_cast<std::uint64_t>(fields.size()));
    for (const auto& [name, value] : fields) again.add(name).add_value(value);
    if (!reader.whole() || !std::ranges::equal(again.bytes(), key) || out.rules.size() != out.form.holes().size())
        return bad;
    for (const Field& field : op->fields) {
        if (!field.key) continue;
        if (std::ranges::find(fields, field.name, [](const auto& pair) { return pair.first; }) == fields.end())
            return fmt::format("its problem has no {}", field.name);
        out.names.push_back(field.name);
    }
    // What is left is alignments and layouts, which come in pairs: NAME.align, NAME.layout.
    std::size_t pairs = 0;
    for (std::size_t i = 0; i < fields.size(); ++i)
        if (i + 1 < fields.size() && fields[i].first.ends_with(".align") && fields[i + 1].first.ends_with(".layout"))
            ++pairs;
    return out.names.size() + 2 * pairs == fields.size() ? std::string{} : bad;
}

std::string Judge::objection(const JudgedForm& form, std::string_view numbers) {
    thread_local std::vector<std::int64_t> values;
    if (!form.form.read_numbers(numbers, values)) return "the key of its problem does not decode";
    for (std::size_t i = 0; i < values.size(); ++i)
        if (!keeps(form.rules[i], values[i]))
            return no_such_problem(form.op, form.form.holes()[i].name, Value{values[i]});
    return {};
}

std::string Judge::read_key(std::string_view op, std::span<const std::byte> key, ProblemIdentity& problem) const {
    std::string layout, numbers;
    KeyForm::split(key, layout, numbers);
    JudgedForm form;
    std::string why = read_form(op, layout, form);
    if (why.empty()) why = objection(form, numbers);
    if (why.empty()) problem = problem_of_key(form.op, key, form.names);
    return why;
}

const char* RowFigures::objection() const noexcept {
    constexpr std::int64_t longest_ns = std::int64_t{1} << 50;  // 13 days
    constexpr int most_ranks = 64;
    if (!readable) return "one of its figures is missing, or no number";
    if (!within(nvrtc_major, 0, 999) || !within(nvrtc_minor, 0, 999)) return "its version of NVRTC is outside 0.0 to 999.999";
    if (!within(rank, 0, most_ranks - 1)) return "its rank is outside 0 to 63";
    if (!within<std::int64_t>(time_ns, 1, longest_ns) || !within<std::int64_t>(low_ns, 0, time_ns) ||
        !within(high_ns, time_ns, longest_ns) || (default_ns != -1 && !within<std::int64_t>(default_ns, 1, longest_ns)))
        return "its times are not in order, or outside 1 ns to 13 days";
    if (!within<std::int64_t>(samples, 0, largest_count) || !within<std::int64_t>(evaluated, 0, largest_count) ||
        !within<std::int64_t>(space_size, 0, largest_count))
        return "its counts of samples or configs are below zero or past 2^53";
    if (!within<std::int64_t>(effort, 0, static_cast<int>(SearchEffort::full)) ||
        !within<std::int64_t>(verified, 0, static_cast<int>(Verified::verified)))
        return "what it says of its effort or its checks is no word of ours";
    if (!std::isfinite(max_error) || max_error < 0) return "its largest error is below zero, or no number";
    if (!within<std::int64_t>(tuned_at, 0, latest_time)) return "its date is before 1970 or past all reason";
    return nullptr;
}

}  // namespace autotune

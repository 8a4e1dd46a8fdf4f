#include "cache/store/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "autotune/error.h"

namespace autotune {

using nlohmann::json;

namespace {

constexpr int line_version = 1;

json pairs_to_json(const std::vector<std::pair<std::string, Value>>& pairs) {
    json out = json::array();
    for (const auto& [name, value] : pairs) out.push_back(json::array({name, to_json(value)}));
    return out;
}

std::vector<std::pair<std::string, Value>> pairs_from_json(const json& in) {
    std::vector<std::pair<std::string, Value>> pairs;
    pairs.reserve(in.size());
    for (const json& pair : in) pairs.emplace_back(pair.at(0).get<std::string>(), value_from_json(pair.at(1)));
    return pairs;
}

json to_json(const DeviceIdentity& device) {
    const DeviceLimits& limits = device.limits;
    json out = device_attributes(device);
    out.update({{"fp", device.fp},
                {"name", device.name},
                {"vendor", device.vendor},
                {"bandwidth_gbs", device.bandwidth_gbs},
                {"core_khz", device.core_khz},
                {"ecc", device.ecc},
                {"mig", device.mig},
                {"pci_id", device.pci_id},
                {"cc", limits.cc},
                {"sm_count", limits.sm_count},
                {"max_shared", limits.max_shared},
                {"shared_per_sm", limits.shared_per_sm},
                {"registers_per_sm", limits.registers_per_sm},
                {"threads_per_sm", limits.threads_per_sm},
                {"l2_bytes", limits.l2_bytes}});
    return out;
}

json to_json(const Environment& e) {
    return {
        {"nvrtc_major", e.nvrtc_major}, {"nvrtc_minor", e.nvrtc_minor},   {"driver", e.driver}, {"runtime", e.runtime},
        {"emulator", e.emulator},       {"tool_version", e.tool_version}, {"os", e.os}};
}

json to_json(const TemplateIdentity& t) {
    return {{"op", t.op},   {"variant", t.variant},  {"source_hash", t.source_hash}, {"space_hash", t.space_hash},
            {"abi", t.abi}, {"manifest", t.manifest}};
}

json to_json(const RunInfo& r) {
    return {{"uuid", r.uuid},
            {"strategy", r.strategy},
            {"seed", r.seed},
            {"budget", r.budget},
            {"effort", name_of(r.effort)},
            {"clock_policy", r.clock_policy},
            {"locked_mhz", r.locked_mhz},
            {"power_w", r.power_w},
            {"temp_max", r.temperature_max},
            {"l2_policy", r.l2_policy},
            {"method", r.method},
            {"reference", r.reference},
            {"tolerance", r.tolerance},
            {"host_hash", r.host_hash},
            {"origin", r.origin},
            {"started", r.started},
            {"ended", r.ended}};
}

/// Of all objects in it, which nest no deeper than is read.
std::size_t members_of(const json& in) {
    std::size_t count = in.is_object() ? in.size() : 0;
    if (in.is_structured())
        for (const json& inner : in) count += members_of(inner);
    return count;
}

}  // namespace

json parse_json(std::string_view text) {
    int depth = 0;
    bool quoted = false;
    std::size_t members = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quoted) {
            if (c == '\\')
                ++i;
            else if (c == '"')
                quoted = false;
        } else if (c == '"') {
            quoted = true;
        } else if (c == '[' || c == '{') {
            if (++depth > deepest_nesting)
                throw Error{Error::Kind::usage, fmt::format("it is nested deeper than {}", deepest_nesting)};
        } else if (c == ']' || c == '}') {
            --depth;
        } else if (c == ':') {
            ++members;
        }
    }
    json parsed = json::parse(text);
    // Of two of one name the last would count here, and the first for another reader.
    if (members_of(parsed) != members) throw Error{Error::Kind::usage, "it has a member twice"};
    return parsed;
}

WholeNumber whole(const json& in, const char* name) {
    if (in.is_number_unsigned()) return {.positive = in.get<std::uint64_t>(), .name = name};
    if (in.is_number_integer()) return {.negative = in.get<std::int64_t>(), .name = name};
    throw Error{Error::Kind::usage, fmt::format("its {} is no whole number", name)};
}

void WholeNumber::throw_out_of_range() const {
    throw Error{Error::Kind::usage,
                fmt::format("its {} is {}, which no {} is", name,
                            negative < 0 ? fmt::to_string(negative) : fmt::to_string(positive), name)};
}

json to_json(const Value& value) {
    return std::visit([](const auto& held) { return json(held); }, value);
}

Value value_from_json(const json& in) {
    if (in.is_boolean()) return in.get<bool>();
    if (in.is_number_integer()) return std::int64_t{whole(in, "value")};
    if (in.is_number_float()) return in.get<double>();
    if (in.is_string()) return in.get<std::string>();
    // Not what it is: one that is nested deep takes a stack to print.
    throw Error{Error::Kind::usage, fmt::format("an {} stands where a boolean, number or word does", in.type_name())};
}

json to_json(const Config& config) { return pairs_to_json(config.values); }

Config config_from_json(std::string variant, const json& in) {
    return {.variant = std::move(variant), .values = pairs_from_json(in)};
}

json to_json(const ProblemIdentity& problem) {
    return {{"fields", pairs_to_json(problem.fields)},
            {"key", problem.json.empty() ? json::object() : json::parse(problem.json)}};
}

namespace {

/// ASCII that stands in JSON as it is.
bool is_plain(char c) noexcept { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; }

/// Whether parsing the text and writing it again gives the same: whole numbers, plain words, no blanks. The order of
/// names is not looked at: of two ways to write an object either may stand.
bool is_written_as_read(std::string_view json) noexcept {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    bool quoted = false, in_number = false;
    for (const char c : json) {
        if (c == '"')
            quoted = !quoted;
        else if (quoted && !is_plain(c))
            return false;
        else if (!quoted && !is_digit(c) && !(c >= 'a' && c <= 'z' && !in_number) &&
                 std::string_view{"{}:,-"}.find(c) == std::string_view::npos)
            return false;
        in_number = !quoted && is_digit(c);
    }
    return !quoted;
}

}  // namespace

std::string problem_json_text(const ProblemIdentity& problem) {
    std::string text;
    text.reserve(64 + 24 * problem.fields.size() + problem.json.size());
    text = "{\"fields\":[";
    bool simple = is_written_as_read(problem.json);
    for (const auto& [name, value] : problem.fields) {
        const auto* word = std::get_if<std::string>(&value);
        simple = simple && std::ranges::all_of(name, is_plain) && !std::holds_alternative<double>(value) &&
                 (!word || std::ranges::all_of(*word, is_plain));
        if (!simple) return to_json(problem).dump(-1, ' ', false, json::error_handler_t::replace);
        if (text.back() != '[') text += ',';
        text.append("[\"").append(name).append("\",");
        if (word)
            text.append(1, '"').append(*word).append("\"]");
        else
            text.append(to_text(value)).append(1, ']');
    }
    if (!simple) return to_json(problem).dump(-1, ' ', false, json::error_handler_t::replace);
    return text.append("],\"key\":").append(problem.json.empty() ? "{}" : problem.json).append(1, '}');
}

void read_problem_json(const json& in, ProblemIdentity& problem) {
    problem.fields = pairs_from_json(in.at("fields"));
    problem.json = in.at("key").dump();
}

json device_attributes(const DeviceIdentity& device) {
    const DeviceLimits& limits = device.limits;
    return {{"memory_khz", device.memory_khz},
            {"uuid", device.uuid},
            {"driver_version", device.driver_version},
            {"driver", device.driver},
            {"emulated", device.emulated},
            {"warp", limits.warp},
            {"max_threads", limits.max_threads},
            {"reserved_shared", limits.reserved_shared},
            {"blocks_per_sm_limit", limits.blocks_per_sm_limit},
            {"memory_bytes", limits.memory_bytes},
            {"max_grid", {limits.max_grid_x, limits.max_grid_y, limits.max_grid_z}}};
}

namespace {

template <class Number>
Number whole_or(const json& in, const char* name, Number fallback) {
    const auto found = in.find(name);
    return found == in.end() ? fallback : Number{whole(*found, name)};
}

}  // namespace

void read_device_attributes(const json& in, DeviceIdentity& device) {
    device.memory_khz = whole_or(in, "memory_khz", 0);
    device.uuid = in.value("uuid", std::string{});
    device.driver_version = whole_or(in, "driver_version", 0);
    device.driver = in.value("driver", std::string{});
    device.emulated = in.value("emulated", false);
    DeviceLimits& limits = device.limits;
    limits.warp = whole_or(in, "warp", limits.warp);
    limits.max_threads = whole_or(in, "max_threads", limits.max_threads);
    limits.reserved_shared = whole_or(in, "reserved_shared", limits.reserved_shared);
    limits.blocks_per_sm_limit = whole_or(in, "blocks_per_sm_limit", limits.blocks_per_sm_limit);
    limits.memory_bytes = whole_or(in, "memory_bytes", limits.memory_bytes);
    if (const auto grid = in.find("max_grid"); grid != in.end() && grid->size() == 3) {
        limits.max_grid_x = whole(grid->at(0), "max_grid");
        limits.max_grid_y = whole(grid->at(1), "max_grid");
        limits.max_grid_z = whole(grid->at(2), "max_grid");
    }
}

DeviceIdentity device_from_json(const json& in) {
    DeviceIdentity device;
    read_device_attributes(in, device);
    in.at("fp").get_to(device.fp);
    in.at("name").get_to(device.name);
    in.at("vendor").get_to(device.vendor);
    device.bandwidth_gbs = whole(in.at("bandwidth_gbs"), "bandwidth_gbs");
    device.core_khz = whole(in.at("core_khz"), "core_khz");
    in.at("ecc").get_to(device.ecc);
    in.at("mig").get_to(device.mig);
    in.at("pci_id").get_to(device.pci_id);
    device.limits.cc = whole(in.at("cc"), "cc");
    device.limits.sm_count = whole(in.at("sm_count"), "sm_count");
    device.limits.max_shared = whole(in.at("max_shared"), "max_shared");
    device.limits.shared_per_sm = whole(in.at("shared_per_sm"), "shared_per_sm");
    device.limits.registers_per_sm = whole(in.at("registers_per_sm"), "registers_per_sm");
    device.limits.threads_per_sm = whole(in.at("threads_per_sm"), "threads_per_sm");
    device.limits.l2_bytes = whole(in.at("l2_bytes"), "l2_bytes");
    return device;
}

Environment environment_from_json(const json& in) {
    return {.nvrtc_major = whole(in.at("nvrtc_major"), "nvrtc_major"),
            .nvrtc_minor = whole(in.at("nvrtc_minor"), "nvrtc_minor"),
            .driver = in.at("driver"),
            .runtime = whole(in.at("runtime"), "runtime"),
            .emulator = whole(in.at("emulator"), "emulator"),
            .tool_version = in.at("tool_version"),
            .os = in.at("os")};
}

TemplateIdentity template_from_json(const json& in) {
    return {.op = in.at("op"),
            .variant = in.at("variant"),
            .source_hash = in.at("source_hash"),
            .space_hash = in.at("space_hash"),
            .abi = whole(in.at("abi"), "abi"),
            .manifest = in.at("manifest")};
}

RunInfo run_from_json(const json& in) {
    const auto effort = search_effort_named(in.at("effort").get<std::string>());
    if (!effort) throw Error{Error::Kind::usage, fmt::format("'{}' is no effort", in.at("effort").get<std::string>())};
    return {.uuid = in.at("uuid"),
            .strategy = in.at("strategy"),
            .seed = whole(in.at("seed"), "seed"),
            .budget = in.at("budget"),
            .effort = *effort,
            .clock_policy = in.at("clock_policy"),
            .locked_mhz = whole(in.at("locked_mhz"), "locked_mhz"),
            .power_w = in.at("power_w"),
            .temperature_max = in.at("temp_max"),
            .l2_policy = in.at("l2_policy"),
            .method = in.at("method"),
            .reference = in.at("reference"),
            .tolerance = in.at("tolerance"),
            .host_hash = in.at("host_hash"),
            .origin = in.at("origin"),
            .started = whole(in.at("started"), "started"),
            .ended = whole(in.at("ended"), "ended")};
}

std::string to_line(const Record& r) {
    json out{{"v", line_version},
             {"kind", r.predicted ? "predicted" : "record"},
             {"device", to_json(r.device)},
             {"template", to_json(r.source)},
             {"problem", to_json(r.problem)},
             {"key", to_hex(r.problem.key)},
             {"env", to_json(r.environment)},
             {"run", to_json(r.run)},
             {"config", to_json(r.config)},
             {"rank", r.rank},
             {"time_us", r.time_us},
             {"low_us", r.low_us},
             {"high_us", r.high_us},
             {"samples", r.samples},
             {"evaluated", r.evaluated},
             {"space_size", r.space_size},
             {"verified", name_of(r.verified)},
             {"max_error", r.max_error},
             {"tuned_at", r.tuned_at},
             {"model_version", r.model_version},
             {"crc", crc_of(r)}};
    if (r.default_us) out["default_us"] = *r.default_us;
    return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

Record record_from_line(std::string_view line) {
    try {
        const json in = parse_json(line);
        if (in.at("v") != line_version)
            throw Error{Error::Kind::usage,
                        fmt::format("the line is not of format {}, which this program reads", line_version)};
        Record r;
        r.predicted = in.at("kind") == "predicted";
        r.device = device_from_json(in.at("device"));
        r.source = template_from_json(in.at("template"));
        r.problem.op = r.source.op;
        read_problem_json(in.at("problem"), r.problem);
        r.problem.key = from_hex(in.at("key").get<std::string>());
        r.environment = environment_from_json(in.at("env"));
        r.run = run_from_json(in.at("run"));
        r.config = config_from_json(r.source.variant, in.at("config"));
        r.rank = whole(in.at("rank"), "rank");
        r.time_us = in.at("time_us");
        r.low_us = in.at("low_us");
        r.high_us = in.at("high_us");
        r.samples = whole(in.at("samples"), "samples");
        r.evaluated = whole(in.at("evaluated"), "evaluated");
        r.space_size = whole(in.at("space_size"), "space_size");
        const auto verified = verified_named(in.at("verified").get<std::string>());
        if (!verified) throw Error{Error::Kind::usage, "the line's 'verified' is no word of ours"};
        r.verified = *verified;
        r.max_error = in.at("max_error");
        r.tuned_at = whole(in.at("tuned_at"), "tuned_at");
        r.model_version = in.at("model_version");
        if (in.contains("default_us")) r.default_us = in.at("default_us").get<double>();
        if (const std::uint32_t crc = whole(in.at("crc"), "crc"); crc_of(r) != crc)
            throw Error{Error::Kind::usage, fmt::format("the checksum of a record of '{}' fails", r.source.op)};
        return r;
    } catch (const json::exception& e) {
        throw Error{Error::Kind::usage, fmt::format("the line is no record: {}", e.what())};
    }
}

std::string to_hex(std::span<const std::byte> bytes) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    text.reserve(bytes.size() * 2);
    for (const std::byte byte : bytes) {
        text += digits[std::to_integer<unsigned>(byte) >> 4];
        text += digits[std::to_integer<unsigned>(byte) & 15];
    }
    return text;
}

std::vector<std::byte> from_hex(std::string_view text) {
    const auto digit = [](char c) -> unsigned {
        if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
        if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
        throw Error{Error::Kind::usage, fmt::format("'{}' is no hexadecimal digit", c)};
    };
    if (text.size() % 2) throw Error{Error::Kind::usage, "a hexadecimal text has an odd length"};
    std::vector<std::byte> bytes(text.size() / 2);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::byte>(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
    return bytes;
}

}  // namespace autotune

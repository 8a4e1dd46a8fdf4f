#include "cache/dispatch/decisions.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "autotune/error.h"
#include "cache/store/json.h"
#include "tuner/model/hashing.h"

namespace autotune {

namespace {

using nlohmann::json;

constexpr int decisions_format = 1;
constexpr std::size_t most_reasons = 64;
constexpr std::size_t most_values = 256;

[[noreturn]] void refuse_decisions(const std::string& why) {
    throw Error{Error::Kind::usage, fmt::format("the decisions cannot be taken over: {}", why)};
}

std::string line_of(const DecidedConfig& decided) {
    const json out{{"op", decided.op},
                   {"device", decided.device_fp},
                   {"key", to_hex(decided.problem_key)},
                   {"problem", decided.problem},
                   {"variant", decided.config.variant},
                   {"config", to_json(decided.config)},
                   {"rung", name_of(decided.rung)},
                   {"verified", decided.verified},
                   {"stale", decided.stale}};
    return out.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
}

DecidedConfig decided_from(std::string_view line) {
    const json in = json::parse(line);
    const auto rung = std::ranges::find(rung_names, in.at("rung").get<std::string>());
    if (rung == rung_names.end() || *rung == name_of(Rung::none)) refuse_decisions("a rung in them is no word of ours");
    if (in.at("config").size() > most_values) refuse_decisions("a config in them has too many values");
    return {.op = in.at("op"),
            .device_fp = in.at("device"),
            .problem_key = from_hex(in.at("key").get<std::string>()),
            .problem = in.at("problem"),
            .config = config_from_json(in.at("variant"), in.at("config")),
            .rung = static_cast<Rung>(rung - rung_names.begin()),
            .verified = in.at("verified"),
            .stale = in.at("stale")};
}

/// Takes the first line off the text. Throws when it has no end or is too long for what it may hold.
std::string_view take_line(std::string_view& text) {
    const std::size_t end = text.substr(0, Decisions::most_line_bytes).find('\n');
    if (end == std::string_view::npos) refuse_decisions("they are cut off, or no decisions at all");
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    return line;
}

/// Why today's op would not take such a config, whatever the problem; empty: it would. Values end up in a compiler's
/// defines, so they are of those declared.
std::string objection_to_values(const OpSet& ops, const DecidedConfig& decided) {
    try {
        const Variant* variant = ops.find(decided.op).variant(decided.config.variant);
        if (!variant) return fmt::format("op '{}' has no variant '{}'", decided.op, decided.config.variant);
        if (variant->parameters.size() != decided.config.values.size())
            return fmt::format("the parameters of '{}' of op '{}' are others", variant->name, decided.op);
        for (const auto& [name, value] : decided.config.values) {
            const auto parameter = std::ranges::find(variant->parameters, name, &Parameter::name);
            if (parameter == variant->parameters.end())
                return fmt::format("'{}' of op '{}' has no parameter '{}'", variant->name, decided.op, name);
            if (std::ranges::find(parameter->values, value) == parameter->values.end())
                return fmt::format("{} is no value of {} of op '{}'", to_text(value), name, decided.op);
        }
        return {};
    } catch (const Error& unknown_op) {
        return unknown_op.what();
    }
}

}  // namespace

void Decisions::put(DecidedConfig decided) {
    Key key{decided.op, decided.problem_key, decided.device_fp};
    by_key_.insert_or_assign(std::move(key), std::move(decided));
}

void Decisions::take_over(const Decisions& others) {
    for (const auto& [key, decided] : others.by_key_) by_key_.insert_or_assign(key, decided);
}

const DecidedConfig* Decisions::find(std::string_view op, std::span<const std::byte> problem_key,
                                     std::string_view device_fp) const {
    if (by_key_.empty()) return nullptr;
    const Key first{std::string{op}, {problem_key.begin(), problem_key.end()}, {}};
    const DecidedConfig* any = nullptr;
    for (auto at = by_key_.lower_bound(first); at != by_key_.end(); ++at) {
        const auto& [its_op, its_key, its_device] = at->first;
        if (its_op != std::get<0>(first) || its_key != std::get<1>(first)) break;
        if (its_device == device_fp) return &at->second;
        if (!any) any = &at->second;
    }
    return any;
}

std::uint64_t Decisions::hash() const {
    std::set<std::string> lines;  // devices that got the same config count once
    for (const auto& [key, decided] : by_key_)
        lines.insert(fmt::format("{}\n{}\n{} {}\n", decided.op, to_hex(decided.problem_key), decided.config.variant,
                                 decided.config.hash()));
    std::string text;
    for (const std::string& line : lines) text += line;
    return std::stoull(sha256_hex(text).substr(0, 16), nullptr, 16);
}

std::vector<std::byte> Decisions::bytes() const {
    std::string lines;
    for (const auto& [key, decided] : by_key_) lines += line_of(decided);
    const json head{{"autotune_decisions", decisions_format}, {"count", by_key_.size()}, {"sha256", sha256_hex(lines)}};
    const std::string text = head.dump() + '\n' + lines;
    const auto raw = std::as_bytes(std::span{text});
    return {raw.begin(), raw.end()};
}

Decisions Decisions::read(std::span<const std::byte> bytes) {
    if (bytes.size() > most_bytes) refuse_decisions(fmt::format("they have more than {} MiB", most_bytes >> 20));
    std::string_view text{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    Decisions out;
    try {
        const json head = json::parse(take_line(text));
        const auto format = head.at("autotune_decisions").get<std::int64_t>();
        if (format != decisions_format)
            refuse_decisions(fmt::format("they are of format {}, and this program reads {}", format, decisions_format));
        const auto count = head.at("count").get<std::uint64_t>();
        if (count > most) refuse_decisions(fmt::format("there are {}, {} is the most", count, most));
        if (sha256_hex(text) != head.at("sha256").get<std::string>())
            refuse_decisions("their checksum fails, so they are damaged or cut off");
        for (std::uint64_t i = 0; i < count; ++i) out.put(decided_from(take_line(text)));
        if (!text.empty()) refuse_decisions("there are more of them than their head says");
    } catch (const json::exception&) {
        refuse_decisions("they are not as export_decisions() writes them");
    }
    return out;
}

std::size_t Decisions::refuse_unknown(const OpSet& ops, std::vector<std::string>& why) {
    return std::erase_if(by_key_, [&](const auto& entry) {
        const DecidedConfig& decided = entry.second;
        const std::string objection = objection_to_values(ops, decided);
        if (objection.empty()) return false;
        if (why.size() < most_reasons)
            why.push_back(fmt::format("'{}' {}: {}", decided.op, decided.problem, objection));
        return true;
    });
}

}  // namespace autotune

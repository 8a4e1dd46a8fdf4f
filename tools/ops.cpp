#include <fmt/format.h>

#include <algorithm>

#include "tools/format.h"
#include "tools/json_events.h"
#include "tools/session.h"
#include "tools/subcommands.h"

#include <nlohmann/json.hpp>

namespace autotune {
namespace {

std::string names_of(const Op& op) {
    std::string text;
    for (const Field& field : op.fields) text += (text.empty() ? "" : " ") + field.name;
    return text;
}

std::string list_of(const std::vector<Value>& values) {
    std::string text;
    for (const Value& value : values) text += (text.empty() ? "" : " ") + to_text(value);
    return text;
}

std::string kind_of(const Field& field) {
    switch (field.kind) {
        case Field::Kind::dim:
            return field.near ? "dim, near" : "dim, exact";
        case Field::Kind::choice:
            return "one of " + list_of(field.choices);
        case Field::Kind::flag:
            return "flag";
        case Field::Kind::text:
            return "text";
    }
    return {};
}

void print_list(const std::vector<const Op*>& ops, Console& console) {
    std::size_t name = 0, fields = 0;
    for (const Op* op : ops) {
        name = std::max(name, op->name.size());
        fields = std::max(fields, names_of(*op).size());
    }
    for (const Op* op : ops)
        console.result(fmt::format("{}  {}  {:<11}  {}", pad_right(op->name, name), pad_right(names_of(*op), fields),
                                   format_count(op->variants.size(), "variant", "variants"), op->summary));
}

void print_one(const Op& op, Console& console) {
    console.result(
        fmt::format("{}: {}{}", op.name, op.summary, op.builtin ? "" : fmt::format("   (from {})", op.folder)));
    console.result("problem");
    for (const Field& field : op.fields) {
        const std::string fallback = field.fallback.empty() ? "" : "default " + field.fallback.text();
        console.result(fmt::format("  {:<12} {:<28} {:<24} {}", field.name, kind_of(field), fallback, field.about));
    }
    if (!op.scalars.empty()) console.result("scalars");
    for (const Scalar& scalar : op.scalars)
        console.result(
            fmt::format("  {:<12} {:<28} default {}", scalar.name, name_of(scalar.dtype), to_text(scalar.fallback)));
    for (const Variant& variant : op.variants) {
        console.result(fmt::format("variant {}   {}{}", variant.name, variant.source,
                                   variant.needs.empty() ? "" : "   needs " + variant.needs.text()));
        for (const Parameter& p : variant.parameters)
            console.result(fmt::format("  {:<12} {:<28} default {:<16} {}", p.name, list_of(p.values),
                                       p.fallback.text(), p.about));
        for (const Constraint& constraint : variant.constraints) console.result(fmt::format("  {}", constraint.claim));
    }
}

nlohmann::json json_of(const Op& op) {
    nlohmann::json fields = nlohmann::json::array(), variants = nlohmann::json::array();
    for (const Field& field : op.fields)
        fields.push_back({{"name", field.name},
                          {"kind", kind_of(field)},
                          {"default", field.fallback.text()},
                          {"about", field.about}});
    for (const Variant& variant : op.variants) {
        nlohmann::json parameters = nlohmann::json::array();
        for (const Parameter& p : variant.parameters)
            parameters.push_back({{"name", p.name}, {"values", list_of(p.values)}, {"default", p.fallback.text()}});
        variants.push_back({{"name", variant.name},
                            {"source", variant.source},
                            {"needs", variant.needs.text()},
                            {"parameters", parameters}});
    }
    return {
        {"op", op.name}, {"summary", op.summary}, {"builtin", op.builtin}, {"fields", fields}, {"variants", variants}};
}

void print_files(const Op& op, Console& console) {
    console.result(fmt::format("\n---- {}.toml\n{}", op.name, op.toml));
    for (const auto& [name, text] : op.files) console.result(fmt::format("---- {}\n{}", name, text));
}

}  // namespace

int run_ops(const Request& request, Console& console) {
    const Session session{request, console};
    // --show is of one op: the one that is named, or the only one of the user's.
    const bool all = request.op.empty() && !request.show;
    const std::vector<const Op*> ops = all ? session.ops().all() : std::vector<const Op*>{&session.op()};
    for (const Op* op : ops) console.json_line(console.json() ? json_event("op", json_of(*op)) : std::string{});
    if (all)
        print_list(ops, console);
    else
        print_one(*ops.front(), console);
    if (request.show) print_files(*ops.front(), console);
    return 0;
}

}  // namespace autotune

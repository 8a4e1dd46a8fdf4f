#include "tuner/model/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "autotune/error.h"
#include "tools/format.h"
#include "tools/json_events.h"
#include "tools/session.h"
#include "tools/subcommands.h"
#include "tuner/interchange/json_text.h"
#include "tuner/interchange/t1.h"

namespace autotune {
namespace {

/// A count of raw configs: whole as long as a double is.
std::string raw_words(double count) {
    return count < 0x1p53 ? fmt::format("{:.0f}", count) : fmt::format("{:.4g}", count);
}

std::string rejections(const Space::VariantSpace& variant) {
    if (!variant.unmet.empty()) return variant.unmet;
    std::vector<Space::Rejection> sorted;
    std::ranges::copy_if(variant.rejections, std::back_inserter(sorted),
                         [](const auto& r) { return r.raw_configs > 0; });
    std::ranges::stable_sort(sorted, std::greater{}, &Space::Rejection::raw_configs);
    std::string text;
    for (const Space::Rejection& rejection : sorted)
        text += fmt::format("{}{} {}", text.empty() ? "" : "; ", raw_words(rejection.raw_configs), rejection.claim);
    return text;
}

void print(const Instance& instance, const Space& space, double seconds, Console& console) {
    const std::string problem = instance.problem().text();
    console.result(instance.op().name + (problem.empty() ? "" : " " + problem));
    console.result(
        fmt::format("{:<14}{:>10}{:>9}   rejected, by the first claim that fails", "variant", "raw", "valid"));
    for (const Space::VariantSpace& variant : space.variants())
        console.result(fmt::format("{:<14}{:>10}{:>9}   {}", variant.variant->name, raw_words(variant.raw),
                                   variant.count, rejections(variant)));
    console.result(
        fmt::format("plan: {} of {} raw, built in {:.4f} s{}", format_count(space.size(), "config", "configs"),
                    raw_words(space.raw_size()), seconds,
                    space.size() == 0 ? "" : "; the default is " + space.config(space.default_number()).text()));
}

nlohmann::json json_of(const Instance& instance, const Space& space, double seconds) {
    nlohmann::json variants = nlohmann::json::array();
    for (const Space::VariantSpace& variant : space.variants()) {
        nlohmann::json rejected = nlohmann::json::object();
        for (const Space::Rejection& rejection : variant.rejections) rejected[rejection.claim] = rejection.raw_configs;
        variants.push_back({{"name", variant.variant->name},
                            {"raw", variant.raw},
                            {"valid", variant.count},
                            {"unmet", variant.unmet},
                            {"rejected", rejected}});
    }
    nlohmann::json out = {{"op", instance.op().name}, {"problem", instance.problem()},
                          {"valid", space.size()},    {"raw", space.raw_size()},
                          {"seconds", seconds},       {"variants", variants}};
    if (space.size() > 0) out["default"] = space.config(space.default_number());
    return out;
}

/// Returns whether anything is valid.
bool show(const Instance& instance, Console& console) {
    const auto begin = std::chrono::steady_clock::now();
    const Space space = Space::make(instance);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (console.json()) console.json_line(json_event("space", json_of(instance, space, seconds)));
    print(instance, space, seconds, console);
    return space.size() > 0;
}

/// The space of another tuner's description, which knows neither a problem nor a device.
int show_t1(const Request& request, Console& console) {
    const T1 t1 = t1_from_text(foreign_text(request.t1), request.t1);
    for (const std::string& note : t1.notes) console.note(fmt::format("{}: {}", request.t1, note));
    const Op op = op_of_t1(t1);
    if (show(Instance::make(op, {}, DeviceLimits{}), console)) return 0;
    throw Error{Error::Kind::nothing_found,
                fmt::format("no config of '{}' meets all conditions of {}", op.name, request.t1)};
}

}  // namespace

int run_space(const Request& request, Console& console) {
    if (!request.t1.empty()) return show_t1(request, console);
    const Session session{request, console};
    const DeviceLimits limits = session.limits();
    for (const AskedProblem& problem : session.problems()) {
        const Instance instance = Session::instance(problem, limits);
        if (show(instance, console)) continue;
        throw Error{Error::Kind::nothing_found, fmt::format("no config of '{}' is valid for {} on sm_{}",
                                                            instance.op().name, instance.problem().text(), limits.cc)};
    }
    return 0;
}

}  // namespace autotune

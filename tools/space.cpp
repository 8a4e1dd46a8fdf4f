#include "tuner/model/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "tools/format.h"
#include "tools/json_events.h"
#include "tools/session.h"
#include "tools/subcommands.h"

namespace autotune {
namespace {

std::string rejections(const Space::VariantSpace& variant) {
    if (!variant.unmet.empty()) return variant.unmet;
    std::vector<Space::Rejection> sorted;
    std::ranges::copy_if(variant.rejections, std::back_inserter(sorted),
                         [](const auto& r) { return r.raw_configs > 0; });
    std::ranges::stable_sort(sorted, std::greater{}, &Space::Rejection::raw_configs);
    std::string text;
    for (const Space::Rejection& rejection : sorted)
        text += fmt::format("{}{:.0f} {}", text.empty() ? "" : "; ", rejection.raw_configs, rejection.claim);
    return text;
}

void print(const Instance& instance, const Space& space, double seconds, Console& console) {
    console.result(fmt::format("{} {}", instance.op().name, instance.problem().text()));
    console.result(
        fmt::format("{:<14}{:>10}{:>9}   rejected, by the first claim that fails", "variant", "raw", "valid"));
    for (const Space::VariantSpace& variant : space.variants())
        console.result(fmt::format("{:<14}{:>10.0f}{:>9}   {}", variant.variant->name, variant.raw, variant.count,
                                   rejections(variant)));
    console.result(fmt::format("plan: {} of {:.0f} raw, built in {:.3f} s; the default is {}",
                               format_count(space.size(), "config", "configs"), space.raw_size(), seconds,
                               space.config(space.default_number()).text()));
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
    return {{"op", instance.op().name}, {"problem", instance.problem()},
            {"valid", space.size()},    {"raw", space.raw_size()},
            {"seconds", seconds},       {"default", space.config(space.default_number())},
            {"variants", variants}};
}

}  // namespace

int run_space(const Request& request, Console& console) {
    const Session session{request, console};
    const DeviceLimits limits = session.limits();
    for (const AskedProblem& problem : session.problems()) {
        const Instance instance = Session::instance(problem, limits);
        const auto begin = std::chrono::steady_clock::now();
        const Space space = Space::make(instance);
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        if (console.json()) console.json_line(json_event("space", json_of(instance, space, seconds)));
        print(instance, space, seconds, console);
    }
    return 0;
}

}  // namespace autotune

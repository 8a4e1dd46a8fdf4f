#include "tuner/model/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "autotune/error.h"
#include "tools/format.h"
#include "tools/json_events.h"
#include "tools/named_file.h"
#include "tools/session.h"
#include "tools/subcommands.h"
#include "tuner/interchange/json_text.h"
#include "tuner/interchange/measured_space.h"
#include "tuner/interchange/t1.h"
#include "tuner/replay/recorded_space.h"

namespace autotune {
namespace {

/// A count of raw configs: whole as long as a double is.
std::string raw_words(double count) {
    return count < 0x1p53 ? fmt::format("{:.0f}", count) : fmt::format("{:.4g}", count);
}

/// nullopt: it is not valid, as that of another tuner may be.
std::optional<Config> default_of(const Instance& instance, const Space& space) {
    try {
        Config config = instance.default_config();
        if (space.find(config)) return config;
    } catch (const Error& error) {
        if (error.kind() != Error::Kind::nothing_found) throw;
    }
    return std::nullopt;
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

/// Columns as wide as the largest count in them.
void print(const Instance& instance, const Space& space, double seconds, Console& console) {
    std::size_t name = 13, raw = 9, valid = 8;
    for (const Space::VariantSpace& variant : space.variants()) {
        name = std::max(name, variant.variant->name.size());
        raw = std::max(raw, raw_words(variant.raw).size());
        valid = std::max(valid, std::to_string(variant.count).size());
    }
    const auto row = [&](const std::string& first, const std::string& second, const std::string& third,
                         const std::string& last) {
        console.result(fmt::format("{:<{}} {:>{}} {:>{}}   {}", first, name, second, raw, third, valid, last));
    };
    const std::string problem = instance.problem().text();
    console.result(instance.op().name + (problem.empty() ? "" : " " + problem));
    row("variant", "raw", "valid", "rejected, by the first claim that fails");
    for (const Space::VariantSpace& variant : space.variants())
        row(variant.variant->name, raw_words(variant.raw), std::to_string(variant.count), rejections(variant));
    const auto config = default_of(instance, space);
    console.result(fmt::format("plan: {} of {} raw, built in {:.4f} s{}",
                               format_count(space.size(), "config", "configs"), raw_words(space.raw_size()), seconds,
                               config ? "; the default is " + config->text() : "; the default is not valid"));
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
    if (const auto config = default_of(instance, space)) out["default"] = *config;
    return out;
}

struct BuiltSpace {
    Space space;
    double seconds = 0;
};

BuiltSpace built(const Instance& instance) {
    const auto begin = std::chrono::steady_clock::now();
    Space space = Space::make(instance);
    return {std::move(space), std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
}

/// Returns whether anything is valid.
bool show(const Instance& instance, Console& console) {
    const auto [space, seconds] = built(instance);
    if (console.json()) console.json_line(json_event("space", json_of(instance, space, seconds)));
    print(instance, space, seconds, console);
    return space.size() > 0;
}

/// How many of the results failed, by how.
std::map<std::string, std::size_t> failures_of(const MeasuredSpace& measured) {
    std::map<std::string, std::size_t> out;
    for (const MeasuredSpace::Row& row : measured.rows)
        if (row.measured->invalidity != "correct") ++out[row.measured->invalidity];
    return out;
}

nlohmann::json json_of(const MeasuredSpace& measured, const Space& space) {
    nlohmann::json out = {{"configs", measured.rows.size()},
                          {"failed", failures_of(measured)},
                          {"outside", measured.outside},
                          {"repeated", measured.repeated},
                          {"untimed", measured.untimed}};
    if (measured.fastest) {
        out["best"] = space.config(measured.fastest->number);
        out["time_us"] = *measured.fastest->measured->time_ms * 1000;
        out["predicted"] = measured.fastest->measured->predicted;
    }
    return out;
}

void print(const MeasuredSpace& measured, const Space& space, Console& console) {
    std::string failures;
    std::size_t failed = 0;
    for (const auto& [how, count] : failures_of(measured)) {
        failures += fmt::format("{}{} {}", failures.empty() ? " (" : ", ", count, how);
        failed += count;
    }
    console.result(fmt::format("measured: {} of {}, {} failed{}{}", measured.rows.size(), space.size(), failed,
                               failures, failures.empty() ? "" : ")"));
    if (measured.fastest)
        console.result(fmt::format("best: {}{}   {}", format_time(*measured.fastest->measured->time_ms * 1000),
                                   measured.fastest->measured->predicted ? ", predicted" : "",
                                   space.config(measured.fastest->number).text()));
}

void note_what_is_left_out(const MeasuredSpace& measured, const std::string& file, Console& console) {
    const auto note = [&](std::size_t count, std::string_view why) {
        if (count > 0)
            console.note(fmt::format("{}: {} left out: {}", file, format_count(count, "result", "results"), why));
    };
    note(measured.outside, "the space has no such config");
    note(measured.repeated, "an earlier one is of the same config");
    note(measured.untimed, "neither a time above 0 nor a failure");
}

/// A file that is read whole before anything is printed.
std::string read_foreign(const std::string& file, Console& console) {
    constexpr std::size_t worth_a_note = std::size_t{16} << 20;
    std::string text = foreign_text(file);
    if (text.size() >= worth_a_note)
        console.note(fmt::format("{} has {} MiB, which take a while to read", file, text.size() >> 20));
    return text;
}

/// Throws Error{usage} where the words ask for an op's space as well, or for an input to be written over.
void refuse_what_contradicts(const Request& request) {
    const std::string flag = request.t1.empty() ? "--measured" : "--t1";
    if (!request.op.empty())
        throw usage(fmt::format("{} describes a space of its own, so '{}' has no place beside it", flag, request.op),
                    "autotune space --help");
    for (const std::string& input : {request.t1, request.measured}) {
        std::error_code error;
        if (!request.output.empty() && !input.empty() && std::filesystem::equivalent(request.output, input, error))
            throw usage(fmt::format("'{}' is read, and would be written over", request.output),
                        "name another file with -o");
    }
}

/// A space of another tuner, which knows neither a problem nor a device: as it describes it, as its results show it,
/// or both.
int show_foreign(const Request& request, Console& console) {
    refuse_what_contradicts(request);
    Measurements measurements;
    if (!request.measured.empty())
        measurements = measurements_from_text(read_foreign(request.measured, console), request.measured);
    for (const std::string& note : measurements.notes) console.note(fmt::format("{}: {}", request.measured, note));
    T1 t1;
    if (!request.t1.empty()) t1 = t1_from_text(read_foreign(request.t1, console), request.t1);
    for (const std::string& note : t1.notes) console.note(fmt::format("{}: {}", request.t1, note));
    if (!request.measured.empty() && measurements.configs.empty())
        throw Error{Error::Kind::nothing_found, fmt::format("{} holds no result", request.measured)};
    const Op op = request.t1.empty() ? op_of_measurements(measurements) : op_of_t1(t1);
    const Instance instance = Instance::make(op, {}, DeviceLimits{});
    if (request.measured.empty()) {
        if (show(instance, console)) return 0;
        throw Error{Error::Kind::nothing_found,
                    fmt::format("no config of '{}' meets all conditions of {}", op.name, request.t1)};
    }
    const auto [space, seconds] = built(instance);
    const MeasuredSpace measured = measured_space(space, measurements, request.measured);
    if (console.json()) {
        nlohmann::json out = json_of(instance, space, seconds);
        out["measured"] = json_of(measured, space);
        console.json_line(json_event("space", out));
    }
    print(instance, space, seconds, console);
    print(measured, space, console);
    note_what_is_left_out(measured, request.measured, console);
    if (measured.rows.empty())
        throw Error{
            Error::Kind::nothing_found,
            fmt::format("no result of {} is a time or a failure of a config of '{}'", request.measured, op.name)};
    if (request.output.empty()) return 0;
    const std::string text = recorded_text(space, measured, measurements.device);
    RecordedSpace::parse(text, request.output);  // nothing is written that could not be read
    write_named_file(request.output, text, request.db == "none" ? std::string{} : request.db);
    return 0;
}

}  // namespace

int run_space(const Request& request, Console& console) {
    if (!request.output.empty() && request.measured.empty())
        throw usage("-o writes results, and none are given", "--measured FILE, with T4 or a Kernel Tuner cache");
    if (!request.t1.empty() || !request.measured.empty()) return show_foreign(request, console);
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

#ifndef AUTOTUNE_MODEL_COUNTERS_JSON_H
#define AUTOTUNE_MODEL_COUNTERS_JSON_H

// What the emulator counted as JSON values: a worker's answer, and what the store keeps. Included by .cpp files only.

#include <nlohmann/json.hpp>

#include "device/emulator/counters.h"

namespace autotune {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Dim3, x, y, z)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(KernelInfo, name, symbol, registers, static_shared_bytes, stack_bytes, spill_bytes,
                                   barriers, max_threads)

namespace emulator {

/// By name; `classes` holds those that occur, each as [warp instructions, lanes that took part].
inline void to_json(nlohmann::json& json, const Counters& counters) {
    json = nlohmann::json::object();
    for (const CounterSum& sum : counter_sums) json[std::string{sum.name}] = counters.*sum.value;
    nlohmann::json& classes = json["classes"] = nlohmann::json::object();
    for (std::size_t i = 0; i < counters.classes.size(); ++i)
        if (const Counters::Class& one = counters.classes[i]; one.warps > 0)
            classes[std::string{op_class_names[i]}] = {one.warps, one.lanes};
}
inline void from_json(const nlohmann::json& json, Counters& counters) {
    const auto number = [](const nlohmann::json& value) {
        if (!value.is_number_unsigned()) throw nlohmann::json::type_error::create(302, "a count is none", &value);
        return value.get<std::uint64_t>();
    };
    for (const CounterSum& sum : counter_sums) counters.*sum.value = number(json.at(std::string{sum.name}));
    const nlohmann::json& classes = json.at("classes");
    for (std::size_t i = 0; i < counters.classes.size(); ++i)
        if (const auto one = classes.find(std::string{op_class_names[i]}); one != classes.end())
            counters.classes[i] = {number(one->at(0)), number(one->at(1))};
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CountedLaunch, entry, grid, block, shared_bytes, repeat, resources, blocks, interior,
                                   edge)

}  // namespace emulator
}  // namespace autotune
#endif

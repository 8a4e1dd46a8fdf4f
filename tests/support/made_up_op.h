#ifndef AUTOTUNE_TESTS_MADE_UP_OP_H
#define AUTOTUNE_TESTS_MADE_UP_OP_H

#include <string>
#include <vector>

#include "tuner/model/instance.h"

namespace autotune {

/// An op that exists for tests of searches: one variant "k" whose parameters take 0 .. count - 1, all valid.
inline Op made_up_op(const std::vector<std::pair<std::string, int>>& parameters) {
    Op op;
    op.name = "made_up";
    op.fields.push_back(
        {.name = "n", .kind = Field::Kind::dim, .near = true, .fallback = Expression::constant(std::int64_t{64})});
    op.tensors.push_back({.name = "y",
                          .role = Expression::constant(std::string{"out"}),
                          .dtype = Expression::constant(std::string{"f32"}),
                          .shape = {Expression::parse("n")}});
    Variant variant;
    variant.name = "k";
    variant.source = "k.cu";
    variant.entry = "k";
    for (const auto& [name, count] : parameters) {
        Parameter parameter{.name = name, .fallback = Expression::constant(std::int64_t{0})};
        for (std::int64_t i = 0; i < count; ++i) parameter.values.emplace_back(i);
        variant.parameters.push_back(parameter);
    }
    LaunchSpec launch{.entry = "k", .source = "k.cu"};
    launch.grid = {Expression::parse("1")};
    launch.block = {Expression::parse("32")};
    launch.arguments.push_back({.expression = Expression::parse("y")});
    variant.launches.push_back(launch);
    op.variants.push_back(variant);
    op.files["k.cu"] = "extern \"C\" __global__ void k(float* y) {}\n";
    return op;
}

inline DeviceLimits made_up_limits() {
    return {.cc = 90,
            .sm_count = 132,
            .max_shared = 232448,
            .shared_per_sm = 233472,
            .threads_per_sm = 2048,
            .blocks_per_sm_limit = 32};
}

/// The value of an integer parameter.
inline double number(const Config& config, std::string_view parameter) {
    return static_cast<double>(std::get<std::int64_t>(config[parameter]));
}

}  // namespace autotune
#endif

#include "tuner/model/builtin_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "autotune/error.h"
#include "tuner/model/space.h"

namespace autotune {
namespace {

struct Part {
    const char* name;
    DeviceLimits limits;
};

/// One part of each capability that the templates claim, with its own limits.
std::vector<Part> parts() {
    const auto limits = [](int cc, int sm_count, int max_shared, int shared_per_sm, int threads_per_sm) {
        return DeviceLimits{.cc = cc,
                            .sm_count = sm_count,
                            .max_shared = max_shared,
                            .shared_per_sm = shared_per_sm,
                            .threads_per_sm = threads_per_sm,
                            .l2_bytes = 4 << 20,
                            .memory_bytes = std::int64_t{16} << 30};
    };
    return {{"T4", limits(75, 40, 65536, 65536, 1024)},      {"A100", limits(80, 108, 166912, 167936, 2048)},
            {"A10", limits(86, 72, 101376, 102400, 1536)},   {"L4", limits(89, 58, 101376, 102400, 1536)},
            {"H100", limits(90, 132, 232448, 233472, 2048)}, {"RTX 5090", limits(120, 170, 101376, 102400, 1536)}};
}

/// Extents that people use and those beside them: ragged, prime, one, and beyond 16 bits.
constexpr std::int64_t extents[] = {1,    2,    3,    7,    8,     15,    16,    17,    31,    33,
                                    40,   64,   65,   72,   80,    96,    127,   128,   129,   160,
                                    192,  255,  256,  257,  512,   1000,  1023,  1024,  1025,  2048,
                                    4096, 4097, 5000, 8192, 11008, 16384, 65535, 65536, 65537, 131072};

class Problems {
public:
    explicit Problems(std::uint64_t seed) : random_{seed} {}

    /// A legal problem, or nullopt when this draw is none.
    std::optional<Instance> draw(const Op& op, const DeviceLimits& limits) {
        std::vector<std::pair<std::string, Value>> given;
        for (const Field& field : op.fields) {
            if (!field.from.empty() || field.kind == Field::Kind::text || random_() % 4 == 0) continue;
            given.emplace_back(field.name, value_of(field));
        }
        Binding binding;
        for (const Tensor& tensor : op.tensors)
            if (random_() % 4 == 0) binding.align.emplace_back(tensor.name, 2 << random_() % 4);
        try {
            return Instance::make(op, given, limits, binding);
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), Error::Kind::usage);
            return std::nullopt;
        }
    }

    std::size_t below(std::size_t limit) { return random_() % limit; }

private:
    Value value_of(const Field& field) {
        if (field.kind == Field::Kind::flag) return random_() % 2 == 0;
        if (field.kind == Field::Kind::choice) return field.choices[random_() % field.choices.size()];
        return extents[random_() % std::size(extents)];
    }

    std::mt19937_64 random_;
};

/// Of the tensors and of a config's scratch: a problem beyond the device's memory needs no kernel.
double bytes_of(const Instance& instance, const Variant& variant, const Config& config) {
    double bytes = 0;
    for (const BoundTensor& tensor : instance.tensors())
        bytes += tensor.present ? static_cast<double>(tensor.bytes) : 0;
    const auto scope = instance.scope(&config);
    for (const Scratch& scratch : variant.scratch) {
        double size = 4;
        for (const Expression& extent : scratch.shape) size *= extent.evaluate_double(*scope);
        bytes += size;
    }
    return bytes;
}

// Goal: the last variant of an op, and so its default, holds for every legal problem on every device.
// Method: random legal problems (seed written here) that fit in 16 GB with their scratch, on a part of each capability.
TEST(BuiltinOps, HaveADefaultForEveryLegalProblemOnEveryDevice) {
    Problems problems{11};
    for (const Op& op : builtin_ops())
        for (const Part& part : parts()) {
            int drawn = 0;
            for (int round = 0; round < 400 && drawn < 60; ++round) {
                const auto instance = problems.draw(op, part.limits);
                if (!instance) continue;
                const std::string where = op.name + " " + instance->problem().text() + " on " + part.name;
                const auto last = instance->defaults_of(op.variants.back());
                ASSERT_TRUE(last) << where;
                if (bytes_of(*instance, op.variants.back(), *last) > 16e9) continue;
                ++drawn;
                EXPECT_EQ(instance->objection(*last), std::nullopt) << where;
                const Config config = instance->default_config();
                EXPECT_FALSE(instance->launches(config, 1).launches.empty()) << where;
            }
            EXPECT_GE(drawn, 20) << op.name << ": hardly a draw was legal";
        }
}

// Goal: whatever a space holds can be compiled and launched as far as the model goes.
// Method: random configs of the default problem and of random ones; sources and launches must come out, and configs
// that differ must differ in what reaches the compiler or in their launches.
// Goal: long rows are scanned by the ring where it was measured to win, with tiles of 16-bit elements that do not
// spill, and by what they were scanned by elsewhere.
TEST(BuiltinOps, ScanLongRowsByTheRing) {
    const Op& scan = *std::ranges::find(builtin_ops(), "scan", &Op::name);
    const auto default_of = [&](const char* part_name, std::int64_t rows, std::int64_t n, const char* dtype,
                                Binding binding = {}) {
        const std::vector<Part> all = parts();
        const DeviceLimits limits =
            std::ranges::find_if(all, [&](const Part& one) { return std::string{one.name} == part_name; })->limits;
        return Instance::make(scan, {{"rows", rows}, {"n", n}, {"dtype", std::string{dtype}}}, limits, binding)
            .default_config()
            .text();
    };
    constexpr std::int64_t million = 1 << 20;
    for (const char* const dtype : {"f32", "i32"})
        EXPECT_EQ(default_of("H100", 1, 64 * million, dtype), "ring WARPS=8 UNROLL=8 SLOTS=7 BLOCKS=1");
    for (const char* const dtype : {"f16", "bf16"})
        EXPECT_EQ(default_of("H100", 8, 2 * million, dtype), "ring WARPS=8 UNROLL=4 SLOTS=14 BLOCKS=1");
    for (const std::string& by_tiles :
         {default_of("H100", 1, 8 * million - 4, "f32"), default_of("H100", 1, 16 * million - 8, "bf16"),
          default_of("H100", 9, 8 * million, "f32"), default_of("A100", 1, 64 * million, "f32"),
          default_of("RTX 5090", 1, 64 * million, "f32"),
          default_of("H100", 1, 64 * million, "f32", {.align = {{"y", 8}}})})
        EXPECT_TRUE(by_tiles.starts_with("tiles ")) << by_tiles;
}

TEST(BuiltinOps, TurnEveryValidConfigIntoSourcesAndLaunches) {
    Problems problems{12};
    for (const Op& op : builtin_ops())
        for (const Part& part : parts()) {
            const auto instance = Instance::make(op, {}, part.limits);
            const Space space = Space::make(instance);
            ASSERT_GT(space.size(), 0u) << op.name << " on " << part.name;
            EXPECT_EQ(space.config(space.default_number()), instance.default_config());
            for (int round = 0; round < 20; ++round) {
                const Config config = space.config(problems.below(space.size()));
                EXPECT_EQ(instance.objection(config), std::nullopt) << config.text();
                const auto sources = instance.sources(config);
                ASSERT_FALSE(sources.empty()) << config.text();
                for (const SourceSpec& source : sources) {
                    EXPECT_FALSE(source.text.empty()) << source.source;
                    EXPECT_FALSE(source.entries.empty()) << source.source;
                }
                for (const Launch& launch : instance.launches(config, 1).launches) {
                    EXPECT_LE(launch.block.x * launch.block.y * launch.block.z, 1024u) << config.text();
                    EXPECT_LE(launch.shared_bytes, static_cast<std::uint32_t>(part.limits.max_shared)) << config.text();
                }
            }
        }
}

// Goal: a constraint that gets lost, or one too many, is noticed.
// Method: the exact counts of each space, by claim, against the file kept beside this test; AUTOTUNE_UPDATE_GOLDEN=1
// writes it anew, and the difference is for the author of the change to read.
TEST(BuiltinOps, HaveSpacesOfTheKnownSizes) {
    std::ostringstream counts;
    const std::vector<Part> all = parts();
    for (const Op& op : builtin_ops())
        for (const Part& part : {all[0], all[2], all[4]}) {
            const Space space = Space::make(Instance::make(op, {}, part.limits));
            for (const auto& variant : space.variants()) {
                counts << op.name << ' ' << part.name << ' ' << variant.variant->name << ": " << variant.count << " of "
                       << variant.raw << (variant.unmet.empty() ? "" : ", needs are not met");
                for (const auto& [claim, raw] : variant.rejections) counts << "; " << raw << " not: " << claim;
                counts << '\n';
            }
        }
    const std::string path = AUTOTUNE_SOURCE_DIR "/tests/model/golden/space_counts.txt";
    if (std::getenv("AUTOTUNE_UPDATE_GOLDEN")) std::ofstream{path} << counts.str();
    std::stringstream known;
    known << std::ifstream{path}.rdbuf();
    EXPECT_EQ(counts.str(), known.str());
}

TEST(BuiltinOps, JudgeEachOutputByABoundThatCanFail) {
    for (const Op& op : builtin_ops()) {
        const auto instance = Instance::make(op, {}, parts().back().limits);
        for (const BoundTensor& tensor : instance.tensors()) {
            if (tensor.role == Role::in || !tensor.present) continue;
            const Bound bound = instance.bound_of(tensor.name);
            EXPECT_TRUE(instance.exact(tensor.name) || (bound.of_value > 0 && bound.of_value < 0.1)) << op.name;
            EXPECT_LT(bound.of_magnitude, 0.1) << op.name;
        }
        EXPECT_GT(instance.flops(), 0) << op.name;
        EXPECT_GT(instance.bytes(), 0) << op.name;
    }
}

TEST(BuiltinOps, KeepTheirCheckProblemsLegal) {
    for (const Op& op : builtin_ops())
        for (const auto& problem : op.check_problems)
            EXPECT_NO_THROW(Instance::make(op, problem, parts().back().limits)) << op.name;
}

TEST(BuiltinOps, HaveDeviceReferencesThatLaunch) {
    for (const Op& op : builtin_ops()) {
        if (op.reference.launches.empty()) continue;
        const auto instance = Instance::make(op, {}, parts().back().limits);
        EXPECT_FALSE(instance.reference_launches().launches.empty()) << op.name;
        for (const SourceSpec& source : instance.reference_sources())
            EXPECT_FALSE(source.text.empty()) << source.source;
    }
}

}  // namespace
}  // namespace autotune

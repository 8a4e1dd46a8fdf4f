#include "tuner/model/space.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "autotune/error.h"
#include "tests/model/ops.h"
#include "tuner/model/bound_expression.h"

namespace autotune {
namespace {

using test::fields, test::whole;

double rejected(const Space::VariantSpace& part) {
    double sum = 0;
    for (const auto& rejection : part.rejections) sum += rejection.raw_configs;
    return sum;
}

/// Every raw config of a variant, in the order of the space.
std::vector<Config> raw_configs(const Variant& variant) {
    std::vector<Config> out{{variant.name, {}}};
    for (const Parameter& parameter : variant.parameters) {
        std::vector<Config> longer;
        for (const Config& config : out)
            for (const Value& value : parameter.values) {
                longer.push_back(config);
                longer.back().values.emplace_back(parameter.name, value);
            }
        out = std::move(longer);
    }
    return out;
}

/// The valid configs, one by one through Instance::objection().
std::vector<std::string> brute_force(const Instance& instance) {
    std::vector<std::string> out;
    for (const Variant& variant : instance.op().variants)
        for (const Config& config : raw_configs(variant))
            if (!instance.objection(config)) out.push_back(config.text());
    return out;
}

std::vector<std::string> texts(const Space& space) {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < space.size(); ++i) out.push_back(space.config(i).text());
    return out;
}

TEST(Space, CountsTheWorkedExampleExactly) {
    const Op op = test::gemm_op();
    const auto instance = Instance::make(op, fields("k=64"), test::hopper());
    const Space space = Space::make(instance);
    // BM, BN and STAGES are free: 12; BK=32 has two steps for 1 or 2 splits, BK=64 one step for one.
    ASSERT_EQ(space.variants().size(), 2u);
    EXPECT_EQ(space.variants()[0].raw, 96);
    EXPECT_EQ(space.variants()[0].count, 36u);
    ASSERT_EQ(space.variants()[0].rejections.size(), 1u);
    EXPECT_EQ(space.variants()[0].rejections[0].claim, "each split has a step");
    EXPECT_EQ(space.variants()[0].rejections[0].raw_configs, 60);
    EXPECT_EQ(space.size(), 37u);
    EXPECT_EQ(space.raw_size(), 97);
    EXPECT_EQ(space.config(36).text(), "naive");
    EXPECT_EQ(space.config(space.default_number()), instance.default_config());
    EXPECT_EQ(texts(space), brute_force(instance));
}

TEST(Space, CountsLaunchLimitsUnderTheirOwnClaims) {
    const Op op = test::gemm_op();
    DeviceLimits limits = test::hopper();
    limits.max_shared = 65536;
    const auto instance = Instance::make(op, {}, limits);
    const Space space = Space::make(instance);
    ASSERT_EQ(space.variants()[0].rejections.size(), 1u);
    EXPECT_EQ(space.variants()[0].rejections[0].claim, "shared memory fits");
    EXPECT_EQ(static_cast<double>(space.variants()[0].count) + rejected(space.variants()[0]), 96);
    EXPECT_EQ(texts(space), brute_force(instance));
}

TEST(Space, SaysWhyNeedsLeavesAVariantOut) {
    const Op op = test::gemm_op();
    const Space space = Space::make(Instance::make(op, {}, test::turing()));
    EXPECT_EQ(space.variants()[0].count, 0u);
    EXPECT_NE(space.variants()[0].unmet.find("cc >= 80"), std::string::npos);
    EXPECT_NE(space.variants()[0].unmet.find("cc=75"), std::string::npos);
    EXPECT_EQ(space.size(), 1u);
    EXPECT_EQ(space.config(0).text(), "naive");
}

TEST(Space, IsEmptyAndSaysWhyWhenNothingIsValid) {
    Op op = test::softmax_op();
    op.variants.pop_back();
    op.variants[0].constraints.push_back({"never", test::expression("rows < 0")});
    const Space space = Space::make(Instance::make(op, {}, test::hopper()));
    EXPECT_EQ(space.size(), 0u);
    ASSERT_EQ(space.variants()[0].rejections.size(), 1u);
    EXPECT_EQ(space.variants()[0].rejections[0].claim, "never");
    EXPECT_EQ(space.variants()[0].rejections[0].raw_configs, 20);
}

TEST(Space, HasNoConfigBeyondItsSize) {
    const Op op = test::gemm_op();
    const auto instance = Instance::make(op, fields("m=64 n=64 k=64"), test::hopper());
    const Space space = Space::make(instance);
    EXPECT_NO_THROW(space.config(space.size() - 1));
    EXPECT_THROW(space.config(space.size()), Error);
    EXPECT_THROW(Space::of(instance, {}).config(0), Error);
}

TEST(Space, FindsEachOfItsConfigsAndNoOther) {
    const Op op = test::gemm_op();
    const auto instance = Instance::make(op, fields("k=64"), test::hopper());
    const Space space = Space::make(instance);
    for (std::size_t i = 0; i < space.size(); ++i) {
        EXPECT_EQ(space.find(space.config(i)), i);
        Config turned = space.config(i);
        std::ranges::reverse(turned.values);
        EXPECT_EQ(space.find(turned), i) << "the order of values is no part of a config";
    }
    EXPECT_EQ(space.find(instance.resolve(config_from_text("splitk SPLITS=8"))), std::nullopt);
    EXPECT_EQ(space.find({"splitk", {}}), std::nullopt);
    EXPECT_EQ(space.find({"tiled", {}}), std::nullopt);
}

/// Neighbours by the words of the header, from the rows of the whole space.
class Neighbours {
public:
    explicit Neighbours(const Space& space) : space_{space}, occurring_(space.variants().size()) {
        for (std::size_t i = 0; i < space.size(); ++i) {
            rows_.push_back(space.row(i));
            variants_.push_back(space.variant_of(i));
            auto& values = occurring_[variants_[i]];
            values.resize(rows_[i].size());
            for (std::size_t p = 0; p < rows_[i].size(); ++p) values[p].insert(rows_[i][p]);
        }
    }

    std::set<std::size_t> of(std::size_t i, Space::Neighbourhood kind) const {
        std::set<std::size_t> out;
        for (std::size_t j = 0; j < rows_.size(); ++j)
            if (i != j && near(i, j, kind)) out.insert(j);
        return out;
    }

    void expect_all() const {
        for (std::size_t i = 0; i < rows_.size(); ++i)
            for (const auto kind : {Space::Neighbourhood::hamming, Space::Neighbourhood::adjacent,
                                    Space::Neighbourhood::strictly_adjacent}) {
                const std::set<std::size_t> expected = of(i, kind);
                const auto got = space_.neighbours(i, kind);
                ASSERT_EQ(std::set<std::size_t>(got.begin(), got.end()), expected) << space_.config(i).text();
                ASSERT_EQ(got.size(), expected.size());
                if (kind == Space::Neighbourhood::hamming || got.empty()) continue;
                ASSERT_EQ(space_.neighbours(i, kind, 1), std::vector<std::size_t>{*expected.begin()})
                    << "no more than asked";
            }
    }

private:
    bool near(std::size_t i, std::size_t j, Space::Neighbourhood kind) const {
        if (variants_[i] != variants_[j]) return false;
        int differ = 0;
        for (std::size_t p = 0; p < rows_[i].size(); ++p) {
            const auto [low, high] = std::minmax({rows_[i][p], rows_[j][p]});
            differ += low != high;
            if (kind == Space::Neighbourhood::strictly_adjacent && high - low > 1) return false;
            const std::set<std::uint16_t>& values = occurring_[variants_[i]][p];
            if (kind == Space::Neighbourhood::adjacent && low != high && *values.upper_bound(low) != high) return false;
        }
        return kind != Space::Neighbourhood::hamming || differ == 1;
    }

    const Space& space_;
    std::vector<Space::Row> rows_;
    std::vector<std::size_t> variants_;
    std::vector<std::vector<std::set<std::uint16_t>>> occurring_;  ///< by variant and parameter
};

// gemm with a value that never occurs between two that do, so that adjacent and strictly adjacent differ.
TEST(Space, HasNeighboursInsideTheValidSetOnly) {
    Op op = test::gemm_op();
    op.variants[0].constraints.push_back({"not three stages", test::expression("STAGES != 3")});
    const auto instance = Instance::make(op, fields("k=64"), test::hopper());
    const Space space = Space::make(instance);
    Neighbours{space}.expect_all();
}

TEST(Space, OfGivenConfigsIsInTheSameOrder) {
    const Op op = test::gemm_op();
    const auto instance = Instance::make(op, {}, test::hopper());
    const std::vector<Config> configs{{"naive", {}},
                                      instance.resolve(config_from_text("splitk BM=128 SPLITS=1")),
                                      instance.resolve(config_from_text("splitk BM=64 SPLITS=1")),
                                      {"naive", {}}};
    const Space space = Space::of(instance, configs);
    EXPECT_EQ(texts(space), (std::vector<std::string>{configs[2].text(), configs[1].text(), "naive"}));
    EXPECT_EQ(space.find(configs[1]), 1u);
    EXPECT_EQ(space.default_number(), 0u);
    const std::vector<Config> bad{{"splitk", {}}};
    EXPECT_THROW(Space::of(instance, bad), Error);
}

TEST(Space, RefusesToGrowBeyondItsLimit) {
    const Op op = test::softmax_op();
    const auto instance = Instance::make(op, {}, test::hopper());
    EXPECT_EQ(Space::make(instance, 20).variants()[0].count, 20u);
    try {
        Space::make(instance, 19);
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(std::string{error.what()}.find("variant 'online' of 'softmax' has more than 19 valid configs"),
                  std::string::npos);
    }
}

// Goal: a space of 10^12 points that no cut and no sharing makes small ends in a message, not in hours.
// Method: a claim that names every parameter, and asks something else of the rest after each value.
TEST(Space, RefusesToSearchForConfigsBeyondItsLimit) {
    Op op = test::softmax_op();
    op.variants.resize(1);
    Variant& variant = op.variants[0];
    const auto whole = [](int count) {
        std::vector<Value> values;
        for (int i = 1; i <= count; ++i) values.emplace_back(std::int64_t{i});
        return values;
    };
    std::string sum = "0";
    std::int64_t weight = 1;
    for (const char* name : {"A", "B", "C", "D", "E", "F"}) {
        variant.parameters.push_back(
            {.name = name, .values = whole(100), .fallback = Expression::constant(std::int64_t{1}), .about = {}});
        sum += fmt::format(" + {} * {}", weight *= 101, name);
    }
    variant.constraints.push_back({.claim = "a needle", .holds = Expression::parse("(" + sum + ") % 1000003 == 7")});
    const auto instance = Instance::make(op, {}, test::hopper());
    try {
        Space::make(instance, 1000, 100'000);
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(std::string{error.what()}.find("variant 'online' of 'softmax' takes more than 100000 steps"),
                  std::string::npos)
            << error.what();
    }
}

TEST(Space, CutsASubtreeAtTheFirstParameterThatDecides) {
    Op op = test::softmax_op();
    Variant& variant = op.variants[0];
    variant.parameters.clear();
    for (const char* name : {"A", "B", "C", "D", "E", "F"}) {
        Parameter parameter;
        parameter.name = name;
        for (std::int64_t value = 0; value < 100; ++value) parameter.values.emplace_back(value);
        variant.parameters.push_back(parameter);
    }
    variant.constraints = {{"A is small", test::expression("A < 2")},
                           {"B follows A", test::expression("B == A")},
                           {"the rest is fixed", test::expression("C == 0")},
                           {"D and B are small", test::expression("D + B < 3")},
                           {"a prime", test::expression("D * E * F == 97")}};
    variant.launches[0].block = test::expressions({"128"});
    const Space space = Space::make(Instance::make(op, {}, test::hopper()));
    EXPECT_EQ(space.variants()[0].raw, 1e12);
    // (D, E, F): one of them is 97 and the others 1; D < 3 - B leaves D = 1, so E or F is 97, for B = 0 and 1.
    EXPECT_EQ(space.variants()[0].count, 4u);
    EXPECT_EQ(static_cast<double>(space.variants()[0].count) + rejected(space.variants()[0]), 1e12);
    EXPECT_EQ(space.variants()[0].rejections[0].raw_configs, 98e10);
}

/// A made-up op with random parameters, lets, constraints and launches.
class RandomOp {
public:
    explicit RandomOp(std::uint64_t seed) : random_{seed} {}

    Op make() {
        Op op = test::softmax_op();
        op.variants.clear();
        for (const char* name : {"first", "second"}) op.variants.push_back(variant(name));
        names_ = {"rows", "cols", "cc", "P0"};
        op.lets = {{"l0", test::expression(number(2))}, {"l1", test::expression("l0 + " + number(1))}};
        return op;
    }

private:
    std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

    std::string number(int depth) {
        if (depth == 0) return below(3) == 0 ? std::to_string(below(9)) : names_[below(names_.size())];
        static const char* const operators[] = {" + ", " - ", " * ", " // ", " % "};
        const std::string a = number(depth - 1), b = number(depth - 1);
        switch (below(8)) {
            case 0:
                return "min(" + a + ", " + b + ")";
            case 1:
                return "ceil_div(" + a + ", " + b + ")";
            case 2:
                return "(" + truth(depth - 1) + " ? " + a + " : " + b + ")";
            default:
                return "(" + a + operators[below(5)] + b + ")";
        }
    }

    std::string truth(int depth) {
        static const char* const relations[] = {" < ", " <= ", " == ", " != ", " >= "};
        if (depth <= 0) return number(0) + relations[below(5)] + number(0);
        switch (below(6)) {
            case 0:
                return "(" + truth(depth - 1) + " and " + truth(depth - 1) + ")";
            case 1:
                return "(" + truth(depth - 1) + " or " + truth(depth - 1) + ")";
            case 2:
                return "not " + truth(depth - 1);
            case 3:
                return number(depth) + " in [1, 2, " + number(0) + "]";
            case 4:
                return "1 < " + number(depth) + relations[below(5)] + number(depth - 1);
            default:
                return number(depth) + relations[below(5)] + number(depth);
        }
    }

    Variant variant(const char* name) {
        Variant out;
        out.name = name;
        out.source = "softmax.cu";
        out.entry = "f";
        names_ = {"rows", "cols", "l0", "l1", "nowhere"};
        for (std::uint64_t i = 0, count = 1 + below(4); i < count; ++i) {
            Parameter parameter;
            parameter.name = "P" + std::to_string(i);
            for (std::uint64_t v = 0, values = 1 + below(5); v < values; ++v)
                parameter.values.emplace_back(static_cast<std::int64_t>(v * (1 + below(3))));
            std::ranges::sort(parameter.values);
            parameter.values.erase(std::unique(parameter.values.begin(), parameter.values.end()),
                                   parameter.values.end());
            out.parameters.push_back(parameter);
            names_.push_back(parameter.name);
            names_.push_back(parameter.name);
        }
        for (std::uint64_t i = 0, count = below(4); i < count; ++i)
            out.constraints.push_back({"claim " + std::to_string(i), test::expression(truth(2))});
        LaunchSpec launch;
        launch.grid = test::expressions({"max(1, " + number(1) + ")"});
        launch.block = test::expressions({"64", "max(" + number(1) + ", 1)"});
        launch.shared = test::expression("abs(" + number(2) + ") * 4096");
        if (below(2)) launch.when = test::expression(truth(1));
        out.launches = {launch};
        return out;
    }

    std::mt19937_64 random_;
    std::vector<std::string> names_;
};

// Goal: the early-cutting, table-driven, folded enumeration means what the plain one means.
// Method: made-up ops (seeds written here), every raw config asked one by one.
TEST(Space, AgreesWithBruteForceOnMadeUpOps) {
    std::size_t valid = 0, raw = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        const Op op = RandomOp{seed}.make();
        const auto instance = Instance::make(op, {{"rows", whole(7)}, {"cols", whole(12)}}, test::hopper());
        const Space space = Space::make(instance);
        ASSERT_EQ(texts(space), brute_force(instance)) << "seed " << seed;
        for (const auto& part : space.variants())
            ASSERT_EQ(static_cast<double>(part.count) + rejected(part), part.raw) << "seed " << seed;
        valid += space.size();
        raw += static_cast<std::size_t>(space.raw_size());
    }
    EXPECT_GT(valid, 1000u);
    EXPECT_LT(valid, raw / 2) << "most of what is made up must be cut, or little is tested";
}

TEST(Space, HasTheNeighboursThatBruteForceFindsInMadeUpOps) {
    std::size_t looked_at = 0;
    for (std::uint64_t seed = 1; seed <= 400 && looked_at < 1500; ++seed) {
        const Op op = RandomOp{seed}.make();
        const auto instance = Instance::make(op, {{"rows", whole(7)}, {"cols", whole(12)}}, test::hopper());
        const Space space = Space::make(instance);
        if (space.size() > 150) continue;
        ASSERT_NO_FATAL_FAILURE(Neighbours{space}.expect_all()) << "seed " << seed;
        looked_at += space.size();
    }
    EXPECT_GE(looked_at, 1500U);
}

// Goal: folding and slots change nothing.
// Method: the same expressions with all names by text, and with some bound to slots.
TEST(BoundExpression, AgreesWithTheExpressionItWasMadeFrom) {
    const Op op = test::softmax_op();
    const auto instance = Instance::make(op, {}, test::hopper());
    const auto scope = instance.scope();
    const std::vector<std::string> slots{"S", "T"};
    const std::vector<std::pair<std::string, Expression>> lets{{"twice", test::expression("S * 2")}};
    for (const char* text :
         {"S + T * rows", "rows // (S - S)", "rows > 1 and S > 2", "S > 2 and rows // 0 == 1", "rows < 0 and nowhere",
          "nowhere or S", "S > 100 or nowhere", "1 < 0 < nowhere", "S in [1, 3, rows]", "rows ? S : nowhere",
          "S ? rows : nowhere", "twice + S", "align(x) + S", "dtype == 'bf16' and S == 3", "dtype + S",
          "min(S, rows, T) ** 2", "sizeof(dtype) * S"}) {
        const Expression expression = test::expression(text);
        const BoundExpression bound{expression, *scope, slots, lets};
        for (const std::int64_t s : {0, 3, 101}) {
            const Config config{"online", {{"S", whole(s)}, {"T", whole(5)}, {"twice", whole(2 * s)}}};
            const std::vector<Value> values{whole(s), whole(5)};
            const std::vector<Cell> cells{Cell::of(values[0]), Cell::of(values[1])};
            const Cell got = bound.evaluate(cells);
            const auto with_config = instance.scope(&config);
            try {
                const Value want = expression.evaluate(*with_config);
                ASSERT_FALSE(got.failed()) << text << ": " << explain(got);
                EXPECT_EQ(got.value(), want) << text;
            } catch (const EvaluationError& error) {
                ASSERT_TRUE(got.failed()) << text;
                EXPECT_EQ(explain(got), error.what()) << text;
            }
        }
    }
    EXPECT_EQ((BoundExpression{test::expression("rows + T"), *scope, slots, lets}).used(), 2u);
    EXPECT_EQ((BoundExpression{test::expression("twice"), *scope, slots, lets}).used(), 1u);
    EXPECT_EQ((BoundExpression{test::expression("rows < 0 and S"), *scope, slots, lets}).used(), 0u)
        << "S cannot matter";
}

TEST(BoundExpression, LetsThatGrowWithoutEndAreRefused) {
    Op op = test::softmax_op();
    const auto with_lets = [&](int count, const char* form) {
        op.lets = {{"l0", test::expression("VEC + rows")}};
        for (int i = 1; i <= count; ++i)
            op.lets.emplace_back("l" + std::to_string(i),
                                 test::expression(fmt::format(fmt::runtime(form), "l" + std::to_string(i - 1))));
        op.variants[0].constraints = {{"made up", test::expression("l" + std::to_string(count) + " > 0")}};
        return Instance::make(op, {}, test::hopper());
    };
    EXPECT_NO_THROW(Space::make(with_lets(10, "{0} + {0}")));
    EXPECT_THROW(Space::make(with_lets(40, "{0} + {0}")), Error) << "would take 2^40 parts";
    EXPECT_NO_THROW(Space::make(with_lets(60, "{0} + 1")));
    const Instance deep = with_lets(5000, "{0} + 1");
    EXPECT_THROW(Space::make(deep), Error) << "would recurse 5000 lets deep";
    EXPECT_THROW(deep.scope()->find("l5000"), EvaluationError);
}

TEST(BoundExpression, SplitsAtItsOutermostAndWhereALetHidesOneToo) {
    const Op op = test::softmax_op();
    const auto scope = Instance::make(op, {}, test::hopper()).scope();
    const std::vector<std::string> slots{"S", "T", "U"};
    const std::vector<std::pair<std::string, Expression>> lets{{"both", test::expression("S > 1 and T > 2")}};
    const BoundExpression bound{test::expression("both and rows > 0 and (U == 1 or S == 1)"), *scope, slots, lets};
    std::vector<std::uint64_t> used;
    for (const BoundExpression& part : bound.conjuncts()) used.push_back(part.used());
    EXPECT_EQ(used, (std::vector<std::uint64_t>{1, 2, 0, 5}))
        << "what stands first folds, what stands later keeps its turn";
}

}  // namespace
}  // namespace autotune

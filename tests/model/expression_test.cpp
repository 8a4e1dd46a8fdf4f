#include "tuner/model/expression.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>

namespace autotune {
namespace {

struct Names final : Scope {
    std::map<std::string, Value, std::less<>> values{{"m", std::int64_t{4096}},
                                                     {"k", std::int64_t{7}},
                                                     {"zero", std::int64_t{0}},
                                                     {"half", 0.5},
                                                     {"dtype", std::string{"bf16"}},
                                                     {"causal", true},
                                                     {"big", std::numeric_limits<std::int64_t>::max()}};
    const Value* find(std::string_view name) const override {
        const auto found = values.find(name);
        return found == values.end() ? nullptr : &found->second;
    }
    std::optional<std::int64_t> tensor_align(std::string_view name) const override {
        return name == "x" ? std::optional<std::int64_t>{8} : std::nullopt;
    }
    std::optional<bool> tensor_contiguous(std::string_view name) const override {
        return name == "x" ? std::optional{true} : std::nullopt;
    }
    std::optional<std::int64_t> tensor_sum(std::string_view name) const override {
        return name == "lens" ? std::optional<std::int64_t>{1000} : std::nullopt;
    }
};

Value of(std::string_view text) { return Expression::parse(text).evaluate(Names{}); }
Value whole(std::int64_t value) { return value; }

std::string fault_of(std::string_view text) {
    try {
        return "no fault but " + to_text(of(text));
    } catch (const EvaluationError& error) {
        return error.what();
    }
}

std::string parse_fault_of(std::string_view text) {
    try {
        Expression::parse(text);
        return "no fault";
    } catch (const ParseError& error) {
        return error.what() + std::string{" @"} + std::to_string(error.offset());
    }
}

TEST(Expression, BindsOperatorsInTheirOrder) {
    EXPECT_EQ(of("1 + 2 * 3"), whole(7));
    EXPECT_EQ(of("(1 + 2) * 3"), whole(9));
    EXPECT_EQ(of("10 - 4 - 3"), whole(3));
    EXPECT_EQ(of("100 // 7 % 5"), whole(4));
    EXPECT_EQ(of("-2 ** 2"), whole(-4));
    EXPECT_EQ(of("2 ** 3 ** 2"), whole(512));
    EXPECT_EQ(of("2 ** -1"), Value{0.5});
    EXPECT_EQ(of("not 1 == 2"), Value{true});
    EXPECT_EQ(of("1 + 1 == 2 and 3 > 2 or 1 // 0 == 0"), Value{true});
    EXPECT_EQ(of("false and false or true"), Value{true});
    EXPECT_EQ(of("false and (false or true)"), Value{false});
    EXPECT_EQ(of("0 ? 1 : 0 ? 2 : 3"), whole(3));
    EXPECT_EQ(of("1 ? 0 ? 4 : 5 : 6"), whole(5));
    EXPECT_EQ(of("1 > 0 ? 1 + 1 : 9"), whole(2));
    EXPECT_EQ(of("3 * -2"), whole(-6));
    EXPECT_EQ(of("- - 2"), whole(2));
}

TEST(Expression, FloorsQuotientsAndRemainders) {
    EXPECT_EQ(of("-7 // 2"), whole(-4));
    EXPECT_EQ(of("-7 % 2"), whole(1));
    EXPECT_EQ(of("7 // -2"), whole(-4));
    EXPECT_EQ(of("7 % -2"), whole(-1));
    EXPECT_EQ(of("-7.5 // 2"), Value{-4.0});
    EXPECT_EQ(of("ceil_div(7, 2)"), whole(4));
    EXPECT_EQ(of("ceil_div(-7, 2)"), whole(-3));
    EXPECT_EQ(of("ceil_div(8, 2)"), whole(4));
    EXPECT_EQ(of("round_up(100, 96)"), whole(192));
    EXPECT_EQ(of("round_up(96, 96)"), whole(96));
}

TEST(Expression, DividesExactlyWhereItCan) {
    EXPECT_EQ(of("m / 2"), whole(2048));
    EXPECT_EQ(of("7 / 2"), Value{3.5});
    EXPECT_EQ(of("1.0 / 4"), Value{0.25});
}

TEST(Expression, ChainsComparisons) {
    EXPECT_EQ(of("1 < k < 10"), Value{true});
    EXPECT_EQ(of("1 < k < 5"), Value{false});
    EXPECT_EQ(of("1 < 2 > 1"), Value{true});
    EXPECT_EQ(of("(1 < 2) < 2"), Value{true});
    EXPECT_EQ(of("3 > 2 > 1"), Value{true});  // read as ((3 > 2) > 1) it would be false
    EXPECT_EQ(of("1 == 1.0 == true"), Value{true});
    EXPECT_EQ(of("big > 9.2e18"), Value{true});
}

TEST(Expression, OrdersNothingBesideNan) {
    struct Nan final : Scope {
        const Value* find(std::string_view) const override { return &value; }
        Value value = std::nan("");
    };
    for (const char* text : {"x == 0", "0 == x", "x == x", "x < 1", "x >= 1", "0 < x < 1", "x in [0, 1]"})
        EXPECT_FALSE(Expression::parse(text).evaluate_bool(Nan{})) << text;
    EXPECT_TRUE(Expression::parse("x != 0").evaluate_bool(Nan{}));
}

TEST(Expression, FindsMembersOfLists) {
    EXPECT_EQ(of("k in [1, 7]"), Value{true});
    EXPECT_EQ(of("k in (1, 2,)"), Value{false});
    EXPECT_EQ(of("k not in [1, 2]"), Value{true});
    EXPECT_EQ(of("not k in [1, 2]"), Value{true});
    EXPECT_EQ(of("dtype in ('f16', \"bf16\")"), Value{true});
    EXPECT_EQ(of("k in []"), Value{false});
    EXPECT_EQ(of("0 < k in [7.0]"), Value{true});
}

TEST(Expression, LooksOnlyAtTheSideItTakes) {
    EXPECT_EQ(of("true or nowhere"), Value{true});
    EXPECT_EQ(of("false and nowhere"), Value{false});
    EXPECT_EQ(of("causal ? 1 : nowhere"), whole(1));
    EXPECT_EQ(of("1 > 2 > nowhere"), Value{false});
    EXPECT_EQ(fault_of("true and nowhere"), "unknown name 'nowhere'");
}

TEST(Expression, KnowsItsFunctions) {
    EXPECT_EQ(of("min(3, 1.5, 2)"), Value{1.5});
    EXPECT_EQ(of("max(3, 1, 2)"), whole(3));
    EXPECT_EQ(of("min(4)"), whole(4));
    EXPECT_EQ(of("abs(-3) + abs(2)"), whole(5));
    EXPECT_EQ(of("log2(m)"), whole(12));
    EXPECT_EQ(of("log2(half)"), Value{-1.0});
    EXPECT_EQ(of("pow2(1000)"), whole(1024));
    EXPECT_EQ(of("pow2(1024)"), whole(1024));
    EXPECT_EQ(of("sizeof(dtype) + sizeof('f64') + sizeof(f32)"), whole(14));
    EXPECT_EQ(of("align(x) + sum(lens)"), whole(1008));
    EXPECT_EQ(of("contiguous(x)"), Value{true});
    EXPECT_EQ(of("i32(m) + i64(4.0)"), whole(4100));
    EXPECT_EQ(of("f32(0.1)"), Value{static_cast<double>(0.1f)});
    EXPECT_EQ(of("0x10 + 1e2"), Value{116.0});
}

TEST(Expression, CountsBooleansAsNumbersAndNumbersAsTruth) {
    EXPECT_EQ(of("causal * 3"), whole(3));
    EXPECT_EQ(of("not 2"), Value{false});
    EXPECT_TRUE(Expression::parse("k").evaluate_bool(Names{}));
    EXPECT_FALSE(Expression::parse("zero").evaluate_bool(Names{}));
    EXPECT_EQ(Expression::parse("4.0").evaluate_integer(Names{}), 4);
    EXPECT_EQ(Expression::parse("dtype").evaluate_text(Names{}), "bf16");
}

TEST(Expression, SaysWhyThereIsNoValue) {
    EXPECT_EQ(fault_of("1 + m // zero"), "division by zero in 'm // zero'");
    EXPECT_EQ(fault_of("m % 0"), "division by zero in 'm % 0'");
    EXPECT_EQ(fault_of("1 / 0.0"), "division by zero in '1 / 0.0'");
    EXPECT_EQ(fault_of("ceil_div(1, zero)"), "division by zero in 'ceil_div(1, zero)'");
    EXPECT_EQ(fault_of("big + 1"), "64-bit overflow in 'big + 1'");
    EXPECT_EQ(fault_of("big * 2 > 0"), "64-bit overflow in 'big * 2'");
    EXPECT_EQ(fault_of("-big - 2"), "64-bit overflow in '-big - 2'");
    EXPECT_EQ(fault_of("2 ** 63"), "64-bit overflow in '2 ** 63'");
    EXPECT_EQ(fault_of("(-big - 1) // -1"), "64-bit overflow in '(-big - 1) // -1'");
    EXPECT_EQ(fault_of("1e308 * 10"), "no finite number comes out of '1e308 * 10'");
    EXPECT_EQ(fault_of("(-8) ** 0.5"), "no finite number comes out of '(-8) ** 0.5'");
    EXPECT_EQ(fault_of("dtype + 1"), "a word stands where a number is needed in 'dtype + 1'");
    EXPECT_EQ(fault_of("dtype == 1"), "a word and a number are compared in 'dtype == 1'");
    EXPECT_EQ(fault_of("dtype < 'f32'"), "words have no order in 'dtype < 'f32''");
    EXPECT_EQ(fault_of("sizeof(k)"), "not the name of an element type in 'sizeof(k)'");
    EXPECT_EQ(fault_of("log2(zero)"), "a positive number is needed in 'log2(zero)'");
    EXPECT_EQ(fault_of("i32(big)"), "beyond 32 bits in 'i32(big)'");
    EXPECT_EQ(fault_of("pow2(half)"), "not a whole number where one is needed in 'pow2(half)'");
    EXPECT_EQ(fault_of("align(y)"), "nothing is known here about tensor 'y'");
    EXPECT_THROW((void)Expression::parse("half").evaluate_integer(Names{}), EvaluationError);
    EXPECT_THROW((void)Expression::parse("k").evaluate_text(Names{}), EvaluationError);
    EXPECT_THROW((void)Expression{}.evaluate(Names{}), EvaluationError);
}

TEST(Expression, ReachesTheEndsOfTheIntegers) {
    EXPECT_EQ(of("-2 ** 62 * 2"), whole(std::numeric_limits<std::int64_t>::min()));
    EXPECT_EQ(of("-big - 1 + big"), whole(-1));
    EXPECT_EQ(of("(-1) ** 1001"), whole(-1));
    EXPECT_EQ(of("big // 1"), of("big"));
}

TEST(Expression, SaysWhereATextGoesWrong) {
    EXPECT_EQ(parse_fault_of(""), "the end where a value is expected @0");
    EXPECT_EQ(parse_fault_of("1 +"), "the end where a value is expected @3");
    EXPECT_EQ(parse_fault_of("(1 + 2"), "the end where ')' is expected @6");
    EXPECT_EQ(parse_fault_of("1 2"), "'2' where an operator or the end is expected @2");
    EXPECT_EQ(parse_fault_of("a && b"), "'&&' is not known here: write 'and' @2");
    EXPECT_EQ(parse_fault_of("a = b"), "'=' is not known here: write '==' @2");
    EXPECT_EQ(parse_fault_of("'abc"), "the quote is not closed @0");
    EXPECT_EQ(parse_fault_of("1 + 99999999999999999999"), "the integer does not fit in 64 bits @4");
    EXPECT_EQ(parse_fault_of("12abc"), "a number runs into something else @2");
    EXPECT_EQ(parse_fault_of("a in 3"), "'3' where a list such as [1, 2] after 'in' is expected @5");
    EXPECT_EQ(parse_fault_of("cail_div(1, 2)"), "there is no function 'cail_div'; did you mean 'ceil_div'? @0");
    EXPECT_EQ(parse_fault_of("2 * ceil_div(1)"), "'ceil_div' takes 2 arguments and is given 1 @4");
    EXPECT_EQ(parse_fault_of("align(a + b)"), "'+' where ')' is expected @8");
    EXPECT_EQ(parse_fault_of("align(1)"), "'1' where the name of a tensor is expected @6");
    EXPECT_EQ(parse_fault_of("a ? b"), "the end where ':' is expected @5");
    EXPECT_EQ(parse_fault_of("a @ b"), "'@' has no meaning here @2");
    EXPECT_EQ(parse_fault_of("\xc3\xa4"), "the byte 0xc3 has no meaning here @0");
}

TEST(Expression, LimitsDepthAndLength) {
    const auto nested = [](std::size_t levels) { return std::string(levels, '(') + "1" + std::string(levels, ')'); };
    EXPECT_EQ(Expression::parse(nested(99)).constant_value(), whole(1));
    EXPECT_EQ(parse_fault_of(nested(101)), "more than 100 levels deep @100");
    EXPECT_THROW(Expression::parse(std::string(200, '-') + "1"), ParseError);
    std::string chain = "1";
    for (int i = 0; i < 200; ++i) chain += " + 1";
    EXPECT_THROW(Expression::parse(chain), ParseError);
    EXPECT_EQ(parse_fault_of(std::string(5000, ' ')), "longer than 4096 bytes @4096");
}

TEST(Expression, ListsItsNamesOnceAndInOrder) {
    const auto expression = Expression::parse("k > m and min(align(a), align(b)) >= k ? contiguous(a) : m");
    EXPECT_EQ(expression.names(), (std::vector<std::string>{"k", "m"}));
    EXPECT_EQ(expression.tensors(), (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(expression.offset_of("m"), 4u);
    EXPECT_EQ(expression.offset_of("b"), 30u);
    EXPECT_TRUE(expression.uses("k"));
    EXPECT_FALSE(expression.uses("a"));
    EXPECT_EQ(Expression::parse(" lda ").bare_name(), "lda");
    EXPECT_EQ(Expression::parse("lda + 0").bare_name(), std::nullopt);
}

TEST(Expression, MakesConstantsThatReadBack) {
    for (const Value& value : {Value{true}, whole(-5), whole(std::numeric_limits<std::int64_t>::min()), Value{0.25},
                               Value{std::string{"f32"}}, Value{std::string{"it's"}}}) {
        const auto constant = Expression::constant(value);
        EXPECT_EQ(constant.constant_value(), value);
        EXPECT_EQ(Expression::parse(constant.text()).constant_value(), value) << constant.text();
    }
    EXPECT_EQ(Expression::parse("1 // 0").constant_value(), std::nullopt);
    EXPECT_EQ(Expression::parse("m").constant_value(), std::nullopt);
}

__extension__ typedef __int128 Wide;

/// A random integer expression with its value, computed beside the evaluator; nullopt where it has none.
struct Made {
    std::string text;
    std::optional<std::int64_t> value;
};

Made make(std::mt19937_64& random, int depth) {
    if (depth == 0 || random() % 8 == 0) {
        const auto value = static_cast<std::int64_t>(random() % 20);
        return {std::to_string(value), value};
    }
    const Made a = make(random, depth - 1), b = make(random, depth - 1);
    const bool both = a.value && b.value;
    const auto wide = [&](Wide value) {
        const bool fits =
            value >= std::numeric_limits<std::int64_t>::min() && value <= std::numeric_limits<std::int64_t>::max();
        return both && fits ? std::optional{static_cast<std::int64_t>(value)} : std::nullopt;
    };
    const Wide x = a.value.value_or(0), y = b.value.value_or(0);
    const auto joined = [&](std::string_view op) { return "(" + a.text + std::string{op} + b.text + ")"; };
    const auto floored = [&]() -> Wide {
        Wide quotient = x / y;
        while (quotient * y > x && y > 0) --quotient;
        while (quotient * y < x && y < 0) --quotient;
        return quotient;
    };
    switch (random() % 9) {
        case 0:
            return {joined(" + "), wide(x + y)};
        case 1:
            return {joined(" - "), wide(x - y)};
        case 2:
            return {joined(" * "), wide(x * y)};
        case 3:
            return {joined(" // "), y == 0 ? std::nullopt : wide(floored())};
        case 4:
            return {joined(" % "), y == 0 ? std::nullopt : wide(x - floored() * y)};
        case 5:
            return {joined(" <= "), wide(x <= y)};
        case 6:
            return {"max(" + a.text + ", " + b.text + ")", wide(x > y ? x : y)};
        case 7:
            return {joined(" and "), !a.value ? std::nullopt : x == 0 ? std::optional<std::int64_t>{0} : wide(y != 0)};
        default: {
            const Made c = make(random, depth - 1);
            return {"(" + a.text + " ? " + b.text + " : " + c.text + ")",
                    !a.value ? std::nullopt : (x != 0 ? b : c).value};
        }
    }
}

TEST(Expression, AgreesWithASecondEvaluatorOnRandomExpressions) {
    std::mt19937_64 random{7};
    int without_value = 0;
    for (int round = 0; round < 3000; ++round) {
        const Made made = make(random, 5);
        if (made.text.size() > 4000) continue;
        const auto expression = Expression::parse(made.text);
        std::optional<std::int64_t> got;
        try {
            got = expression.evaluate_integer(Names{});
        } catch (const EvaluationError&) {
            ++without_value;
        }
        ASSERT_EQ(got, made.value) << made.text;
    }
    EXPECT_GT(without_value, 100);
}

}  // namespace
}  // namespace autotune

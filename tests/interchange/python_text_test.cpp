#include "tuner/interchange/python_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace autotune {
namespace {

class Names final : public Scope {
public:
    explicit Names(std::vector<std::pair<std::string, Value>> values) : values_{std::move(values)} {}
    const Value* find(std::string_view name) const override {
        for (const auto& [key, value] : values_)
            if (key == name) return &value;
        return nullptr;
    }

private:
    std::vector<std::pair<std::string, Value>> values_;
};

bool holds(std::string_view python) {
    static const Names names{
        {{"a", std::int64_t{7}}, {"b", std::int64_t{2}}, {"flag", std::int64_t{0}}, {"word", std::string{"fast"}}}};
    return expression_from_python(python).evaluate_bool(names);
}

std::string listed(std::string_view python) {
    std::string out;
    for (const Value& value : values_from_python(python)) out += (out.empty() ? "" : " ") + to_text(value);
    return out;
}

std::string refused(std::string_view python, bool list) {
    try {
        if (list)
            values_from_python(python);
        else
            expression_from_python(python);
    } catch (const ParseError& error) {
        EXPECT_LE(error.offset(), python.size()) << python;
        return error.what();
    }
    ADD_FAILURE() << python << " is read";
    return {};
}

// Each as Python 3 itself answers with a = 7, b = 2, flag = 0, word = 'fast'.
TEST(PythonText, ConditionsMeanWhatTheyMeanInPython) {
    for (const char* python : {"a / b == 3.5",
                               "a // b == 3",
                               "-a // b == -4",
                               "a % b == 1",
                               "0.09 < 1.0 % 0.1 < 0.1",
                               "-0.1 < -1 % -0.1 < -0.09",
                               "1.0 // 0.1 == 9",
                               "5.5 // -2 == -3",
                               "-5.5 % 2 == 0.5",
                               "1.5 % -2 == -0.5",
                               "-a % b == 1",
                               "a ** b == 49",
                               "32 > a > b >= 2",
                               "not flag",
                               "flag or a",
                               "a and not flag",
                               "(a if flag else b) == 2",
                               "a == 7 if b == 2 else flag",
                               "int(a / b) == 3",
                               "int(-a / b) == -3",
                               "math.ceil(a / b) == 4",
                               "math.floor(a / b) == 3",
                               "pow(a, b) == 49",
                               "max(a, b, 9) == 9",
                               "min(a, b) == 2",
                               "abs(-a) == 7",
                               "a in [1, 7]",
                               "b not in (1, 3)",
                               "word == 'fast'",
                               "word != \"slow\"",
                               "p[\"a\"] * p['b'] <= 14",
                               "a > 1 && b > 1 || flag",
                               "!flag",
                               "True",
                               "False == 0",
                               "float(a) == 7.0",
                               "bool(a) == True",
                               "1e-3 < .5 < 2.5E+1",
                               "a*b<=14 and (flag==0 or b%4!=0)"})
        EXPECT_TRUE(holds(python)) << python;
    for (const char* python : {"a / b == 3", "flag", "32 > a > 7", "a if flag else flag", "word in ['slow']"})
        EXPECT_FALSE(holds(python)) << python;
}

TEST(PythonText, ListsHoldWhatTheyHoldInPython) {
    EXPECT_EQ(listed("[16, 32, 64]"), "16 32 64");
    EXPECT_EQ(listed("(1, 2,)"), "1 2");
    EXPECT_EQ(listed("[1, 2, 2, 1]"), "1 2") << "a value is a value once";
    EXPECT_EQ(listed("list(range(32, 161, 32))"), "32 64 96 128 160");
    EXPECT_EQ(listed("range(3)"), "0 1 2");
    EXPECT_EQ(listed("list(range(5, 0, -2))"), "5 3 1");
    EXPECT_EQ(listed("[2**i for i in range(5)]"), "1 2 4 8 16");
    EXPECT_EQ(listed("[i*32 for i in range(1, 9) if i % 3 != 0]"), "32 64 128 160 224 256");
    EXPECT_EQ(listed("list(i for i in [1, 2])"), "1 2");
    EXPECT_EQ(listed("[1] + [2*i for i in range(1, 3)]"), "1 2 4");
    EXPECT_EQ(listed("['row', \"col\"]"), "row col");
    EXPECT_EQ(listed("[True, False]"), "true false");
    EXPECT_EQ(listed("[0.5, -1, 1e3]"), "0.5 -1 1000.0");
    EXPECT_EQ(listed("[x if x > 2 else 9 for x in range(1, 5)]"), "9 3 4");
    EXPECT_EQ(listed("[]"), "");
}

TEST(PythonText, WhatIsNoneOfItIsRefusedAndNothingRuns) {
    EXPECT_NE(refused("__import__('os').system('true')", false).find("no function '__import__'"), std::string::npos);
    EXPECT_NE(refused("lambda p: p", false), "");
    EXPECT_NE(refused("open('x')", true), "");
    EXPECT_NE(refused("[i for i in range(10**12)]", true).find("values"), std::string::npos);
    EXPECT_NE(refused("[i for i in range(2**63)]", true), "");
    EXPECT_NE(refused("[1, 2", true).find("not closed"), std::string::npos);
    EXPECT_NE(refused("range(1, 9, 0)", true).find("step of range() is 0"), std::string::npos);
    EXPECT_NE(refused("[1 // 0]", true).find("division by zero"), std::string::npos);
    EXPECT_NE(refused("[[1, 2], [3]]", true), "");
    EXPECT_NE(refused("[i*j for i in range(2) for j in range(2)]", true).find("one 'for' in another"),
              std::string::npos);
    EXPECT_NE(refused("(a or b) == 1", false).find("true or false"), std::string::npos);
    EXPECT_NE(refused("a +", false), "");
    EXPECT_NE(refused("", false), "");
    EXPECT_NE(refused("", true), "");
    EXPECT_NE(refused("a if b", false).find("without 'else'"), std::string::npos);
    EXPECT_NE(refused("a == 'x\\ty'", false).find("a backslash in quotes is not known here"), std::string::npos)
        << refused("a == 'x\\ty'", false);
    EXPECT_NE(refused("['x\\ty']", true).find("backslash"), std::string::npos);
    EXPECT_NE(refused("[1, 2] * 3", true).find("'*' after a list: lists are joined by '+' alone"), std::string::npos)
        << refused("[1, 2] * 3", true);
    EXPECT_NE(refused("numpy.prod(a)", false).find("numpy.prod"), std::string::npos);
}

// Hostile texts end soon, in an error.
TEST(PythonText, NestingAndLengthHaveAnEnd) {
    EXPECT_NE(refused(std::string(100'000, '('), false), "");
    EXPECT_NE(refused(std::string(60, '[') + std::string(60, ']'), true), "");
    std::string growing = "a";
    for (int i = 0; i < 40; ++i) growing = "int(" + growing + ")";
    EXPECT_NE(refused(growing, false).find("too long"), std::string::npos);
    std::string many = "[0";
    for (int i = 1; i < 30'000; ++i) many += ",1";
    EXPECT_EQ(listed(many + "]"), "0 1");
    std::string choices = "a";
    for (int i = 0; i < 5000; ++i) choices = "a if a else " + choices;
    EXPECT_NE(refused(choices, false), "");
}

}  // namespace
}  // namespace autotune

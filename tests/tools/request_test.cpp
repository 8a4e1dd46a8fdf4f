#include "tools/request.h"

#include <gtest/gtest.h>

#include "autotune/error.h"
#include "tools/subcommands.h"

namespace autotune {
namespace {

Request parse(std::vector<const char*> words) {
    words.insert(words.begin(), "autotune");
    const Parsed parsed = parse_request(static_cast<int>(words.size()), words.data());
    EXPECT_TRUE(parsed.request.has_value());
    return parsed.request.value_or(Request{});
}

std::string message_of(std::vector<const char*> words) {
    try {
        parse(std::move(words));
    } catch (const Error& e) {
        EXPECT_EQ(e.kind(), Error::Kind::usage);
        return e.what();
    }
    return "no error";
}

TEST(Request, WithoutASubcommandItTunes) {
    const Request request = parse({"--op", "attention", "--gpu", "sm_86"});
    EXPECT_EQ(request.subcommand, "tune");
    EXPECT_EQ(request.op, "attention");
    EXPECT_EQ(request.gpu, "sm_86");
}

TEST(Request, OpAndProblemsMayStandAsWords) {
    const Request request = parse({"tune", "softmax", "rows=4,cols=8", "rows=16", "--budget", "60s,200"});
    EXPECT_EQ(request.op, "softmax");
    ASSERT_EQ(request.problems.size(), 2u);
    EXPECT_EQ(request.problems[0][1], (std::pair<std::string, Value>{"cols", std::int64_t{8}}));
    EXPECT_EQ(request.budget.seconds, 60.0);
    EXPECT_EQ(request.budget.trials, 200u);
}

TEST(Request, ATypoIsAnsweredWithTheNearestWord) {
    EXPECT_EQ(message_of({"--opp", "softmax"}), "there is no flag '--opp'; did you mean '--op'?");
    EXPECT_EQ(message_of({"tuen"}), "there is no subcommand 'tuen'; did you mean 'tune'?");
    EXPECT_EQ(message_of({"query", "--zzzzzzzz"}), "there is no flag '--zzzzzzzz' for query");
}

TEST(Request, AFlagOfAnotherSubcommandIsNotTaken) {
    EXPECT_EQ(message_of({"ops", "--budget=3"}), "there is no flag '--budget' for ops");
}

TEST(Request, AWordTooManyIsNamed) {
    EXPECT_EQ(message_of({"ops", "softmax", "gemm"}), "'gemm' is one word too many for ops");
}

TEST(Request, BadValuesAreNamed) {
    EXPECT_EQ(message_of({"tune", "softmax", "--problem", "rows"}), "'rows' in the problem 'rows' is no NAME=VALUE");
    EXPECT_EQ(message_of({"tune", "softmax", "--budget", "soon"}),
              "the budget 'soon' is neither a time nor a count of trials");
    EXPECT_EQ(message_of({"tune", "softmax", "--budget", "-3"}),
              "the budget '-3' is neither a time nor a count of trials");
    EXPECT_EQ(message_of({"tune", "softmax", "--effort", "great"}), "--effort is quick, normal, full, not 'great'");
}

TEST(Request, NumbersAreThoseThatAreMeant) {
    const Request request =
        parse({"tune", "softmax", "--seed", "7", "--workers", "3", "--trial-limit", "2.5", "--compile-limit", "20s"});
    EXPECT_EQ(request.seed, 7u);
    EXPECT_EQ(request.workers, 3u);
    EXPECT_EQ(request.trial_limit_s, 2.5);
    EXPECT_EQ(request.compile_limit_s, 20);
    for (const char* number : {"-1", "x", "0x10", "1.5", "99999999999999999999999"})
        EXPECT_EQ(message_of({"tune", "softmax", "--seed", number}),
                  std::string{"--seed takes a whole number from 0 to 9223372036854775807, not '"} + number + "'");
    EXPECT_EQ(message_of({"tune", "softmax", "--workers", "-1"}),
              "--workers takes a whole number from 0 to 1024, not '-1'");
    EXPECT_EQ(message_of({"why", "softmax", "--trial", "0"}),
              "--trial takes a whole number from 1 to 9223372036854775807, not '0'");
    for (const char* seconds : {"0", "-1", "nan", "inf", "1e300", "1e", "s", "2m"})
        EXPECT_EQ(message_of({"tune", "softmax", "--trial-limit", seconds}),
                  std::string{"--trial-limit takes seconds, more than 0 and at most 86400, not '"} + seconds + "'");
}

TEST(Request, AFlagGivenTwiceOrWithoutItsValueIsNamed) {
    EXPECT_EQ(message_of({"tune", "--op", "softmax", "--op", "gemm"}), "--op is given more than once");
    EXPECT_EQ(message_of({"tune", "softmax", "--db"}), "--db takes a value, and none is given");
}

TEST(Request, HelpNamesEverySubcommandAndTheExitCodes) {
    const char* words[] = {"autotune", "--help"};
    const std::string text = parse_request(2, words).text;
    for (const Subcommand& row : subcommands()) EXPECT_NE(text.find(row.name), std::string::npos) << row.name;
    EXPECT_NE(text.find("Exit codes: 0 done"), std::string::npos);
}

TEST(Request, EverySubcommandPrintsItsOwnHelp) {
    for (const Subcommand& row : subcommands()) {
        const std::string name{row.name};
        const char* words[] = {"autotune", name.c_str(), "--help"};
        const Parsed parsed = parse_request(3, words);
        EXPECT_FALSE(parsed.request.has_value());
        EXPECT_NE(parsed.text.find(std::string{row.about}), std::string::npos) << parsed.text;
        EXPECT_NE(parsed.text.find("Exit codes"), std::string::npos);
    }
}

}  // namespace
}  // namespace autotune

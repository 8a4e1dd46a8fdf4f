#include "tools/request.h"

#include <gtest/gtest.h>

#include "autotune/error.h"
#include "tools/db.h"
#include "tools/help.h"
#include "tools/session.h"
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

/// The commands that a page shows: its indented lines, and what stands in backticks, that begin with `autotune`.
std::vector<std::string> commands_of(std::string_view page) {
    std::vector<std::string> commands;
    for (const auto& [open, close] : {std::pair{"\n    autotune ", '\n'}, std::pair{"`autotune ", '`'}})
        for (std::size_t at = 0; (at = page.find(open, at)) != std::string_view::npos;) {
            const std::size_t begin = page.find("autotune ", at) + 9;
            at = page.find(close, begin);
            commands.emplace_back(page.substr(begin, at - begin));
        }
    return commands;
}

std::vector<std::string> words_of(const std::string& command) {
    std::vector<std::string> words{"autotune", ""};
    bool quoted = false;
    for (const char c : command) {
        if (c == '\'')
            quoted = !quoted;
        else if (c == ' ' && !quoted)
            words.emplace_back();
        else
            words.back() += c;
    }
    return words;
}

/// Configs that a request names are valid for its problem on an H100 or the like.
void expect_configs(const Request& request, std::string_view typed) {
    static const OpSet ops;
    constexpr DeviceLimits hopper{.cc = 90,
                                  .sm_count = 132,
                                  .max_shared = 232448,
                                  .shared_per_sm = 233472,
                                  .threads_per_sm = 2048,
                                  .blocks_per_sm_limit = 32};
    const bool file = request.against.find('=') == std::string::npos;
    for (const std::string& config : {request.config, file ? std::string{} : request.against}) {
        if (config.empty()) continue;
        const Op& op = ops.find(request.op);
        const auto [fields, binding] =
            split_problem(op, request.problems.empty() ? ProblemText{} : request.problems.front());
        const Instance instance = Instance::make(op, fields, hopper, binding);
        EXPECT_NO_THROW(complete_config(instance, config_from_text(config))) << typed;
    }
}

TEST(Request, AnEmptyValueIsNotTakenForNone) {
    EXPECT_EQ(message_of({"tune", "softmax", "--db", ""}), "--db takes a value, and an empty one is given");
    EXPECT_EQ(message_of({"query", "--where="}), "--where takes a value, and none is given");
}

TEST(Request, AnAnswerHasOneForm) {
    EXPECT_EQ(message_of({"query", "--json", "--csv"}), "--json and --csv are two forms of one answer");
    EXPECT_EQ(message_of({"query", "--csv", "--as", "cpp"}), "--csv and --as are two forms of one answer");
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

TEST(Request, AnOpThatIsGivenByItsFilesOrAsAChainNeedsNoName) {
    const Request request = parse({"tune", "--chain", "relu(x + bias)", "bias_rows=1"});
    EXPECT_EQ(request.op, "");
    ASSERT_EQ(request.problems.size(), 1u);
    EXPECT_EQ(request.problems[0][0].first, "bias_rows");
    EXPECT_EQ(request.chains, std::vector<std::string>{"relu(x + bias)"});
}

TEST(Request, ATypoIsAnsweredWithTheNearestWord) {
    EXPECT_EQ(message_of({"--opp", "softmax"}), "there is no flag '--opp'; did you mean '--op'?");
    EXPECT_EQ(message_of({"tuen"}), "there is no subcommand 'tuen'; did you mean 'tune'?");
    EXPECT_EQ(message_of({"query", "--zzzzzzzz"}), "there is no flag '--zzzzzzzz' for query");
}

TEST(Request, AnOpInTheSubcommandsPlaceIsToldTheWayToTuneIt) {
    const char* words[] = {"autotune", "softmax", "rows=4"};
    try {
        parse_request(3, words);
        FAIL() << "it was taken";
    } catch (const Error& e) {
        EXPECT_STREQ(e.what(), "'softmax' is an op, and a subcommand comes first");
        EXPECT_EQ(e.help(), "autotune tune softmax");
    }
}

TEST(Request, TheExampleOfEachSubcommandCanBeTypedAndItsConfigIsOne) {
    for (const Subcommand& row : subcommands()) {
        const std::vector<std::string> words = words_of(std::string{row.example.substr(9)});
        std::vector<const char*> pointers;
        for (const std::string& word : words) pointers.push_back(word.c_str());
        const Parsed parsed = parse_request(static_cast<int>(pointers.size()), pointers.data());
        ASSERT_TRUE(parsed.request.has_value()) << row.example;
        EXPECT_EQ(parsed.request->subcommand, row.name);
        expect_configs(*parsed.request, row.example);
    }
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
    EXPECT_EQ(message_of({"tune", "softmax", "--budget", "60s,200,3"}),
              "the budget '60s,200,3' has two counts of trials");
    EXPECT_EQ(message_of({"tune", "softmax", "--budget", "3,3"}), "the budget '3,3' has two counts of trials");
    EXPECT_EQ(message_of({"tune", "softmax", "--budget", "1s,1m"}), "the budget '1s,1m' has two times");
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

TEST(Request, ProblemsAndFoldersMayBeGivenSeveralTimesWithAWordBehindThem) {
    const Request request =
        parse({"space", "--problem", "rows=4", "--ops", "a", "--problem", "rows=8", "--ops", "b", "softmax"});
    EXPECT_EQ(request.problems.size(), 2u);
    EXPECT_EQ(request.ops, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(request.op, "softmax");
}

TEST(Request, AFlagGivenTwiceOrWithoutItsValueIsNamed) {
    EXPECT_EQ(message_of({"tune", "--op", "softmax", "--op", "gemm"}), "--op is given more than once");
    EXPECT_EQ(message_of({"tune", "softmax", "--db"}), "--db takes a value, and none is given");
}

TEST(Request, AFlagThatASubcommandHasNoUseForIsRefused) {
    EXPECT_EQ(message_of({"bench", "softmax", "--budget", "60s"}), "there is no flag '--budget' for bench");
    EXPECT_EQ(message_of({"check", "softmax", "--strategy", "random"}), "there is no flag '--strategy' for check");
    EXPECT_EQ(message_of({"build", "softmax", "--seed", "3"}), "there is no flag '--seed' for build");
}

TEST(Request, HelpNamesEverySubcommandAndTheExitCodes) {
    const char* words[] = {"autotune", "--help"};
    const std::string text = parse_request(2, words).text;
    for (const Subcommand& row : subcommands()) EXPECT_NE(text.find(row.name), std::string::npos) << row.name;
    EXPECT_NE(text.find("Exit codes: 0 done"), std::string::npos);
}

std::string help_on(std::vector<const char*> words) {
    words.insert(words.begin(), {"autotune", "help"});
    return parse_request(static_cast<int>(words.size()), words.data()).text;
}

TEST(Request, HelpOnATopicIsItsPageAndOnASubcommandItsFlags) {
    EXPECT_EQ(help_on({"exit-codes"}).substr(0, 12), "# Exit codes");
    EXPECT_NE(help_on({"bench"}).find("--against"), std::string::npos);
    for (const HelpPage& page : help_pages()) {
        const std::string topic{page.topic};
        EXPECT_EQ(help_on({topic.c_str()}), page.text);
        EXPECT_NE(help_on({}).find(topic), std::string::npos) << topic;
        EXPECT_FALSE(page.about().empty()) << topic;
    }
    EXPECT_EQ(message_of({"help", "buget"}), "there is no help on 'buget'; did you mean 'budget'?");
    EXPECT_EQ(message_of({"help", "ben"}), "there is no help on 'ben'");
    EXPECT_EQ(message_of({"help", "bench", "now"}), "'now' is one word too many for help");
}

TEST(Request, EveryCommandOfTheHelpPagesCanBeTyped) {
    std::size_t tried = 0;
    for (const HelpPage& page : help_pages())
        for (const std::string& command : commands_of(page.text)) {
            const std::vector<std::string> words = words_of(command);
            std::vector<const char*> pointers;
            for (const std::string& word : words) pointers.push_back(word == "N" ? "1" : word.c_str());
            try {
                const Parsed parsed = parse_request(static_cast<int>(pointers.size()), pointers.data());
                if (parsed.request) expect_configs(*parsed.request, command);
            } catch (const Error& e) {
                ADD_FAILURE() << page.topic << ": autotune " << command << ": " << e.what();
            }
            ++tried;
        }
    EXPECT_GT(tried, 10u);
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

TEST(Request, EveryVerbOfDbPrintsItsOwnHelpAndItsExampleCanBeTyped) {
    EXPECT_EQ(help_on({"db"}).substr(0, 12), "autotune db:");
    for (const DbVerb& verb : db_verbs()) {
        const std::string name{verb.name};
        EXPECT_NE(help_on({"db"}).find(std::string{verb.about}), std::string::npos) << name;
        const std::string text = help_on({"db", name.c_str()});
        EXPECT_NE(text.find(std::string{verb.about}), std::string::npos) << text;
        EXPECT_NE(text.find("Exit codes"), std::string::npos) << text;
        const std::vector<std::string> words = words_of(std::string{verb.example.substr(9)});
        std::vector<const char*> pointers;
        for (const std::string& word : words) pointers.push_back(word.c_str());
        const Parsed parsed = parse_request(static_cast<int>(pointers.size()), pointers.data());
        ASSERT_TRUE(parsed.request.has_value()) << verb.example;
        EXPECT_TRUE(parsed.request->db_run) << verb.example;
    }
}

TEST(Request, AVerbOfDbThatThereIsNotIsAnsweredWithTheNearest) {
    EXPECT_EQ(message_of({"db", "paths"}), "there is no verb 'paths' for db; did you mean 'path'?");
    EXPECT_EQ(message_of({"db", "--json"}), "a verb comes before '--json'");
    EXPECT_EQ(message_of({"db", "path", "--jsn"}), "there is no flag '--jsn'; did you mean '--json'?");
    EXPECT_EQ(message_of({"db", "path", "here"}), "'here' is one word too many for db path");
}

TEST(Request, APriorIsAModelOrNoneAndOfSearchesOnly) {
    EXPECT_EQ(parse({"tune", "softmax"}).prior, Prior::records);
    EXPECT_EQ(parse({"tune", "softmax", "--prior", "model"}).prior, Prior::model);
    EXPECT_EQ(message_of({"tune", "softmax", "--prior", "oracle"}), "--prior is none, records, model, not 'oracle'");
    EXPECT_EQ(message_of({"query", "softmax", "--prior", "model"}), "there is no flag '--prior' for query");
}

}  // namespace
}  // namespace autotune

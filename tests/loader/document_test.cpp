#include "tuner/loader/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autotune/error.h"

namespace autotune {
namespace {

std::string error_of(std::string_view text) {
    try {
        const Document document{text, "x.toml"};
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Error::Kind::usage);
        return error.what();
    }
    return "no error";
}

TEST(Document, KeepsTheOrderOfTheFile) {
    const Document document{"zeta = 1\nalpha = 2\n[mid]\nb = 1\na = { z = 1, y = 2 }\n[early]\n", "x.toml"};
    std::vector<std::string> keys;
    for (const Node& child : document.root().children) keys.push_back(child.key);
    EXPECT_THAT(keys, testing::ElementsAre("zeta", "alpha", "mid", "early"));
    const Node& mid = *document.root().find("mid");
    EXPECT_EQ(mid.children[0].key, "b");
    EXPECT_EQ(mid.children[1].children[0].key, "z");
}

TEST(Document, KnowsWhereKeysAndValuesStand) {
    const Document document{"a = 1\n[b]\n  long_key = \"text\"\n[[c]]\nx = 1\n[[c]]\nx = 2\n", "x.toml"};
    const Node& key = *document.root().find("b")->find("long_key");
    EXPECT_EQ(key.key_position, (Position{3, 3}));
    EXPECT_EQ(key.position, (Position{3, 14}));
    EXPECT_EQ(document.root().find("c")->children[1].position, (Position{6, 1}));
}

TEST(Document, ShowsTheLineWithACaretForWhatIsNoToml) {
    EXPECT_EQ(error_of("a = 1\na = 2\n"),
              "x.toml:2:5: this is no TOML: cannot redefine existing integer 'a'\n"
              "  2 | a = 2\n"
              "    |     ^");
}

TEST(Document, SurvivesWhatTheParserDoesNotExpect) {
    EXPECT_EQ(error_of("[%]\n"), "x.toml is no TOML: a header or key starts with a character that none has");
}

// Method: characters that toml++ takes for impossible where it looks for blanks: Latin, kana, an Arabic form.
TEST(Document, TellsLettersBeyondAsciiFromBlanks) {
    for (const std::string letter : {"\u00d3", "\u2ddf", "\u3041", "\ufe8d"}) {
        const Document document{"a = \"\"\"\\\n  " + letter + " x\"\"\"\n", "x.toml"};
        EXPECT_EQ(document.root().find("a")->text(), letter + " x");
        EXPECT_THAT(error_of("[p" + letter + "]\n"), testing::StartsWith("x.toml:1:3: this is no TOML: "));
        EXPECT_THAT(error_of(letter + " = 1\n"), testing::StartsWith("x.toml:1:1: this is no TOML: "));
    }
}

// Goal: a small file cannot overflow the stack of who reads it.
// Method: as deep as it may be, one deeper, and as deep as a file has room for.
TEST(Document, BoundsHowDeepAFileNests) {
    const auto brackets = [](std::size_t levels) {
        return "a = " + std::string(levels, '[') + std::string(levels, ']') + "\n";
    };
    EXPECT_EQ(error_of(brackets(32)), "no error");
    EXPECT_THAT(error_of(brackets(33)), testing::StartsWith("x.toml:1:37: brackets nest at most 32 deep\n"));
    EXPECT_THAT(error_of(brackets(400'000)), testing::HasSubstr("brackets nest at most 32 deep"));
    const auto key = [](std::size_t parts) {
        std::string text = "k";
        for (std::size_t i = 1; i < parts; ++i) text += ".k";
        return text;
    };
    EXPECT_EQ(error_of("# ä.\n" + key(8) + " = 1\n"), "no error");
    EXPECT_THAT(error_of("# ä.\n" + key(9) + " = 1\n"),
                testing::StartsWith("x.toml:2:16: a key has at most 8 parts\n"));
    EXPECT_THAT(error_of(key(500'000) + " = 1\n"), testing::HasSubstr("a key has at most 8 parts"));
    EXPECT_THAT(error_of("[" + key(500'000) + "]\n"), testing::HasSubstr("a key has at most 8 parts"));
    EXPECT_THAT(error_of("a = { " + key(9) + " = 1 }\n"), testing::HasSubstr("a key has at most 8 parts"));
}

TEST(Document, CountsNoDotsAndBracketsOfTextsAndComments) {
    const std::string many(100, '.'), open(100, '[');
    EXPECT_EQ(
        error_of("a = \"" + many + "\\\"" + open + "\" # " + many + open + "\nb = '" + many + "\"" + open + "'\n"),
        "no error");
    EXPECT_EQ(error_of("a = \"\"\"" + many + "\n\"" + open + "\"\"\"\nb = '''\n" + many + "\\\n" + open + "'''\n"),
              "no error");
}

TEST(Document, RefusesTextsThatSteerATerminal) {
    EXPECT_THAT(error_of("a = \"b\\u001b[31m\"\n"),
                testing::StartsWith("x.toml:1:5: a text in an op file has no control characters\n"));
    EXPECT_THAT(error_of("\"a\\u0007\" = 1\n"),
                testing::StartsWith("x.toml:1:1: a text in an op file has no control characters\n"));
    EXPECT_THAT(error_of("a = [\"b\\u009b31m\"]\n"), testing::HasSubstr("no control characters"));
    EXPECT_EQ(error_of("a = \"\"\"b\n\tc ä € \"\"\"\n"), "no error");
}

TEST(Document, RefusesDatesAndNumbersThatAreNotFinite) {
    EXPECT_EQ(error_of("a = 1979-05-27\n"),
              "x.toml:1:5: an op file has no dates and times\n  1 | a = 1979-05-27\n    |     ^");
    EXPECT_EQ(error_of("a = [1.0, nan]\n"),
              "x.toml:1:11: a number in an op file is finite\n  1 | a = [1.0, nan]\n    |           ^");
}

TEST(Document, RefusesAFileOfMoreThanAMebibyte) {
    EXPECT_EQ(error_of("a = 1\n" + std::string(1u << 20, '\n')),
              "x.toml has 1048582 bytes, an op file at most 1048576");
}

TEST(Document, CountsCharactersForTheCaretAndKeepsTabs) {
    const Document document{"\tkey = \"\xc3\xa4\xc3\xb6 + BLK\"\n", "x.toml"};
    try {
        document.fail_inside(document.root().children[0], 7, 3, "unknown");
        FAIL();
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(),
                     "x.toml:1:14: unknown\n  1 | \tkey = \"\xc3\xa4\xc3\xb6 + BLK\"\n    | \t            ^~~");
    }
}

TEST(Document, PointsAtTheStartOfAStringWithEscapes) {
    const Document document{"key = \"a\\n + BLK\"\n", "x.toml"};
    try {
        document.fail_inside(document.root().children[0], 5, 3, "unknown");
        FAIL();
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), testing::StartsWith("x.toml:1:7: unknown\n"));
    }
}

TEST(Document, ShowsThePartOfALongLineAroundTheCaret) {
    const Document document{"key = \"" + std::string(300, 'a') + " + BLK\"\n", "x.toml"};
    try {
        document.fail_inside(document.root().children[0], 303, 3, "unknown");
        FAIL();
    } catch (const Error& error) {
        const std::string text = error.what();
        EXPECT_THAT(text, testing::HasSubstr("  1 | ...aaa"));
        const std::size_t caret = text.find('^');
        const std::size_t row = text.rfind('\n', caret) + 1;
        const std::size_t line = text.find('\n') + 1;
        EXPECT_EQ(text.substr(line + (caret - row), 3), "BLK");
    }
}

}  // namespace
}  // namespace autotune

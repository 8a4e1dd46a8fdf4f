// Goal: on a terminal there is one status line, cut to the width, gone at the end however that comes about; elsewhere
// there is none. Method: searches on a made-up GPU run on a pseudo-terminal, and a small emulator reads the screen.
#include "tests/tools/terminal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>

#include "cache/store/store.h"

namespace autotune {
namespace {

namespace fs = std::filesystem;

using Variables = std::vector<std::pair<std::string, std::string>>;

bool is_status(const std::string& line) { return line.rfind("softmax [", 0) == 0; }

class OnATerminal : public testing::Test {
protected:
    void SetUp() override {
        if (!Terminal::available()) GTEST_SKIP() << "this machine has no pseudo-terminals";
        std::string pattern = (fs::temp_directory_path() / "autotune-terminal-XXXXXX").string();
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        folder = pattern;
    }
    void TearDown() override {
        if (!folder.empty()) fs::remove_all(folder);
    }

    /// A search of 40 trials of `pause_ms` each.
    std::vector<std::string> tune(int pause_ms) const {
        return {AUTOTUNE_BINARY_DIR "/bin/scripted_autotune",
                std::to_string(pause_ms),
                "tune",
                "softmax",
                "rows=4096,cols=4096,dtype=bf16",
                "--strategy",
                "random",
                "--budget",
                "40",
                "--db",
                (folder / "tune.db").string()};
    }
    static Variables usual(const Variables& more = {}) {
        Variables variables{{"TERM", "xterm"}, {"CI", ""}, {"NO_COLOR", ""}};
        variables.insert(variables.end(), more.begin(), more.end());
        return variables;
    }
    static std::vector<std::string> statuses(const Screen& screen) {
        std::vector<std::string> lines = screen.drawn();
        std::erase_if(lines, [](const std::string& line) { return !is_status(line); });
        return lines;
    }
    static void expect_nothing_left(const Screen& screen) {
        for (const std::string& line : screen.lines()) EXPECT_FALSE(is_status(line)) << screen.text();
        EXPECT_TRUE(screen.unknown().empty()) << screen.unknown().front();
    }

    fs::path folder;
};

TEST_F(OnATerminal, TheStatusLineIsCutToTheWidthAndGoneAtTheEnd) {
    for (const std::size_t width : {40u, 120u}) {
        Terminal terminal{tune(15), usual(), width};
        EXPECT_EQ(terminal.wait(), 0) << terminal.bytes;
        const std::vector<std::string> drawn = statuses(terminal.screen);
        ASSERT_FALSE(drawn.empty()) << terminal.bytes;
        for (const std::string& line : drawn) EXPECT_LT(line.size(), width);
        if (width == 120) EXPECT_NE(drawn.back().find("best "), std::string::npos) << drawn.back();
        expect_nothing_left(terminal.screen);
        EXPECT_NE(terminal.screen.text().find("tried"), std::string::npos) << terminal.screen.text();
        fs::remove(folder / "tune.db");
        fs::remove(folder / "trials.db");
    }
}

TEST_F(OnATerminal, ItIsRedrawnTenTimesASecondAtMost) {
    const auto begin = std::chrono::steady_clock::now();
    Terminal terminal{tune(10), usual(), 120};
    EXPECT_EQ(terminal.wait(), 0);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::size_t redraws = 0;
    for (std::size_t at = 0; (at = terminal.bytes.find("\rsoftmax [", at)) != std::string::npos; ++at) ++redraws;
    EXPECT_GT(redraws, 0u);
    EXPECT_LE(static_cast<double>(redraws), 10 * took.count() + 1);
}

TEST_F(OnATerminal, ATerminalOfOneColumnIsNoFault) {
    Terminal terminal{tune(5), usual(), 1};
    EXPECT_EQ(terminal.wait(), 0);
    EXPECT_FALSE(terminal.bytes.empty());
    expect_nothing_left(terminal.screen);
}

TEST_F(OnATerminal, AfterAResizeTheNewWidthHolds) {
    Terminal terminal{tune(40), usual(), 120};
    ASSERT_TRUE(terminal.read_until([&] { return !statuses(terminal.screen).empty(); })) << terminal.bytes;
    terminal.resize(30);
    // One redraw may have been under way with the old width.
    const std::size_t before = statuses(terminal.screen).size() + 1;
    EXPECT_EQ(terminal.wait(), 0);
    const std::vector<std::string> drawn = statuses(terminal.screen);
    ASSERT_GT(drawn.size(), before);
    for (std::size_t i = before; i < drawn.size(); ++i) EXPECT_LT(drawn[i].size(), 30u) << drawn[i];
}

TEST_F(OnATerminal, ColourMarksTheLevelAndNoColorTakesItAwayAndNothingElse) {
    const std::vector<std::string> wrong{AUTOTUNE_BINARY_DIR "/bin/autotune", "tune", "softmx"};
    Terminal coloured{wrong, usual(), 80};
    EXPECT_EQ(coloured.wait(), 1);
    EXPECT_NE(coloured.bytes.find("\x1b[1;31merror:\x1b[0m "), std::string::npos) << coloured.bytes;

    Terminal plain{wrong, usual({{"NO_COLOR", "1"}}), 80};
    EXPECT_EQ(plain.wait(), 1);
    EXPECT_FALSE(plain.screen.colours()) << plain.bytes;
    EXPECT_EQ(plain.screen.text(), coloured.screen.text());

    Terminal search{tune(15), usual({{"NO_COLOR", "1"}}), 80};
    EXPECT_EQ(search.wait(), 0);
    EXPECT_FALSE(search.screen.colours());
    EXPECT_FALSE(statuses(search.screen).empty()) << "NO_COLOR took the status line away";
}

TEST_F(OnATerminal, ADumbTerminalAndALogGetLinesOnly) {
    for (const Variables& variables :
         {Variables{{"TERM", "dumb"}}, Variables{{"CI", "true"}}, Variables{{"TERM", ""}}}) {
        Terminal terminal{tune(0), usual(variables), 80};
        EXPECT_EQ(terminal.wait(), 0);
        EXPECT_EQ(terminal.bytes.find('\r'), std::string::npos) << terminal.bytes;
        EXPECT_EQ(terminal.bytes.find('\x1b'), std::string::npos) << terminal.bytes;
        EXPECT_NE(terminal.bytes.find("new best"), std::string::npos);
        fs::remove(folder / "tune.db");
        fs::remove(folder / "trials.db");
    }
}

TEST_F(OnATerminal, CtrlCEndsAfterTheRunningSampleStoresAndLeavesNothingBehind) {
    Terminal terminal{tune(100), usual(), 80};
    ASSERT_TRUE(terminal.read_until([&] { return statuses(terminal.screen).size() > 3; })) << terminal.bytes;
    terminal.type("\x03");
    EXPECT_EQ(terminal.wait(), 130) << terminal.bytes;
    expect_nothing_left(terminal.screen);
    const Store store = Store::open({.path = folder / "tune.db", .mode = Store::Mode::read});
    ASSERT_EQ(store.runs("softmax").size(), 1u);
    EXPECT_TRUE(store.runs("softmax")[0].finished);
    EXPECT_FALSE(store.records({.op = "softmax"}, {}).empty());
}

TEST_F(OnATerminal, TheSecondCtrlCKills) {
    Terminal terminal{tune(60'000), usual(), 80};
    ASSERT_TRUE(terminal.read_until([&] { return terminal.bytes.find("valid of") != std::string::npos; }));
    // Signals that come while one waits to be seen are one: type until it is over.
    for (int i = 0; i < 100; ++i) {
        terminal.type("\x03");
        if (!terminal.alive_after_ms(100)) break;
    }
    EXPECT_EQ(terminal.wait(), 128 + SIGINT);
}

}  // namespace
}  // namespace autotune

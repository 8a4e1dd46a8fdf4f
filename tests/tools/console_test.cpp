#include "tools/console.h"

#include <gtest/gtest.h>

#include "tools/format.h"

namespace autotune {
namespace {

const Progress busy{.op = "softmax",
                    .tried = 157,
                    .total = 412,
                    .share_done = 0.38,
                    .best_us = 168.2,
                    .speedup = 1.41,
                    .in_flight = 16,
                    .failed = 9,
                    .eta_s = 31.0,
                    .running = ""};

TEST(Console, TheStatusLineShowsWhatMatters) {
    EXPECT_EQ(render(busy, 120),
              "softmax [=======>            ]  157/412  best 168.2 us 1.41x  compiling 16  failed 9  eta 0:31");
}

TEST(Console, TheStatusLineIsCutToTheWidthAndNeverWraps) {
    for (const std::size_t width : {1u, 20u, 40u, 80u}) EXPECT_LE(columns(render(busy, width)), width);
    EXPECT_EQ(render(busy, 40), "softmax [=======>            ]  157/412 ");
}

TEST(Console, NothingIsShownThatIsNotKnown) {
    EXPECT_EQ(render({.op = "gemm", .running = ""}, 80), "gemm [>                   ]  0");
}

TEST(Console, AFullBarHasNoArrow) {
    EXPECT_EQ(render({.op = "x", .tried = 4, .total = 4, .share_done = 1.0, .running = ""}, 80),
              "x [====================]  4/4");
    EXPECT_EQ(render({.op = "x", .tried = 4, .total = 4, .share_done = 7.0, .running = ""}, 80),
              "x [====================]  4/4");
}

TEST(Console, AConfigThatRunsLongIsNamed) {
    Progress stuck = busy;
    stuck.running = "tile BM=64";
    EXPECT_NE(render(stuck, 200).find("running tile BM=64"), std::string::npos);
}

TEST(Console, MessagesHaveALevelAndAHelpThatCanBePasted) {
    EXPECT_EQ(render_message("error", "there is no op 'softmx'", "autotune ops", false),
              "error: there is no op 'softmx'\nhelp: autotune ops\n");
    EXPECT_EQ(render_message("note", "said once", "", false), "note: said once\n");
}

TEST(Console, NoLineOfATextLooksLikeAMessage) {
    EXPECT_EQ(render_message("warning", "op 'a\nerror: b\rc\n  d'", "e\nhelp: f", false),
              "warning: op 'a\n  error: b c\n  d'\nhelp: e\n  help: f\n");
}

TEST(Console, WhatAFileOrADatabaseSaysDoesNotSteerTheTerminal) {
    EXPECT_EQ(render_message("error",
                             "op '\x1b[31m\x07' \xC2\x9B"
                             "1m \xC3\xA4\tb\nc",
                             "a\x7f", false),
              "error: op '?[31m?' ?1m \xC3\xA4\tb\n  c\nhelp: a?\n");
}

TEST(Console, ColourNeverCarriesMeaningAlone) {
    const std::string coloured = render_message("warning", "text", "", true);
    EXPECT_NE(coloured.find("warning:"), std::string::npos);
}

}  // namespace
}  // namespace autotune

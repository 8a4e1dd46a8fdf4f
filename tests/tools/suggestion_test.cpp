#include "tools/suggestion.h"

#include <gtest/gtest.h>

#include "tuner/model/printable.h"

namespace autotune {
namespace {

TEST(Suggestion, AWordIsQuotedWhereAShellWouldReadItOtherwise) {
    EXPECT_EQ(shell_word("rows=64,cols=4096"), "rows=64,cols=4096");
    EXPECT_EQ(shell_word("warp LANES=32"), "'warp LANES=32'");
    EXPECT_EQ(shell_word("it's; rm"), "'it'\\''s; rm'");
    EXPECT_EQ(shell_word(""), "''");
}

TEST(Suggestion, TheNextCommandFindsTheSameOpsDatabaseAndGpu) {
    EXPECT_EQ(same_flags({}), "");
    Request request;
    request.ops = {"./ops", "my ops"};
    request.chains = {"x * 2"};
    request.gpu = "emulated:a100";
    request.db = "t.db";
    EXPECT_EQ(same_flags(request), " --ops ./ops --ops 'my ops' --chain 'x * 2' --gpu emulated:a100 --db t.db");
}

}  // namespace
}  // namespace autotune

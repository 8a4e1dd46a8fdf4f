#include "tools/format.h"

#include <gtest/gtest.h>

#include <cmath>

namespace autotune {
namespace {

TEST(Format, TimesTakeTheUnitThatKeepsThemReadable) {
    EXPECT_EQ(format_time(0.837), "0.84 us");
    EXPECT_EQ(format_time(168.23), "168.2 us");
    EXPECT_EQ(format_time(1234.0), "1234.0 us");
    EXPECT_EQ(format_time(12345.0), "12.35 ms");
    EXPECT_EQ(format_time(2.5e6), "2.500 s");
}

TEST(Format, NothingIsEverPrintedAsNan) {
    for (const std::string& text :
         {format_time(NAN), format_bandwidth(INFINITY), format_rate(NAN), format_speedup(NAN), format_seconds(NAN)})
        EXPECT_EQ(text.find("nan"), std::string::npos) << text;
}

TEST(Format, DurationsReadAsAClock) {
    EXPECT_EQ(format_duration(31.4), "0:31");
    EXPECT_EQ(format_duration(222), "3:42");
    EXPECT_EQ(format_duration(3723), "1:02:03");
    EXPECT_EQ(format_duration(-1), "0:00");
}

TEST(Format, RatesAreGigaOrTera) {
    EXPECT_EQ(format_rate(812e12), "812 TFLOP/s");
    EXPECT_EQ(format_rate(51.3e12), "51.3 TFLOP/s");
    EXPECT_EQ(format_rate(23e9), "23.0 GFLOP/s");
}

TEST(Format, BytesAreBinary) {
    EXPECT_EQ(format_bytes(1), "1 byte");
    EXPECT_EQ(format_bytes(1000), "1000 bytes");
    EXPECT_EQ(format_bytes(96 * 1024), "96 KiB");
    EXPECT_EQ(format_bytes(1610612736), "1.50 GiB");
}

TEST(Format, CuttingCountsCodePointsAndNeverSplitsOne) {
    EXPECT_EQ(cut("abc", 5), "abc");
    EXPECT_EQ(cut("abcdef", 3), "abc");
    EXPECT_EQ(cut("\xC3\xA4\xC3\xB6\xC3\xBC", 2), "\xC3\xA4\xC3\xB6");
    EXPECT_EQ(columns("\xC3\xA4"), 1u);
}

}  // namespace
}  // namespace autotune

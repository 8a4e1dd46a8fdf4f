#include "tuner/model/config.h"

#include <gtest/gtest.h>

#include <set>

#include "autotune/error.h"

namespace autotune {
namespace {

const Config base{"warp_row", {{"THREADS", std::int64_t{256}}, {"VEC", std::int64_t{8}}, {"PAD", false}}};

TEST(Config, ReadsBackFromItsText) {
    EXPECT_EQ(base.text(), "warp_row THREADS=256 VEC=8 PAD=false");
    EXPECT_EQ(config_from_text(base.text()), base);
    EXPECT_EQ(config_from_text("THREADS=256,VEC=8, PAD=false").values, base.values);
    EXPECT_EQ(config_from_text("VEC=8").variant, "");
    EXPECT_EQ(config_from_text("").text(), "");
}

TEST(Config, RefusesTextThatIsNoConfig) {
    for (const char* text : {"a b", "X=1 a", "=3", "X=", "X=1 X=2", "v X"})
        EXPECT_THROW(config_from_text(text), Error) << text;
}

TEST(Config, HashesEqualWhateverTheOrderOfItsValues) {
    Config turned = base;
    std::swap(turned.values[0], turned.values[2]);
    EXPECT_EQ(turned.hash(), base.hash());
    EXPECT_EQ(base.hash().size(), 64u);
}

TEST(Config, HashesDifferentlyWhenAnySingleThingDiffers) {
    std::set<std::string> hashes{base.hash()};
    std::size_t count = 1;
    const auto changed = [&](auto&& change) {
        Config config = base;
        change(config);
        hashes.insert(config.hash());
        ++count;
    };
    changed([](Config& c) { c.variant = "warp_rows"; });
    changed([](Config& c) { c.values[0].second = std::int64_t{255}; });
    changed([](Config& c) { c.values[0].second = 256.0; });
    changed([](Config& c) { c.values[0].second = std::string{"256"}; });
    changed([](Config& c) { c.values[0].first = "THREAD"; });
    changed([](Config& c) { std::swap(c.values[0].second, c.values[1].second); });
    changed([](Config& c) { c.values[2].second = std::int64_t{0}; });
    changed([](Config& c) { c.values.pop_back(); });
    EXPECT_EQ(hashes.size(), count);
}

TEST(Config, SaysWhichParameterWasProbablyMeant) {
    try {
        (void)base["THREAD"];
        FAIL();
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "variant 'warp_row' has no parameter 'THREAD'; did you mean 'THREADS'?");
    }
}

}  // namespace
}  // namespace autotune

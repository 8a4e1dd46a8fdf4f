#include "tuner/model/counters_json.h"

#include <gtest/gtest.h>

namespace autotune::emulator {
namespace {

using Json = nlohmann::json;

CountedLaunch sample() {
    CountedLaunch launch{.entry = "softmax_rows",
                         .grid = {7, 2, 1},
                         .block = {128},
                         .shared_bytes = 512,
                         .repeat = 3,
                         .resources = {.name = "softmax_rows", .symbol = "softmax_rows", .registers = 40},
                         .blocks = 14};
    std::uint64_t next = std::uint64_t{1} << 53;  // beyond what a double holds exactly
    for (Counters* counters : {&launch.interior, &launch.edge}) {
        for (const CounterSum& sum : counter_sums) counters->*sum.value = ++next;
        counters->classes[static_cast<std::size_t>(OpClass::mma)] = {next + 1, next + 2};
        counters->classes[static_cast<std::size_t>(OpClass::branch)] = {next + 3, next + 4};
    }
    return launch;
}

TEST(CountersJson, ArriveAsTheyWereSent) {
    const CountedLaunch sent = sample();
    const auto got = Json::from_cbor(Json::to_cbor(Json(sent))).get<CountedLaunch>();
    EXPECT_EQ(got.entry, sent.entry);
    EXPECT_EQ(got.grid, sent.grid);
    EXPECT_EQ(got.block, sent.block);
    EXPECT_EQ(got.shared_bytes, sent.shared_bytes);
    EXPECT_EQ(got.repeat, sent.repeat);
    EXPECT_EQ(got.resources, sent.resources);
    EXPECT_EQ(got.blocks, sent.blocks);
    EXPECT_EQ(got.interior, sent.interior);
    EXPECT_EQ(got.edge, sent.edge);
}

TEST(CountersJson, NameOnlyTheClassesThatOccur) {
    const Json json = sample().interior;
    EXPECT_EQ(json.at("classes").size(), 2u);
    EXPECT_TRUE(json.at("classes").contains("mma"));
}

TEST(CountersJson, RefuseWhatIsNoCount) {
    for (const Json& bad : {Json(-1), Json(1.5), Json("7"), Json()}) {
        Json json = sample().interior;
        json["flops"] = bad;
        EXPECT_THROW(json.get<Counters>(), Json::exception) << bad;
        json = sample().interior;
        json["classes"]["mma"] = {1u, bad};
        EXPECT_THROW(json.get<Counters>(), Json::exception) << bad;
    }
    Json lacking = sample().interior;
    lacking.erase("barriers");
    EXPECT_THROW(lacking.get<Counters>(), Json::exception);
    Json short_class = sample().interior;
    short_class["classes"]["mma"] = Json::array({1u});
    EXPECT_THROW(short_class.get<Counters>(), Json::exception);
}

}  // namespace
}  // namespace autotune::emulator

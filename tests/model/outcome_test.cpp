#include "tuner/model/outcome.h"

#include <gtest/gtest.h>

#include <set>

namespace autotune {
namespace {

TEST(Outcome, EveryEndingIsFoundByItsName) {
    for (const EndingInfo& row : endings) EXPECT_EQ(ending_named(row.name), row.ending) << row.name;
    EXPECT_EQ(ending_named("fast"), std::nullopt);
}

TEST(Outcome, TheTableStandsInEnumOrder) {
    for (std::size_t i = 0; i < endings.size(); ++i) EXPECT_EQ(static_cast<std::size_t>(endings[i].ending), i);
}

TEST(Outcome, EveryInterchangeWordIsOneOfTheSchema) {
    const std::set<std::string_view> schema{"timeout", "compile", "runtime", "correctness", "constraints", "correct"};
    for (const EndingInfo& row : endings) EXPECT_TRUE(schema.contains(row.t4)) << row.name;
}

TEST(Outcome, OnlyWantOfMemoryIsForgotten) {
    for (const EndingInfo& row : endings) EXPECT_EQ(row.remembered, row.ending != Ending::out_of_memory) << row.name;
}

}  // namespace
}  // namespace autotune

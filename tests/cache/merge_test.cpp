// Goal: what a merge ends in depends on what was merged, and on nothing else.
// Method: databases with random records that compete for few keys, with ties, are merged in random orders, with
// repetitions and in random groups; the bytes of the export say whether that shows.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "cache/sharing/exports.h"
#include "tests/cache/sharing_samples.h"

namespace autotune {
namespace {

using namespace samples;
using Files = std::vector<std::vector<std::byte>>;

constexpr std::size_t file_count = 5;

void merge(Store& store, const std::vector<std::byte>& file, Trust trust) {
    const TakenIn taken = take_in_bytes(store, file, "file", {.ops = &shared_ops(), .trust = trust});
    ASSERT_EQ(taken.refused, 0u) << taken.reasons.begin()->first;
}

std::string merged(const Files& files, Trust trust) {
    Store store = Store::in_memory();
    for (const auto& file : files) merge(store, file, trust);
    return exported(store);
}

class Merge : public testing::TestWithParam<Trust> {};

TEST_P(Merge, AnyOrderAndAnyRepetitionGiveTheSameBytes) {
    std::mt19937_64 random{20240607};
    for (int round = 0; round < 5; ++round) {
        Files files = random_files(random, file_count);
        const std::string expected = merged(files, GetParam());
        ASSERT_FALSE(expected.empty());
        for (int again = 0; again < 4; ++again) {
            Files other = files;
            for (int copy = 0; copy < 3; ++copy) other.push_back(files[random() % file_count]);
            std::shuffle(other.begin(), other.end(), random);
            ASSERT_EQ(merged(other, GetParam()), expected) << "round " << round;
        }
    }
}

TEST_P(Merge, AnyGroupingGivesTheSameBytes) {
    std::mt19937_64 random{20240608};
    for (int round = 0; round < 5; ++round) {
        const Files files = random_files(random, file_count);
        const std::string expected = merged(files, GetParam());
        for (std::size_t cut = 1; cut < files.size(); ++cut) {
            const Files first{files.begin(), files.begin() + static_cast<std::ptrdiff_t>(cut)};
            const Files second{files.begin() + static_cast<std::ptrdiff_t>(cut), files.end()};
            ASSERT_EQ(merged({bytes_of(merged(second, GetParam())), bytes_of(merged(first, GetParam()))}, GetParam()),
                      expected)
                << "round " << round << " cut " << cut;
        }
    }
}

TEST_P(Merge, ASecondTimeChangesNothing) {
    std::mt19937_64 random{20240609};
    Store store = Store::in_memory();
    const Files files = random_files(random, file_count);
    for (const auto& file : files) merge(store, file, GetParam());
    const std::string before = exported(store);
    for (const auto& file : files) {
        const TakenIn again = take_in_bytes(store, file, "file", {.ops = &shared_ops(), .trust = GetParam()});
        EXPECT_EQ(again.added + again.better, 0u);
        EXPECT_EQ(again.import_id, 0);
    }
    EXPECT_EQ(exported(store), before);
    EXPECT_TRUE(store.check().empty()) << store.check().front();
}

INSTANTIATE_TEST_SUITE_P(Trust, Merge, testing::Values(Trust::own, Trust::elsewhere),
                         [](const auto& row) { return row.param == Trust::own ? "Own" : "Elsewhere"; });

TEST(MergeOfOwn, KeepsWhatTheMachinesSayOfTheirChecks) {
    Store store = Store::in_memory();
    merge(store, database_bytes({shared_record(1024, 10)}), Trust::own);
    const Record record = store.records({.op = "scale"}, {}).at(0);
    EXPECT_EQ(record.verified, Verified::verified);
    EXPECT_TRUE(record.local());
}

TEST(MergeOfOwn, CountsWhatIsNewBetterAndNotBetter) {
    Store store = Store::in_memory();
    store.put(std::vector{shared_record(1024, 10), shared_record(2048, 10, "b")});
    const TakenIn taken = take_in_bytes(
        store, database_bytes({shared_record(1024, 5, "c"), shared_record(2048, 50, "d"), shared_record(4096, 1, "e")}),
        "node01.db", {.ops = &shared_ops(), .trust = Trust::own});
    EXPECT_EQ(taken.rows, 3u);
    EXPECT_EQ(taken.better, 1u);
    EXPECT_EQ(taken.not_better, 1u);
    EXPECT_EQ(taken.added, 1u);
}

}  // namespace
}  // namespace autotune

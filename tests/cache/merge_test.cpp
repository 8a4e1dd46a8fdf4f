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

/// Some compete for a key, some come twice, and neither those of one problem nor those of one run stand together.
std::vector<Record> scattered_records() {
    std::mt19937_64 random{20240610};
    std::vector<Record> records;
    for (int i = 0; i < 1500; ++i) {
        // A run has one problem.
        const auto run = static_cast<std::int64_t>(random() % 400);
        records.push_back(shared_record(1 + run % 130, 10.0 + static_cast<double>(random() % 9),
                                        "run " + std::to_string(run), static_cast<int>(random() % 3)));
    }
    for (int i = 0; i < 100; ++i) records.push_back(records[random() % records.size()]);
    return records;
}

// Many rows go in by other statements than few.
TEST_P(Merge, ManyRecordsAtOnceEndAsOneByOne) {
    const std::vector<Record> records = scattered_records();
    Files one_by_one;
    for (const Record& record : records) one_by_one.push_back(lines_bytes({record}));
    const std::string expected = merged(one_by_one, GetParam());
    EXPECT_EQ(merged({lines_bytes(records)}, GetParam()), expected);
    const Files halves{lines_bytes({records.begin(), records.begin() + 800}),
                       lines_bytes({records.begin() + 800, records.end()})};
    EXPECT_EQ(merged(halves, GetParam()), expected);
}

TEST(MergeOfOwn, ManyRecordsPutAtOnceEndAsOneByOne) {
    const std::vector<Record> records = scattered_records();
    Store at_once = Store::in_memory(), one_by_one = Store::in_memory();
    at_once.put(records);
    for (const Record& record : records) one_by_one.put({&record, 1});
    EXPECT_EQ(exported(at_once), exported(one_by_one));
    EXPECT_TRUE(at_once.check().empty()) << at_once.check().front();
    const std::size_t standing = at_once.records({.op = "scale"}, {}).size();
    EXPECT_GT(standing, 100u);
    EXPECT_LT(standing, records.size());
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

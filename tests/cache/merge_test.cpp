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

/// Of few values each, so that many records tie in all but one of them.
Record random_record(std::mt19937_64& random, const std::string& run) {
    const auto pick = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
    Record r = shared_record(1024 << pick(3), 10 + pick(3) * 0.05, run, pick(2));
    r.config = shared_config(32 << pick(4), 1 << pick(3));
    r.verified = static_cast<Verified>(pick(3));
    r.tuned_at = 1'700'000'000 + pick(2);
    r.max_error = pick(2) * 0.25;
    r.samples = 20 + pick(2);
    return r;
}

/// A run is one and the same in every file that has rows of it.
Record random_of_a_run(std::mt19937_64& random, std::mt19937_64::result_type run) {
    Record r = random_record(random, "run " + std::to_string(run));
    r.run.clock_policy = run % 2 ? "locked" : "free";
    r.run.effort = static_cast<SearchEffort>(run % 4);
    r.run.origin = run % 3 ? "local" : "import";
    if (run % 5 == 0) r.device.name = "NVIDIA H200 NVL";
    if (run % 7 == 0) {
        r.predicted = true;
        r.model_version = "1";
    }
    return r;
}

Files random_files(std::mt19937_64& random) {
    Files files;
    for (std::size_t i = 0; i < file_count; ++i) {
        std::vector<Record> records;
        for (int k = 0; k < 12; ++k) records.push_back(random_of_a_run(random, random() % 8));
        files.push_back(random() % 2 ? lines_bytes(records) : database_bytes(records));
    }
    return files;
}

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
        Files files = random_files(random);
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
        const Files files = random_files(random);
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
    const Files files = random_files(random);
    for (const auto& file : files) merge(store, file, GetParam());
    const std::string before = exported(store);
    for (const auto& file : files) {
        const TakenIn again = take_in_bytes(store, file, "file", {.ops = &shared_ops(), .trust = GetParam()});
        EXPECT_EQ(again.added + again.better, 0u);
        EXPECT_EQ(again.import_id, 0);
    }
    EXPECT_EQ(exported(store), before);
    EXPECT_TRUE(store.check().empty());
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

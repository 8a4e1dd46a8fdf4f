// Goal: what a database does not take is in it later or in a spool file, and nobody is told that it is stored before it
// is. Method: another connection holds the file, for the beginning of a run or for all of it.
#include "tools/run_keeper.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "cache/store/spool.h"
#include "tests/cache/samples.h"

namespace autotune {
namespace {

using namespace samples;

class RunKeeperTest : public testing::Test {
protected:
    void SetUp() override {
        search(store_, start(1), {{config(256, 4), 40.0}});
        ASSERT_EQ(sqlite3_open((folder_ / "tune.db").c_str(), &other_), SQLITE_OK);
        hold();
    }
    void TearDown() override { sqlite3_close(other_); }
    void hold() { ASSERT_EQ(sqlite3_exec(other_, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK); }
    void release() { ASSERT_EQ(sqlite3_exec(other_, "ROLLBACK", nullptr, nullptr, nullptr), SQLITE_OK); }
    static RunStart predicting() {
        RunStart about = start();
        about.environment.emulator = 1;
        return about;
    }
    static RunEnd end(const RunStart& about) {
        RunEnd end{.finalists = {finalist(config(128, 2), 30.0), finalist(config(256, 2), 30.1)},
                   .evaluated = 20,
                   .space_size = 64};
        if (about.environment.emulator) end.model_version = "model 1";
        return end;
    }
    std::size_t rows(bool predicted) const {
        return store_.records({.op = "scale", .problem_key = problem().key, .predicted = predicted}, today()).size();
    }
    std::vector<std::filesystem::path> spooled() const { return spool_files(folder_ / "spool"); }

    Folder folder_;
    Store store_ = Store::open({.path = folder_ / "tune.db", .patience = std::chrono::milliseconds{20}});
    sqlite3* other_ = nullptr;
};

TEST_F(RunKeeperTest, WhatTheFileTakesAtTheEndIsInIt) {
    for (const RunStart& about : {start(), predicting()}) {
        RunKeeper keeper{store_, about};
        keeper.keep(config(128, 2), timed(30.0));
        ASSERT_TRUE(keeper.trouble());
        release();
        const RunSummary kept = keeper.finish(end(about));
        EXPECT_FALSE(keeper.trouble());
        const bool predicts = about.environment.emulator != 0;
        EXPECT_EQ(kept.records, predicts ? 0u : 2u);
        EXPECT_EQ(kept.predictions, predicts ? 2u : 0u);
        EXPECT_EQ(rows(predicts), 2u);
        hold();
    }
}

TEST_F(RunKeeperTest, AProblemOfWhichNothingWasTriedHasNoRun) {
    release();
    const std::size_t before = store_.runs().size();
    { RunKeeper keeper{store_, start()}; }
    EXPECT_EQ(store_.runs().size(), before);
}

TEST_F(RunKeeperTest, WhatTheFileNeverTakesWaitsInASpoolFile) {
    for (const RunStart& about : {start(), predicting()}) {
        const std::size_t waiting = spooled().size();
        RunKeeper keeper{store_, about};
        const RunSummary kept = keeper.finish(end(about));
        ASSERT_TRUE(keeper.trouble());
        EXPECT_NE(std::string{keeper.trouble()->what()}.find("2 records wait in '"), std::string::npos)
            << keeper.trouble()->what();
        EXPECT_EQ(kept.records + kept.predictions, 0u);
        EXPECT_EQ(spooled().size(), waiting + 1);
    }
    release();
    EXPECT_EQ(store_.fold_spools(), 4u);
    for (const std::string& fault : store_.check()) ADD_FAILURE() << fault;
    EXPECT_EQ(rows(false), 2u);
    EXPECT_EQ(rows(true), 2u);
}

TEST_F(RunKeeperTest, ASpoolFileThatTheFileRefusesAgainIsNotWrittenTwice) {
    RunKeeper keeper{store_, start()};
    keeper.finish(end(start()));
    ASSERT_EQ(spooled().size(), 1u);
    EXPECT_THROW(store_.fold_spools(), Error);
    EXPECT_EQ(spooled().size(), 1u);
}

TEST_F(RunKeeperTest, ARunThatLeavesNoRecordIsNotSaidToBeStored) {
    RunKeeper keeper{store_, predicting()};
    keeper.keep(config(128, 2), timed(30.0));
    release();
    RunEnd nothing = end(predicting());
    nothing.evaluated = 1;
    EXPECT_EQ(keeper.finish(nothing).predictions, 0u);
    EXPECT_TRUE(keeper.trouble());
}

}  // namespace
}  // namespace autotune

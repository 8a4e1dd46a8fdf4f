// Goal: an import that is taken out leaves a database as if it had never been there.
// Method: random sequences of imports, merges, searches and reverts; after each revert the bytes of an export are those
// of a database that saw the same sequence without what was taken out.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <map>
#include <random>

#include "autotune/error.h"
#include "cache/store/file.h"
#include "cache/store/upkeep.h"
#include "tests/cache/sharing_samples.h"

namespace autotune {
namespace {

using namespace samples;

TakenIn take(Store& store, const std::vector<std::byte>& file, Trust trust = Trust::elsewhere) {
    TakenIn taken = take_in_bytes(store, file, "file", {.ops = &shared_ops(), .trust = trust});
    EXPECT_EQ(taken.refused, 0u) << taken.reasons.begin()->first;
    return taken;
}

/// What happens to a database, told so that it can happen to another one in the same way.
struct Event {
    enum class Kind { import, merge, search, put } kind{};
    std::size_t file = 0;           ///< import and merge
    std::vector<Record> records{};  ///< search: finalists, the fastest first; put: these
};

void search_like(Store& store, const std::vector<Record>& finalists) {
    const Record& first = finalists.front();
    RunStart start{.device = first.device,
                   .environment = first.environment,
                   .templates = {first.source},
                   .problem = first.problem,
                   .info = first.run};
    start.device.name = "NVIDIA H200 of here";
    start.device.emulated = first.predicted;
    const RunId run = store.begin_run(start);
    RunEnd end{.default_us = 100.0, .evaluated = 9, .space_size = 64, .model_version = first.model_version};
    for (const Record& r : finalists) {
        store.record_trial(run, r.config, timed(r.time_us));
        end.finalists.push_back(finalist(r.config, r.time_us));
        end.finalists.back().verified = r.verified;
    }
    store.finish_run(run, end);
}

std::int64_t happen(Store& store, const Event& event, const std::vector<std::vector<std::byte>>& files) {
    if (event.kind == Event::Kind::search) return search_like(store, event.records), 0;
    if (event.kind == Event::Kind::put) return static_cast<void>(store.put(event.records)), 0;
    return take(store, files[event.file], event.kind == Event::Kind::merge ? Trust::own : Trust::elsewhere).import_id;
}

Store empty_store() {
    return Store::open({.mode = Store::Mode::memory, .now = [] { return std::int64_t{1'700'000'001}; }});
}

class Sequence {
public:
    explicit Sequence(std::uint64_t seed) : random_{seed}, files_{random_files(random_, 5)} {}

    void run(int events) {
        for (int i = 0; i < events; ++i) {
            if (random_() % 4 == 0 && !ids_.empty())
                revert_one();
            else
                add_one();
        }
        while (!ids_.empty()) revert_one();
        EXPECT_TRUE(store_.check().empty()) << store_.check().front();
        EXPECT_EQ(left_of_imports(), 0);
    }
    std::size_t reverts() const noexcept { return reverts_; }

private:
    using Source = std::pair<Event::Kind, std::size_t>;

    void add_one() {
        constexpr Event::Kind kinds[] = {Event::Kind::import, Event::Kind::import, Event::Kind::merge,
                                         Event::Kind::merge,  Event::Kind::search, Event::Kind::put};
        Event event{.kind = kinds[random_() % std::size(kinds)], .file = random_() % files_.size()};
        const std::string run = "of here " + std::to_string(next_++);
        const bool predicted = random_() % 3 == 0;
        for (int i = 0; i < 3; ++i) {
            Record r = random_record(random_, run);
            r.run.effort = SearchEffort::quick;
            r.predicted = predicted;
            if (predicted) r.model_version = "1";
            if (event.kind == Event::Kind::search && i > 0) r.problem = event.records[0].problem;
            event.records.push_back(std::move(r));
        }
        const std::int64_t id = happen(store_, event, files_);
        if (id != 0) ids_[{event.kind, event.file}] = id;
        events_.push_back(std::move(event));
    }

    void revert_one() {
        const auto which = std::next(ids_.begin(), static_cast<std::ptrdiff_t>(random_() % ids_.size()));
        const Source gone = which->first;
        revert_import(store_, which->second, false);
        ++reverts_;
        ids_.erase(which);
        std::erase_if(events_, [&](const Event& e) { return Source{e.kind, e.file} == gone && is_taking_in(e); });
        Store other = empty_store();
        for (const Event& event : events_) happen(other, event, files_);
        ASSERT_EQ(exported(store_), exported(other)) << reverts_;
    }
    static bool is_taking_in(const Event& e) { return e.kind == Event::Kind::import || e.kind == Event::Kind::merge; }

    std::int64_t left_of_imports() {
        std::int64_t rows = 0;
        store_.inspect([&](Database& db) {
            for (const char* table : {"record_beside", "predicted_beside", "device_beside", "import_log"})
                rows += db.integer_of("SELECT count(*) FROM " + std::string{table}).value_or(0);
            for (const char* table : {"record", "predicted", "run"})
                rows += db.integer_of("SELECT count(*) FROM " + std::string{table} + " WHERE import <> 0").value_or(0);
        });
        return rows;
    }

    std::mt19937_64 random_;
    std::vector<std::vector<std::byte>> files_;
    Store store_ = empty_store();
    std::vector<Event> events_;
    std::map<Source, std::int64_t> ids_;
    int next_ = 0;
    std::size_t reverts_ = 0;
};

// Goal: what is saved of a broken file can do what the file could: its imports are taken out of it, and what waits
// behind them comes back. Method: the same imports, merges and searches as above in a file, and a copy of it by
// salvage.
TEST(Salvage, KeepsWhatWaitsAndWhoBroughtIt) {
    std::size_t waiting = 0;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937_64 random{seed};
        const auto files = random_files(random, 4);
        const Folder folder;
        Store store = Store::open({.path = folder / "tune.db"});
        for (std::size_t file = 0; file < files.size(); ++file) {
            Event event{.kind = file % 2 ? Event::Kind::merge : Event::Kind::import, .file = file};
            happen(store, event, files);
            std::vector<Record> own;
            for (int i = 0; i < 10; ++i) own.push_back(random_record(random, "of here " + std::to_string(file)));
            store.put(own);
        }
        const Salvaged saved = salvage(folder / "tune.db", folder / "new.db");
        waiting += saved.waiting;
        EXPECT_EQ(saved.unreadable, 0u);
        EXPECT_EQ(faults_of(folder / "new.db"), std::vector<std::string>{});
        Store copy = Store::open({.path = folder / "new.db"});
        EXPECT_EQ(exported(copy), exported(store));
        const auto here = imports(store), there = imports(copy);
        ASSERT_EQ(here.size(), there.size());
        for (std::size_t i = 0; i < here.size(); ++i) {
            EXPECT_EQ(there[i].sha256, here[i].sha256);
            EXPECT_EQ(there[i].standing, here[i].standing);
            EXPECT_EQ(there[i].beside, here[i].beside);
            revert_import(store, here[i].id, false);
            revert_import(copy, here[i].id, false);
            EXPECT_EQ(exported(copy), exported(store)) << i;
        }
    }
    EXPECT_GT(waiting, 0u);
}

TEST(Salvage, LetsWhatWaitsStandWhereTheBetterIsDamaged) {
    const Folder folder;
    {
        Store store = Store::open({.path = folder / "tune.db"});
        store.put(std::vector{shared_record(1024, 60.0, "own")});
        take(store, database_bytes({shared_record(1024, 50.0, "merged")}), Trust::own);
        EXPECT_TRUE(store.check().empty());
        store.transact([](Database& db) { db.execute("UPDATE record SET time_ns = time_ns + 1"); });
    }
    const Salvaged saved = salvage(folder / "tune.db", folder / "new.db");
    EXPECT_EQ(saved.unreadable, 1u);
    EXPECT_EQ(saved.waiting, 1u);
    const auto records = Store::open({.path = folder / "new.db", .mode = Store::Mode::read}).records({}, {});
    ASSERT_EQ(records.size(), 1u);
    EXPECT_DOUBLE_EQ(records[0].time_us, 60.0);
}

// Goal: of a file of schema 1 an import can be taken out, and of a merge, whose rows are not known, it is said that it
// cannot. Method: the file that was kept of that schema, with a line of either, migrated or salvaged.
TEST(Revert, OfSchemaOneTakesImportsOutAndRefusesMerges) {
    const Folder folder;
    const std::filesystem::path old = folder / "tune.db";
    std::filesystem::copy_file(AUTOTUNE_SOURCE_DIR "/tests/cache/golden/tune_1.db", old);
    Database::open(old, Database::Access::write, std::chrono::seconds{1})
        .execute(
            "INSERT INTO import_log VALUES (1, '', 'aa', 1, 'import', 2, 2, '{}'), (2, '', 'bb', 2, 'merge', 2, 2, "
            "'{}'); UPDATE run SET origin = 'import:1' WHERE id = (SELECT min(run) FROM record)");
    salvage(old, folder / "new.db");
    for (const char* name : {"tune.db", "new.db"}) {
        SCOPED_TRACE(name);
        Store store = Store::open({.path = folder / name});
        EXPECT_EQ(imports(store).at(1).policy, "old merge");
        const std::int64_t before = store.row_counts().at("record");
        try {
            revert_import(store, 2, false);
            ADD_FAILURE() << "it was taken out";
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), Error::Kind::usage);
            EXPECT_NE(std::string{error.what()}.find("did not keep what it brought"), std::string::npos)
                << error.what();
        }
        EXPECT_EQ(imports(store).size(), 2u);
        const auto gone = static_cast<std::int64_t>(revert_import(store, 1, false).records);
        EXPECT_GT(gone, 0);
        EXPECT_EQ(store.row_counts().at("record"), before - gone);
        EXPECT_EQ(imports(store).size(), 1u);
    }
}

TEST(Check, FindsARowThatWaitsAndIsDamaged) {
    Store store = Store::in_memory();
    store.put(std::vector{shared_record(1024, 60.0, "own")});
    take(store, database_bytes({shared_record(1024, 50.0, "merged")}), Trust::own);
    store.transact([](Database& db) { db.execute("UPDATE record_beside SET time_ns = time_ns + 1"); });
    const auto faults = store.check();
    ASSERT_EQ(faults.size(), 1u);
    EXPECT_NE(faults[0].find("a row that waits beside record"), std::string::npos) << faults[0];
}

TEST(Revert, LeavesADatabaseAsIfTheImportHadNeverBeen) {
    std::size_t reverts = 0;
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        SCOPED_TRACE(seed);
        Sequence sequence{seed};
        sequence.run(20);
        if (testing::Test::HasFatalFailure()) return;
        reverts += sequence.reverts();
    }
    EXPECT_GT(reverts, 80u);
}

// -- what a person meets

TEST(Revert, BringsBackWhatTheImportDisplaced) {
    Store store = Store::in_memory();
    take(store, database_bytes({shared_record(1024, 20)}));
    const std::string before = exported(store);
    const TakenIn second = take(store, database_bytes({shared_record(1024, 10, "b")}));
    EXPECT_EQ(second.better, 1u);
    const Reverted reverted = revert_import(store, second.import_id, false);
    EXPECT_EQ(reverted.records, 1u);
    EXPECT_EQ(reverted.back, 1u);
    EXPECT_EQ(exported(store), before);
}

TEST(Revert, WhatWaitedBesideABetterRowStandsWhenThatGoes) {
    Store store = Store::in_memory();
    const TakenIn first = take(store, database_bytes({shared_record(1024, 10)}));
    const TakenIn second = take(store, database_bytes({shared_record(1024, 20, "b")}));
    EXPECT_EQ(second.not_better, 1u);
    ASSERT_NE(second.import_id, 0);
    EXPECT_EQ(imports(store).at(1).beside, 1u);
    revert_import(store, first.import_id, false);
    EXPECT_DOUBLE_EQ(store.records({.op = "scale"}, {}).at(0).time_us, 20.0);
    EXPECT_EQ(imports(store).at(0).standing, 1u);
}

TEST(Revert, RowsOfOneRunThatTwoFilesHaveAreEachFiles) {
    Store store = Store::in_memory();
    const Record first = shared_record(1024, 10), rank_1 = shared_record(1024, 10.1, "a", 1);
    const TakenIn one = take(store, database_bytes({first}));
    const std::string before = exported(store);
    const TakenIn both = take(store, database_bytes({first, rank_1}));
    EXPECT_EQ(revert_import(store, both.import_id, false).records, 1u);
    EXPECT_EQ(exported(store), before);
    const TakenIn again = take(store, database_bytes({first, rank_1}));
    revert_import(store, one.import_id, false);
    EXPECT_EQ(store.records({.op = "scale"}, {}).size(), 2u) << "the second file has both";
    revert_import(store, again.import_id, false);
    EXPECT_TRUE(exported(store).empty());
}

TEST(Revert, AMergeIsTakenOutAsAnImportIs) {
    Store store = Store::in_memory();
    store.put(std::vector{shared_record(1024, 20, "here")});
    const std::string before = exported(store);
    const TakenIn merged = take(store, database_bytes({shared_record(1024, 10), shared_record(2048, 9)}), Trust::own);
    EXPECT_NE(exported(store), before);
    const Reverted reverted = revert_import(store, merged.import_id, false);
    EXPECT_EQ(reverted.records, 2u);
    EXPECT_EQ(reverted.back, 1u);
    EXPECT_EQ(exported(store), before);
    EXPECT_EQ(store.row_counts().at("run"), 1);
}

TEST(Revert, WhatAGpuIsCalledIsAsItWasToo) {
    Record first = shared_record(1024, 20), second = shared_record(2048, 10, "b");
    second.device.name = "NVIDIA H200 NVL";
    second.device.pci_id = "0000:01:00.0";
    Store store = Store::in_memory();
    take(store, lines_bytes({first}));
    const std::string before = exported(store);
    const TakenIn taken = take(store, lines_bytes({second}));
    EXPECT_EQ(store.records({.op = "scale"}, {}).at(0).device.name, "NVIDIA H200 NVL");
    revert_import(store, taken.import_id, false);
    EXPECT_EQ(exported(store), before);
}

TEST(Revert, APredictionOfElsewhereNeverDisplacesOneOfHere) {
    Record here = shared_record(1024, 20, "here"), other = shared_record(1024, 10);
    here.predicted = other.predicted = true;
    here.model_version = other.model_version = "7";
    Store store = Store::in_memory();
    store.put(std::vector{here});
    const std::string before = exported(store);
    const TakenIn taken = take(store, database_bytes({other}));
    EXPECT_EQ(taken.not_better, 1u);
    EXPECT_EQ(exported(store), before);
}

TEST(Revert, AFileThatIsImportedAgainIsTheSameImport) {
    Store store = Store::in_memory();
    const auto file = database_bytes({shared_record(1024, 10), shared_record(2048, 10, "b")});
    const TakenIn first = take(store, file);
    EXPECT_EQ(take(store, file).import_id, 0) << "nothing was changed";
    store.transact([](Database& db) { db.execute("DELETE FROM record WHERE time_ns = 10000 AND rank = 0"); });
    EXPECT_EQ(take(store, file).import_id, first.import_id) << "it brings back what had gone";
    EXPECT_EQ(imports(store).size(), 1u);
    revert_import(store, first.import_id, false);
    EXPECT_TRUE(exported(store).empty());
}

TEST(Revert, WhatWasMeasuredHereSinceStays) {
    Store store = Store::in_memory();
    const TakenIn taken = take(store, database_bytes({shared_record(1024, 10)}));
    store.put(std::vector{shared_record(1024, 30, "here")});
    EXPECT_DOUBLE_EQ(store.records({.op = "scale"}, {}).at(0).time_us, 30.0) << "checked here";
    const std::string before = exported(store);
    const Reverted reverted = revert_import(store, taken.import_id, false);
    EXPECT_EQ(reverted.records, 0u);
    EXPECT_EQ(exported(store), before);
}

// Goal: a file of an earlier schema says and can do what it would if today's program had made it.
// Method: the files that were kept hold what happens here again: searches, a prediction, an import, and a merge whose
// better row displaced one. Schema 1 did not keep what was displaced.
TEST(Revert, TakesOutWhatAnEarlierSchemaImported) {
    for (const int schema : {1, 2}) {
        SCOPED_TRACE(schema);
        const Folder folder;
        const std::filesystem::path path = folder / "x/tune.db",
                                    golden =
                                        fmt::format("{}/tests/cache/golden/shared_{}.db", AUTOTUNE_SOURCE_DIR, schema);
        std::filesystem::create_directory(folder / "x");
        std::filesystem::permissions(folder / "x", std::filesystem::perms::owner_all);
        std::filesystem::copy_file(golden, path);
        Store taking = Store::in_memory();
        EXPECT_EQ(take(taking, *read_file_whole(path)).added, 4u) << "such a file is taken in as well";

        Store fresh = Store::in_memory();
        Record guess = shared_record(4096, 5, "guess");
        guess.predicted = true;
        guess.model_version = "7";
        guess.environment.emulator = 7;
        fresh.put(std::vector{shared_record(2048, 20, "here"), guess});
        take(fresh, database_bytes({shared_record(1024, 10)}));
        const std::int64_t merge =
            take(fresh, database_bytes({shared_record(8192, 50, "merged")}), Trust::own).import_id;
        if (schema > 1) fresh.put(std::vector{shared_record(8192, 60, "own")});

        Store store = Store::open({.path = path});
        EXPECT_TRUE(store.check().empty());
        EXPECT_EQ(exported(store), exported(fresh));
        EXPECT_EQ(revert_import(store, 1, false).records, 1u);
        revert_import(fresh, 1, false);
        EXPECT_EQ(exported(store), exported(fresh));
        if (schema == 1) continue;
        EXPECT_EQ(revert_import(store, 2, false).back, 1u);
        revert_import(fresh, merge, false);
        EXPECT_EQ(exported(store), exported(fresh));
    }
}

}  // namespace
}  // namespace autotune

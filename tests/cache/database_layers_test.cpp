// Goal: a dispatcher takes what it launches from the right layer, whatever the databases of the others are.
// Method: one search is stored, and its file put where a layer is looked for, or handed in as bytes, whole or spoiled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "autotune/error.h"
#include "cache/store/file.h"
#include "device/identity.h"
#include "tests/cache/dispatch_samples.h"

namespace autotune {
namespace {

using namespace samples;
using testing::Contains;
using testing::HasSubstr;

/// A variable of the environment for the length of a test.
class Variable {
public:
    Variable(const char* name, const std::string& value) : name_{name} {
        if (const char* before = std::getenv(name)) before_ = before;
        ::setenv(name, value.c_str(), 1);
    }
    ~Variable() {
        if (before_)
            ::setenv(name_, before_->c_str(), 1);
        else
            ::unsetenv(name_);
    }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

private:
    const char* name_;
    std::optional<std::string> before_;
};

class DatabaseLayers : public testing::Test, protected DispatchSetting {
protected:
    const Config one = vector_config(1, 64), two = vector_config(2, 64), four = vector_config(4, 64);

    void SetUp() override {
        for (const Config& config : {one, two, four, naive_config(), vector_config(4)})
            for (const std::int64_t n : {1024, 2048}) put_binary(config, n);
    }
    /// What was stored so far, at another place; the binaries stay.
    std::filesystem::path moved_to(const std::string& place) {
        const std::filesystem::path to = folder / place;
        std::filesystem::create_directories(to.parent_path());
        std::filesystem::rename(folder / "tune.db", to);
        return to;
    }
    std::vector<std::byte> taken_out() {
        const std::filesystem::path file = moved_to("out.db");
        std::vector<std::byte> bytes = read_file_whole(file).value();
        std::filesystem::remove(file);
        return bytes;
    }
    Dispatcher::Options of_bytes(const std::vector<std::byte>& bytes) {
        Dispatcher::Options given = options();
        given.embedded_database = bytes;
        return given;
    }
    Dispatcher::Options of_system() {
        Dispatcher::Options given = options();
        given.system_database = true;
        return given;
    }
    Decision decision_of(const Dispatcher::Options& given, std::int64_t n = 1024) {
        Dispatcher dispatcher{given};
        Decision decision = launch(dispatcher, dispatcher.prepare("scale"), n);
        config_ = decision.config;
        why_ = decision.why;
        decision.config = config_;
        decision.why = why_;
        return decision;
    }
    /// A search that was made with another source.
    void tuned_before_a_change(std::int64_t n, const Config& config, double time_us) {
        RunStart about = start(n);
        for (TemplateIdentity& source : about.templates) source.source_hash = "as it was";
        Store store = Store::open({.path = folder / "tune.db"});
        const RunId run = store.begin_run(about);
        store.finish_run(
            run, {.finalists = {finalist(config, time_us)}, .default_us = 100.0, .evaluated = 20, .space_size = 64});
    }

private:
    std::string config_, why_;
};

// -- pins

TEST_F(DatabaseLayers, APinComesBeforeAnyRecordUntilItIsTakenAway) {
    tuned(1024, {{one, 40.0}});
    tuned(2048, {{one, 40.0}});
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    EXPECT_EQ(launch(dispatcher, handle, 1024).config, one.text());
    dispatcher.pin("scale", {{"n", std::int64_t{1024}}}, two.text());
    const Decision pinned = launch(dispatcher, handle, 1024);
    EXPECT_EQ(pinned.layer, Layer::pinned);
    EXPECT_EQ(pinned.config, two.text());
    EXPECT_EQ(pinned.why, "pinned by the application");
    EXPECT_EQ(driver.launches.back().binary, two.text());
    EXPECT_EQ(launch(dispatcher, handle, 2048).config, one.text()) << "pinned for one problem only";
    dispatcher.pin("scale", {}, "vector VEC=4 THREADS=64");
    EXPECT_EQ(launch(dispatcher, handle, 1024).config, four.text()) << "the last pin comes first";
    EXPECT_EQ(launch(dispatcher, handle, 2048).config, four.text());
    EXPECT_TRUE(dispatcher.unpin("scale"));
    EXPECT_EQ(launch(dispatcher, handle, 1024).config, one.text());
    EXPECT_EQ(launch(dispatcher, handle, 1024).layer, Layer::project);
    EXPECT_FALSE(dispatcher.unpin("scale"));
}

TEST_F(DatabaseLayers, APinThatDoesNotSuitAProblemIsSaidAndPassedOver) {
    put_binary(naive_config(), 1021);
    put_binary(vector_config(1), 1021);
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    dispatcher.pin("scale", {}, two.text());
    EXPECT_EQ(launch(dispatcher, handle, 1021).rung, Rung::default_config);
    EXPECT_THAT(logged, Contains(HasSubstr("is pinned to is not used for n=1021 dtype=f32: ")));
    EXPECT_EQ(launch(dispatcher, handle, 1024).layer, Layer::pinned);
}

TEST_F(DatabaseLayers, APinThatTheOpDoesNotDeclareIsRefused) {
    Dispatcher dispatcher{options()};
    EXPECT_THROW(dispatcher.pin("scale", {}, "vector VEC=3"), Error);
    EXPECT_THROW(dispatcher.pin("scale", {}, "other VEC=2"), Error);
    EXPECT_THROW(dispatcher.pin("scale", {{"m", std::int64_t{1}}}, two.text()), Error);
    EXPECT_THROW(dispatcher.pin("scael", {}, two.text()), Error);
    EXPECT_THROW(dispatcher.unpin("scael"), Error);
    dispatcher.freeze();
    EXPECT_THROW(dispatcher.pin("scale", {}, two.text()), Error);
    EXPECT_THROW(dispatcher.unpin("scale"), Error);
    dispatcher.thaw();
    EXPECT_FALSE(dispatcher.unpin("scale")) << "one of them was kept";
}

// -- the machine's database

TEST_F(DatabaseLayers, TheMachinesDatabaseAnswersWhereItIsNamed) {
    tuned(1024, {{two, 40.0}});
    const Variable named{"AUTOTUNE_SYSTEM_DB", moved_to("machine/any.db").string()};
    EXPECT_EQ(decision_of(options()).rung, Rung::default_config) << "looked at unasked";
    const Decision decision = decision_of(of_system());
    EXPECT_EQ(decision.rung, Rung::exact);
    EXPECT_EQ(decision.layer, Layer::system);
    EXPECT_EQ(decision.config, two.text());
    const std::filesystem::path place = folder / "machine";
    std::filesystem::permissions(place, std::filesystem::perms{0555});
    Dispatcher::Options immutable = of_system();
    immutable.system_database_is_immutable = true;
    EXPECT_EQ(decision_of(immutable).layer, Layer::system);
    EXPECT_EQ(decision_of(immutable).rung, Rung::exact);
    std::filesystem::permissions(place, std::filesystem::perms{0755});
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator{place}, {}), 1) << "something was written beside it";
}

TEST_F(DatabaseLayers, TheMachinesDatabasesAreFoundInTheDataFolders) {
    ::unsetenv("AUTOTUNE_SYSTEM_DB");
    tuned(1024, {{two, 40.0}});
    moved_to("second/autotune/1/tune.db");
    const std::string folders = (folder / "first").string() + ":relative:" + (folder / "second").string();
    const Variable named{"XDG_DATA_DIRS", folders};
    EXPECT_EQ(decision_of(of_system()).layer, Layer::system);
    tuned(1024, {{one, 40.0}});
    moved_to("first/autotune/1/tune.db");
    EXPECT_EQ(decision_of(of_system()).config, one.text()) << "the first folder comes first";
}

TEST_F(DatabaseLayers, AStaleRowOfTheUserHidesNoFreshOneOfTheMachine) {
    tuned(1024, {{two, 40.0}});
    const Variable machine{"AUTOTUNE_SYSTEM_DB", moved_to("machine/tune.db").string()};
    tuned_before_a_change(1024, one, 10.0);
    const Variable own{"AUTOTUNE_DB", (folder / "tune.db").string()};
    Dispatcher::Options given = of_system();
    given.databases.clear();
    given.user_database = true;
    const Decision decision = decision_of(given);
    EXPECT_EQ(decision.rung, Rung::exact);
    EXPECT_EQ(decision.layer, Layer::system);
    EXPECT_EQ(decision.config, two.text());
    given.system_database = false;
    EXPECT_EQ(decision_of(given).rung, Rung::exact_stale);
    EXPECT_EQ(decision_of(given).layer, Layer::user);
    given.system_database = true;
    tuned(1024, {{one, 40.0}});
    EXPECT_EQ(decision_of(given).layer, Layer::user) << "of equally fresh ones the nearer";
}

// -- a database in the application

TEST_F(DatabaseLayers, ADatabaseAsBytesAnswersAndIsNotLocal) {
    tuned(1024, {{two, 40.0}});
    const std::vector<std::byte> bytes = taken_out();
    const Decision decision = decision_of(of_bytes(bytes));
    EXPECT_EQ(decision.rung, Rung::exact);
    EXPECT_EQ(decision.layer, Layer::embedded);
    EXPECT_TRUE(decision.imported);
    EXPECT_EQ(decision.config, two.text());
    Dispatcher::Options local = of_bytes(bytes);
    local.only_local = true;
    EXPECT_EQ(decision_of(local).rung, Rung::default_config);
    EXPECT_EQ(decision_of(local, 2048).rung, Rung::default_config) << "a neighbour lent what is refused itself";
    tuned(1024, {{one, 40.0}});
    EXPECT_EQ(decision_of(local).config, one.text());
}

TEST_F(DatabaseLayers, ADatabaseAsBytesThatIsNoneOfOursIsNamedAndTheDefaultRuns) {
    tuned(1024, {{two, 40.0}});
    std::filesystem::copy_file(folder / "tune.db", folder / "view.db");
    {
        sqlite3* db = nullptr;
        ASSERT_EQ(sqlite3_open((folder / "view.db").c_str(), &db), SQLITE_OK);
        ASSERT_EQ(sqlite3_exec(db, "CREATE VIEW more AS SELECT * FROM record", nullptr, nullptr, nullptr), SQLITE_OK);
        sqlite3_close(db);
    }
    const std::vector<std::byte> whole = taken_out(), view = read_file_whole(folder / "view.db").value();
    const auto with = [&](std::size_t at, int byte) {
        std::vector<std::byte> bytes = whole;
        bytes[at] = static_cast<std::byte>(byte);
        return bytes;
    };
    std::vector<std::byte> cut{whole.begin(), whole.end() - 512}, log = with(18, 2);
    log[19] = std::byte{2};
    const std::pair<std::vector<std::byte>, std::string> spoiled[] = {
        {cut, "it is longer or shorter than its header says"},
        {{whole.begin(), whole.begin() + 60}, "it is no autotune database"},
        {log, "it is in write-ahead-log mode"},
        {view, "more"},
        {std::vector<std::byte>(4096, std::byte{'x'}), "it is no autotune database"},
        {with(68, 'B'), "it is no autotune database"},
        {with(63, 99), "it has schema 99, this program knows 3"},
    };
    for (const auto& [bytes, why] : spoiled) {
        logged.clear();
        EXPECT_EQ(decision_of(of_bytes(bytes)).rung, Rung::default_config) << why;
        EXPECT_THAT(logged, Contains(HasSubstr("the embedded database is not used: "))) << why;
        EXPECT_THAT(logged, Contains(HasSubstr(why)));
    }
    EXPECT_EQ(decision_of(of_bytes(whole)).rung, Rung::exact);
}

TEST_F(DatabaseLayers, BytesThatWereChangedAnywhereNeverEndTheProgram) {
    tuned(1024, {{two, 40.0}});
    const std::vector<std::byte> whole = taken_out();
    unsigned state = 7;
    const auto next = [&] { return state = state * 1664525u + 1013904223u; };
    for (int round = 0; round < 200; ++round) {
        std::vector<std::byte> bytes = whole;
        for (int i = 0; i < 4; ++i) bytes[(next() >> 4) % bytes.size()] = static_cast<std::byte>(next() >> 24);
        EXPECT_TRUE(decision_of(of_bytes(bytes)).launched) << "round " << round;
    }
}

// -- what fails

TEST_F(DatabaseLayers, WhereAllThatWasLookedAtFailsTheRestIsLookedAt) {
    const Config ranks[] = {vector_config(1, 128), vector_config(1, 256), vector_config(1, 512), vector_config(2, 128)};
    tuned(1024, {{ranks[0], 40.0}, {ranks[1], 40.1}, {ranks[2], 40.2}, {ranks[3], 40.3}, {two, 40.4}});
    tuned(2048, {{four, 40.0}});
    std::set<std::string> fails;
    for (const Config& config : ranks) {
        put_binary(config, 1024);
        fails.insert(config.text());
    }
    driver.on_launch = [&](const std::string& binary) {
        return fails.contains(binary) ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES : CUDA_SUCCESS;
    };
    Dispatcher::Options strict = options();
    strict.on_miss = OnMiss::fail;
    Dispatcher dispatcher{strict};
    const Decision fifth = launch(dispatcher, dispatcher.prepare("scale"), 1024);
    EXPECT_EQ(fifth.rung, Rung::exact);
    EXPECT_EQ(fifth.config, two.text());
    // Another call site is decided anew, with what has failed in mind: the problem is tuned, so this is no miss.
    const Decision again = launch(dispatcher, dispatcher.prepare("scale", {{"dtype", std::string{"f32"}}}), 1024);
    EXPECT_EQ(again.config, two.text());
    fails.insert(two.text());
    const Decision lower = decision_of(options());
    EXPECT_EQ(lower.rung, Rung::nearest);
    EXPECT_EQ(lower.config, four.text());
    fails.insert(four.text());
    EXPECT_EQ(decision_of(options()).rung, Rung::default_config);
}

TEST_F(DatabaseLayers, TwoGpusOfOneProcessEachGetTheirOwnWinner) {
    driver.devices = 2;
    driver.attributes[{1, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR}] = 8;
    driver.attributes[{1, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR}] = 6;
    driver.attributes[{1, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT}] = 84;
    ASSERT_NE(identify(0).fp, identify(1).fp);
    tuned(1024, {{two, 40.0}});
    {
        RunStart about = start(1024);
        about.device = identify(1);
        Store store = Store::open({.path = folder / "tune.db"});
        const RunId run = store.begin_run(about);
        store.finish_run(run,
                         {.finalists = {finalist(four, 90.0)}, .default_us = 200.0, .evaluated = 20, .space_size = 64});
    }
    put_binary(four, 1024, {13, 0}, "sm_86");
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    for (int round = 0; round < 4; ++round) {
        driver.current_device = round % 2;
        const Decision decision = launch(dispatcher, handle, 1024);
        EXPECT_EQ(decision.rung, Rung::exact) << decision.why;
        EXPECT_EQ(decision.config, (round % 2 ? four : two).text());
        EXPECT_EQ(driver.launches.back().binary, decision.config);
    }
    EXPECT_EQ(driver.loads.size(), 2u) << "each binary is loaded once";
}

}  // namespace
}  // namespace autotune

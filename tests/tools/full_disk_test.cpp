// Goal: a disk that is full, at whatever moment, costs no search its result: it is printed, one message says what could
// not be stored, the exit code is the documented one, and what had been stored stays sound.
// Method: a preloaded library (full_disk.cpp) lets the database grow by so many bytes and no more.
#include "cache/store/store.h"
#include "tests/tools/command_line.h"

namespace autotune {
namespace {

class FullDisk : public CommandLine {
protected:
    Answer tune_with_room(long bytes, const std::string& what = "cache", const std::string& more = {},
                          const std::string& variables = {}) const {
        return scripted("tune softmax rows=64,cols=4096,dtype=f32 --budget 40 " + more,
                        variables + full_disk(what, bytes));
    }
    std::string full_disk(const std::string& what, long bytes) const {
        // A sanitizer wants to be the first library; this one is in front of it on purpose.
        return " ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD='" AUTOTUNE_BINARY_DIR
               "/bin/libfull_disk.so' FULL_DISK='" +
               (folder / what).string() + "' FULL_DISK_BYTES=" + std::to_string(bytes);
    }
    static std::size_t messages(const Answer& answer) {
        std::size_t count = 0;
        for (const std::string level : {"error: ", "warning: "})
            for (std::size_t at = 0; (at = answer.err.find(level, at)) != std::string::npos; ++at) ++count;
        return count;
    }
    Store store() const { return Store::open({.path = folder / "cache/1/tune.db", .mode = Store::Mode::read}); }
};

TEST_F(FullDisk, WithEnoughRoomNothingIsSaid) {
    const Answer r = tune_with_room(1L << 40);
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(messages(r), 0u) << r.err;
    EXPECT_EQ(store().records({.op = "softmax", .winners_only = true}, {}).size(), 1u);
}

TEST_F(FullDisk, AtAnyMomentTheResultIsPrintedAndOneMessageSaysWhatWasNotStored) {
    bool refused = false, stored = false;
    for (const long room : {0L, 20'000L, 60'000L, 120'000L, 250'000L, 500'000L, 1'000'000L, 8'000'000L}) {
        std::filesystem::remove_all(folder / "cache");
        const Answer r = tune_with_room(room);
        EXPECT_NE(r.out.find("  best "), std::string::npos) << room << r.err;
        if (r.code == 5) {
            refused = true;
            EXPECT_EQ(messages(r), 1u) << room << "\n" << r.err;
            EXPECT_NE(r.err.find("is full"), std::string::npos) << room << "\n" << r.err;
            EXPECT_NE(r.out.find("not stored"), std::string::npos) << room << "\n" << r.out;
        } else {
            stored = true;
            EXPECT_EQ(r.code, 0) << room << "\n" << r.err;
            EXPECT_LE(messages(r), 1u) << room << "\n" << r.err;
            EXPECT_EQ(store().records({.op = "softmax", .winners_only = true}, {}).size(), 1u) << room;
        }
        for (const std::string& fault : store().check()) ADD_FAILURE() << room << ": " << fault;
        // With room again, the next run tries what is not known and stores all.
        const Answer next = scripted("tune softmax rows=64,cols=4096,dtype=f32 --budget 40");
        EXPECT_EQ(next.code, 0) << room << "\n" << next.err;
        EXPECT_EQ(store().records({.op = "softmax", .winners_only = true}, {}).size(), 1u) << room;
    }
    EXPECT_TRUE(refused);
    EXPECT_TRUE(stored) << "no room was enough: the test does not see the moments in between";
}

TEST_F(FullDisk, ARecordThatDoesNotFitWaitsInASpoolFileAndTheNextRunTakesItIn) {
    ASSERT_EQ(scripted("tune softmax rows=1,cols=4096,dtype=f32 --budget 4").code, 0);
    std::filesystem::copy(folder / "cache", folder / "before", std::filesystem::copy_options::recursive);
    // Only tune.db is full, where its run ends: trials and the spool file have room.
    bool waits = false;
    for (long room = 40'000; room < 400'000 && !waits; room += 8000) {
        std::filesystem::remove_all(folder / "cache");
        std::filesystem::copy(folder / "before", folder / "cache", std::filesystem::copy_options::recursive);
        const Answer r = tune_with_room(room, "cache/1/tune.db");
        waits = r.code == 5 && (r.err.find("record waits in '") != std::string::npos ||
                                r.err.find("records wait in '") != std::string::npos);
        if (waits) EXPECT_EQ(messages(r), 1u) << r.err;
    }
    ASSERT_TRUE(waits) << "no room was such that the run began and could not end";
    ASSERT_EQ(scripted("tune softmax rows=2,cols=4096,dtype=f32 --budget 4").code, 0);
    EXPECT_EQ(store().records({.op = "softmax", .winners_only = true}, {}).size(), 3u);
}

TEST_F(FullDisk, OutcomesRefusedBeforeSomebodyMadeRoomAreCountedInOneWarning) {
    const Answer r = tune_with_room(100'000, "cache/1/trials.db", "", "FULL_DISK_REFUSALS=3");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(messages(r), 1u) << r.err;
    EXPECT_NE(r.err.find("of this run are not stored"), std::string::npos) << r.err;
    EXPECT_NE(r.err.find("trials.db' could not grow: the disk is full"), std::string::npos) << r.err;
    EXPECT_EQ(store().records({.op = "softmax", .winners_only = true}, {}).size(), 1u);
}

// Method: also with a write-ahead log, of which the last part comes into the file when that is closed.
TEST_F(FullDisk, ASalvageThatFindsNoRoomLeavesNothingAndSaysSoOnce) {
    for (const char* rows : {"1", "2", "3"})
        ASSERT_EQ(scripted("tune softmax rows=" + std::string{rows} + ",cols=4096,dtype=f32 --budget 20").code, 0);
    const std::size_t records = store().records({}, {}).size();
    bool refused = false, salvaged = false;
    const auto salvage = [&](long room, const std::string& with) {
        const Answer r = scripted("db salvage cache/1/tune.db new.db", full_disk("new.db", room) + with);
        std::vector<std::string> made;
        for (const auto& entry : std::filesystem::directory_iterator{folder})
            if (const std::string name = entry.path().filename(); name.starts_with("new")) made.push_back(name);
        std::ranges::sort(made);
        if (r.code == 0) {
            salvaged = true;
            EXPECT_EQ(made, (std::vector<std::string>{"new.db", "new.trials.db"})) << room;
            const Store whole = Store::open({.path = folder / "new.db", .mode = Store::Mode::read});
            EXPECT_EQ(whole.records({}, {}).size(), records) << room;
            EXPECT_TRUE(whole.check().empty()) << room;
            for (const std::string& name : made)
                for (const char* beside : {"", "-wal", "-shm"}) std::filesystem::remove(folder / (name + beside));
        } else {
            refused = true;
            EXPECT_EQ(r.code, 5) << room << r.err;
            EXPECT_EQ(messages(r), 1u) << room << "\n" << r.err;
            EXPECT_NE(r.err.find("is full"), std::string::npos) << room << "\n" << r.err;
            EXPECT_EQ(r.err.find(".new-"), std::string::npos) << room << "\n" << r.err;
            EXPECT_TRUE(made.empty()) << room << ' ' << made.front();
        }
    };
    for (const std::string with : {"", " SQLITE_VERSION_SAID=3051003"}) {
        refused = salvaged = false;
        for (long room = 0; room < 2'000'000; room += room < 600'000 ? 20'000 : 400'000) salvage(room, with);
        EXPECT_TRUE(refused) << with;
        EXPECT_TRUE(salvaged) << with;
    }
}

TEST_F(FullDisk, JsonSaysThatTheResultIsNotStored) {
    ASSERT_EQ(scripted("tune softmax rows=1,cols=4096,dtype=f32 --budget 4").code, 0);
    const Answer r = tune_with_room(0, "cache", "--json");
    EXPECT_EQ(r.code, 5) << r.err;
    ASSERT_FALSE(r.lines().empty());
    const nlohmann::json summary = r.lines().back();
    EXPECT_EQ(summary["event"], "summary");
    EXPECT_TRUE(summary.contains("best"));
    EXPECT_FALSE(summary.contains("stored"));
    EXPECT_NE(summary["not_stored"].get<std::string>().find("the disk is full"), std::string::npos) << summary;
}

}  // namespace
}  // namespace autotune

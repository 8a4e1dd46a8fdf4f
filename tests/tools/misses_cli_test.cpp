// Goal: what applications ran untuned is tuned by one command, and then no longer listed.
// Method: a list as dispatchers write it beside the database, and searches on a made-up GPU.
#include <algorithm>

#include "autotune/tuning.h"
#include "cache/store/miss_list.h"
#include "cache/store/store.h"
#include "tests/support/made_up_op.h"
#include "tests/support/scripted_bench.h"
#include "tests/tools/command_line.h"
#include "tools/tuning.h"
#include "tuner/model/op_set.h"

namespace autotune {
namespace {

class MissesCommandLine : public CommandLine {
protected:
    std::filesystem::path database() const { return folder / "cache/1/tune.db"; }
    MissList list() const { return MissList{database()}; }
    /// The made-up GPU's fingerprint: what a first search stored says.
    std::string fingerprint() {
        EXPECT_EQ(scripted("tune softmax rows=8,cols=4096,dtype=f32 --budget 4").code, 0);
        return Store::open({.path = database(), .mode = Store::Mode::read}).runs().front().device.fp;
    }
    StoredMiss miss(std::int64_t rows, const std::string& fp, std::int64_t processes = 1) const {
        static const OpSet ops;
        const Instance instance = Instance::make(
            ops.find("softmax"), {{"rows", rows}, {"cols", std::int64_t{4096}}, {"dtype", std::string{"f32"}}},
            made_up_limits(), {.strides = {{"ldx", 4100}}, .align = {{"x", 8}}});
        StoredMiss out = miss_of(instance, fp, "made up");
        out.processes = processes;
        return out;
    }
    static std::size_t count(const std::string& text, const std::string& part) {
        std::size_t n = 0;
        for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++n;
        return n;
    }
};

TEST_F(MissesCommandLine, WhatWasMissedIsTunedMostAskedForFirstAndDropped) {
    const std::string fp = fingerprint();
    const StoredMiss misses[] = {miss(64, fp), miss(128, fp, 5), miss(256, "another GPU")};
    ASSERT_TRUE(list().add(misses));
    const Answer r = scripted("--from-misses --budget 6");
    EXPECT_EQ(r.code, 0) << r.err;
    ASSERT_EQ(count(r.err, "prepared "), 2u) << r.err;
    EXPECT_LT(r.err.find("\"rows\":128"), r.err.find("\"rows\":64"));
    EXPECT_NE(r.err.find("\"x.align\":8"), std::string::npos) << "tuned as if its tensors were aligned";
    ASSERT_EQ(list().read().size(), 1u);
    EXPECT_EQ(list().read().front().device_fp, "another GPU");
    const Answer again = scripted("tune --from-misses");
    EXPECT_EQ(again.code, 0);
    EXPECT_EQ(count(again.err, "prepared "), 0u);
    EXPECT_NE(again.err.find("no problem that an application missed here waits"), std::string::npos) << again.err;
}

TEST_F(MissesCommandLine, WhatIsTunedByNowIsDroppedWithoutASearch) {
    const std::string fp = fingerprint();
    const StoredMiss misses[] = {miss(64, fp)};
    list().add(misses);
    ASSERT_EQ(scripted("tune softmax rows=64,cols=4096,dtype=f32,ldx=4100,x.align=8 --budget 4").code, 0);
    const Answer r = scripted("--from-misses");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(count(r.err, "prepared "), 0u);
    EXPECT_TRUE(list().read().empty());
}

TEST_F(MissesCommandLine, LinesThatAreNoMissesAreToldOf) {
    std::filesystem::create_directories(list().path().parent_path());
    std::ofstream{list().path()} << "{}\nnonsense\n";
    const Answer r = scripted("--from-misses");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_NE(r.err.find("2 lines of "), std::string::npos) << r.err;
}

TEST_F(MissesCommandLine, AnOpCanBeChosenAndAnUnknownOneWaits) {
    const std::string fp = fingerprint();
    StoredMiss unknown = miss(64, fp), broken = miss(32, fp);
    unknown.op = "of_theirs";
    broken.fields.emplace_back("gone", std::int64_t{1});
    const StoredMiss misses[] = {miss(64, fp), unknown, broken};
    list().add(misses);
    EXPECT_EQ(scripted("tune gemm --from-misses").code, 0);
    EXPECT_EQ(list().read().size(), 3u);
    const Answer r = scripted("--from-misses --budget 4");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_NE(r.err.find("problems of 'of_theirs' wait until its op is given with --ops"), std::string::npos) << r.err;
    EXPECT_NE(r.err.find("a missed problem of 'softmax' is none any more"), std::string::npos) << r.err;
    ASSERT_EQ(list().read().size(), 1u);
    EXPECT_EQ(list().read().front().op, "of_theirs");
}

// Goal: machines that know nothing of each other tune each problem once, whatever one of them has tuned before.
// Method: three databases with one list of misses, one of them with a record of the first; then the same as a file.
TEST_F(MissesCommandLine, ShardsTuneEachProblemOnceWhateverEachMachineHasStored) {
    const std::string fp = fingerprint();
    constexpr std::int64_t problems = 8;
    std::vector<StoredMiss> misses;
    for (std::int64_t n = 1; n <= problems; ++n) misses.push_back(miss(64 * n, fp));
    ASSERT_EQ(scripted("tune softmax rows=64,cols=4096,dtype=f32,ldx=4100,x.align=8 --budget 4 --db m2/tune.db").code,
              0);
    std::string told;
    bool second_has_first = false;
    for (const std::string machine : {"1", "2", "3"}) {
        ASSERT_TRUE(MissList{folder / ("m" + machine + "/tune.db")}.add(misses));
        const Answer r = scripted("--from-misses --budget 4 --db m" + machine + "/tune.db --shard " + machine + "/3");
        EXPECT_EQ(r.code, 0) << r.err;
        EXPECT_NE(r.err.find("shard " + machine + "/3: "), std::string::npos) << r.err;
        if (machine != "2") second_has_first = second_has_first || r.err.find("\"rows\":64,") != std::string::npos;
        told += r.err;
    }
    EXPECT_EQ(count(told, "prepared "), second_has_first ? problems : problems - 1) << told;
    std::string file, again;
    for (std::int64_t n = 1; n <= problems; ++n) file += "softmax rows=" + std::to_string(n) + ",cols=64,dtype=f32\n";
    write("problems.txt", file);
    for (const std::string machine : {"1", "2", "3"})
        again +=
            scripted("tune --problems problems.txt --budget 4 --db m" + machine + "/tune.db --shard " + machine + "/3")
                .err;
    for (std::int64_t n = 1; n <= problems; ++n)
        EXPECT_EQ(count(again, "\"rows\":" + std::to_string(n) + ","), 1u) << n << again;
}

TEST_F(MissesCommandLine, AShardThatIsNoneIsRefused) {
    for (const std::string shard : {"0/2", "3/2", "1", "1/0", "a/b", "1/2/3", "-1/2", "1/"}) {
        const Answer r = scripted("tune softmax rows=8,cols=64,dtype=f32 --shard " + shard);
        EXPECT_EQ(r.code, 1) << shard;
        EXPECT_NE(r.err.find("--shard is which of how many, from 1/N to N/N, not '" + shard + "'"), std::string::npos)
            << r.err;
    }
}

TEST_F(MissesCommandLine, ContradictionsAreRefused) {
    EXPECT_EQ(scripted("tune softmax rows=8,cols=4096,dtype=f32 --from-misses").code, 1);
    EXPECT_EQ(scripted("--from-misses --db none").code, 1);
    EXPECT_EQ(scripted("query softmax --from-misses").code, 1);
}

// -- a dispatcher's tuner

class DispatcherTuner : public testing::Test {
protected:
    Op op = made_up_op({{"A", 6}, {"B", 6}});
    Instance instance = Instance::make(op, {{"n", std::int64_t{64}}}, made_up_limits());
    DeviceIdentity device{.fp = "made up", .limits = made_up_limits()};
    Store store = Store::in_memory();
    TuneRequest request{.op = "made_up", .budget = std::chrono::minutes{1}, .stop = [] { return false; }};
};

TEST_F(DispatcherTuner, StoresTheWinnerOfItsSearch) {
    ScriptedBench bench{[](const Config& config) {
        const double time_us = 100 - number(config, "A");
        return Outcome{.ending = Ending::timed, .samples_us = {time_us}, .time_us = time_us};
    }};
    tune_into(store, bench, instance, device, request);
    const auto records = store.records({.op = "made_up", .device_fp = "made up"}, {});
    ASSERT_FALSE(records.empty());
    EXPECT_EQ(number(records.front().config, "A"), 5);
    EXPECT_EQ(records.front().run.budget, "60s");
}

TEST_F(DispatcherTuner, SaysThatNothingWasFoundAndStoresWhy) {
    ScriptedBench bench{[](const Config&) { return Outcome{.ending = Ending::wrong_result, .reason = "made up"}; }};
    EXPECT_THROW(tune_into(store, bench, instance, device, request), Error);
    EXPECT_TRUE(store.records({.op = "made_up"}, {}).empty());
    EXPECT_FALSE(store.negatives("made_up", "made up").empty());
}

TEST_F(DispatcherTuner, EndsWhenTheDispatcherDoes) {
    int trials = 0;
    ScriptedBench bench{[&](const Config&) {
        ++trials;
        return Outcome{.ending = Ending::timed, .samples_us = {1.0}, .time_us = 1.0};
    }};
    request.stop = [&] { return trials >= 3; };
    tune_into(store, bench, instance, device, request);
    EXPECT_LT(trials, 36);
}

TEST_F(DispatcherTuner, WithoutItsWorkersItSaysSo) {
    const auto tune = tuner_for({.database = "/nowhere/tune.db", .worker = "/nowhere/autotune-worker"});
    EXPECT_THROW(tune({.op = "softmax"}), Error);
    EXPECT_THROW(tune({.op = "softmx"}), Error);
}

}  // namespace
}  // namespace autotune

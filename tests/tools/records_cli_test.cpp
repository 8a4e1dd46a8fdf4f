// Goal: subcommands that read records back see the problem that was tuned, down to alignment and layout.
// Method: searches on a made-up GPU fill a database, and the same program is asked about it.
#include <algorithm>
#include <set>
#include <tuple>

#include "cache/store/binaries.h"
#include "cache/store/store.h"
#include "cache/store/stored_problem.h"
#include "device/compiler.h"
#include "tests/tools/command_line.h"
#include "tuner/model/op_set.h"

namespace autotune {
namespace {

using nlohmann::json;

constexpr const char* pitched = "softmax rows=64,cols=4096,dtype=f32,ldx=4100,x.align=8";
const std::string pitched_words = "softmax rows=64 cols=4096 dtype=f32";

class RecordsCommandLine : public CommandLine {
protected:
    void tune(const std::string& problem, const std::string& more = {}) const {
        const Answer r = scripted("tune " + problem + " --budget 12 " + more);
        ASSERT_EQ(r.code, 0) << r.err;
    }
    /// Every config is tried, so that the records are the same whatever a strategy asks for first.
    void tune_whole(const std::string& problem) const {
        const Answer r = scripted("tune " + problem + " --budget 100000 --effort full");
        ASSERT_EQ(r.code, 0) << r.err;
    }
    /// What the last run's bench was asked to prepare: keys of problems.
    static std::vector<json> prepared(const Answer& answer) {
        std::vector<json> keys;
        const std::string mark = "prepared ";
        for (std::size_t at = 0; (at = answer.err.find(mark, at)) != std::string::npos;) {
            const std::size_t end = answer.err.find('\n', at);
            keys.push_back(json::parse(answer.err.substr(at + mark.size(), end - at - mark.size())));
            at = end;
        }
        return keys;
    }
};

TEST_F(RecordsCommandLine, VerifyPreparesTheAlignmentAndLayoutThatWereTuned) {
    tune(pitched);
    const Answer r = scripted("verify softmax");
    EXPECT_EQ(r.code, 0) << r.err << r.out;
    const std::vector<json> keys = prepared(r);
    ASSERT_EQ(keys.size(), 1u) << r.err;
    EXPECT_EQ(keys[0]["x.align"], 8);
    EXPECT_EQ(keys[0]["x.layout"], "pitched");
    EXPECT_EQ(keys[0]["y.align"], 16);
    EXPECT_EQ(keys[0]["y.layout"], "contiguous");
    EXPECT_NE(r.out.find("x.align=8"), std::string::npos) << r.out;
}

TEST_F(RecordsCommandLine, AQueryWithAChainIsOfThatChainAlone) {
    const std::string first = " --chain 'relu(x + bias)'", second = " --chain 'x * 2'";
    tune("elementwise rows=64,cols=64", first);
    tune("elementwise rows=64,cols=64", second);
    tune("softmax rows=64,cols=64,dtype=f32");
    for (const auto& [chain, own, other] :
         {std::tuple{first, "relu(x + bias)", "x * 2"}, std::tuple{second, "x * 2", "relu(x + bias)"}}) {
        const Answer header = scripted("query elementwise --as cpp" + chain);
        EXPECT_EQ(header.code, 0) << header.err;
        EXPECT_EQ(header.err.find("records match"), std::string::npos) << header.err;
        for (const Answer& rows : {scripted("query elementwise --csv" + chain), scripted("query --csv" + chain)}) {
            EXPECT_NE(rows.out.find(own), std::string::npos) << rows.out;
            EXPECT_EQ(rows.out.find(other), std::string::npos) << rows.out;
        }
        EXPECT_NE(scripted("query softmax --csv" + chain).out.find("cols=64"), std::string::npos);
        EXPECT_EQ(scripted("query elementwise --where 'rows == 63'" + chain).code, 2);
    }
}

// Method: the made-up GPU fails a seventh of all configs, so that the default of some op is among them.
TEST_F(RecordsCommandLine, NoOtherConfigIsCalledTheDefaultThatFailed) {
    int failed = 0, sound = 0;
    for (const std::string op : {"permute", "softmax", "copy", "reduce", "adam", "rope", "scan", "transpose", "gemm"}) {
        const Answer r = scripted("tune " + op + " --budget 12 --db none");
        ASSERT_EQ(r.code, 0) << r.err;
        const bool fails = r.out.find("default    failed") != std::string::npos;
        (fails ? failed : sound) += 1;
        EXPECT_EQ(r.err.find(", the default)") == std::string::npos, fails) << r.err;
        EXPECT_EQ(r.err.find("x default") == std::string::npos, fails) << r.err;
    }
    EXPECT_GT(failed, 0);
    EXPECT_GT(sound, 0);
}

TEST_F(RecordsCommandLine, ASearchThatTriedTheDefaultAloneSaysThatThisIsWhyNothingIsStored) {
    const std::string words = "tune softmax rows=8,cols=8,dtype=f32 --budget 1 ";
    const Answer r = scripted(words);
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_NE(r.out.find("not stored: only the default was tried"), std::string::npos) << r.out;
    EXPECT_EQ(r.out.find("next: "), std::string::npos) << "a query finds nothing: " << r.out;
    const json summary = scripted(words + "--json --fresh").lines().back();
    EXPECT_NE(summary["not_stored"].get<std::string>().find("only the default"), std::string::npos) << summary;
    EXPECT_FALSE(summary.contains("stored"));
}

TEST_F(RecordsCommandLine, ASearchBeginsWithWhatWonNearProblems) {
    const std::string near = "tune softmax rows=96,cols=4096,dtype=f32 --budget 12 --json ";
    EXPECT_EQ(scripted(near + "--db none").lines().back()["of_records"], 0);
    tune("softmax rows=64,cols=4096,dtype=f32");
    const json won = json::parse(scripted("query softmax --json").out)["config"];
    const auto second_of = [](const Answer& r) {
        for (const json& line : r.lines())
            if (line["event"] == "trial" && line["trial"] == 2) return line["config"];
        return json{};
    };
    const Answer led = scripted("tune softmax rows=80,cols=4096,dtype=f32 --budget 12 --json");
    EXPECT_GE(led.lines().back()["of_records"], 1) << led.out << led.err;
    EXPECT_EQ(second_of(led), won) << led.out;
    const Answer without = scripted(near + "--prior none");
    EXPECT_EQ(without.lines().back()["of_records"], 0) << without.out;
    EXPECT_NE(scripted("tune softmax rows=72,cols=4096,dtype=f32 --budget 12").out.find(" of records first"),
              std::string::npos);
}

TEST_F(RecordsCommandLine, ASearchBeginsWithWhatWasImportedOfItsProblemAndGpu) {
    const std::string problem = "softmax rows=64,cols=4096,dtype=f32";
    tune(problem);
    const json won = json::parse(scripted("query softmax --json").out)["config"];
    EXPECT_EQ(scripted("db export softmax -o won.jsonl").code, 0);
    const Answer taken = scripted("db import won.jsonl --db other.db");
    ASSERT_EQ(taken.code, 0) << taken.out << taken.err;
    const Answer led = scripted("tune " + problem + " --db other.db --budget 12 --json");
    EXPECT_GE(led.lines().back()["of_records"], 1) << led.out << led.err;
    bool second = false;
    for (const json& line : led.lines())
        if (line["event"] == "trial" && line["trial"] == 2) second = line["config"] == won;
    EXPECT_TRUE(second) << led.out;
}

TEST_F(RecordsCommandLine, WhatPassesVerifyIsVerifiedFromThenOn) {
    tune_whole("softmax rows=64,cols=8192,dtype=f32,x.align=8");
    const auto states = [&] {
        const Store store = Store::open({.path = folder / "cache/1/tune.db", .mode = Store::Mode::read});
        std::multiset<std::string> names;
        for (const Record& record : store.records({.op = "softmax"}, {})) names.emplace(name_of(record.verified));
        return names;
    };
    const std::multiset<std::string> before = states();
    ASSERT_GT(before.count("checked"), 0u) << "the search left no record that only its check before timing vouches for";
    EXPECT_EQ(scripted("verify softmax").code, 0);
    EXPECT_EQ(states().count("verified"), before.size());
}

TEST_F(RecordsCommandLine, ARecordThatFailsItsReCheckEndsWithFourAndIsNotChosenAgain) {
    tune(pitched);
    const std::string config = json::parse(scripted("query softmax --json").out)["config"]["text"];
    const Answer r = scripted("verify softmax", "SCRIPTED_FAILS='" + config + "'");
    EXPECT_EQ(r.code, 4) << r.err;
    EXPECT_NE(r.out.find("1 failed"), std::string::npos) << r.out;
    const Answer why = scripted(std::string{"why "} + pitched);
    EXPECT_NE(why.out.find(config + "   "), std::string::npos) << why.out;
    EXPECT_NE(why.out.find("not used: it has failed on this problem"), std::string::npos) << why.out;
    EXPECT_EQ(why.out.find("answer: exact, " + config), std::string::npos) << why.out;
}

TEST_F(RecordsCommandLine, WhatPassesVerifyAfterAFailureIsChosenAgain) {
    tune(pitched);
    const std::string config = json::parse(scripted("query softmax --json").out)["config"]["text"];
    ASSERT_EQ(scripted("verify softmax", "SCRIPTED_FAILS='" + config + "'").code, 4);
    EXPECT_EQ(scripted("verify softmax").code, 0);
    const Answer why = scripted(std::string{"why "} + pitched);
    EXPECT_NE(why.out.find("answer: exact, " + config), std::string::npos) << why.out;
}

// Goal: a record of older files fails under the files of today, since those are what was checked.
TEST_F(RecordsCommandLine, AStaleRecordThatFailsIsNotChosenAgainEither) {
    tune(pitched);
    std::string config;
    {
        Store store = Store::open({.path = folder / "cache/1/tune.db", .mode = Store::Mode::write});
        Record stale = store.records({.op = "softmax", .winners_only = true}, {}).at(0);
        config = stale.config.text();
        stale.source.source_hash = std::string(64, '0');
        store.put({&stale, 1});
    }
    ASSERT_EQ(scripted("verify softmax", "SCRIPTED_FAILS='" + config + "'").code, 4);
    const Answer why = scripted(std::string{"why "} + pitched);
    EXPECT_EQ(why.out.find("answer: exact, " + config), std::string::npos) << why.out;
    EXPECT_EQ(why.out.find("answer: stale, " + config), std::string::npos) << why.out;
}

TEST_F(RecordsCommandLine, QueryRefusesAConditionOnWhatNoProblemHas) {
    tune(pitched);
    const Answer r = run("query softmax --where 'colls > 1'");
    EXPECT_EQ(r.code, 1);
    EXPECT_NE(r.err.find("--where names 'colls', which is no field of 'softmax'"), std::string::npos) << r.err;
    EXPECT_NE(r.err.find("cols"), std::string::npos) << r.err;
    EXPECT_EQ(run("query softmax --where 'cols > 1'").code, 0);
}

TEST_F(RecordsCommandLine, QueryShowsTheAlignmentAndLayoutThatWereTuned) {
    tune(pitched);
    const Answer table = run("query softmax");
    EXPECT_NE(table.out.find("x.align=8"), std::string::npos) << table.out;
    const json record = json::parse(run("query softmax --json").out);
    for (const json& tensor : record["tensors"])
        if (tensor["name"] == "x") {
            EXPECT_GT(tensor["strides"][0].get<int>(), 4096);
        } else {
            EXPECT_EQ(tensor["strides"][0], 4096);
        }
}

TEST_F(RecordsCommandLine, WhyAnswersAsTheDispatcherWould) {
    tune_whole("softmax rows=64,cols=4096,dtype=f32");
    const Answer exact = scripted("why softmax rows=64,cols=4096,dtype=f32");
    EXPECT_NE(exact.out.find("answer: exact, "), std::string::npos) << exact.out;
    EXPECT_NE(exact.out.find("fresh, verified   <- chosen"), std::string::npos) << exact.out;

    const Answer other = scripted("why softmax rows=65,cols=4096,dtype=f32");
    EXPECT_NE(other.out.find("answer: nearest, "), std::string::npos) << other.out;
    EXPECT_NE(other.out.find("rows=64 cols=4096 dtype=f32: rows 64 there, 65 here"), std::string::npos) << other.out;
    EXPECT_NE(other.out.find("help: autotune tune softmax rows=65,cols=4096,dtype=f32"), std::string::npos)
        << other.out;

    const Answer less_aligned = scripted("why softmax rows=64,cols=4096,dtype=f32,x.align=4");
    EXPECT_NE(less_aligned.out.find("answer: default, "), std::string::npos) << less_aligned.out;
    EXPECT_NE(less_aligned.out.find("dtype=f32: x.align 16 there, 4 here"), std::string::npos) << less_aligned.out;
    EXPECT_NE(less_aligned.out.find("x.align=4      # makes it exact"), std::string::npos) << less_aligned.out;

    const json line = json::parse(scripted("why softmax rows=64,cols=4096,dtype=f32 --json").out);
    EXPECT_EQ(line["source"], "exact");
    EXPECT_EQ(line["rows"][0]["chosen"], true);
}

TEST_F(RecordsCommandLine, TheCubinThatWasTimedIsTheOneThatQueryWrites) {
    tune("softmax rows=64,cols=4096,dtype=f32");
    const Store store = Store::open({.path = folder / "cache/1/tune.db", .mode = Store::Mode::read});
    const std::vector<Record> records = store.records({.op = "softmax", .winners_only = true}, {});
    ASSERT_EQ(records.size(), 1u);
    const OpSet ops;
    const Instance instance = instance_of(records[0].problem, ops.find("softmax"), records[0].device.limits);
    const SourceSpec source = instance.sources(records[0].config).front();
    const std::string bytes = "the very bytes";
    const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
    BinaryStore{store.binaries_folder()}.put(
        {.key = binary_key(source, Compiler::fixed_options(), "sm_90", records[0].environment.nvrtc_major,
                           records[0].environment.nvrtc_minor),
         .artefact = {.arch = "sm_90", .cubin = {begin, begin + bytes.size()}},
         .source = source.source,
         .nvrtc_major = records[0].environment.nvrtc_major,
         .nvrtc_minor = records[0].environment.nvrtc_minor});
    const Answer r = run("query softmax --as cubin -o kernel.cubin");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(read(folder / "kernel.cubin"), bytes);
    EXPECT_NE(r.err.find(", sm_90"), std::string::npos) << r.err;
}

TEST_F(RecordsCommandLine, BenchComparesWithAnotherDatabaseOnAllOfItsProblems) {
    tune("softmax rows=64,cols=4096,dtype=f32", "--db old.db");
    tune(pitched, "--db old.db");
    tune("softmax rows=64,cols=4096,dtype=f32", "--seed 7");
    const Answer r = scripted("bench softmax --against old.db --json");
    EXPECT_EQ(r.code, 0) << r.err;
    std::set<std::string> verdicts;
    for (const json& line : r.lines()) verdicts.insert(line["verdict"]);
    EXPECT_EQ(r.lines().size(), 4u) << r.out;
    EXPECT_TRUE(verdicts.contains("baseline"));
    ASSERT_EQ(prepared(r).size(), 2u);
    EXPECT_NE(prepared(r)[0]["x.layout"], prepared(r)[1]["x.layout"]);
}

TEST_F(RecordsCommandLine, BenchComparesTwoConfigsAndFailsOnTheSlowerOneWhenAsked) {
    const std::string problem = "softmax rows=64,cols=4096,dtype=f32";
    tune(problem);
    std::vector<std::pair<double, std::string>> tried;
    for (const json& line : scripted("tune " + problem + " --budget 12 --json --fresh").lines())
        if (line["event"] == "trial" && line["outcome"] == "timed")
            tried.emplace_back(line["time_us"].get<double>(), line["config"]["text"]);
    std::ranges::sort(tried);
    const std::string fast = tried.front().second, slow = tried.back().second;
    const auto bench = [&](const std::string& words) { return scripted("bench " + problem + " " + words); };
    const Answer slower = bench("--config '" + slow + "' --against '" + fast + "'");
    EXPECT_EQ(slower.code, 0) << slower.err;
    EXPECT_NE(slower.out.find(" slower"), std::string::npos) << slower.out;
    EXPECT_EQ(bench("--config '" + slow + "' --against '" + fast + "' --fail-on slower").code, 4);
    EXPECT_EQ(bench("--config '" + fast + "' --against '" + slow + "' --fail-on slower").code, 0);
    EXPECT_EQ(bench("--config '" + fast + "' --against '" + fast + "' --fail-on slower").code, 0);

    const std::string id = json::parse(scripted("query softmax --json").out)["id"];
    const Answer record = scripted("bench --against " + id + " --config '" + slow + "' --fail-on slower");
    EXPECT_EQ(record.code, 4) << record.err << record.out;
}

TEST_F(RecordsCommandLine, BenchSaysThatCountersBesideAGpusTimeAreAnEmulators) {
    const std::string problem = "bench softmax rows=64,cols=4096,dtype=f32 --counters";
    const Answer r = scripted(problem);
    EXPECT_NE(r.out.find("from an emulator that ran the PTX of the same compile; the time is the GPU's\n"),
              std::string::npos)
        << r.out;
    EXPECT_NE(r.out.find("counted on the emulator over 4 of its 8 blocks"), std::string::npos) << r.out;
    const Answer none = scripted(problem + " --config two_pass");
    EXPECT_NE(none.out.find("no counters: not emulated: made up"), std::string::npos) << none.out;
}

TEST_F(RecordsCommandLine, WhatTheEmulatorSaysOfAFailureIsKeptWithItsTrial) {
    const std::string problem = "softmax rows=64,cols=4096,dtype=f32";
    std::optional<json> explained;
    for (const json& line : scripted("tune " + problem + " --budget 20 --json").lines())
        if (line["event"] == "explained") explained = line;
    ASSERT_TRUE(explained);
    EXPECT_EQ((*explained)["reason"], "made up; emulated: made up, too");
    const std::string trial = std::to_string((*explained)["trial"].get<int>());
    EXPECT_NE(scripted("why softmax --trial " + trial).out.find("made up; emulated: made up, too"), std::string::npos);
    EXPECT_EQ((*explained)["config"], json::parse(scripted("why softmax --json --trial " + trial).out)["config"]);
}

TEST_F(RecordsCommandLine, AMachinesDatabaseThatCannotBeReadIsNamedAndPassedOver) {
    std::filesystem::create_symlink("loop.db", folder / "loop.db");
    write("text.db", std::string(200, 'x'));
    for (const std::string name : {"loop.db", "text.db"}) {
        const Answer r =
            scripted("why softmax rows=8,cols=8,dtype=f32", "AUTOTUNE_SYSTEM_DB='" + (folder / name).string() + "'");
        EXPECT_EQ(r.code, 0) << r.err;
        EXPECT_NE(r.err.find(name + "' "), std::string::npos) << r.err;
        EXPECT_NE(r.err.find("; it is ignored"), std::string::npos) << r.err;
    }
}

TEST_F(RecordsCommandLine, BenchAgainstNothingIsBadUse) {
    EXPECT_EQ(scripted("bench softmax --against nowhere.db").code, 1);
    EXPECT_EQ(scripted("bench softmax --against 9-9-9-9.9-0").code, 1);
    EXPECT_EQ(scripted("bench softmax --against 'plain NO=1'").code, 1);
    EXPECT_EQ(scripted("bench softmax --fail-on faster").code, 1);
}

}  // namespace
}  // namespace autotune

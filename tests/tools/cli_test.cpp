// Goal: what a user types is answered as the docs say: results on stdout, all else on stderr, the documented exit
// codes. Method: the built program is run, without a GPU and with a cache folder of its own.
#include <sstream>

#include "tests/tools/command_line.h"

namespace autotune {
namespace {

namespace fs = std::filesystem;

TEST_F(CommandLine, TellsItsVersion) {
    const Answer r = run("--version");
    EXPECT_EQ(r.code, 0);
    EXPECT_EQ(r.out.substr(0, 9), "autotune ");
}

TEST_F(CommandLine, WithoutWordsItExplainsItself) {
    const Answer r = run("");
    EXPECT_EQ(r.code, 0);
    EXPECT_NE(r.out.find("autotune --op softmax"), std::string::npos);
}

TEST_F(CommandLine, AnUnknownOpIsBadUse) {
    const Answer r = run("tune softmx");
    EXPECT_EQ(r.code, 1);
    EXPECT_EQ(r.err, "error: there is no op 'softmx'; did you mean 'softmax'?\nhelp: autotune ops\n");
    EXPECT_EQ(r.out, "");
}

TEST_F(CommandLine, BadProblemsAreBadUse) {
    for (const std::string problem : {"rows=0,cols=4", "rows=-3,cols=4", "rows=1099511627777,cols=4",
                                      "rows=4,cols=4,dtype=f63", "rows=4,colz=4", "rows"}) {
        const Answer r = run("space softmax --gpu sm_86 --problem " + problem);
        EXPECT_EQ(r.code, 1) << problem;
        EXPECT_EQ(r.err.substr(0, 7), "error: ") << r.err;
        EXPECT_EQ(r.out, "");
    }
}

// Goal: no search runs with a value that its records then say nothing of.
TEST_F(CommandLine, AScalarThatDecidesNoFieldIsRefusedWhereResultsAreStored) {
    const std::string problem = "gemm m=64,n=64,k=64,dtype=f32,";
    for (const std::string sub : {"tune ", "space ", "build ", "why "}) {
        const Answer r = run(sub + problem + "alpha=2.5");
        EXPECT_EQ(r.code, 1) << sub;
        EXPECT_NE(r.err.find("error: alpha=2.5 is part of no problem of 'gemm'"), std::string::npos) << r.err;
        EXPECT_EQ(r.out, "") << sub;
    }
    write("shapes.txt", problem.substr(0, problem.size() - 1) + "\n" + problem + "alpha=2.5\n");
    const Answer named = run("space --problems shapes.txt");
    EXPECT_NE(named.err.find("error: shapes.txt:2: alpha=2.5 is part"), std::string::npos) << named.err;
    EXPECT_EQ(run("space " + problem + "beta=1").code, 0);  // beta0 follows from it
    EXPECT_EQ(scripted("bench " + problem + "alpha=2.5").code, 0);
}

TEST_F(CommandLine, ANamedConfigIsCheckedAtThoseListedProblemsThatItIsValidFor) {
    ASSERT_EQ(run("new mine").code, 0);
    std::string toml = read(folder / "mine/scale.toml");  // its list: n = 1, 1000, 65537
    toml.insert(toml.find("# The last kernel"),
                "[[kernel.constraint]]\nclaim = \"n is even\"\nholds = \"n % 2 == 0 or THREADS == 256\"\n\n");
    write("mine/scale.toml", toml);
    const Answer r = run("check --ops mine --gpu sm_86 --config THREADS=128");
    EXPECT_EQ(r.code, 0) << r.err << r.out;
    EXPECT_NE(r.out.find("not valid for this problem: n is even"), std::string::npos) << r.out;
    EXPECT_NE(r.out.find("scale n=1000 dtype=f32\n  right"), std::string::npos) << r.out;
    EXPECT_EQ(run("check --ops mine --gpu sm_86 --config THREADS=128 --problem n=3").code, 1);
}

// Goal: the whole job without a GPU: compiled, checked, modelled, stored, and never taken for a measurement.
TEST_F(CommandLine, WithoutAGpuASearchRunsOnTheEmulatorAndSaysSo) {
    const Answer r = run("--op softmax --problem rows=64,cols=256,dtype=f32 --budget 4");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_NE(r.err.find("EMULATED"), std::string::npos) << r.err;
    EXPECT_NE(r.out.find("times are predicted, not measured"), std::string::npos) << r.out;
    EXPECT_NE(r.out.find("verified   "), std::string::npos) << r.out;
    EXPECT_NE(r.out.find("stored in "), std::string::npos) << r.out;
    const Answer known = run("query softmax");
    EXPECT_EQ(known.code, 0) << known.err;
    EXPECT_NE(known.err.find("PREDICTED"), std::string::npos) << known.err;
    const Answer again = run("--op softmax --problem rows=64,cols=256,dtype=f32 --budget 4");
    EXPECT_NE(again.out.find("known from earlier runs"), std::string::npos) << again.out;
}

TEST_F(CommandLine, NoPredictedTimeIsInAJsonLineWithoutSayingSo) {
    const Answer r = run("tune softmax rows=64,cols=256,dtype=f32 --budget 3 --json");
    EXPECT_EQ(r.code, 0) << r.err;
    std::istringstream lines{r.out};
    int trials = 0;
    for (std::string line; std::getline(lines, line);) {
        const auto event = nlohmann::json::parse(line);
        if (event.contains("device")) EXPECT_TRUE(event["device"]["emulated"].get<bool>()) << line;
        if (event["event"] != "trial") continue;
        ++trials;
        EXPECT_TRUE(event.value("predicted", false)) << line;
    }
    EXPECT_EQ(trials, 3);
    const Answer header = run("query softmax --as cpp");
    EXPECT_NE(header.out.find("PREDICTED by an emulator"), std::string::npos) << header.out;
    const auto t4 = nlohmann::json::parse(run("query softmax --as t4").out);
    ASSERT_EQ(t4.at("results").size(), 3U);
    for (const auto& result : t4.at("results"))
        EXPECT_NE(result.at("measurements").dump().find("predicted"), std::string::npos) << result;
}

// Method: 40 trials are of several variants, which have different parameters.
TEST_F(CommandLine, WhatIsWrittenForOtherTunersIsReadAgain) {
    ASSERT_EQ(scripted("tune softmax rows=64,cols=4096,dtype=f32 --budget 40").code, 0);
    for (const std::string form : {"t4", "kernel-tuner"}) {
        ASSERT_EQ(scripted("query softmax --as " + form + " -o trials.json").code, 0);
        const Answer r = run("space --measured trials.json -o trials.csv --json");
        EXPECT_EQ(r.code, 0) << form << r.err;
        const nlohmann::json space = r.lines().front();
        EXPECT_EQ(space["measured"]["configs"], 40) << form;
        EXPECT_GE(space["measured"]["failed"].size(), 1u) << form;
        const std::string best = nlohmann::json::parse(scripted("query softmax --json").out)["config"]["text"];
        const std::string read_best = space["measured"]["best"]["text"];
        for (std::size_t at = best.find(' '); at != std::string::npos; at = best.find(' ', at + 1))
            EXPECT_NE(read_best.find(best.substr(at, best.find(' ', at + 1) - at)), std::string::npos)
                << form << ": " << read_best << " lacks some of " << best;
        EXPECT_EQ(run("replay trials.csv --evaluations 10 --seeds 2").code, 0) << form;
    }
}

// Goal: what a config does is told beside its time, whatever it was tuned on, and kept with a predicted trial.
TEST_F(CommandLine, CountersAreToldByBenchAndKeptWithATrial) {
    const std::string problem = "softmax rows=64,cols=256,dtype=f32";
    const Answer r = run("bench " + problem + " --config block --counters");
    EXPECT_EQ(r.code, 0) << r.err;
    for (const char* row : {"counters of this config, from the same blocks as its time",
                            "counted on the emulator over ", "registers a thread", "occupancy ", "achieved occupancy ",
                            "warp instructions", "  fp32 (", "  sectors a request", "  memory efficiency",
                            "divergent branches", "warps at barriers", "flops", "bank conflicts"})
        EXPECT_NE(r.out.find(row), std::string::npos) << row << " is missing in\n" << r.out;
    EXPECT_EQ(run("bench " + problem).out.find("counted on"), std::string::npos);

    EXPECT_EQ(run("tune " + problem + " --budget 2").code, 0);
    const Answer why = run("why softmax --trial 1");
    EXPECT_NE(why.out.find("warp instructions"), std::string::npos) << why.out;
    const nlohmann::json trial = run("why softmax --trial 1 --json").lines().at(0);
    EXPECT_NE(why.out.find(" PREDICTED by an emulator"), std::string::npos) << why.out;
    EXPECT_NE(run("why " + problem + " --trial 1").out.find("trial 1: "), std::string::npos);
    const Answer other = run("why softmax rows=65,cols=256,dtype=f32 --trial 1");
    EXPECT_EQ(other.code, 2) << other.out;
    EXPECT_NE(other.err.find("error: no search of that problem is stored"), std::string::npos) << other.err;
    const nlohmann::json& launch = trial.at("counters").at(0);
    EXPECT_GT(launch.at("launch").at("instructions"), launch.at("a_block").at("instructions")) << launch;
    // Every element is read and written at least once, over all blocks.
    EXPECT_GE(launch.at("launch").at("global_load_bytes"), 64 * 256 * 4);
    EXPECT_EQ(launch.at("launch").at("global_store_bytes"), 64 * 256 * 4);
    EXPECT_EQ(launch.at("launch").at("global_store_efficiency"), 1.0);
}

TEST_F(CommandLine, APredictionIsWhatADispatcherWouldLaunchUntilSomethingIsMeasured) {
    const std::string problem = "softmax rows=64,cols=256,dtype=f32 --gpu emulated:a100";
    const Answer before = run("why " + problem);
    EXPECT_NE(before.out.find("answer: default"), std::string::npos) << before.out << before.err;
    ASSERT_EQ(run("tune " + problem + " --budget 3").code, 0);
    const Answer after = run("why " + problem + " --json");
    const nlohmann::json line = after.lines().front();
    ASSERT_FALSE(line["rows"].empty()) << after.out;
    EXPECT_EQ(line["rows"][0]["rung"], "predicted");
    EXPECT_EQ(line["rows"][0]["state"], "not measured");
    const bool refused = line["rows"][0]["refused"] != "";
    EXPECT_EQ(line["source"], refused ? "default" : "predicted") << after.out;
}

TEST_F(CommandLine, WhatIsNotThereOrMeantOtherwiseIsSaid) {
    const Answer nowhere = run("query --db nowhere/t.db");
    EXPECT_EQ(nowhere.code, 2);
    EXPECT_NE(nowhere.err.find("error: there is no database '"), std::string::npos) << nowhere.err;
    const Answer apart = run("space softmax rows=64 cols=128");
    EXPECT_NE(apart.err.find("note: rows=64 and cols=128 are two problems; as one they are rows=64,cols=128"),
              std::string::npos)
        << apart.err;
    EXPECT_EQ(run("space softmax rows=64 rows=128").err.find("two problems"), std::string::npos);
    const Answer strategy = run("replay none.space --strategy nonsuch");
    EXPECT_NE(strategy.err.find("there is no strategy 'nonsuch'; the strategies are guided, "), std::string::npos)
        << strategy.err;
}

TEST_F(CommandLine, APriorIsSaidAndCountsNoTrial) {
    const Answer r = run("tune softmax rows=64,cols=256,dtype=f32 --gpu emulated:a100 --budget 60s,3 --prior model");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_NE(r.err.find("predicted as on NVIDIA A100-SXM4-40GB in"), std::string::npos) << r.err;
    EXPECT_NE(r.out.find("; the times are the same model's"), std::string::npos) << r.out;
    EXPECT_NE(r.out.find("tried      3 of"), std::string::npos) << r.out;
}

TEST_F(CommandLine, EveryOpRunsOnTheEmulator) {
    for (const std::string problem :
         {"gemm m=70,n=40,k=50,dtype=f32 --gpu emulated:a100",
          "attention batch=1,q_heads=2,kv_heads=1,seq_q=33,seq_k=47,head_dim=64,dtype=f16 --gpu sm_86",
          "softmax rows=3,cols=9000,dtype=bf16 --gpu sm_90"}) {
        const Answer r = run("tune " + problem + " --budget 2 --db none");
        EXPECT_EQ(r.code, 0) << problem << r.err << r.out;
        EXPECT_NE(r.out.find("EMULATED"), std::string::npos) << r.out;
    }
}

TEST_F(CommandLine, SelftestRunsOnTheEmulator) {
    const Answer r = run("selftest");
    EXPECT_EQ(r.code, 0) << r.err << r.out;
    EXPECT_NE(r.out.find("6 of 6"), std::string::npos) << r.out;
}

TEST_F(CommandLine, AnOrdinalOfNoGpuIsNotEmulated) {
    const Answer r = run("tune softmax --gpu 0");
    EXPECT_EQ(r.code, 3);
    EXPECT_NE(r.err.find("error: there is no usable GPU here, so none is '0'"), std::string::npos) << r.err;
}

TEST_F(CommandLine, AnEmulatedPartThatNobodyKnowsIsNamedWithThoseThereAre) {
    const Answer r = run("tune softmax --gpu emulated:b17");
    EXPECT_EQ(r.code, 1);
    EXPECT_NE(r.err.find("there is no emulated GPU 'b17'"), std::string::npos) << r.err;
    EXPECT_NE(r.err.find("a100"), std::string::npos) << r.err;
}

TEST_F(CommandLine, ACapabilityThatNobodyKnowsIsBadUse) {
    EXPECT_EQ(run("tune softmax --gpu sm_42").code, 1);
    EXPECT_EQ(run("space softmax --gpu fast").code, 1);
}

TEST_F(CommandLine, SpaceCountsWithoutAGpu) {
    const Answer r = run("space softmax --gpu sm_86 --json");
    EXPECT_EQ(r.code, 0) << r.err;
    const auto line = nlohmann::json::parse(r.out);
    EXPECT_EQ(line["event"], "space");
    EXPECT_GT(line["valid"].get<int>(), 1);
    EXPECT_GE(line["raw"].get<double>(), line["valid"].get<double>());
}

TEST_F(CommandLine, OpsListsWhatIsBuiltIn) {
    const Answer r = run("ops");
    EXPECT_EQ(r.code, 0) << r.err;
    for (const std::string op : {"softmax", "gemm", "attention"}) EXPECT_NE(r.out.find(op), std::string::npos);
}

TEST_F(CommandLine, DoctorSaysThatThereIsNoGpu) {
    const Answer r = run("doctor");
    EXPECT_EQ(r.code, 3);
    EXPECT_NE(r.out.find("driver"), std::string::npos);
    EXPECT_NE(r.out.find("NVRTC"), std::string::npos);
}

TEST_F(CommandLine, AnEmptyDatabaseIsNothingFound) {
    const Answer r = run("query softmax");
    EXPECT_EQ(r.code, 2);
    EXPECT_NE(r.err.find("help: autotune tune softmax"), std::string::npos) << r.err;
}

TEST_F(CommandLine, AFileThatIsNoDatabaseIsLeftAsItIs) {
    write("notes.db", "not a database, but somebody's notes");
    const Answer r = run("query softmax --db notes.db");
    EXPECT_EQ(r.code, 1) << r.err;
    EXPECT_EQ(read(folder / "notes.db"), "not a database, but somebody's notes");
}

TEST_F(CommandLine, ABrokenOpFileIsShownWithItsLineAndACaret) {
    ASSERT_EQ(run("new mine").code, 0);
    std::string toml = read(folder / "mine/scale.toml");
    const std::string right = "ceil_div(n, THREADS * ITEMS)";
    toml.replace(toml.find(right), right.size(), "ceil_div(n, THREADZ * ITEMS)");
    write("mine/scale.toml", toml);
    const Answer r = run("ops scale --ops mine");
    EXPECT_EQ(r.code, 1);
    EXPECT_NE(r.err.find("mine/scale.toml:"), std::string::npos) << r.err;
    EXPECT_NE(r.err.find("did you mean 'THREADS'?"), std::string::npos) << r.err;
    EXPECT_NE(r.err.find("^~~~~~~"), std::string::npos) << r.err;
}

TEST_F(CommandLine, ASpaceOfATrillionPointsIsCountedAndOneOf10To20IsRefused) {
    std::string toml =
        "format = 1\nop = \"huge\"\nsummary = \"x\"\n[problem]\nn = { dim = \"near\", default = 4 }\n[[tensor]]\nname "
        "= \"y\"\nrole = \"out\"\ndtype = \"f32\"\n"
        "shape = [\"n\"]\n[reference]\nkernel = \"k\"\n[tolerance]\ny = { exact = true }\n[[kernel]]\nname = "
        "\"k\"\nsource = \"k.cu\"\nentry = \"k\"\n[kernel.parameters]\n";
    const auto with_parameters = [&](const std::string& letters) {
        std::string text = toml;
        for (const char c : letters) text += std::string{c} + "A = { values = [1,2,3,4,5,6,7,8,9,10], default = 1 }\n";
        write("ops/huge.toml", text + "[[kernel.launch]]\ngrid = [1]\nblock = [32]\nargs = [\"y\"]\n");
    };
    with_parameters("ABCDEFGHIJKL");
    write("ops/k.cu", "extern \"C\" __global__ void k(float* y) {}\n");
    const Answer counted = run("space huge --ops ops --gpu sm_86");
    EXPECT_EQ(counted.code, 0) << counted.err;
    EXPECT_NE(counted.out.find("1000000000000"), std::string::npos) << counted.out;
    with_parameters("ABCDEFGHIJKLMNOPQRST");
    const Answer refused = run("space huge --ops ops --gpu sm_86");
    EXPECT_EQ(refused.code, 1) << refused.out;
    EXPECT_NE(refused.err.find("error: variant 'k' of 'huge' has more than"), std::string::npos) << refused.err;
}

TEST_F(CommandLine, ASpaceInWhichNothingIsValidSaysWhyAndEndsWith2) {
    write("t1.json", R"({"ConfigurationSpace": {"TuningParameters": [{"Name": "A", "Type": "int", "Values": "[1, 2]"}],
        "Conditions": [{"Parameters": ["A"], "Expression": "A > 2"}]}})");
    const Answer r = run("space --t1 t1.json");
    EXPECT_EQ(r.code, 2) << r.out;
    EXPECT_NE(r.out.find("2 A > 2"), std::string::npos) << r.out;
    EXPECT_NE(r.err.find("no config of 'kernel' meets all conditions of t1.json"), std::string::npos) << r.err;
}

TEST_F(CommandLine, AnOpOfWhichNoConfigIsValidSaysWhyAndEndsWith2) {
    ASSERT_EQ(run("new mine").code, 0);
    std::string toml = read(folder / "mine/scale.toml");
    toml.erase(toml.find("# The last kernel"));
    toml += "[[kernel.constraint]]\nclaim = \"few threads\"\nholds = \"THREADS == 3\"\n";
    write("mine/scale.toml", toml);
    for (const std::string sub : {"tune --budget 3 --db none", "build --db none", "check"}) {
        const Answer r = run(sub + " scale n=1000 --ops mine --gpu sm_86");
        EXPECT_EQ(r.code, 2) << sub << r.out << r.err;
        EXPECT_NE((r.out + r.err).find("few threads: THREADS == 3 does not hold"), std::string::npos)
            << sub << r.out << r.err;
    }
    EXPECT_NE(run("check scale n=1000 --ops mine --gpu sm_86").err.find("error: nothing was checked"),
              std::string::npos);
    EXPECT_EQ(run("tune scale n=1000 --budget 3 --db kept.db --ops mine --gpu sm_86").code, 2);
    const std::string rows = run("db stats --db kept.db").out;
    EXPECT_NE(rows.find(" run 0,"), std::string::npos) << "a run was begun that nothing ends: " << rows;
    toml.replace(toml.find("THREADS == 3"), 12, "n % 2 == 0");
    write("mine/scale.toml", toml);
    const Answer odd =
        run("tune --problem n=1001 --problem n=1000 --budget 1 --db none --ops mine --op scale --gpu sm_86");
    EXPECT_EQ(odd.code, 2) << odd.err;
    EXPECT_NE(odd.err.find("few threads: n % 2 == 0 does not hold (n=1001)"), std::string::npos) << odd.err;
    EXPECT_NE(odd.out.find("scale n=1000 dtype=f32 on "), std::string::npos)
        << "the other problem is tuned: " << odd.out;
}

TEST_F(CommandLine, TheSpaceOfAnotherTunersFileIsCounted) {
    write("t1.json", R"json({"ConfigurationSpace": {"TuningParameters": [
        {"Name": "bx", "Type": "int", "Values": "[2**i for i in range(4, 11)]", "Default": 32},
        {"Name": "by", "Type": "int", "Values": "list(range(1, 9))"}],
        "Conditions": [{"Parameters": ["bx"], "Expression": "32 <= bx * by <= 1024"}]},
        "KernelSpecification": {"KernelName": "conv", "Language": "CUDA", "KernelFile": "conv.cu"}})json");
    const Answer r = run("space --t1 t1.json");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_NE(r.out.find("plan: 38 configs of 56 raw"), std::string::npos) << r.out;
    EXPECT_NE(r.out.find("conv bx=32 by=1"), std::string::npos) << r.out;
    const Answer none = run("space --t1 no.json");
    EXPECT_EQ(none.code, 1);
    EXPECT_NE(none.err.find("'no.json' is no file"), std::string::npos) << none.err;
}

TEST_F(CommandLine, ResultsOfAnotherTunerAreSetBesideTheirSpace) {
    write("t1.json", R"json({"ConfigurationSpace": {"TuningParameters": [
        {"Name": "bx", "Type": "int", "Values": "[16, 32, 64]"}],
        "Conditions": [{"Parameters": ["bx"], "Expression": "bx < 64"}]},
        "KernelSpecification": {"KernelName": "conv", "Language": "CUDA", "KernelFile": "conv.cu"}})json");
    write("cache.json", R"json({"kernel_name": "conv", "device_name": "A 100", "tune_params_keys": ["bx"], "cache": {
        "16": {"bx": 16, "time": 1.5}, "32": {"bx": 32, "time": "CompilationFailedConfig"}, "64": {"bx": 64, "time": 1},)json");
    const Answer r = run("space --t1 t1.json --measured cache.json -o recorded.csv");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_NE(r.out.find("measured: 2 of 2, 1 failed (1 compile)"), std::string::npos) << r.out;
    EXPECT_NE(r.out.find("best: 1500.0 us   conv bx=16"), std::string::npos) << r.out;
    EXPECT_NE(r.err.find("1 result left out: the space has no such config"), std::string::npos) << r.err;
    const std::string recorded = read(folder / "recorded.csv");
    EXPECT_NE(recorded.find("# device: A_100\n# values bx: 16 32 64\nbx,time_ms,sd_ms,cost_ms,status\n"
                            "16,1.5,,,ok\n32,error,,,compile\n"),
              std::string::npos)
        << recorded;
    EXPECT_EQ(run("space --measured cache.json -o no/recorded.csv").code, 1);
    EXPECT_EQ(run("space softmax -o recorded.csv --gpu sm_86").code, 1);
}

TEST_F(CommandLine, ANewOpLoadsAndIsRightAsItIs) {
    const Answer made = run("new mine");
    ASSERT_EQ(made.code, 0) << made.err;
    const Answer again = run("new mine");
    EXPECT_EQ(again.code, 1);
    const Answer checked = run("check scale --ops mine --gpu sm_86 --problem n=1000");
    EXPECT_EQ(checked.code, 0) << checked.err << checked.out;
    EXPECT_NE(checked.out.find("right"), std::string::npos) << checked.out;
}

TEST_F(CommandLine, BuildCompilesASpaceWithoutAGpuAndKeepsTheBinaries) {
    const Answer r = run("build softmax rows=4,cols=64,dtype=f32 --gpu sm_86 --budget 2");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_NE(r.out.find("2 of 2 configs compile"), std::string::npos) << r.out;
    EXPECT_FALSE(fs::is_empty(folder / "cache")) << "no binary was kept";
}

TEST_F(CommandLine, BuildRefusesASpaceThatNoMemoryHoldsAndStopsWithItsTime) {
    ASSERT_EQ(run("new mine").code, 0);
    std::string values = "0";
    for (int i = 1; i < 1000; ++i) values += ", " + std::to_string(i);
    std::string toml = read(folder / "mine/scale.toml");
    for (const char* name : {"A", "B", "C"})
        toml.insert(toml.find("ITEMS = "),
                    std::string{name} + " = { values = [" + values + "], default = 0, about = \"a\" }\n");
    write("mine/scale.toml", toml);
    const Answer r = run("build --ops mine --gpu sm_86");
    EXPECT_EQ(r.code, 1) << r.out;
    EXPECT_EQ(r.err,
              "error: 20000000001 configs of 'scale' are asked for, and build takes at most 20000 of a problem\n"
              "help: --budget 20000 builds the first of them\n");
    EXPECT_EQ(run("build --ops mine --gpu sm_86 --db none --budget 2").code, 0);
    const Answer timed = run("build --ops mine --gpu sm_86 --db none --budget 500,1s");
    EXPECT_NE(timed.out.find(" not tried, "), std::string::npos) << timed.out << timed.err;
}

// Goal: what is suggested after a run without a result works, and says nothing that is not so.
TEST_F(CommandLine, ASecondRunThatFindsNothingPointsAtNoTrialOfItsOwn) {
    ASSERT_EQ(run("new mine").code, 0);
    std::string source = read(folder / "mine/scale.cu");
    source.insert(source.find("(factor *") + 1, "2.f + ");
    write("mine/scale.cu", source);
    const std::string words = "tune scale --ops mine --gpu sm_86 --problem n=1000 --budget 2";
    const Answer first = run(words);
    EXPECT_EQ(first.code, 2) << first.out;
    EXPECT_NE(first.err.find("help: autotune why scale n=1000,dtype=f32 --trial 1 "), std::string::npos) << first.err;
    const Answer second = run(words);
    EXPECT_NE(second.err.find("help: autotune tune scale n=1000,dtype=f32 --fresh "), std::string::npos) << second.err;
    EXPECT_NE(second.err.find("4 outcomes are stored"), std::string::npos) << second.err;
    const Answer nowhere = run(words + " --db none");
    EXPECT_EQ(nowhere.code, 2);
    EXPECT_EQ(nowhere.err.find("are stored"), std::string::npos) << nowhere.err;
}

TEST_F(CommandLine, AnOpAsAWindowsEditorSavesItIsRightToo) {
    ASSERT_EQ(run("new mine").code, 0);
    for (const std::string file : {"mine/scale.toml", "mine/scale.cu", "mine/scale.cpp"}) {
        std::string text = "\xef\xbb\xbf";
        for (const char c : read(folder / file)) text += c == '\n' ? std::string{"\r\n"} : std::string{c};
        write(file, text);
    }
    const Answer r = run("check scale --ops mine --gpu sm_86 --problem n=1000");
    EXPECT_EQ(r.code, 0) << r.err << r.out;
}

TEST_F(CommandLine, AReferenceThatCrashesIsNamedWithItsSignal) {
    ASSERT_EQ(run("new mine").code, 0);
    std::string text = read(folder / "mine/scale.cpp");
    text.insert(text.find("    const double factor"), "    __builtin_trap();\n");  // which sanitizers leave alone
    write("mine/scale.cpp", text);
    const Answer r = run("check scale --ops mine --gpu sm_86 --problem n=1000");
    EXPECT_EQ(r.code, 1) << r.out;
    EXPECT_NE(r.err.find("error: the C++ reference of 'scale' failed: its process ended while running: signal 4"),
              std::string::npos)
        << r.err;
}

// Method: memory is asked for and not touched, which the limit counts and the machine does not.
TEST_F(CommandLine, AReferenceThatTakesEverMoreMemoryEndsBeforeTheMachineHasNone) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer's shadow memory counts as data";
#endif
    ASSERT_EQ(run("new mine").code, 0);
    std::string text = read(folder / "mine/scale.cpp");
    text.insert(text.find("    const double factor"), R"(    std::vector<char*> held;
    try {
        for (;;) held.push_back(new char[1 << 26]);
    } catch (const std::bad_alloc&) {
        throw std::runtime_error("MiB: " + std::to_string(held.size() * 64));
    }
)");
    write("mine/scale.cpp", "#include <new>\n#include <stdexcept>\n#include <string>\n" + text);
    const Answer r = run("check scale --ops mine --gpu sm_86 --problem n=1000");
    EXPECT_EQ(r.code, 1) << r.out;
    const std::size_t at = r.err.find("the reference of 'scale' failed: MiB: ");
    ASSERT_NE(at, std::string::npos) << r.err;
    const double held = std::strtod(r.err.c_str() + at + 38, nullptr) * (1 << 20);
    EXPECT_GT(held, 0);
    EXPECT_LT(held, static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE)));
}

// Method: it hangs at all sizes, so that nothing can be tried, and at others than the one asked for, so that only the
// re-check of the winner waits for it. A file tells that it hangs by now, however slow the machine is; in the
// foreground `timeout` passes a signal on once, and not to the program's group too: a second one ends it at once.
TEST_F(CommandLine, AnInterruptEndsAReferenceThatHangsAndKeepsWhatWasFound) {
    for (const std::string mine : {"always", "at_others", "generator"}) {
        ASSERT_EQ(run("new " + mine).code, 0);
        std::string text = read(folder / mine / "scale.cpp"), toml = read(folder / mine / "scale.toml");
        const std::string sign = (folder / mine).string() + ".hangs";
        const std::string hang =
            "{\n        std::ofstream{\"" + sign + "\"};\n        for (volatile int i = 1; i;) {}\n    }\n";
        if (mine == "generator") {
            text += "AUTOTUNE_INPUTS(scale) {\n    " + hang + "}\n";
            toml.insert(toml.find("[work]"), "[inputs]\ncpp = \"scale.cpp\"\n\n");
        } else {
            const std::string where = mine == "always" ? "" : "if (x.size() != 1000) ";
            text.insert(text.find("    const double factor"), "    " + where + hang);
        }
        write(mine + "/scale.cpp", "#include <fstream>\n" + text);
        write(mine + "/scale.toml", toml);
        const Answer r = shell(
            "env --default-signal=INT timeout --foreground --preserve-status -s KILL 200 '" AUTOTUNE_BINARY_DIR
            "/bin/autotune' tune --ops " +
            mine + " --gpu sm_86 --problem n=1000 --budget 2 --db " + mine + ".db & for i in $(seq 1000); do [ -e '" +
            sign + "' ] && break; sleep 0.1; done; kill -INT $!; wait $!");
        EXPECT_EQ(r.code, 130) << mine << r.out << r.err;
        if (mine == "at_others")
            EXPECT_NE(r.out.find("stored in at_others.db"), std::string::npos) << r.out << r.err;
        else
            EXPECT_NE(r.err.find("error: interrupted while the reference of 'scale' ran"), std::string::npos) << r.err;
    }
}

TEST_F(CommandLine, CheckFailsForAKernelThatDoesNotCompile) {
    ASSERT_EQ(run("new mine").code, 0);
    write("mine/scale.cu", "extern \"C\" __global__ void scale(const T* x) { half16 y; }\n");
    const Answer r = run("check scale --ops mine --gpu sm_86 --problem n=1000");
    EXPECT_EQ(r.code, 4) << r.out;
    EXPECT_NE(r.out.find("compile failed"), std::string::npos) << r.out;
    EXPECT_NE(r.out.find("half16"), std::string::npos) << r.out;
}

// Goal: an installation that lacks its worker, or has it without the right to run it, is told so and how it is mended.
TEST_F(CommandLine, AWorkerThatIsMissingOrMayNotBeRunIsNoFaultOfAutotunes) {
    fs::create_directories(folder / "bin");
    fs::copy_file(AUTOTUNE_BINARY_DIR "/bin/autotune", folder / "bin/autotune");
    const std::string tune = "bin/autotune tune softmax rows=64,cols=64,dtype=f32 --budget 1";
    const Answer missing = shell(tune);
    EXPECT_EQ(missing.code, 3) << missing.err;
    EXPECT_NE(missing.err.find("autotune-worker, which compiles and runs kernels, was not found; looked at " +
                               (fs::canonical(folder) / "bin/autotune-worker").string()),
              std::string::npos)
        << missing.err;
    EXPECT_NE(missing.err.find("help: "), std::string::npos) << missing.err;
    write("bin/autotune-worker", "");
    const Answer forbidden = shell(tune);
    EXPECT_EQ(forbidden.code, 3) << forbidden.err;
    EXPECT_NE(forbidden.err.find("bin/autotune-worker' may not be run\nhelp: chmod +x '"), std::string::npos)
        << forbidden.err;
    const Answer named = shell("AUTOTUNE_WORKER=/nowhere/worker '" AUTOTUNE_BINARY_DIR
                               "/bin/autotune' tune softmax rows=64,cols=64,dtype=f32 --budget 1");
    EXPECT_EQ(named.code, 1) << named.err;
    EXPECT_NE(named.err.find("AUTOTUNE_WORKER names '/nowhere/worker', which is not there"), std::string::npos)
        << named.err;
}

TEST_F(CommandLine, DoctorTakesNoOtherProgramForTheWorker) {
    const Answer r = shell("AUTOTUNE_WORKER=/bin/true '" AUTOTUNE_BINARY_DIR "/bin/autotune' doctor");
    EXPECT_EQ(r.code, 3);
    EXPECT_NE(r.out.find("fail  worker"), std::string::npos) << r.out;
}

TEST_F(CommandLine, TheOnlyOpOfAFolderNeedsNoName) {
    ASSERT_EQ(run("new own").code, 0);
    const Answer r = run("space --ops own --gpu sm_90");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.out.rfind("scale ", 0), 0u) << r.out;
    const Answer none = run("space --gpu sm_90");
    EXPECT_EQ(none.code, 1);
    EXPECT_NE(none.err.find("space needs an op"), std::string::npos) << none.err;
}

TEST_F(CommandLine, EveryJsonLineParsesAndNothingElseIsOnStdout) {
    for (const std::string words : {"ops --json", "space gemm --gpu sm_80 --json", "doctor --json",
                                    "check softmax --gpu sm_86 --json --problem rows=4,cols=64"}) {
        const Answer r = run(words);
        ASSERT_FALSE(r.out.empty()) << words << r.err;
        std::size_t begin = 0;
        while (begin < r.out.size()) {
            const std::size_t end = r.out.find('\n', begin);
            const auto line = nlohmann::json::parse(r.out.substr(begin, end - begin), nullptr, false);
            ASSERT_TRUE(line.is_object()) << words << ": " << r.out.substr(begin, end - begin);
            EXPECT_EQ(line["v"], 1);
            begin = end + 1;
        }
    }
}

TEST_F(CommandLine, AnErrorIsAJsonLineTooWhenLinesWereAskedFor) {
    for (const std::string words : {"tune softmx --json", "tune softmax --json --no-such-flag"}) {
        const Answer r = run(words);
        EXPECT_EQ(r.code, 1);
        ASSERT_EQ(r.lines().size(), 1u) << r.out;
        EXPECT_EQ(r.lines()[0]["event"], "error");
        EXPECT_EQ(r.lines()[0]["exit_code"], 1);
        EXPECT_NE(r.err.find(r.lines()[0]["message"].get<std::string>()), std::string::npos) << r.err;
    }
}

TEST_F(CommandLine, AResultThatStdoutDoesNotTakeIsAnError) {
    for (const std::string words : {"ops", "ops --json", "help", "space softmax --gpu sm_86"}) {
        const Answer r = shell("'" AUTOTUNE_BINARY_DIR "/bin/autotune' " + words + " > /dev/full");
        EXPECT_EQ(r.code, 5) << words;
        EXPECT_EQ(r.err, "error: the result could not be written to stdout: No space left on device\n") << words;
    }
}

TEST_F(CommandLine, AReaderThatHasSeenEnoughIsNoError) {
    const Answer r = shell("{ '" AUTOTUNE_BINARY_DIR "/bin/autotune' ops --show gemm; echo $? > code; } | head -1");
    EXPECT_EQ(read(folder / "code"), "0\n");
    EXPECT_EQ(r.err, "");
    EXPECT_EQ(shell("'" AUTOTUNE_BINARY_DIR "/bin/autotune' ops >&-").code, 0);
}

TEST_F(CommandLine, ProblemsFilesNameTheLineThatIsWrong) {
    write("shapes.txt", "# shapes\nsoftmax rows=4,cols=8\nsoftmax rows=4,colz=8\n");
    const Answer r = run("space --problems shapes.txt --gpu sm_86");
    EXPECT_EQ(r.code, 1);
    EXPECT_NE(r.err.find("shapes.txt:3: "), std::string::npos) << r.err;
    write("shapes.txt", std::string{"softmax rows=4,cols=8\0\n", 23});
    EXPECT_EQ(run("space --problems shapes.txt --gpu sm_86").err, "error: shapes.txt:1: the line holds a NUL byte\n");
}

TEST_F(CommandLine, ProblemsFilesMayBeginWithAMarkAndNeedNoEnd) {
    write("shapes.txt", "\xEF\xBB\xBFsoftmax rows=4,cols=8");
    EXPECT_EQ(run("space --problems shapes.txt --gpu sm_86").code, 0);
    const Answer endless = run("space --problems /dev/zero --gpu sm_86");
    EXPECT_EQ(endless.code, 1);
    EXPECT_NE(endless.err.find("/dev/zero:1: the line is longer than 64 KiB"), std::string::npos) << endless.err;
    const Answer directory = run("space --problems . --gpu sm_86");
    EXPECT_EQ(directory.code, 1);
    EXPECT_NE(directory.err.find("the problems file '.' cannot be read"), std::string::npos) << directory.err;
}

TEST_F(CommandLine, AnAlignmentBeyondAllNumbersIsNotTakenForAnother) {
    const Answer r = run("space softmax --problem x.align=4294967312 --gpu sm_86");  // 2^32 + 16
    EXPECT_EQ(r.code, 1);
    EXPECT_NE(r.err.find("x.align=4294967312 is no alignment"), std::string::npos) << r.err;
}

TEST_F(CommandLine, BuildWithoutACompilerEndsAtOnceWithThree) {
    write("nvrtc.so", "no library");
    ::setenv("AUTOTUNE_NVRTC", (folder / "nvrtc.so").c_str(), 1);
    const Answer r = run("build softmax --gpu sm_86");
    ::unsetenv("AUTOTUNE_NVRTC");
    EXPECT_EQ(r.code, 3);
    EXPECT_NE(r.err.find("AUTOTUNE_NVRTC is '"), std::string::npos) << r.err;
}

}  // namespace
}  // namespace autotune

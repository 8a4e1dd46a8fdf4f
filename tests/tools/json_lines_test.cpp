// Goal: every line that --json prints is one of those in docs/json-lines.schema.json, and each of those is printed by
// something here. Method: all subcommands run, with a made-up GPU where they need one.
#include <algorithm>
#include <set>

#include "tests/tools/command_line.h"
#include "tests/tools/json_schema.h"
#include "tools/json_events.h"

namespace autotune {
namespace {

using nlohmann::json;

JsonSchema schema() {
    std::ifstream stream{AUTOTUNE_SOURCE_DIR "/docs/json-lines.schema.json"};
    return JsonSchema{json::parse(stream)};
}

class JsonLines : public CommandLine {
protected:
    void expect_lines(const Answer& answer, const std::string& words) {
        EXPECT_FALSE(answer.out.empty()) << words << "\n" << answer.err;
        for (const json& line : answer.lines()) take(line, words);
    }
    void take(const json& line, const std::string& words) {
        EXPECT_EQ(schema_.objection(line), "") << words << "\n" << line.dump();
        for (const json& choice : schema_.root()["oneOf"]) {
            const std::string name = choice["$ref"].get<std::string>().substr(8);
            if (schema_.objection(line, name).empty()) seen_.insert(name);
        }
    }

    JsonSchema schema_ = schema();
    std::set<std::string> seen_;
};

TEST_F(JsonLines, EachIsInTheSchemaAndTheSchemaHasNoOther) {
    const std::string problem = "softmax rows=64,cols=4096,dtype=f32";
    for (const std::string& words : std::vector<std::string>{
             "tune " + problem + " --budget 20 --json", "tune " + problem + " --budget 8 --json --db none",
             "tune " + problem + " --budget 30 --prior model --fresh --json --db none", "why " + problem + " --json",
             "why softmax rows=65,cols=4096,dtype=f32 --json", "why softmax --trial 1 --json",
             "bench " + problem + " --json", "bench " + problem + " --counters --json",
             "bench " + problem + " --against two_pass --json", "verify softmax --json", "query softmax --json",
             "query softmax --as json"})
        expect_lines(scripted(words), words);
    const std::string best = json::parse(scripted("query softmax --json").out)["config"]["text"];
    expect_lines(scripted("verify softmax --json", "SCRIPTED_FAILS='" + best + "'"), "verify of a wrong config");

    for (const std::string words :
         {"ops --json", "db path --json", "space gemm --gpu sm_80 --json", "doctor --json",
          "check softmax --gpu sm_86 --json --problem rows=4,cols=64,dtype=f32",
          "build softmax rows=4,cols=64,dtype=f32 --gpu sm_86 --budget 1 --json", "tune softmx --json"})
        expect_lines(run(words), words);
    write("problems.txt", problem + '\n');
    write("space.csv",
          "# kernel: made_up\n# device: none\n# values A: 1 2\nA,time_ms,sd_ms,cost_ms,status\n1,2,,,ok\n2,1,,,ok\n");
    expect_lines(run("replay space.csv --seeds 2 --json"), "replay");
    write("bad.jsonl", "{\"v\":1,\"kind\":\"record\"}\n");
    for (const std::string words :
         {"db export -o all.jsonl --json", "db import bad.jsonl --db b/tune.db --json",
          "db merge all.jsonl --into c/tune.db --expect-problems problems.txt --json",
          "db import all.jsonl --db b/tune.db --json", "db imports --db b/tune.db --json",
          "db diff all.jsonl all.jsonl --json", "db revert-import 1 --db b/tune.db --json",
          "db keygen release.key --json", "db trust add release.key.pub --json",
          "db bundle --sign release.key -o tuned.bundle --json",
          "db import tuned.bundle --binaries --trust-this-file --db d/tune.db --json", "db stats --json",
          "db check --json", "db prune --trials --json", "db compact --json", "db salvage c/tune.db e/new.db --json"})
        expect_lines(run(words), words);
    const std::string fp = json::parse(run("db alias --json").out)["fp"];
    expect_lines(run("db alias --json"), "db alias");
    // Only one GPU was used, and a second one is needed; the line is made here as the command makes it.
    take(json::parse(json_event("db_alias", {{"one", fp}, {"other", std::string(64, 'b')}, {"state", "made"}})),
         "db alias");
    // It needs a device; its line is made here as it makes it.
    take(json::parse(json_event("selftest", {{"kernel", "good"}, {"ok", true}, {"outcome", "timed"}, {"reason", ""}})),
         "selftest");

    for (const json& choice : schema_.root()["oneOf"])
        EXPECT_TRUE(seen_.contains(choice["$ref"].get<std::string>().substr(8))) << choice << " was never printed";
}

TEST(JsonSchema, ObjectsToWhatDoesNotFit) {
    const JsonSchema lines = schema();
    json line = {{"v", 1},
                 {"event", "build"},
                 {"op", "softmax"},
                 {"problem", {{"rows", 4}}},
                 {"outcomes", {{"compiled", 3}}},
                 {"seconds", 0.5}};
    EXPECT_EQ(lines.objection(line, "build"), "");
    line["outcomes"]["compiled"] = "three";
    EXPECT_NE(lines.objection(line, "build"), "");
    line["outcomes"]["compiled"] = 3;
    line["unheard_of"] = 1;
    EXPECT_NE(lines.objection(line, "build"), "");
    line.erase("unheard_of");
    line.erase("op");
    EXPECT_NE(lines.objection(line, "build"), "");
    EXPECT_NE(lines.objection(json{{"v", 1}, {"event", "unheard_of"}}), "");
}

}  // namespace
}  // namespace autotune

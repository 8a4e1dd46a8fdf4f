// Goal: records and binaries leave as a bundle and come in again; code comes in only from whom this user trusts, and is
// not used before it passed.
// Method: a search on a made-up GPU, and a cubin from elsewhere in place of what a compiler would have made for it.
#include "cache/sharing/foreign_binaries.h"
#include "cache/store/file.h"
#include "cache/store/store.h"
#include "cache/store/stored_problem.h"
#include "device/cubin.h"
#include "tests/tools/command_line.h"

namespace autotune {
namespace {

using nlohmann::json;

class BundleCommandLine : public CommandLine {
protected:
    void SetUp() override {
        CommandLine::SetUp();
        const Answer r = scripted("tune softmax rows=64,cols=4096,dtype=f32 --budget 12");
        ASSERT_EQ(r.code, 0) << r.err;
        ASSERT_EQ(run("db keygen release.key").code, 0);
        keep_binaries("sm_90");
    }

    /// A cubin for each source that the stored records need.
    void keep_binaries(const std::string& of) const {
        const Store store = Store::open({.path = folder / "cache/1/tune.db", .mode = Store::Mode::read});
        const OpSet ops;
        const auto cubin =
            read_file_whole(std::filesystem::path{AUTOTUNE_SOURCE_DIR} / "tests/fuzz/corpus/cubin" / (of + ".cubin"));
        BinaryStore binaries{store.binaries_folder()};
        for (const Record& record : store.records({.op = "softmax"}, {})) {
            const Instance instance = instance_of(record.problem, ops.find("softmax"), record.device.limits);
            for (const NeededSource& source : needed_sources(instance, record.config)) {
                const Environment& made = record.environment;
                Binary binary{.key = source.source_key + "-" + std::to_string(made.nvrtc_major) + "." +
                                     std::to_string(made.nvrtc_minor),
                              .artefact = {.arch = "sm_90", .cubin = *cubin, .ptx = {}, .log = {}, .kernels = {}},
                              .source = "softmax.cu",
                              .nvrtc_major = made.nvrtc_major,
                              .nvrtc_minor = made.nvrtc_minor};
                for (const std::string& entry : source.entries) {
                    binary.artefact.kernels.push_back(kernel_info(read_cubin(*cubin).kernels.at(0)));
                    binary.artefact.kernels.back().name = entry;
                }
                ASSERT_TRUE(binaries.put(binary));
            }
        }
    }

    std::size_t binaries_in(const std::string& place) const { return BinaryStore{folder / place}.keys().size(); }
    std::string exported(const std::string& database) const { return run("db export --db " + database).out; }
};

TEST_F(BundleCommandLine, WhatASignedBundleHoldsComesInAndRunsOnceItPassed) {
    const Answer made =
        run("db bundle softmax --gpu 'made up' --where 'cols >= 4096' --binaries --sign release.key "
            "-o tuned.bundle");
    ASSERT_EQ(made.code, 0) << made.err;
    EXPECT_NE(made.out.find(", signed\n"), std::string::npos) << made.out;
    ASSERT_EQ(run("db trust add release.key.pub --name team --db a/tune.db").code, 0);
    const Answer taken = run("db import tuned.bundle --binaries --db a/tune.db");
    ASSERT_EQ(taken.code, 0) << taken.err;
    EXPECT_NE(taken.out.find("of 'team', 0 left out   (not used before autotune verify --imported)"), std::string::npos)
        << taken.out;
    EXPECT_EQ(binaries_in("a/binaries"), 0u);
    const std::size_t waiting = binaries_in("a/binaries/pending");
    EXPECT_EQ(waiting, binaries_in("cache/1/binaries"));
    ASSERT_GT(waiting, 0u);

    const Answer verified = scripted("verify softmax --imported --db a/tune.db");
    EXPECT_EQ(verified.code, 0) << verified.out;
    EXPECT_NE(verified.err.find("ready made"), std::string::npos) << verified.err;
    EXPECT_GT(binaries_in("a/binaries"), 0u);
    EXPECT_EQ(binaries_in("a/binaries") + binaries_in("a/binaries/pending"), waiting);
}

TEST_F(BundleCommandLine, WithoutBeingAskedForOnlyRecordsComeIn) {
    ASSERT_EQ(run("db bundle --binaries -o tuned.bundle").code, 0);
    const Answer r = run("db import tuned.bundle --db a/tune.db");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_NE(r.err.find("left out; --binaries takes what a trusted key signed"), std::string::npos) << r.err;
    EXPECT_EQ(binaries_in("a/binaries/pending"), 0u);
    ASSERT_EQ(run("db import cache/1/tune.db --db b/tune.db").code, 0);
    EXPECT_EQ(exported("a/tune.db"), exported("b/tune.db"));
}

TEST_F(BundleCommandLine, BinariesOfNobodyThatIsTrustedAreRefusedAndNothingIsStored) {
    ASSERT_EQ(run("db bundle --binaries -o unsigned.bundle").code, 0);
    ASSERT_EQ(run("db bundle --binaries --sign release.key -o signed.bundle").code, 0);
    for (const auto& [file, cause] : {std::pair{"unsigned.bundle", "nobody signed it, and its binaries are code"},
                                      {"signed.bundle", "is not trusted here"}}) {
        const Answer r = run(std::string{"db import "} + file + " --binaries --db a/tune.db");
        EXPECT_EQ(r.code, 1) << file;
        EXPECT_NE(r.err.find(std::string{"error: '"} + file + "' is not taken in: "), std::string::npos) << r.err;
        EXPECT_NE(r.err.find(cause), std::string::npos) << r.err;
        EXPECT_NE(r.err.find("--trust-this-file"), std::string::npos) << r.err;
        EXPECT_EQ(exported("a/tune.db"), "");
        EXPECT_EQ(binaries_in("a/binaries/pending"), 0u);
    }
    EXPECT_EQ(run("db import unsigned.bundle --binaries --trust-this-file --dry-run --db a/tune.db").code, 0);
    EXPECT_EQ(binaries_in("a/binaries/pending"), 0u);
    EXPECT_EQ(run("db import unsigned.bundle --binaries --trust-this-file --db a/tune.db").code, 0);
    EXPECT_GT(binaries_in("a/binaries/pending"), 0u);
}

TEST_F(BundleCommandLine, APoisonedBundleIsRefusedWholeWithItsReason) {
    keep_binaries("sm_75");  // under heads that say sm_90
    ASSERT_EQ(run("db bundle --binaries --sign release.key -o poisoned.bundle").code, 0);
    ASSERT_EQ(run("db trust add release.key.pub --db a/tune.db").code, 0);
    const Answer r = run("db import poisoned.bundle --binaries --db a/tune.db");
    EXPECT_EQ(r.code, 1) << r.out;
    EXPECT_NE(r.err.find("error: 'poisoned.bundle' is not taken in: of its binary "), std::string::npos) << r.err;
    EXPECT_NE(r.err.find("its head says sm_90 and its cubin sm_75"), std::string::npos) << r.err;
    EXPECT_EQ(exported("a/tune.db"), "");
    EXPECT_EQ(binaries_in("a/binaries/pending"), 0u);

    std::string bytes = read(folder / "poisoned.bundle");
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    write("flipped.bundle", bytes);
    const Answer flipped = run("db import flipped.bundle --db a/tune.db");
    EXPECT_EQ(flipped.code, 1);
    EXPECT_NE(flipped.err.find("damaged"), std::string::npos) << flipped.err;
    EXPECT_EQ(exported("a/tune.db"), "");
}

// Goal: a foreign binary that is wrong does not bring its config into disrepute.
TEST_F(BundleCommandLine, AnImportedBinaryThatFailsIsDroppedAndItsConfigIsNotBlamed) {
    ASSERT_EQ(run("db bundle --binaries -o tuned.bundle").code, 0);
    ASSERT_EQ(run("db import tuned.bundle --binaries --trust-this-file --db a/tune.db").code, 0);
    const std::string config =
        json::parse(run("query softmax --db a/tune.db --json").out)["config"]["text"].get<std::string>();
    const Answer r = scripted("verify softmax --imported --db a/tune.db", "SCRIPTED_FAILS='" + config + "'");
    EXPECT_EQ(r.code, 4) << r.out;
    EXPECT_NE(r.out.find("it was the imported binary, which is dropped"), std::string::npos) << r.out;
    const Answer why = scripted("why softmax rows=64,cols=4096,dtype=f32 --db a/tune.db");
    EXPECT_EQ(why.out.find("it has failed on this problem"), std::string::npos) << why.out;
    EXPECT_EQ(why.out.find("answer: exact, " + config), std::string::npos) << why.out;
}

TEST_F(BundleCommandLine, AnImportThatIsRevertedLeavesNoBinaryWaiting) {
    ASSERT_EQ(run("db bundle --binaries -o tuned.bundle").code, 0);
    ASSERT_EQ(run("db import tuned.bundle --binaries --trust-this-file --db a/tune.db").code, 0);
    EXPECT_EQ(run("db revert-import 1 --db a/tune.db").code, 0);
    EXPECT_EQ(binaries_in("a/binaries/pending"), 0u);
}

TEST_F(BundleCommandLine, KeysAreTrustedListedAndTrustedNoLonger) {
    EXPECT_EQ(run("db trust list").out, "");
    const Answer added = run("db trust add release.key.pub");
    EXPECT_EQ(added.code, 0) << added.err;
    const std::string hex = read(folder / "release.key.pub").substr(23, 64);
    EXPECT_EQ(run("db trust list").out, hex + "  release.key\n");
    EXPECT_EQ(run("db trust add release.key.pub --name again").code, 1);
    EXPECT_EQ(run("db trust remove release.key").code, 0);
    EXPECT_EQ(run("db trust list").out, "");
    EXPECT_EQ(run("db trust remove release.key").err,
              "error: no key named 'release.key' is trusted\nhelp: autotune db trust list\n");
}

TEST_F(BundleCommandLine, BadUseIsToldAndEndsWithOne) {
    for (const auto& [words, message] :
         {std::pair{"db bundle", "error: which file the bundle goes into is not said\nhelp: add -o tuned.bundle\n"},
          {"db bundle --where 'cols > 1000000' -o x.bundle", "error: no record that could go into a bundle is in "},
          {"db bundle softmx -o x.bundle", "error: there is no op 'softmx'"},
          {"db bundle --sign none.key -o x.bundle", "error: there is no signing key 'none.key'"},
          {"db bundle --sign release.key.pub -o x.bundle", "error: "},
          {"db keygen", "error: which file the key goes into is not said"},
          {"db keygen release.key", "error: 'release.key' exists already"},
          {"db trust", "error: what to do with trusted keys is not said"},
          {"db trust borrow x", "error: db trust is add, list or remove, not 'borrow'"},
          {"db trust add", "error: which key to add is not said"},
          {"db trust add release.key", "error: 'release.key' is no public key of autotune"},
          {"db import x.bundle --trust-this-file", "error: --trust-this-file is about binaries"}}) {
        const Answer r = run(words);
        EXPECT_EQ(r.code, 1) << words;
        EXPECT_EQ(r.err.substr(0, std::string_view{message}.size()), message) << words;
        EXPECT_FALSE(std::filesystem::exists(folder / "x.bundle")) << words;
    }
}

}  // namespace
}  // namespace autotune

#include "tuner/model/op_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "autotune/error.h"
#include "tuner/model/builtin_ops.h"
#include "tuner/references/table.h"

namespace autotune {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Op op(const std::string& name, const std::string& folder, const std::string& summary = {}) {
    Op made;
    made.name = name;
    made.folder = folder;
    made.summary = summary;
    return made;
}

std::string error_of(const OpSet& ops, std::string_view name) {
    try {
        (void)ops.find(name);
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Error::Kind::usage);
        EXPECT_EQ(error.help(), "autotune ops");
        return error.what();
    }
    return "no error";
}

TEST(OpSet, SuggestsTheOpThatWasProbablyMeant) {
    const OpSet ops = OpSet::of({op("softmax", "a"), op("gemm", "a")});
    EXPECT_EQ(error_of(ops, "softmx"), "there is no op 'softmx'; did you mean 'softmax'?");
    EXPECT_EQ(error_of(ops, "convolution"), "there is no op 'convolution'; the ops are gemm and softmax");
    EXPECT_EQ(&ops.find("gemm"), ops.find_or_null("gemm"));
    EXPECT_EQ(ops.find_or_null("gem"), nullptr);
}

TEST(OpSet, NotesWhatReplacesAnOpAndKeepsTheOldOneAlive) {
    OpSet ops = OpSet::of({op("gemm", "a", "the first")});
    const Op& first = ops.find("gemm");
    EXPECT_THAT(ops.add({op("gemm", "b", "the second"), op("rope", "b")}),
                ElementsAre("op 'gemm' of 'b' replaces that of 'a'"));
    EXPECT_EQ(ops.find("gemm").summary, "the second");
    EXPECT_EQ(first.summary, "the first");
}

TEST(OpSet, SaysNothingOfAnOpThatWasExtended) {
    OpSet ops = OpSet::of({op("gemm", "a")});
    EXPECT_THAT(ops.add({op("gemm", "a", "with a variant more")}), IsEmpty());
    EXPECT_EQ(ops.find("gemm").summary, "with a variant more");
}

TEST(OpSet, NotesWhatReplacesABuiltInOp) {
    Op builtin = op("gemm", "");
    builtin.builtin = true;
    OpSet ops = OpSet::of({builtin});
    EXPECT_THAT(ops.add({op("gemm", "mine")}), ElementsAre("op 'gemm' of 'mine' replaces the built-in one"));
}

TEST(OpSet, StartsWithTheBuiltInOps) {
    const OpSet ops;
    ASSERT_EQ(ops.all().size(), builtin_ops().size());
    for (const Op* one : ops.all()) EXPECT_TRUE(one->builtin) << one->name;
}

TEST(BuiltinOps, AreReadOnceWhoeverAsksFirst) {
    std::vector<const Op*> seen(8);
    std::vector<std::thread> threads;
    for (const Op*& place : seen) threads.emplace_back([&place] { place = builtin_ops().data(); });
    for (std::thread& thread : threads) thread.join();
    for (const Op* one : seen) EXPECT_EQ(one, seen[0]);
}

TEST(BuiltinOps, HoldTheSourcesTheyName) {
    for (const Op& one : builtin_ops())
        for (const Variant& variant : one.variants)
            for (const LaunchSpec& launch : variant.launches)
                EXPECT_TRUE(one.files.contains(launch.source)) << one.name << " " << launch.source;
    EXPECT_TRUE(builtin_files().contains("common.cuh"));
}

TEST(BuiltinOps, HaveALinkedReferenceWhereTheyNameACppFile) {
    for (const Op& one : builtin_ops()) {
        if (one.reference.kind != Reference::Kind::cpp) continue;
        EXPECT_EQ(one.reference.cpp, one.name + ".cpp");
        EXPECT_NE(builtin_reference(one.name), nullptr)
            << one.name << ": tuner/references/" << one.name << ".cpp is missing";
    }
}

TEST(BuiltinReferences, AreNullForOtherNames) { EXPECT_EQ(builtin_reference("no_such_op"), nullptr); }

}  // namespace
}  // namespace autotune

// Goal: of a bundle's binaries only those come in that a compiler may have made of the sources here, and none of them
// is used before it passed a check. Method: a sound cubin under the key of a sample record, and the same with one thing
// wrong each.
#include "cache/sharing/foreign_binaries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autotune/error.h"
#include "cache/sharing/pending_binaries.h"
#include "cache/store/file.h"
#include "cache/store/stored_problem.h"
#include "device/cubin.h"
#include "tests/cache/sharing_samples.h"

namespace autotune {
namespace {

using testing::HasSubstr;

std::vector<std::byte> sample_cubin(const std::string& arch) {
    return read_file_whole(std::filesystem::path{AUTOTUNE_SOURCE_DIR} / "tests/fuzz/corpus/cubin" / (arch + ".cubin"))
        .value();
}

Record record_of_cc90() {
    Record record = samples::shared_record(1024, 10.0);
    record.device.limits.cc = 90;
    return record;
}

Instance instance_of_sample(const Record& record) {
    return instance_of(record.problem, samples::shared_ops().find("scale"), record.device.limits);
}

/// What a compiler would have made for the record, if its kernel were the sample's.
Binary sound_binary(const Record& record) {
    const NeededSource source = needed_sources(instance_of_sample(record), record.config).at(0);
    Binary binary{.key = source.source_key + "-13.0", .artefact = {}, .source = "scale.cu", .nvrtc_major = 13};
    binary.artefact.arch = "sm_90";
    binary.artefact.cubin = sample_cubin("sm_90");
    binary.artefact.kernels = {kernel_info(read_cubin(binary.artefact.cubin).kernels.at(0))};
    binary.artefact.kernels[0].name = source.entries.at(0);
    return binary;
}

TEST(ForeignBinaries, ASoundOneThatARecordNeedsIsTakenAndOfOtherSourcesNone) {
    const Record record = record_of_cc90();
    Binary other = sound_binary(record);
    other.key = std::string(64, '0') + "-13.0";
    const std::vector<std::byte> bytes = make_bundle({.records = {record}, .binaries = {sound_binary(record), other}});
    const ForeignBinaries judged = judged_binaries(Bundle::view(bytes, "x.bundle"), samples::shared_ops());
    ASSERT_EQ(judged.needed.size(), 1u);
    EXPECT_EQ(judged.needed[0].key, sound_binary(record).key);
    EXPECT_EQ(judged.left_out, 1u);
}

TEST(ForeignBinaries, OneThingThatIsWrongRefusesTheBundleWithItsReason) {
    const Record record = record_of_cc90();
    const auto refusal = [&](const std::function<void(Binary&)>& poison) -> std::string {
        Binary binary = sound_binary(record);
        poison(binary);
        const std::vector<std::byte> bytes = make_bundle({.records = {record}, .binaries = {binary}});
        try {
            judged_binaries(Bundle::view(bytes, "x.bundle"), samples::shared_ops());
            return "it was taken";
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), Error::Kind::usage);
            EXPECT_THAT(error.what(), HasSubstr("'x.bundle' is not taken in: of its binary " + binary.key));
            return error.what();
        }
    };
    EXPECT_EQ(refusal([](Binary&) {}), "it was taken");
    EXPECT_THAT(refusal([](Binary& b) { b.artefact.cubin = sample_cubin("sm_75"); }),
                HasSubstr("its head says sm_90 and its cubin sm_75"));
    EXPECT_THAT(refusal([](Binary& b) { b.artefact.arch = "sm_90/../x"; }), HasSubstr("is no architecture"));
    EXPECT_THAT(refusal([](Binary& b) { b.artefact.arch = "sm_990"; }), HasSubstr("no capability that is known"));
    EXPECT_THAT(refusal([](Binary& b) { b.artefact.cubin[0x12] = std::byte{62}; }), HasSubstr("of its binary"));
    EXPECT_THAT(refusal([](Binary& b) { b.artefact.cubin.resize(200); }), HasSubstr("of its binary"));
    EXPECT_THAT(refusal([](Binary& b) { b.artefact.cubin.clear(); }), HasSubstr("of its binary"));
    EXPECT_THAT(refusal([](Binary& b) { b.artefact.kernels.clear(); }), HasSubstr("it has no kernel"));
    EXPECT_THAT(refusal([](Binary& b) { b.artefact.kernels[0].symbol = "evil"; }),
                HasSubstr("its cubin has no kernel"));
    EXPECT_THAT(refusal([](Binary& b) { b.artefact.kernels[0].registers += 1; }), HasSubstr("another story"));
    EXPECT_THAT(refusal([](Binary& b) { b.artefact.kernels[0].static_shared_bytes = 1 << 30; }),
                HasSubstr("another story"));
    EXPECT_THAT(refusal([](Binary& b) { b.artefact.kernels[0].spill_bytes = -1; }), HasSubstr("spills -1 bytes"));
    EXPECT_THAT(refusal([](Binary& b) { b.nvrtc_major = 12; }), HasSubstr("another NVRTC"));
    EXPECT_THAT(refusal([](Binary& b) {
                    b.artefact.cubin = sample_cubin("sm_75");
                    b.artefact.arch = "sm_75";
                    const std::string name = b.artefact.kernels[0].name;
                    b.artefact.kernels = {kernel_info(read_cubin(b.artefact.cubin).kernels.at(0))};
                    b.artefact.kernels[0].name = name;
                }),
                HasSubstr("it is for sm_75 where sm_90 was asked for"));
}

TEST(ForeignBinaries, OneWithoutTheKernelOfItsSourceIsRefused) {
    Op op = samples::shared_ops().find("scale");
    for (Variant& variant : op.variants) variant.entry = variant.launches.at(0).entry = "gone";
    const OpSet ops = OpSet::of({op});
    const Record record = record_of_cc90();
    Binary binary = sound_binary(record);
    const Instance instance = instance_of(record.problem, ops.find("scale"), record.device.limits);
    binary.key = needed_sources(instance, record.config).at(0).source_key + "-13.0";
    const std::vector<std::byte> bytes = make_bundle({.records = {record}, .binaries = {binary}});
    try {
        judged_binaries(Bundle::view(bytes, "x.bundle"), ops);
        FAIL() << "it was taken";
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("it lacks the kernel 'gone' of its source"));
    }
}

// Goal: whatever a byte of the cubin becomes, it is judged or refused, and nothing is read beyond its end.
TEST(ForeignBinaries, ADamagedCubinIsJudgedOrRefused) {
    Binary binary = sound_binary(record_of_cc90());
    for (std::size_t at = 0; at < binary.artefact.cubin.size(); ++at) {
        const std::byte before = binary.artefact.cubin[at];
        binary.artefact.cubin[at] = ~before;
        objection(binary);
        binary.artefact.cubin[at] = before;
    }
    EXPECT_EQ(objection(binary), "");
}

TEST(ForeignBinaries, ARecordThatIsRefusedBringsNoBinary) {
    Record record = record_of_cc90();
    const Binary binary = sound_binary(record);
    record.config.values[0].second = std::int64_t{33};
    const std::vector<std::byte> bytes = make_bundle({.records = {record}, .binaries = {binary}});
    const ForeignBinaries judged = judged_binaries(Bundle::view(bytes, "x.bundle"), samples::shared_ops());
    for (const Binary& taken : judged.needed) EXPECT_NE(taken.key, binary.key);
}

TEST(TakingIn, ABundlesRecordsComeInAndWhatLooksAtItMayRefuseAll) {
    const Record record = samples::shared_record(1024, 10.0);
    const std::string uuid(32, 'f');
    const std::vector<std::byte> bytes = make_bundle({.records = {record}, .db_uuid = uuid});
    Store store = Store::in_memory();
    EXPECT_THROW(take_in_bytes(store, bytes, "x.bundle",
                               {.ops = &samples::shared_ops(),
                                .see_bundle =
                                    [](const Bundle&) {
                                        throw Error{Error::Kind::usage, "no"};
                                    }}),
                 Error);
    EXPECT_TRUE(store.records({}, {}).empty());
    const TakenIn taken = take_in_bytes(store, bytes, "x.bundle", {.ops = &samples::shared_ops()});
    EXPECT_EQ(taken.added, 1u);
    EXPECT_EQ(taken.source_uuid, uuid);
    EXPECT_EQ(store.records({}, {}).at(0).verified, Verified::elsewhere);
    std::vector<std::byte> damaged = bytes;
    damaged.back() ^= std::byte{1};
    EXPECT_THROW(take_in_bytes(store, damaged, "x.bundle", {.ops = &samples::shared_ops()}), Error);
    EXPECT_THROW(take_in_bytes(store, make_bundle({}), "x.bundle", {.ops = &samples::shared_ops()}), Error);
}

class PendingBinariesOfOthers : public testing::Test {
protected:
    samples::Folder folder;
    Record record = record_of_cc90();
    Instance instance = instance_of_sample(record);
    Binary binary = sound_binary(record);
    SourceSpec source = instance.sources(record.config).at(0);
    BinaryStore binaries{folder.path()};
};

TEST_F(PendingBinariesOfOthers, AreNoBinariesUntilTheyPass) {
    PendingBinaries pending{folder.path(), 13, 0};
    ASSERT_TRUE(pending.put(binary));
    EXPECT_FALSE(binaries.get(binary.key));
    EXPECT_EQ(pending.accept(instance, record.config), 0u) << "nothing has asked for it, so nothing has run it";
    ASSERT_TRUE(pending.find(source, "sm_90"));
    EXPECT_EQ(pending.accept(instance, record.config), 1u);
    ASSERT_TRUE(binaries.get(binary.key));
    EXPECT_EQ(binaries.get(binary.key)->artefact.cubin, binary.artefact.cubin);
    EXPECT_EQ(pending.count(), 0u);
}

TEST_F(PendingBinariesOfOthers, GoWhereTheyFail) {
    PendingBinaries pending{folder.path(), 13, 0};
    pending.put(binary);
    ASSERT_TRUE(pending.find(source, "sm_90"));
    EXPECT_EQ(pending.accept(instance, record.config), 1u);
    EXPECT_EQ(pending.drop(instance, record.config), 1u) << "for another problem of the same source";
    EXPECT_FALSE(binaries.get(binary.key));
    EXPECT_FALSE(pending.find(source, "sm_90"));
    EXPECT_EQ(pending.accept(instance, record.config), 0u);
    EXPECT_EQ(pending.count(), 0u);
}

TEST_F(PendingBinariesOfOthers, TheBytesThatRanAreTheOnesThatPass) {
    PendingBinaries pending{folder.path(), 13, 0};
    pending.put(binary);
    pending.find(source, "sm_90");
    Binary swapped = binary;
    swapped.artefact.cubin.assign(8, std::byte{1});
    PendingBinaries{folder.path()}.put(swapped);
    pending.accept(instance, record.config);
    EXPECT_EQ(binaries.get(binary.key)->artefact.cubin, binary.artefact.cubin);
}

TEST_F(PendingBinariesOfOthers, AnotherCompilersIsRunOnlyWhereThereIsNone) {
    PendingBinaries{folder.path()}.put(binary);
    EXPECT_FALSE((PendingBinaries{folder.path(), 12, 8}.find(source, "sm_90")));
    EXPECT_TRUE(PendingBinaries{folder.path()}.find(source, "sm_90"));
    EXPECT_FALSE(PendingBinaries{folder.path()}.find(source, "sm_80"));
    PendingBinaries{folder.path()}.clear();
    EXPECT_FALSE(PendingBinaries{folder.path()}.find(source, "sm_90"));
}

}  // namespace
}  // namespace autotune

// Goal: the C API does what the C++ one does; whatever a caller gets wrong is a status with a sentence, never a crash.
// Method: the dispatcher's made-up database and driver, with the op taken from a folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "autotune/autotune.h"
#include "cache/sharing/bundle.h"
#include "cache/sharing/exports.h"
#include "device/identity.h"
#include "tests/cache/dispatch_samples.h"

namespace autotune {
namespace {

using namespace samples;
using testing::HasSubstr;

extern "C" int append(void* context, int, const char* text, std::size_t size) {
    static_cast<std::string*>(context)->append(text, size);
    return 0;
}

class CApi : public testing::Test, protected DispatchSetting {
protected:
    void SetUp() override {
        put_binary(vector_config(4), 1024);
        put_binary(naive_config(), 1024);
        write_scale_op(ops_folder_);
        options_.flags = AUTOTUNE_NO_USER_DATABASE | AUTOTUNE_NO_COMPILE;
        options_.databases = databases_;
        options_.database_count = 1;
        options_.op_folders = folders_;
        options_.op_folder_count = 1;
    }
    void TearDown() override { autotune_dispatcher_destroy(dispatcher_); }

    autotune_dispatcher* dispatcher() {
        if (!dispatcher_) EXPECT_EQ(autotune_dispatcher_create(&options_, &dispatcher_), 0) << autotune_error_message();
        return dispatcher_;
    }
    const autotune_handle* handle(const char* fields = "dtype=f32") {
        const autotune_handle* made = nullptr;
        EXPECT_EQ(autotune_prepare(dispatcher(), "scale", fields, &made), 0) << autotune_error_message();
        return made;
    }
    /// A call of 1024 elements that a test then spoils. Its tensors point into it.
    struct Call {
        Call() = default;
        Call(const Call&) = delete;
        Call& operator=(const Call&) = delete;

        std::int64_t shape[1] = {1024}, strides[1] = {1};
        autotune_tensor tensors[2] = {{reinterpret_cast<const void*>(0x100000), shape, nullptr, 1, AUTOTUNE_F32},
                                      {reinterpret_cast<const void*>(0x200000), shape, nullptr, 1, AUTOTUNE_F32}};
        std::size_t tensor_count = 2;
        autotune_scalar scalars[1] = {autotune_real(2.0)};
        autotune_decision decision{.size = sizeof(autotune_decision)};
    };
    static int launch(const autotune_handle* handle, Call& call) {
        return autotune_launch(handle, call.tensors, call.tensor_count, call.scalars, 1,
                               reinterpret_cast<void*>(std::uintptr_t{9}), &call.decision);
    }
    /// The sentence of a call that has to be refused.
    std::string refusal(Call& call) {
        EXPECT_EQ(launch(handle(), call), AUTOTUNE_USAGE);
        EXPECT_TRUE(driver.launches.empty());
        return autotune_error_message();
    }

    std::string database_ = (folder / "tune.db").string(), ops_folder_ = (folder / "ops").string();
    const char* databases_[1] = {database_.c_str()};
    const char* folders_[1] = {ops_folder_.c_str()};
    autotune_options options_{.size = sizeof(autotune_options)};
    autotune_dispatcher* dispatcher_ = nullptr;
};

TEST_F(CApi, LaunchesTheWinnerAndTellsOfIt) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    Call call;
    ASSERT_EQ(launch(handle(), call), AUTOTUNE_OK) << autotune_error_message();
    EXPECT_EQ(call.decision.rung, AUTOTUNE_EXACT);
    EXPECT_STREQ(call.decision.config, "vector VEC=8 THREADS=128 SPLIT=1");
    EXPECT_FALSE(call.decision.imported);
    EXPECT_TRUE(call.decision.launched);
    EXPECT_TRUE(call.decision.verified);
    EXPECT_FALSE(call.decision.stale);
    EXPECT_EQ(call.decision.error, 0);
    ASSERT_EQ(driver.launches.size(), 1u);
    EXPECT_EQ(driver.launches[0].binary, vector_config(8, 128).text());
    EXPECT_EQ(driver.launches[0].stream, reinterpret_cast<CUstream>(9));
    EXPECT_EQ(driver.launches[0].arguments[0], 0x100000u);
    EXPECT_EQ(static_cast<std::uint32_t>(driver.launches[0].arguments[3]), std::bit_cast<std::uint32_t>(2.0f));
}

TEST_F(CApi, ReadyLaunchesNothing) {
    Call call;
    EXPECT_EQ(autotune_ready(handle(), call.tensors, 2, call.scalars, 1, nullptr, &call.decision), AUTOTUNE_OK);
    EXPECT_FALSE(call.decision.launched);
    EXPECT_EQ(driver.loads.size(), 1u);
    EXPECT_TRUE(driver.launches.empty());
}

TEST_F(CApi, StridesScalarsAndDecisionMayBeLeftOut) {
    Call call;
    EXPECT_EQ(autotune_launch(handle(""), call.tensors, 2, nullptr, 0, nullptr, nullptr), AUTOTUNE_OK);
    call.tensors[0].strides = call.tensors[1].strides = call.strides;
    call.scalars[0] = autotune_integer(3);
    EXPECT_EQ(launch(handle(nullptr), call), AUTOTUNE_OK) << autotune_error_message();
    EXPECT_EQ(driver.launches.size(), 2u);
    EXPECT_EQ(static_cast<std::uint32_t>(driver.launches[0].arguments[3]), std::bit_cast<std::uint32_t>(1.0f));
    EXPECT_EQ(static_cast<std::uint32_t>(driver.launches[1].arguments[3]), std::bit_cast<std::uint32_t>(3.0f));
}

TEST_F(CApi, WhatCannotBeLaunchedIsUnavailableAndSaysWhy) {
    driver.on_load = [](const std::string&) { return CUDA_ERROR_INVALID_IMAGE; };
    Call call;
    EXPECT_EQ(launch(handle(), call), AUTOTUNE_UNAVAILABLE);
    EXPECT_STREQ(autotune_rung_name(call.decision.rung), "none");
    EXPECT_FALSE(call.decision.launched);
    EXPECT_NE(call.decision.error, 0);
    EXPECT_STRNE(call.decision.why, "");
    EXPECT_STREQ(call.decision.why, autotune_error_message());
    EXPECT_STREQ(call.decision.config, "");
}

TEST_F(CApi, UnderCaptureNothingIsLoaded) {
    ASSERT_EQ(autotune_capture_begin(), AUTOTUNE_OK);
    Call call;
    EXPECT_EQ(launch(handle(), call), AUTOTUNE_UNAVAILABLE);
    ASSERT_EQ(autotune_capture_end(), AUTOTUNE_OK);
    EXPECT_TRUE(driver.loads.empty());
    EXPECT_EQ(launch(handle(), call), AUTOTUNE_OK);
    EXPECT_EQ(autotune_capture_end(), AUTOTUNE_USAGE);
}

TEST_F(CApi, TheSameWordsGiveTheSameHandle) {
    EXPECT_EQ(handle("dtype=f32"), handle("dtype=f32"));
    EXPECT_NE(handle("dtype=f32"), handle("dtype=f16"));
}

TEST_F(CApi, CountsMissesAndRefreshes) {
    Call call;
    launch(handle(), call);
    launch(handle(), call);
    std::uint64_t counts[40];
    std::memset(counts, 0xff, sizeof counts);
    ASSERT_EQ(autotune_counts(dispatcher(), counts, 40), AUTOTUNE_OK);
    EXPECT_EQ(counts[call.decision.rung], 2u);
    EXPECT_EQ(counts[39], 0u);
    std::string text;
    ASSERT_EQ(autotune_misses(dispatcher(), append, &text), AUTOTUNE_OK);
    const auto miss = nlohmann::json::parse(text);
    EXPECT_EQ(miss["op"], "scale");
    EXPECT_EQ(miss["problem"], "n=1024,dtype=f32");
    tuned(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    ASSERT_EQ(autotune_refresh(dispatcher()), AUTOTUNE_OK);
    EXPECT_EQ(launch(handle(), call), AUTOTUNE_OK);
    EXPECT_STREQ(autotune_rung_name(call.decision.rung), "exact");
}

TEST_F(CApi, ExplainsWithoutLaunching) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    std::string text;
    ASSERT_EQ(autotune_explain(dispatcher(), "scale", "n=1024,dtype=f32", 0, append, &text), AUTOTUNE_OK)
        << autotune_error_message();
    const auto answer = nlohmann::json::parse(text);
    EXPECT_EQ(answer["rung"], "exact");
    EXPECT_EQ(answer["config"], "vector VEC=8 THREADS=128 SPLIT=1");
    EXPECT_EQ(answer["layer"], "project");
    ASSERT_FALSE(answer["rows"].empty());
    const auto& row = answer["rows"][0];
    EXPECT_EQ(row["layer"], "project");
    EXPECT_EQ(row["distance"], 0.0);
    EXPECT_EQ(row["imported"], false);
    EXPECT_EQ(row["device"], identify(0).name);
    EXPECT_TRUE(row["why"].is_string());
    EXPECT_EQ(autotune_explain(dispatcher(), "scale", "n=1024,n=2048", 0, append, &text), AUTOTUNE_USAGE);
    EXPECT_EQ(autotune_explain(dispatcher(), "scale", "n=1024", 7, append, &text), AUTOTUNE_UNAVAILABLE);
}

TEST_F(CApi, AProblemCanBeMadeReadyBeforeItsTensorsAreThere) {
    autotune_decision decision{.size = sizeof decision};
    ASSERT_EQ(autotune_ready_problem(handle(), "n=1024", nullptr, &decision), AUTOTUNE_OK) << autotune_error_message();
    EXPECT_STREQ(decision.config, vector_config(4).text().c_str());
    EXPECT_EQ(driver.loads.size(), 1u);
    ASSERT_EQ(autotune_capture_begin(), AUTOTUNE_OK);
    Call call;
    EXPECT_EQ(launch(handle(), call), AUTOTUNE_OK) << "loaded before";
    ASSERT_EQ(autotune_capture_end(), AUTOTUNE_OK);
    EXPECT_EQ(autotune_ready_problem(handle(), "n=1024,x.align=4,y.align=4", nullptr, &decision), AUTOTUNE_OK);
    EXPECT_STREQ(decision.config, naive_config().text().c_str());
    EXPECT_EQ(autotune_ready_problem(handle(), "n=1024,x.align=three", nullptr, nullptr), AUTOTUNE_USAGE);
    EXPECT_EQ(autotune_ready_problem(handle(), "m=1024", nullptr, nullptr), AUTOTUNE_USAGE);
    EXPECT_EQ(autotune_ready_problem(nullptr, "n=1024", nullptr, nullptr), AUTOTUNE_USAGE);
}

TEST_F(CApi, FrozenItKeepsItsAnswers) {
    Call call;
    EXPECT_EQ(launch(handle(), call), AUTOTUNE_OK);
    ASSERT_EQ(autotune_freeze(dispatcher()), AUTOTUNE_OK);
    tuned(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    EXPECT_EQ(autotune_refresh(dispatcher()), AUTOTUNE_OK);
    EXPECT_EQ(launch(handle(), call), AUTOTUNE_OK);
    EXPECT_STREQ(call.decision.config, vector_config(4).text().c_str());
    ASSERT_EQ(autotune_thaw(dispatcher()), AUTOTUNE_OK);
    EXPECT_EQ(autotune_refresh(dispatcher()), AUTOTUNE_OK);
    EXPECT_EQ(launch(handle(), call), AUTOTUNE_OK);
    EXPECT_STREQ(call.decision.config, vector_config(8, 128).text().c_str());
}

TEST_F(CApi, DecisionsGoToAnotherProcess) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    Call call;
    ASSERT_EQ(launch(handle(), call), AUTOTUNE_OK);
    std::string bytes;
    ASSERT_EQ(autotune_export_decisions(dispatcher(), append, &bytes), AUTOTUNE_OK);
    options_.database_count = 0;  // the other has none
    options_.databases = nullptr;
    autotune_dispatcher* other = nullptr;
    ASSERT_EQ(autotune_dispatcher_create(&options_, &other), AUTOTUNE_OK);
    std::uint64_t taken = 0, refused = 7, ours = 1, theirs = 2;
    EXPECT_EQ(autotune_import_decisions(other, bytes.data(), bytes.size(), &taken, &refused, nullptr, nullptr),
              AUTOTUNE_OK)
        << autotune_error_message();
    EXPECT_EQ(taken, 1u);
    EXPECT_EQ(refused, 0u);
    EXPECT_EQ(autotune_decision_hash(dispatcher(), &ours), AUTOTUNE_OK);
    EXPECT_EQ(autotune_decision_hash(other, &theirs), AUTOTUNE_OK);
    EXPECT_EQ(ours, theirs);
    bytes[bytes.size() / 2] ^= 1;
    EXPECT_EQ(autotune_import_decisions(other, bytes.data(), bytes.size(), nullptr, nullptr, nullptr, nullptr),
              AUTOTUNE_USAGE);
    taken = refused = 7;
    EXPECT_EQ(autotune_import_decisions(other, bytes.data(), bytes.size(), &taken, &refused, nullptr, nullptr),
              AUTOTUNE_USAGE);
    EXPECT_EQ(taken + refused, 0u) << "nothing was taken";
    EXPECT_EQ(autotune_import_decisions(other, nullptr, 1, nullptr, nullptr, nullptr, nullptr), AUTOTUNE_USAGE);
    EXPECT_EQ(autotune_decision_hash(other, nullptr), AUTOTUNE_USAGE);
    autotune_dispatcher_destroy(other);
}

TEST_F(CApi, ABundleInTheProgramAnswersWithoutDatabaseAndCompiler) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    BundleContents contents;
    {
        const Store store = Store::open({.path = folder / "tune.db", .mode = Store::Mode::read});
        contents.records = store.records({}, Today{.templates = templates_of(op())});
    }
    const BinaryStore binaries{folder / "binaries"};
    for (const std::string& key : binaries.keys()) contents.binaries.push_back(*binaries.get(key));
    const std::vector<std::byte> bytes = make_bundle(contents);
    const autotune_bytes pieces[] = {{bytes.data(), bytes.size()}};
    options_.database_count = 0;
    options_.databases = nullptr;
    options_.embedded_bundles = pieces;
    options_.embedded_bundle_count = 1;
    Call call;
    EXPECT_EQ(launch(handle(), call), AUTOTUNE_OK) << autotune_error_message();
    EXPECT_EQ(call.decision.rung, AUTOTUNE_EXACT);
    EXPECT_STREQ(call.decision.config, vector_config(8, 128).text().c_str());
    options_.embedded_bundles = nullptr;
    autotune_dispatcher* refused = nullptr;
    EXPECT_EQ(autotune_dispatcher_create(&options_, &refused), AUTOTUNE_USAGE);
}

TEST_F(CApi, ADatabaseInTheProgramAnswersUnlessOnlyLocalRowsMay) {
    put_binary(vector_config(8, 128), 1024);
    tuned(1024, {{vector_config(8, 128), 40.0}});
    std::string text;
    export_database(Store::open({.path = database_, .mode = Store::Mode::read}), {}, folder / "export.db");
    {
        std::ifstream file{folder / "export.db", std::ios::binary};
        text.assign(std::istreambuf_iterator<char>{file}, {});
    }
    ASSERT_GT(text.size(), 4096u);
    std::filesystem::remove(database_);  // the binaries stay beside it
    options_.embedded_database = {text.data(), text.size()};
    Call call;
    EXPECT_EQ(launch(handle(), call), AUTOTUNE_OK) << autotune_error_message();
    EXPECT_EQ(call.decision.layer, AUTOTUNE_LAYER_EMBEDDED) << call.decision.why;
    EXPECT_STREQ(call.decision.config, vector_config(8, 128).text().c_str());
    autotune_dispatcher_destroy(dispatcher_);
    dispatcher_ = nullptr;
    options_.flags |= AUTOTUNE_ONLY_LOCAL;
    EXPECT_EQ(launch(handle(), call), AUTOTUNE_OK) << autotune_error_message();
    EXPECT_EQ(call.decision.layer, AUTOTUNE_LAYER_OP) << call.decision.why;
    options_.embedded_database = {nullptr, 1};
    autotune_dispatcher* refused = nullptr;
    EXPECT_EQ(autotune_dispatcher_create(&options_, &refused), AUTOTUNE_USAGE);
    EXPECT_THAT(autotune_error_message(), HasSubstr("embedded_database"));
}

TEST_F(CApi, TheDatabaseOfTheMachineIsReadUnlessItShallNot) {
    put_binary(vector_config(8, 128), 1024);
    tuned(1024, {{vector_config(8, 128), 40.0}});
    const std::string machines = folder / "machine.db";
    export_database(Store::open({.path = database_, .mode = Store::Mode::read}), {}, machines);
    std::filesystem::remove(database_);  // the binaries stay beside it
    ::setenv("AUTOTUNE_SYSTEM_DB", machines.c_str(), 1);
    const std::uint64_t flags = options_.flags;
    for (const auto& [more, layer] : {std::pair{0, AUTOTUNE_LAYER_SYSTEM},
                                      {AUTOTUNE_SYSTEM_DATABASE_IS_IMMUTABLE, AUTOTUNE_LAYER_SYSTEM},
                                      {AUTOTUNE_NO_SYSTEM_DATABASE, AUTOTUNE_LAYER_OP}}) {
        options_.flags = flags | static_cast<std::uint64_t>(more);
        Call call;
        EXPECT_EQ(launch(handle(), call), AUTOTUNE_OK) << autotune_error_message();
        EXPECT_EQ(call.decision.layer, layer) << more << ": " << call.decision.why;
        autotune_dispatcher_destroy(dispatcher_);
        dispatcher_ = nullptr;
    }
    ::unsetenv("AUTOTUNE_SYSTEM_DB");
}

TEST_F(CApi, APinGoesBeforeTheDatabasesUntilItIsDropped) {
    put_binary(vector_config(8, 128), 1024);
    tuned(1024, {{vector_config(4), 40.0}});
    ASSERT_EQ(autotune_pin(dispatcher(), "scale", "dtype=f32", "vector VEC=8 THREADS=128"), AUTOTUNE_OK)
        << autotune_error_message();
    Call call;
    EXPECT_EQ(launch(handle(), call), AUTOTUNE_OK) << autotune_error_message();
    EXPECT_EQ(call.decision.layer, AUTOTUNE_LAYER_PINNED);
    EXPECT_STREQ(call.decision.config, vector_config(8, 128).text().c_str());
    std::int32_t dropped = 7;
    EXPECT_EQ(autotune_unpin(dispatcher(), "scale", &dropped), AUTOTUNE_OK);
    EXPECT_EQ(dropped, 1);
    EXPECT_EQ(launch(handle(), call), AUTOTUNE_OK);
    EXPECT_STREQ(call.decision.config, vector_config(4).text().c_str());
    EXPECT_EQ(autotune_unpin(dispatcher(), "scale", &dropped), AUTOTUNE_OK);
    EXPECT_EQ(dropped, 0);
    EXPECT_EQ(autotune_unpin(dispatcher(), "scael", nullptr), AUTOTUNE_USAGE);
    EXPECT_EQ(autotune_pin(dispatcher(), "scale", nullptr, "vector VEC=3"), AUTOTUNE_USAGE);
    EXPECT_EQ(autotune_pin(dispatcher(), "scale", "dtyp=f32", "vector VEC=8"), AUTOTUNE_USAGE);
    EXPECT_EQ(autotune_pin(dispatcher(), "scale", nullptr, nullptr), AUTOTUNE_USAGE);
    ASSERT_EQ(autotune_freeze(dispatcher()), AUTOTUNE_OK);
    EXPECT_EQ(autotune_pin(dispatcher(), "scale", nullptr, "vector VEC=8"), AUTOTUNE_USAGE);
    EXPECT_EQ(autotune_unpin(dispatcher(), "scale", nullptr), AUTOTUNE_USAGE);
}

TEST_F(CApi, OpsTunedByTheirCallsAreNamedAndTheirShareIsChecked) {
    const char* const names[] = {"scale"};
    const char* const typo[] = {"scael"};
    autotune_dispatcher* made = nullptr;
    options_.online = typo;
    options_.online_count = 1;
    EXPECT_EQ(autotune_dispatcher_create(&options_, &made), AUTOTUNE_USAGE);
    EXPECT_THAT(autotune_error_message(), HasSubstr("scael"));
    options_.online = names;
    options_.online_share = 0.6;
    EXPECT_EQ(autotune_dispatcher_create(&options_, &made), AUTOTUNE_USAGE);
    EXPECT_EQ(made, nullptr);
    options_.online_share = 0;
    EXPECT_EQ(autotune_dispatcher_create(&options_, &dispatcher_), AUTOTUNE_OK) << autotune_error_message();
}

TEST_F(CApi, ChainsAreOpsAsOthersAre) {
    const char* const wrong[] = {"rleu(x)"};
    options_.chains = wrong;
    options_.chain_count = 1;
    autotune_dispatcher* made = nullptr;
    EXPECT_EQ(autotune_dispatcher_create(&options_, &made), AUTOTUNE_USAGE);
    EXPECT_THAT(autotune_error_message(), HasSubstr("did you mean 'relu'"));
    const char* const twice[] = {"relu(x)", "gelu(x)"};
    options_.chains = twice;
    options_.chain_count = 2;
    EXPECT_EQ(autotune_dispatcher_create(&options_, &made), AUTOTUNE_USAGE);
    EXPECT_THAT(autotune_error_message(), HasSubstr("two ops are called 'elementwise'"));
    const char* const two[] = {"bias_relu = relu(x + bias)", "relu(x)"};
    options_.chains = two;
    ASSERT_EQ(autotune_dispatcher_create(&options_, &dispatcher_), AUTOTUNE_OK) << autotune_error_message();
    const autotune_handle* handle = nullptr;
    EXPECT_EQ(autotune_prepare(dispatcher_, "bias_relu", "dtype=f32", &handle), AUTOTUNE_OK)
        << autotune_error_message();
    EXPECT_EQ(autotune_prepare(dispatcher_, "elementwise", nullptr, &handle), AUTOTUNE_OK) << autotune_error_message();
}

TEST_F(CApi, WhereNothingIsTunedItDoesAsTheOptionsSay) {
    const std::string learned = (folder / "learned" / "tune.db").string();
    options_.on_miss = AUTOTUNE_FAIL;
    options_.learn = learned.c_str();
    Call call;
    EXPECT_EQ(launch(handle(), call), AUTOTUNE_UNAVAILABLE);
    EXPECT_EQ(call.decision.rung, AUTOTUNE_NONE);
    EXPECT_TRUE(driver.launches.empty());
    autotune_dispatcher_destroy(dispatcher_);  // what it learned is written by then
    dispatcher_ = nullptr;
    EXPECT_TRUE(std::filesystem::exists(folder / "learned"));
    options_.on_miss = 4;
    EXPECT_EQ(autotune_dispatcher_create(&options_, &dispatcher_), AUTOTUNE_USAGE);
    EXPECT_THAT(autotune_error_message(), HasSubstr("on_miss is 4"));
    options_.on_miss = AUTOTUNE_TUNE_NOW;
    options_.learn = nullptr;
    EXPECT_EQ(autotune_dispatcher_create(&options_, &dispatcher_), AUTOTUNE_USAGE) << "nothing would take the records";
    options_.learn = learned.c_str();
    EXPECT_EQ(autotune_dispatcher_create(&options_, &dispatcher_), AUTOTUNE_OK) << autotune_error_message();
}

// -- what a caller gets wrong

TEST_F(CApi, NullPointersAreRefused) {
    Call call;
    const autotune_handle* made = nullptr;
    EXPECT_EQ(autotune_dispatcher_create(&options_, nullptr), AUTOTUNE_USAGE);
    EXPECT_EQ(autotune_prepare(nullptr, "scale", "", &made), AUTOTUNE_USAGE);
    EXPECT_EQ(autotune_prepare(dispatcher(), nullptr, "", &made), AUTOTUNE_USAGE);
    EXPECT_EQ(autotune_prepare(dispatcher(), "scale", "", nullptr), AUTOTUNE_USAGE);
    EXPECT_EQ(launch(nullptr, call), AUTOTUNE_USAGE);
    EXPECT_THAT(autotune_error_message(), HasSubstr("the handle is a null pointer"));
    EXPECT_EQ(autotune_launch(handle(), nullptr, 2, nullptr, 0, nullptr, nullptr), AUTOTUNE_USAGE);
    EXPECT_EQ(autotune_launch(handle(), call.tensors, 2, nullptr, 1, nullptr, nullptr), AUTOTUNE_USAGE);
    EXPECT_EQ(autotune_refresh(nullptr), AUTOTUNE_USAGE);
    EXPECT_EQ(autotune_pin(nullptr, "scale", nullptr, "naive"), AUTOTUNE_USAGE);
    EXPECT_EQ(autotune_unpin(nullptr, "scale", nullptr), AUTOTUNE_USAGE);
    EXPECT_EQ(autotune_counts(nullptr, nullptr, 0), AUTOTUNE_USAGE);
    EXPECT_EQ(autotune_counts(dispatcher(), nullptr, 1), AUTOTUNE_USAGE);
    EXPECT_EQ(autotune_misses(dispatcher(), nullptr, nullptr), AUTOTUNE_USAGE);
    EXPECT_EQ(autotune_explain(dispatcher(), "scale", nullptr, 0, nullptr, nullptr), AUTOTUNE_USAGE);
    EXPECT_EQ(autotune_command(1, nullptr, nullptr, nullptr), AUTOTUNE_USAGE);
    const char* const hole[] = {nullptr};
    EXPECT_EQ(autotune_command(1, hole, nullptr, nullptr), AUTOTUNE_USAGE);
    autotune_options options = options_;
    options.databases = hole;
    autotune_dispatcher* refused = nullptr;
    EXPECT_EQ(autotune_dispatcher_create(&options, &refused), AUTOTUNE_USAGE);
    EXPECT_EQ(refused, nullptr);
    autotune_dispatcher_destroy(nullptr);
}

TEST_F(CApi, UnknownOpsFieldsAndChoicesAreNamed) {
    const autotune_handle* made = nullptr;
    EXPECT_EQ(autotune_prepare(dispatcher(), "scal", "", &made), AUTOTUNE_USAGE);
    EXPECT_THAT(autotune_error_message(), HasSubstr("did you mean 'scale'?"));
    EXPECT_EQ(made, nullptr);
    EXPECT_EQ(autotune_prepare(dispatcher(), "scale", "dtyp=f32", &made), AUTOTUNE_USAGE);
    EXPECT_THAT(autotune_error_message(), HasSubstr("dtyp"));
    EXPECT_STRNE(autotune_error_help(), "");
    EXPECT_EQ(autotune_prepare(dispatcher(), "scale", "dtype=f99", &made), AUTOTUNE_USAGE);
    EXPECT_EQ(autotune_prepare(dispatcher(), "scale", "dtype", &made), AUTOTUNE_USAGE);
    EXPECT_EQ(autotune_prepare(dispatcher(), "scale", "dtype=f32,dtype=f16", &made), AUTOTUNE_USAGE);
}

TEST_F(CApi, ADtypeThatIsNoneIsRefused) {
    for (const std::int32_t dtype : {-1, 13, 1 << 30}) {
        Call call;
        call.tensors[1].dtype = dtype;
        EXPECT_THAT(refusal(call), HasSubstr("tensor 1 has dtype"));
    }
}

TEST_F(CApi, ADtypeThatContradictsTheHandleIsRefused) {
    Call call;
    call.tensors[0].dtype = call.tensors[1].dtype = AUTOTUNE_F16;
    EXPECT_THAT(refusal(call), HasSubstr("f16"));
}

TEST_F(CApi, RanksAndShapesAreChecked) {
    Call below_none, shapeless, scalar, deep;
    below_none.tensors[0].rank = -1;
    EXPECT_THAT(refusal(below_none), HasSubstr("rank -1"));
    shapeless.tensors[0].shape = nullptr;
    EXPECT_THAT(refusal(shapeless), HasSubstr("no shape"));
    scalar.tensors[0].rank = 0;
    EXPECT_THAT(refusal(scalar), HasSubstr("'x'"));
    std::vector<std::int64_t> many(1000, 1);
    deep.tensors[0].shape = many.data();
    deep.tensors[0].rank = 1000;
    EXPECT_THAT(refusal(deep), HasSubstr("too many dimensions"));
}

TEST_F(CApi, ExtentsThatAreNoSizesAreRefused) {
    for (const std::int64_t extent : {std::int64_t{-1}, std::int64_t{INT64_MIN}, std::int64_t{INT64_MAX}}) {
        Call call;
        call.shape[0] = extent;
        EXPECT_NE(launch(handle(), call), AUTOTUNE_OK) << extent;
        EXPECT_STRNE(autotune_error_message(), "");
    }
    EXPECT_TRUE(driver.launches.empty());
}

TEST_F(CApi, TensorsThatAreMissingAreNamed) {
    Call short_of_one, without_data, endless;
    short_of_one.tensor_count = 1;
    EXPECT_THAT(refusal(short_of_one), HasSubstr("takes 2 tensors"));
    without_data.tensors[1].data = nullptr;
    EXPECT_THAT(refusal(without_data), HasSubstr("'y'"));
    endless.tensor_count = SIZE_MAX;
    EXPECT_THAT(refusal(endless), HasSubstr("the most"));
}

// -- structs that grow

TEST_F(CApi, ADecisionOfANewerHeaderIsFilledAndItsRestIsZero) {
    struct Newer {
        autotune_decision known;
        std::uint64_t more;
    } newer{};
    newer.known.size = sizeof newer;
    newer.more = 7;
    Call call;
    EXPECT_EQ(autotune_launch(handle(), call.tensors, 2, nullptr, 0, nullptr, &newer.known), AUTOTUNE_OK);
    EXPECT_TRUE(newer.known.launched);
    EXPECT_EQ(newer.known.size, sizeof newer);
    EXPECT_EQ(newer.more, 0u);
    newer.known.size = 3;
    EXPECT_EQ(autotune_launch(handle(), call.tensors, 2, nullptr, 0, nullptr, &newer.known), AUTOTUNE_USAGE);
}

TEST_F(CApi, OptionsOfANewerHeaderAreTakenUnlessTheyAskForSomething) {
    struct Newer {
        autotune_options known;
        std::uint64_t more;
    } newer{options_, 0};
    newer.known.size = sizeof newer;
    ASSERT_EQ(autotune_dispatcher_create(&newer.known, &dispatcher_), AUTOTUNE_OK) << autotune_error_message();
    newer.more = 1;
    autotune_dispatcher* refused = nullptr;
    EXPECT_EQ(autotune_dispatcher_create(&newer.known, &refused), AUTOTUNE_USAGE);
    EXPECT_THAT(autotune_error_message(), HasSubstr(autotune_version()));
    autotune_options options = options_;
    options.flags |= std::uint64_t{1} << 60;
    EXPECT_EQ(autotune_dispatcher_create(&options, &refused), AUTOTUNE_USAGE);
    options = options_;
    options.size = 0;
    EXPECT_EQ(autotune_dispatcher_create(&options, &refused), AUTOTUNE_USAGE);
    EXPECT_EQ(refused, nullptr);
}

TEST_F(CApi, AnOpFolderThatIsNoneIsRefused) {
    const char* const nowhere[] = {"/nonexistent/ops"};
    options_.op_folders = nowhere;
    autotune_dispatcher* refused = nullptr;
    EXPECT_EQ(autotune_dispatcher_create(&options_, &refused), AUTOTUNE_USAGE);
    EXPECT_THAT(autotune_error_message(), HasSubstr("/nonexistent/ops"));
}

// -- callbacks

TEST_F(CApi, TheLogIsTold) {
    std::string told;
    options_.log = [](void* context, const char* sentence) { *static_cast<std::string*>(context) += sentence; };
    options_.log_context = &told;
    Call call;
    EXPECT_EQ(launch(handle(), call), AUTOTUNE_OK);
    EXPECT_THAT(told, HasSubstr("not tuned"));
}

TEST_F(CApi, WhatACallbackThrowsStaysInTheLibrary) {
    options_.log = [](void*, const char*) { throw std::runtime_error{"thrown by the application"}; };
    Call call;
    EXPECT_EQ(launch(handle(), call), AUTOTUNE_OK) << "a log that fails stops no launch";
    const auto throwing = [](void*, int, const char*, std::size_t) -> int { throw 7; };
    EXPECT_EQ(autotune_misses(dispatcher(), throwing, nullptr), AUTOTUNE_USAGE);
    EXPECT_THAT(autotune_error_message(), HasSubstr("threw"));
    const char* const words[] = {"ops"};
    EXPECT_EQ(autotune_command(1, words, throwing, nullptr), AUTOTUNE_USAGE);
}

TEST_F(CApi, ThreadsHaveTheirOwnErrors) {
    const autotune_handle* const one = handle();
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 200; ++i) {
                Call call;
                const std::int32_t bad = -100 - t;
                const std::string expected = "tensor 0 has dtype " + std::to_string(bad);
                call.tensors[0].dtype = bad;
                if (launch(one, call) != AUTOTUNE_USAGE || !std::string{autotune_error_message()}.starts_with(expected))
                    ++wrong;
                call.tensors[0].dtype = AUTOTUNE_F32;
                if (launch(one, call) != AUTOTUNE_OK) ++wrong;
                const autotune_handle* made = nullptr;
                if (autotune_prepare(dispatcher_, "scale", i % 2 ? "dtype=f32" : "dtype=f16", &made)) ++wrong;
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

TEST_F(CApi, ALongMessageIsCutAtAWholeCharacter) {
    std::string name;
    while (name.size() < 3000) name += "\xc3\xa4";
    const autotune_handle* made = nullptr;
    EXPECT_EQ(autotune_prepare(dispatcher(), name.c_str(), "", &made), AUTOTUNE_USAGE);
    const std::string message = autotune_error_message();
    EXPECT_LT(message.size(), 2048u);
    EXPECT_GT(message.size(), 2000u);
    EXPECT_EQ(message.back(), '\xa4');
}

// -- subcommands

struct Heard {
    std::string result, notice;
    int stop_after = -1;  ///< lines of the result
};
int hear(void* context, int stream, const char* text, std::size_t size) {
    Heard& heard = *static_cast<Heard*>(context);
    EXPECT_EQ(text[size], '\0');
    (stream == AUTOTUNE_RESULT ? heard.result : heard.notice).append(text, size);
    return stream == AUTOTUNE_RESULT && heard.stop_after >= 0 && heard.stop_after-- == 0;
}
int command(std::initializer_list<const char*> words, Heard& heard) {
    return autotune_command(words.size(), std::data(words), hear, &heard);
}

TEST(CApiCommand, SaysWhatTheCommandLineSays) {
    Heard heard;
    EXPECT_EQ(command({"ops"}, heard), AUTOTUNE_OK);
    EXPECT_THAT(heard.result, HasSubstr("softmax"));
    EXPECT_EQ(command({"help", "budget"}, heard), AUTOTUNE_OK);
    EXPECT_THAT(heard.result, HasSubstr("# Budget"));
    EXPECT_EQ(autotune_command(0, nullptr, nullptr, nullptr), AUTOTUNE_OK);
}

TEST(CApiCommand, BadWordsAreAStatusWithASentence) {
    Heard heard;
    EXPECT_EQ(command({"opps"}, heard), AUTOTUNE_USAGE);
    EXPECT_THAT(autotune_error_message(), HasSubstr("did you mean 'ops'?"));
    EXPECT_EQ(command({"tune", "softmx"}, heard), AUTOTUNE_USAGE);
    EXPECT_THAT(autotune_error_message(), HasSubstr("softmx"));
}

TEST(CApiCommand, TunesAndStores) {
    const Folder folder;
    const std::string database = (folder / "tune.db").string();
    Heard heard;
    ASSERT_EQ(command({"tune", "softmax", "rows=4,cols=64,dtype=f32", "--gpu", "emulated:sm_86", "--budget", "3",
                       "--effort", "quick", "--db", database.c_str(), "--json"},
                      heard),
              AUTOTUNE_OK)
        << autotune_error_message() << heard.notice;
    std::istringstream lines{heard.result};
    nlohmann::json last;
    for (std::string line; std::getline(lines, line);) last = nlohmann::json::parse(line);
    EXPECT_EQ(last["event"], "summary");
    EXPECT_TRUE(std::filesystem::exists(database));
}

TEST(CApiCommand, EndsWhenTheCallerAsksForIt) {
    Heard heard{.stop_after = 1};
    EXPECT_EQ(command({"tune", "softmax", "rows=4,cols=64,dtype=f32", "--gpu", "emulated:sm_86", "--budget", "10m",
                       "--effort", "quick", "--db", "none", "--json"},
                      heard),
              AUTOTUNE_INTERRUPTED);
    EXPECT_THAT(heard.result, HasSubstr("\"trial\""));
}

}  // namespace
}  // namespace autotune

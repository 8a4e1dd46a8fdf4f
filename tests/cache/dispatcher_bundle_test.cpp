// Goal: an application that ships a bundle runs tuned kernels where there is no compiler.
// Method: NVRTC is hidden from the whole program; the fake driver names the binary of each launch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "autotune/dispatcher.h"
#include "cache/sharing/bundle.h"
#include "cache/store/file.h"
#include "device/compiler.h"
#include "device/nvrtc.h"
#include "tests/cache/dispatch_samples.h"

namespace autotune {
namespace {

using namespace samples;
using testing::Contains;
using testing::HasSubstr;

class WithoutCompiler : public testing::Environment {
public:
    void SetUp() override {
        ::setenv("AUTOTUNE_NVRTC", "/nowhere/libnvrtc.so", 1);
        ASSERT_FALSE(nvrtc_if_present());
    }
};
[[maybe_unused]] testing::Environment* const without_compiler = testing::AddGlobalTestEnvironment(new WithoutCompiler);

class Bundled : public testing::Test, protected DispatchSetting {
protected:
    /// All that was stored so far as a bundle; then it is gone from the place where it was.
    std::vector<std::byte> packed() {
        BundleContents contents;
        {
            const Store store = Store::open({.path = folder / "tune.db", .mode = Store::Mode::read});
            contents.records = store.records({}, Today{.templates = templates_of(op())});
        }
        const BinaryStore binaries{folder / "binaries"};
        for (const std::string& key : binaries.keys()) contents.binaries.push_back(*binaries.get(key));
        std::filesystem::remove_all(folder / "binaries");
        std::filesystem::remove(folder / "tune.db");
        return make_bundle(contents);
    }
    Dispatcher::Options of_bundle(const std::vector<std::byte>& bytes) {
        Dispatcher::Options given = options();
        given.databases.clear();
        given.compile = true;
        given.embedded_bundles = {bytes};
        return given;
    }
    std::string last_binary() const { return driver.launches.empty() ? "nothing" : driver.launches.back().binary; }
};

TEST_F(Bundled, AnswersWithItsRecordsAndItsBinaries) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    const std::vector<std::byte> bytes = packed();
    Dispatcher dispatcher{of_bundle(bytes)};
    const Decision decision = launch(dispatcher, dispatcher.prepare("scale"), 1024);
    EXPECT_EQ(decision.rung, Rung::exact) << decision.why;
    EXPECT_TRUE(decision.launched);
    EXPECT_TRUE(decision.verified);
    EXPECT_EQ(last_binary(), vector_config(8, 128).text());
    EXPECT_EQ(dispatcher.explain("scale", {{"n", std::int64_t{1024}}}).rung, Rung::exact);
}

TEST_F(Bundled, IsReadFromAFileThatOthersCannotWrite) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    ASSERT_TRUE(write_file_whole(folder / "app.bundle", packed()));
    Dispatcher::Options given = of_bundle({});
    given.embedded_bundles.clear();
    given.bundles = {(folder / "app.bundle").string()};
    {
        Dispatcher dispatcher{given};
        EXPECT_EQ(launch(dispatcher, dispatcher.prepare("scale"), 1024).rung, Rung::exact);
    }
    ::chmod((folder / "app.bundle").c_str(), 0666);
    driver.launches.clear();
    Dispatcher dispatcher{given};
    const Decision decision = launch(dispatcher, dispatcher.prepare("scale"), 1024);
    EXPECT_FALSE(decision.launched) << "code that others may have put there ran";
    EXPECT_TRUE(driver.launches.empty());
    EXPECT_THAT(logged, Contains(HasSubstr("the binaries of the bundle '")));
}

TEST_F(Bundled, NeitherABinaryNorACompilerIsSaidInTheAnswer) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    const std::vector<std::byte> bytes = packed();
    Dispatcher dispatcher{of_bundle(bytes)};
    const Decision decision = launch(dispatcher, dispatcher.prepare("scale"), 1024);
    EXPECT_EQ(decision.rung, Rung::none);
    EXPECT_THAT(std::string{decision.why}, HasSubstr("no binary of 'scale.cu' is stored and there is no compiler"));
}

TEST_F(Bundled, TheDefaultRunsWhereOnlyItsBinaryIsThere) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(4), 1024);
    const std::vector<std::byte> bytes = packed();
    Dispatcher dispatcher{of_bundle(bytes)};
    const Decision decision = launch(dispatcher, dispatcher.prepare("scale"), 1024);
    EXPECT_EQ(decision.rung, Rung::default_config);
    EXPECT_TRUE(decision.launched);
    EXPECT_EQ(last_binary(), vector_config(4).text());
}

TEST_F(Bundled, ADamagedOneIsIgnoredWholeAndSaidOnce) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    std::vector<std::byte> bytes = packed();
    bytes.back() ^= std::byte{1};
    put_binary(vector_config(4), 1024);
    Dispatcher::Options given = of_bundle(bytes);
    given.databases = {(folder / "tune.db").string()};
    Dispatcher dispatcher{given};
    EXPECT_EQ(launch(dispatcher, dispatcher.prepare("scale"), 1024).rung, Rung::default_config);
    EXPECT_THAT(logged, Contains(HasSubstr("the bundle 'embedded bundle 1' is not used: its part 'binary/")));
}

TEST_F(Bundled, ABinaryThatDoesNotLoadGivesWayToTheNextConfig) {
    tuned(1024, {{vector_config(8, 128), 40.0}, {vector_config(2, 64), 40.5}});
    put_binary(vector_config(8, 128), 1024);
    put_binary(vector_config(2, 64), 1024);
    const std::vector<std::byte> bytes = packed();
    const std::string winner = vector_config(8, 128).text();
    driver.on_load = [winner](const std::string& binary) {
        return binary == winner ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_SUCCESS;
    };
    Dispatcher dispatcher{of_bundle(bytes)};
    EXPECT_TRUE(launch(dispatcher, dispatcher.prepare("scale"), 1024).launched);
    EXPECT_EQ(last_binary(), vector_config(2, 64).text());
}

TEST_F(Bundled, ABinaryForAnEarlierPartOfTheMajorCapabilityDoesWithoutACompiler) {
    put_binary(vector_config(4), 1024);
    const std::vector<std::byte> bytes = packed();
    {
        driver.cc = 93;  // the binary is for 90
        Dispatcher dispatcher{of_bundle(bytes)};
        const Handle handle = dispatcher.prepare("scale");
        EXPECT_TRUE(launch(dispatcher, handle, 1024).launched);
        EXPECT_TRUE(launch(dispatcher, handle, 2048).launched) << "another problem, the same binary";
        EXPECT_EQ(driver.loads.size(), 1u);
    }
    for (const int cc : {89, 100}) {
        driver.cc = cc;
        Dispatcher dispatcher{of_bundle(bytes)};
        EXPECT_FALSE(launch(dispatcher, dispatcher.prepare("scale"), 1024).launched) << cc;
    }
}

}  // namespace
}  // namespace autotune

// Goal: a user's C++ reference becomes a library, or an error that says what to do.
// Method: the system's compiler builds small files; shell scripts stand in for compilers that hang or are not there.
#include "tuner/loader/user_reference.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "autotune/error.h"
#include "autotune/reference.h"

namespace autotune {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* doubling = R"(#include <autotune/reference.hpp>
#include "factor.h"
AUTOTUNE_REFERENCE(scale) {
    autotune::Output y = call.output("y");
    y.set(0, factor * static_cast<double>(call.integer("n")));
}
)";

class UserReference : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = (fs::temp_directory_path() / "autotune-user-XXXXXX").string();
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
    }
    void TearDown() override { fs::remove_all(folder_); }

    Op op(const std::string& text) const {
        Op made;
        made.name = "scale";
        made.reference.kind = Reference::Kind::cpp;
        made.reference.cpp = "scale.cpp";
        made.files = {{"scale.cpp", text}, {"factor.h", "inline constexpr double factor = 2;\n"}};
        return made;
    }
    HostCompiler compiler() const {
        HostCompiler made;
        made.cache = folder_ / "cache";
        return made;
    }
    fs::path script(const std::string& text) const {
        std::ofstream{folder_ / "compiler"} << "#!/bin/sh\n" << text;
        fs::permissions(folder_ / "compiler", fs::perms::owner_all);
        return folder_ / "compiler";
    }
    Error error_of(const Op& made, const HostCompiler& with) const {
        try {
            compile_user_code(made, "scale.cpp", with);
        } catch (const Error& error) {
            return error;
        }
        return Error{Error::Kind::internal, "no error"};
    }
    std::size_t entries(const fs::path& where) const {
        return static_cast<std::size_t>(std::distance(fs::directory_iterator{where}, fs::directory_iterator{}));
    }

    fs::path folder_;
};

TEST_F(UserReference, BecomesALibraryThatAnswers) {
    const fs::path path = compile_user_code(op(doubling), "scale.cpp", compiler());
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    const auto run = reinterpret_cast<autotune_reference_fn>(dlsym(library, "autotune_reference"));
    ASSERT_NE(run, nullptr);
    double value = 0, magnitude = 0;
    const std::int64_t one = 1;
    const autotune_tensor_view y{"y", AUTOTUNE_F32, AUTOTUNE_OUT, 1, &one, &one, nullptr, &value, &magnitude};
    const autotune_field n{"n", 21, 0, nullptr};
    char message[64] = {};
    const autotune_call call{AUTOTUNE_REFERENCE_ABI, 1, 0, 1, &y, 1, &n, message, sizeof message};
    EXPECT_EQ(run(&call), 0) << message;
    EXPECT_EQ(value, 42.0);
    dlclose(library);
}

TEST_F(UserReference, IsBuiltOnceForOneText) {
    const fs::path first = compile_user_code(op(doubling), "scale.cpp", compiler());
    const auto written = fs::last_write_time(first);
    EXPECT_EQ(compile_user_code(op(doubling), "scale.cpp", compiler()), first);
    EXPECT_EQ(fs::last_write_time(first), written);
    Op other = op(doubling);
    other.files["factor.h"] = "inline constexpr double factor = 3;\n";
    EXPECT_NE(compile_user_code(other, "scale.cpp", compiler()), first);
    EXPECT_EQ(entries(folder_ / "cache"), 2u);  // no folder of a build is left
}

TEST_F(UserReference, ShowsTheCompilersWordsWithTheUsersFileName) {
    const Error error = error_of(op("int x = nowhere;\n"), compiler());
    EXPECT_EQ(error.kind(), Error::Kind::usage);
    EXPECT_THAT(
        error.what(),
        StartsWith("'scale.cpp' of op 'scale' does not compile ('c++' ended with exit code 1)\nscale.cpp:1:9: error:"));
    EXPECT_EQ(entries(folder_ / "cache"), 0u);
}

TEST_F(UserReference, MustDefineWhatItUses) {
    const Error error = error_of(op("int missing();\nint f() { return missing(); }\n"), compiler());
    EXPECT_THAT(error.what(), HasSubstr("missing()"));
}

TEST_F(UserReference, SaysWhenThereIsNoCompiler) {
    HostCompiler none = compiler();
    none.program = "no-such-compiler";
    const Error error = error_of(op(doubling), none);
    EXPECT_EQ(error.kind(), Error::Kind::compile);
    EXPECT_STREQ(error.what(),
                 "'scale.cpp' of op 'scale' needs a C++ compiler, but 'no-such-compiler' cannot be started: No such "
                 "file or directory");
    EXPECT_EQ(error.help(), "export AUTOTUNE_CXX=g++");
}

TEST_F(UserReference, KillsACompilerThatHangsAndItsChildren) {
    HostCompiler slow = compiler();
    slow.program = script("sleep 1000 &\necho $! > " + (folder_ / "child").string() + "\nwait\n").string();
    slow.timeout = std::chrono::milliseconds{1500};
    const Error error = error_of(op(doubling), slow);
    EXPECT_STREQ(error.what(), "'scale.cpp' of op 'scale' took the compiler more than 1.5 s, so it was stopped");
    pid_t child = 0;
    std::ifstream{folder_ / "child"} >> child;
    ASSERT_GT(child, 0);
    // The child is an orphan now; whoever adopted it may take a moment to bury it.
    const auto is_gone = [child] {
        std::ifstream stat{"/proc/" + std::to_string(child) + "/stat"};
        std::string number, name, state;
        return !(stat >> number >> name >> state) || state == "Z";
    };
    for (int i = 0; i < 200 && !is_gone(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds{10});
    EXPECT_TRUE(is_gone());
}

TEST_F(UserReference, IsNotKeptWhereOthersCanWrite) {
    fs::create_directory(folder_ / "cache");
    fs::permissions(folder_ / "cache", fs::perms::all);
    const Error error = error_of(op(doubling), compiler());
    EXPECT_EQ(error.what(), "the folder '" + (folder_ / "cache").string() +
                                "' for compiled references can be written by other users");
    EXPECT_EQ(error.help(), "chmod 700 '" + (folder_ / "cache").string() + "'");
}

TEST_F(UserReference, SeesNoFileOutsideTheOp) {
    Op outside = op("#include \"../secret.h\"\n");
    outside.files["../secret.h"] = "";
    EXPECT_THAT(error_of(outside, compiler()).what(), HasSubstr("../secret.h: No such file"));
    EXPECT_FALSE(fs::exists(folder_ / "cache" / "secret.h"));
}

TEST_F(UserReference, IsAFileOfTheOp) {
    EXPECT_FALSE(has_user_code(op(doubling), "other.cpp"));
    EXPECT_TRUE(has_user_code(op(doubling), "scale.cpp"));
    try {
        compile_user_code(op(doubling), "other.cpp", compiler());
        FAIL();
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "op 'scale' has no file 'other.cpp' to compile");
    }
}

}  // namespace
}  // namespace autotune

#include "device/temporary_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

namespace autotune {
namespace {

namespace fs = std::filesystem;

/// With a temporary folder of the test's own as the system's.
class TemporaryFolderTest : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = (fs::temp_directory_path() / "autotune-temporary-XXXXXX").string();
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        base = pattern;
        if (const char* value = std::getenv("TMPDIR")) before = value;
        ::setenv("TMPDIR", base.c_str(), 1);
    }
    void TearDown() override {
        before ? ::setenv("TMPDIR", before->c_str(), 1) : ::unsetenv("TMPDIR");
        fs::remove_all(base);
    }
    /// A child makes a folder with a file in it and is killed.
    void leave_one() const {
        const pid_t child = fork();
        if (child == 0) {
            const TemporaryFolder folder{"compile"};
            std::ofstream{folder.path() / "file"} << "left";
            kill(getpid(), SIGKILL);
        }
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
    }
    std::size_t folders() const {
        return static_cast<std::size_t>(std::distance(fs::directory_iterator{base}, fs::directory_iterator{}));
    }

    fs::path base;
    std::optional<std::string> before;
};

TEST_F(TemporaryFolderTest, IsGoneWithItsOwner) {
    {
        const TemporaryFolder folder{"compile"};
        EXPECT_TRUE(fs::is_directory(folder.path()));
        EXPECT_EQ(folder.path().parent_path(), base);
    }
    EXPECT_EQ(folders(), 0u);
}

TEST_F(TemporaryFolderTest, WhatAKilledOwnerLeftIsRemovedByTheNextOfItsKind) {
    leave_one();
    ASSERT_EQ(folders(), 1u);
    const TemporaryFolder other{"pch"};
    EXPECT_EQ(folders(), 2u);
    const TemporaryFolder next{"compile"};
    EXPECT_EQ(folders(), 2u);
    EXPECT_TRUE(fs::is_directory(other.path()));
}

TEST_F(TemporaryFolderTest, ALivingOwnersFolderStays) {
    const TemporaryFolder first{"compile"}, second{"compile"};
    EXPECT_TRUE(fs::is_directory(first.path()));
    EXPECT_NE(first.path(), second.path());
}

TEST_F(TemporaryFolderTest, WhatIsNoFolderOfOursStays) {
    std::ofstream{base / "autotune-compile-file"} << "a file";
    fs::create_directory(base / "autotune-compile-open");  // others may read it: no folder that we made
    fs::permissions(base / "autotune-compile-open", fs::perms{0755});
    fs::create_directory_symlink("/", base / "autotune-compile-link");
    const TemporaryFolder folder{"compile"};
    EXPECT_EQ(folders(), 4u);
}

}  // namespace
}  // namespace autotune

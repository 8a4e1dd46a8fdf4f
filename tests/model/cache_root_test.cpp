#include "tuner/model/cache_root.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

namespace autotune {
namespace {

class CacheRoot : public testing::Test {
protected:
    void SetUp() override {
        for (const char* name : {"AUTOTUNE_CACHE_DIR", "XDG_CACHE_HOME", "HOME"}) {
            if (const char* value = std::getenv(name)) before[name] = value;
            ::unsetenv(name);
        }
    }
    void TearDown() override {
        for (const char* name : {"AUTOTUNE_CACHE_DIR", "XDG_CACHE_HOME", "HOME"}) {
            if (before.contains(name))
                ::setenv(name, before[name].c_str(), 1);
            else
                ::unsetenv(name);
        }
    }

    std::map<std::string, std::string> before;
};

TEST_F(CacheRoot, IsNowhereWhereNothingSaysWhoseItWouldBe) { EXPECT_TRUE(cache_root().empty()); }

TEST_F(CacheRoot, IsTheFirstThatIsSet) {
    ::setenv("HOME", "/home/a", 1);
    EXPECT_EQ(cache_root(), "/home/a/.cache/autotune");
    ::setenv("XDG_CACHE_HOME", "/var/a", 1);
    EXPECT_EQ(cache_root(), "/var/a/autotune");
    ::setenv("AUTOTUNE_CACHE_DIR", "/data", 1);
    EXPECT_EQ(cache_root(), "/data");
}

TEST_F(CacheRoot, ARelativeXdgFolderIsIgnored) {
    ::setenv("HOME", "/home/a", 1);
    ::setenv("XDG_CACHE_HOME", "cache", 1);
    EXPECT_EQ(cache_root(), "/home/a/.cache/autotune");
}

}  // namespace
}  // namespace autotune

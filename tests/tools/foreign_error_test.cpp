#include "tools/foreign_error.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

namespace autotune {
namespace {

TEST(ForeignError, TooLittleMemoryIsNoFaultOfOurs) {
    const Error error = foreign_error(std::bad_alloc{});
    EXPECT_EQ(error.kind(), Error::Kind::usage);
    EXPECT_EQ(std::string{error.what()}.substr(0, 13), "out of memory");
}

TEST(ForeignError, AFileIsNamedWithItsTrouble) {
    const auto of = [](std::errc code) {
        return foreign_error(std::filesystem::filesystem_error{"opening", "/a/file", std::make_error_code(code)});
    };
    EXPECT_STREQ(of(std::errc::permission_denied).what(), "'/a/file' cannot be used: Permission denied");
    EXPECT_EQ(of(std::errc::permission_denied).kind(), Error::Kind::usage);
    EXPECT_EQ(of(std::errc::no_space_on_device).kind(), Error::Kind::store);
}

TEST(ForeignError, AThreadThatCannotBeStartedIsTheSystems) {
    const auto code = std::make_error_code(std::errc::resource_unavailable_try_again);
    EXPECT_EQ(foreign_error(std::system_error{code}).kind(), Error::Kind::usage);
}

TEST(ForeignError, AnythingElseIsOurs) {
    EXPECT_EQ(foreign_error(std::logic_error{"x"}).kind(), Error::Kind::internal);
}

}  // namespace
}  // namespace autotune

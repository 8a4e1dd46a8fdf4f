#ifndef AUTOTUNE_TESTS_SUPPORT_TEST_DATA_H
#define AUTOTUNE_TESTS_SUPPORT_TEST_DATA_H

#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace autotune {

/// A file or folder of tests/: below AUTOTUNE_TEST_DATA, for test programs that run on another machine than the one
/// that built them, else below the sources they were built from.
inline std::filesystem::path test_data(std::string_view name) {
    const char* given = std::getenv("AUTOTUNE_TEST_DATA");
    return (given && *given ? std::filesystem::path{given} : std::filesystem::path{AUTOTUNE_SOURCE_DIR} / "tests") /
           name;
}

}  // namespace autotune
#endif

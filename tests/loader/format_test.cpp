#include "tuner/loader/format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "tuner/model/evaluator.h"
#include "tuner/model/expression.h"

namespace autotune {
namespace {

std::string read(const std::filesystem::path& path) {
    std::ifstream file{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, std::istreambuf_iterator<char>{}};
}

// Goal: the page of the format says what the loader does.
// Method: it is made again, from the table and the examples, and compared with the one in docs/.
TEST(Format, PageIsUpToDate) {
    std::vector<std::pair<std::string, std::string>> examples;
    for (const char* name : {"conv2d", "gemm", "paged_attention"}) {
        const std::string text = read(std::string{AUTOTUNE_SOURCE_DIR "/tests/loader/ops/"} + name + ".toml");
        const std::size_t end = text.find('\n');
        ASSERT_TRUE(text.starts_with("# ")) << name;
        examples.emplace_back(text.substr(2, end - 2), text.substr(end + 1));
    }
    EXPECT_TRUE(op_format_page(examples) == read(AUTOTUNE_SOURCE_DIR "/docs/op-format.md"))
        << "docs/op-format.md is not what the loader's table says; build the target op-format-page to make it anew";
}

TEST(Format, HasEachKeyOnceAndEachSectionExplained) {
    std::set<std::pair<std::string_view, std::string_view>> seen;
    for (const KeyRow& row : format_keys()) {
        EXPECT_TRUE(seen.emplace(row.section, row.key).second) << row.section << " " << row.key;
        EXPECT_TRUE(std::ranges::any_of(format_sections(), [&](const SectionRow& section) {
            return section.section == row.section;
        })) << row.section;
        if (row.type == KeyType::word) {
            EXPECT_FALSE(row.words.empty()) << row.key;
        }
    }
}

TEST(Format, ListsTheFunctionsOfTheEvaluator) {
    std::set<std::string_view> here, there;
    for (const FunctionRow& row : format_functions()) here.insert(row.name);
    for (const FunctionInfo& row : functions()) there.insert(row.name);
    EXPECT_EQ(here, there);
}

}  // namespace
}  // namespace autotune

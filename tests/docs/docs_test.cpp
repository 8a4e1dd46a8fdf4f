// Goal: what the pages say is so.
// Method: the table of ops is compared with the ops, links are followed, and the op files shown in pages are loaded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

#include "autotune/error.h"
#include "tuner/loader/op_loader.h"
#include "tuner/model/builtin_ops.h"

namespace autotune {
namespace {

namespace fs = std::filesystem;
using testing::Contains;

const fs::path root = AUTOTUNE_SOURCE_DIR;

std::string read(const fs::path& path) {
    std::ifstream file{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, std::istreambuf_iterator<char>{}};
}

std::vector<fs::path> pages() {
    std::vector<fs::path> found;
    for (const char* folder : {"", "docs", "examples/matmul"}) {
        if (!fs::exists(root / folder)) continue;
        for (const auto& entry : fs::directory_iterator{root / folder})
            if (entry.path().extension() == ".md") found.push_back(entry.path());
    }
    return found;
}

std::string trimmed(std::string_view text) {
    const std::size_t start = text.find_first_not_of(" `");
    if (start == std::string_view::npos) return {};
    return std::string{text.substr(start, text.find_last_not_of(" `") - start + 1)};
}

/// The rows of the table under the heading, cell by cell; without its head.
std::vector<std::vector<std::string>> table_under(const std::string& page, const std::string& heading) {
    std::vector<std::vector<std::string>> rows;
    std::istringstream lines{page.substr(std::min(page.size(), page.find("\n## " + heading + "\n") + 1))};
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line) && !line.starts_with("## ")) {
        if (!line.starts_with('|')) continue;
        std::vector<std::string> cells;
        std::istringstream row{line.substr(1)};
        for (std::string cell; std::getline(row, cell, '|');) cells.push_back(trimmed(cell));
        rows.push_back(cells);
    }
    rows.erase(rows.begin(), rows.begin() + std::min<std::ptrdiff_t>(2, std::ssize(rows)));
    return rows;
}

TEST(Readme, HasOneRowForEachOp) {
    std::vector<std::string> named, ops;
    for (const auto& row : table_under(read(root / "README.md"), "Ops")) named.push_back(row.at(0));
    for (const Op& op : builtin_ops()) ops.push_back(op.name);
    EXPECT_THAT(named, testing::UnorderedElementsAreArray(ops));
}

TEST(Readme, NamesTheTypesOfEachOp) {
    for (const auto& row : table_under(read(root / "README.md"), "Ops")) {
        const auto op = std::ranges::find(builtin_ops(), row.at(0), &Op::name);
        if (op == builtin_ops().end()) continue;  // the test above says so
        const Field* dtype = op->field("dtype");
        ASSERT_NE(dtype, nullptr) << op->name;
        std::set<std::string> said, are;
        std::istringstream words{row.at(2)};
        for (std::string word; words >> word;) said.insert(word);
        for (const Value& choice : dtype->choices) are.insert(to_text(choice));
        EXPECT_EQ(said, are) << op->name;
    }
}

TEST(Pages, LinkToFilesThatAreThere) {
    const std::regex link{R"(\]\(([^)#]+)(#[^)]*)?\))"};
    for (const fs::path& page : pages()) {
        const std::string text = read(page);
        for (std::sregex_iterator found{text.begin(), text.end(), link}, end; found != end; ++found) {
            const std::string target = (*found)[1];
            if (target.find("://") != std::string::npos) continue;
            EXPECT_TRUE(fs::exists(page.parent_path() / target))
                << page.lexically_relative(root) << " links to " << target;
        }
    }
}

/// Whatever a page's op file names.
class AnyFile final : public FileSource {
public:
    std::optional<std::string> read(std::string_view) const override { return ""; }
};

TEST(Pages, ShowOpFilesThatLoad) {
    std::size_t loaded = 0;
    for (const fs::path& page : pages()) {
        const std::string text = read(page);
        for (std::size_t at = text.find("```toml\n"); at != std::string::npos; at = text.find("```toml\n", at + 1)) {
            const std::string block = text.substr(at + 8, text.find("```", at + 8) - at - 8);
            if (!block.starts_with("format = ")) continue;  // a part of a file
            const std::string name = page.lexically_relative(root).string();
            EXPECT_NO_THROW(load_op(block, AnyFile{}, name)) << [&] {
                try {
                    load_op(block, AnyFile{}, name);
                } catch (const Error& error) {
                    return std::string{error.what()};
                }
                return std::string{};
            }();
            ++loaded;
        }
    }
    EXPECT_GE(loaded, 3u);  // those of docs/op-format.md at least
}

}  // namespace
}  // namespace autotune

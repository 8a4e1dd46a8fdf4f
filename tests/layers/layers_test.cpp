// Goal: includes point one way, so that each layer can be read, built and replaced without those to its right.
// Method: every #include "..." of the tree is read and judged by the folders of both sides; link lines of CMake files
// too.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

/// From left to right; a file may include what stands at or left of its own place.
constexpr std::array<std::string_view, 6> layers{"include", "device", "tuner", "cache", "tools", "c_api"};

int layer_of(const std::string& path) {
    const std::string top = path.substr(0, path.find('/'));
    if (top == "autotune") return 0;
    const auto found = std::ranges::find(layers, top);
    return found == layers.end() ? -1 : static_cast<int>(found - layers.begin());
}

struct Include {
    std::string from, to;
};

std::vector<Include> includes() {
    const fs::path root{AUTOTUNE_SOURCE_DIR};
    const std::regex line{R"(^\s*#include\s*["<]([^">]+\.(h|hpp))[">].*)"};
    std::vector<Include> found;
    for (const std::string_view top : layers)
        for (const fs::directory_entry& entry : fs::recursive_directory_iterator{root / top}) {
            const std::string extension = entry.path().extension();
            if (extension != ".h" && extension != ".hpp" && extension != ".cpp") continue;
            std::ifstream stream{entry.path()};
            std::smatch match;
            for (std::string text; std::getline(stream, text);)
                if (std::regex_match(text, match, line))
                    found.push_back({fs::relative(entry.path(), root).string(), match[1]});
        }
    return found;
}

TEST(Layers, IncludesPointLeft) {
    const std::vector<Include> all = includes();
    ASSERT_GT(all.size(), 100u);
    for (const Include& include : all) {
        const int from = layer_of(include.from), to = layer_of(include.to);
        if (to >= 0) EXPECT_LE(to, from) << include.from << " includes " << include.to;
    }
}

// device/ is what the model's launches are made of, and the model is what the store keeps.
TEST(Layers, TheStoreAndTheDispatcherKnowOnlyTheModelOfTheTuner) {
    for (const Include& include : includes())
        if (include.from.starts_with("cache/") && include.to.starts_with("tuner/"))
            EXPECT_TRUE(include.to.starts_with("tuner/model/")) << include.from << " includes " << include.to;
}

TEST(Layers, TheModelKnowsNothingOfTheRestOfTheTuner) {
    for (const Include& include : includes())
        if (include.from.starts_with("tuner/model/") && include.to.starts_with("tuner/"))
            EXPECT_TRUE(include.to.starts_with("tuner/model/")) << include.from << " includes " << include.to;
}

TEST(Layers, TomlStaysInTheLoaderAndTheCommandLineLibraryInTheTools) {
    for (const Include& include : includes()) {
        if (include.to.starts_with("toml++/")) EXPECT_TRUE(include.from.starts_with("tuner/loader/")) << include.from;
        if (include.to.starts_with("CLI/")) EXPECT_TRUE(include.from.starts_with("tools/")) << include.from;
        if (include.to == "sqlite3.h") EXPECT_TRUE(include.from.starts_with("cache/store/")) << include.from;
    }
}

/// The targets that each library links, by CMake file: `autotune_layer(NAME ... LINK a b PRIVATE c d)`.
std::map<std::string, std::string> link_lines() {
    const fs::path root{AUTOTUNE_SOURCE_DIR};
    std::map<std::string, std::string> lines;
    const std::regex layer{R"(autotune_layer\((\w+)([^)]*)\))"};
    for (const std::string_view top : layers)
        for (const fs::directory_entry& entry : fs::recursive_directory_iterator{root / top}) {
            if (entry.path().filename() != "CMakeLists.txt") continue;
            std::ifstream stream{entry.path()};
            const std::string text{std::istreambuf_iterator<char>{stream}, {}};
            for (std::sregex_iterator it{text.begin(), text.end(), layer}; it != std::sregex_iterator{}; ++it) {
                const std::string body = (*it)[2];
                const std::size_t link = std::min(body.find("LINK"), body.find("PRIVATE"));
                lines[(*it)[1]] = link == std::string::npos ? "" : body.substr(link);
            }
        }
    return lines;
}

TEST(Layers, TheDispatcherLinksNeitherTomlNorTheCommandLine) {
    const std::map<std::string, std::string> lines = link_lines();
    std::vector<std::string> open{"dispatcher"}, seen;
    ASSERT_TRUE(lines.contains("dispatcher"));
    while (!open.empty()) {
        const std::string name = open.back();
        open.pop_back();
        if (std::ranges::find(seen, name) != seen.end() || !lines.contains(name)) continue;
        seen.push_back(name);
        for (const std::string_view banned :
             {"autotune_toml", "CLI11", "autotune::tools", "autotune::loader", "autotune::worker"})
            EXPECT_EQ(lines.at(name).find(banned), std::string::npos)
                << "autotune::dispatcher links " << banned << " through " << name;
        static const std::regex target{R"(autotune::(\w+))"};
        const std::string& line = lines.at(name);
        for (std::sregex_iterator it{line.begin(), line.end(), target}; it != std::sregex_iterator{}; ++it)
            open.push_back((*it)[1]);
    }
    EXPECT_GT(seen.size(), 2u);
}

// Two classes of one name in one namespace are one to the linker: each destroys the other's members.
TEST(Layers, NoClassIsDefinedTwiceInOneNamespace) {
    const fs::path root{AUTOTUNE_SOURCE_DIR};
    const std::regex opens{R"(^(?:inline )?namespace ([\w:]*) ?\{.*)"}, closes{R"(^\}  // namespace ?([\w:]*)$)"};
    const std::regex definition{R"(^(?:struct|class) ([A-Z]\w+)(?: final)?(?: : [^;]*)? ?\{.*)"};
    std::map<std::string, std::string> first;
    for (const std::string_view top : layers)
        for (const fs::directory_entry& entry : fs::recursive_directory_iterator{root / top}) {
            const std::string extension = entry.path().extension();
            if (extension != ".h" && extension != ".hpp" && extension != ".cpp") continue;
            const std::string file = fs::relative(entry.path(), root).string();
            std::ifstream stream{entry.path()};
            std::vector<std::string> open;
            std::smatch match;
            for (std::string text; std::getline(stream, text);) {
                if (std::regex_match(text, match, opens)) open.push_back(match[1]);
                if (!open.empty() && std::regex_match(text, match, closes)) open.pop_back();
                if (std::ranges::find(open, "") != open.end() || !std::regex_match(text, match, definition)) continue;
                std::string name;
                for (const std::string& space : open) name += space + "::";
                const auto [at, is_new] = first.emplace(name + std::string{match[1]}, file);
                EXPECT_TRUE(is_new) << at->first << " stands in " << at->second << " and in " << file;
            }
        }
    EXPECT_GT(first.size(), 200u);
}

TEST(Layers, TheStoreLinksNoCuda) {
    const std::map<std::string, std::string> lines = link_lines();
    ASSERT_TRUE(lines.contains("store"));
    for (const std::string_view banned : {"autotune_cuda_headers", "autotune::device", "autotune_toml"})
        EXPECT_EQ(lines.at("store").find(banned), std::string::npos) << banned;
}

}  // namespace

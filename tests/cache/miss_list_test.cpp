// Goal: what applications missed is told to whoever tunes, from any number of processes, and the file can't hurt.
// Method: lists in a folder of their own; lines of every wrong form.
#include "cache/store/miss_list.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "tests/cache/samples.h"

namespace autotune {
namespace {

using samples::Folder;

StoredMiss miss(std::int64_t n, std::int64_t last = 1000) {
    return {.op = "scale",
            .fields = {{"n", n}, {"dtype", std::string{"f32"}}},
            .strides = {{"ldx", n + 8}},
            .align = {{"x", 4}},
            .device_fp = "h200",
            .device = "NVIDIA H200",
            .last = last};
}

std::string read_text(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream{path}.rdbuf();
    return text.str();
}

TEST(MissList, LiesBesideItsDatabase) {
    EXPECT_EQ(MissList{"/a/tune.db"}.path(), "/a/misses.jsonl");
    EXPECT_EQ(MissList{"/a/x.db"}.path(), "/a/x.misses.jsonl");
}

TEST(MissList, IsReadBackWithWhatMostAskedForFirst) {
    const Folder folder;
    const StoredMiss once[] = {miss(1), miss(2)}, again[] = {miss(2, 2000)};
    EXPECT_TRUE(MissList{folder / "tune.db"}.read().empty());
    EXPECT_TRUE(MissList{folder / "tune.db"}.add(once));
    EXPECT_TRUE(MissList{folder / "tune.db"}.add(again));
    const auto misses = MissList{folder / "tune.db"}.read();
    ASSERT_EQ(misses.size(), 2u);
    EXPECT_EQ(misses[0].name(), miss(2).name());
    EXPECT_EQ(misses[0].processes, 2);
    EXPECT_EQ(misses[0].last, 2000);
    EXPECT_EQ(misses[0].fields, miss(2).fields);
    EXPECT_EQ(misses[0].strides, miss(2).strides);
    EXPECT_EQ(misses[0].align, miss(2).align);
    EXPECT_EQ(misses[0].device, "NVIDIA H200");
    EXPECT_NE(miss(1).name(), miss(2).name());
}

TEST(MissList, DropsWhatWasTuned) {
    const Folder folder;
    MissList list{folder / "tune.db"};
    EXPECT_TRUE(list.drop([](const StoredMiss&) { return true; }));
    EXPECT_FALSE(std::filesystem::exists(list.path())) << "made for nothing";
    const StoredMiss misses[] = {miss(1), miss(2)};
    list.add(misses);
    EXPECT_TRUE(list.drop([](const StoredMiss& m) { return m.name() == miss(1).name(); }));
    ASSERT_EQ(list.read().size(), 1u);
    EXPECT_EQ(list.read().front().name(), miss(2).name());
}

TEST(MissList, HasABoundAndForgetsWhatWasAskedForLongestAgo) {
    const Folder folder;
    MissList list{folder / "tune.db"};
    std::vector<StoredMiss> many;
    for (std::int64_t n = 0; n < 6000; ++n) many.push_back(miss(n, n));
    EXPECT_TRUE(list.add(many));
    const auto misses = list.read();
    EXPECT_EQ(misses.size(), MissList::most);
    for (const StoredMiss& kept : misses) EXPECT_GE(kept.last, 6000 - static_cast<std::int64_t>(MissList::most));
    EXPECT_LE(std::filesystem::file_size(list.path()), MissList::most_bytes);
}

TEST(MissList, WritersOfManyThreadsLoseNothing) {
    const Folder folder;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 25; ++i) {
                const StoredMiss one[] = {miss(100 * t + i), miss(7)};
                EXPECT_TRUE(MissList{folder / "tune.db"}.add(one));
            }
        });
    for (std::thread& thread : threads) thread.join();
    const auto misses = MissList{folder / "tune.db"}.read();
    EXPECT_EQ(misses.size(), 100u);
    EXPECT_EQ(misses.front().processes, 101) << "7 is among those of the first thread too";
}

TEST(MissList, LinesThatAreNoMissesAreLeftOut) {
    const Folder folder;
    MissList list{folder / "tune.db"};
    const StoredMiss sound[] = {miss(1)};
    list.add(sound);
    const std::string line = read_text(list.path());
    std::ofstream out{list.path(), std::ios::app};
    out << "\n{}\n[]\nnull\n\"\xff\xfe\"\n{\"v\":2}\n" << line.substr(0, line.size() / 2) << '\n';
    const std::string deep = std::string(8000, '[') + std::string(8000, ']');
    std::string nested = line;
    nested.replace(nested.find("\"f32\""), 5, deep);
    for (const char* number : {"-5", "99999999999999999999", "1e3"}) {
        std::string odd = line;
        const std::size_t at = odd.find("\"processes\":") + 12;
        odd.replace(at, odd.find_first_of(",}", at) - at, number);
        out << odd;
    }
    out << nested << std::string(20'000, 'x') << '\n' << R"({"v":1,"op":7})" << '\n';
    out.close();
    ASSERT_EQ(list.read().size(), 1u);
    EXPECT_EQ(list.read().front().name(), miss(1).name());
    EXPECT_EQ(list.contents().left_out, 12u);
    const StoredMiss more[] = {miss(2)};
    EXPECT_TRUE(list.add(more));
    EXPECT_EQ(list.read().size(), 2u);
}

TEST(MissList, ChangedBytesCostLinesAndNothingElse) {
    const Folder folder;
    MissList list{folder / "tune.db"};
    const StoredMiss misses[] = {miss(1), miss(2), miss(3)};
    list.add(misses);
    const std::string text = read_text(list.path());
    std::mt19937 random{11};
    for (int i = 0; i < 500; ++i) {
        std::string changed = text;
        for (int k = 0; k < 3; ++k) changed[random() % changed.size()] = static_cast<char>(random());
        std::ofstream{list.path()} << changed;
        EXPECT_LE(list.read().size(), 6u);
    }
}

TEST(MissList, AFileThatIsTooLargeOrNoFileCountsAsEmpty) {
    const Folder folder;
    MissList list{folder / "tune.db"};
    std::ofstream{list.path()} << "x";
    std::filesystem::resize_file(list.path(), std::uintmax_t{1} << 40);
    EXPECT_TRUE(list.read().empty());
    const StoredMiss one[] = {miss(1)};
    EXPECT_TRUE(list.add(one));
    EXPECT_EQ(list.read().size(), 1u);
    std::filesystem::remove(list.path());
    std::filesystem::create_directory(list.path());
    EXPECT_TRUE(list.read().empty());
    EXPECT_FALSE(list.add(one));
}

}  // namespace
}  // namespace autotune

// Goal: a recorded space is read as it was written, and whatever else a file holds is refused with the line and the
// cause. Method: texts made up here; files are written to a folder of the test's own.
#include "tuner/replay/recorded_space.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "autotune/error.h"

namespace autotune {
namespace {

const std::string sound =
    "# format: recorded-space 1\n# kernel: toy\n# device: made_up\n# constant: C=3\n"
    "# values A: 16 32 64\n# values B: 0 1\n"
    "A,B,time_ms,sd_ms,cost_ms,status\n"
    "16,0,2.5,0.1,120,ok\n64,1,1.25,,,ok\n32,0,error,,90,compile\n32,1,error,,,runtime\n";

std::string refusal(const std::string& text) {
    try {
        RecordedSpace::parse(text, "toy.csv");
    } catch (const Error& e) {
        EXPECT_EQ(e.kind(), Error::Kind::usage);
        return e.what();
    }
    return "nothing was refused";
}

std::string with(const std::string& row) { return sound + row + "\n"; }

std::string refusal_of_file(const std::filesystem::path& file) {
    try {
        RecordedSpace::read(file);
    } catch (const Error& e) {
        return e.what();
    }
    return "nothing was refused";
}

class RecordedFile : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = (std::filesystem::temp_directory_path() / "autotune-recorded-XXXXXX").string();
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        folder = pattern;
    }
    void TearDown() override { std::filesystem::remove_all(folder); }
    void pack(const std::filesystem::path& file, const std::string& text) const {
        gzFile stream = gzopen(file.c_str(), "wb");
        ASSERT_NE(stream, nullptr);
        gzwrite(stream, text.data(), static_cast<unsigned>(text.size()));
        gzclose(stream);
    }
    std::filesystem::path folder;
};

TEST(RecordedSpace, GivesEachConfigItsTimeOrItsFailure) {
    const RecordedSpace record = RecordedSpace::parse(sound, "toy.csv");
    EXPECT_EQ(record.name(), "toy__made_up");
    ASSERT_EQ(record.space().size(), 4u);
    const auto outcome = [&](std::int64_t a, std::int64_t b) {
        const auto number = record.space().find(Config{.variant = "recorded", .values = {{"A", a}, {"B", b}}});
        EXPECT_TRUE(number.has_value());
        return record.outcome(*number);
    };
    EXPECT_DOUBLE_EQ(outcome(16, 0).time_us, 2500);
    EXPECT_DOUBLE_EQ(outcome(64, 1).time_us, 1250);
    EXPECT_EQ(outcome(32, 0).ending, Ending::compile_failed);
    EXPECT_EQ(outcome(32, 1).ending, Ending::launch_failed);
    EXPECT_EQ(record.sorted_us(), (std::vector<double>{1250, 2500}));
    EXPECT_FALSE(record.space().find(
        Config{.variant = "recorded", .values = {{"A", std::int64_t{16}}, {"B", std::int64_t{1}}}}));
}

TEST(RecordedSpace, KeepsWhatATrialCostWhereItIsRecorded) {
    const RecordedSpace record = RecordedSpace::parse(sound, "toy.csv");
    EXPECT_EQ(record.cost_ms(0), 120);
    EXPECT_FALSE(record.cost_ms(3).has_value());
}

TEST(RecordedSpace, ReadsLinesThatEndInACarriageReturn) {
    std::string text = sound;
    for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) text.replace(at, 1, "\r\n");
    EXPECT_EQ(RecordedSpace::parse(text, "toy.csv").sorted_us().size(), 2u);
}

TEST(RecordedSpace, ReadsTextThatBeginsWithAByteOrderMark) {
    EXPECT_EQ(RecordedSpace::parse("\xef\xbb\xbf" + sound, "toy.csv").sorted_us().size(), 2u);
}

TEST(RecordedSpace, AValueListedTwiceIsOneValue) {
    const RecordedSpace record =
        RecordedSpace::parse("# values A: 1 2 2 1\nA,time_ms,sd_ms,cost_ms,status\n1,3,,,ok\n2,4,,,ok\n", "toy.csv");
    EXPECT_EQ(record.instance().op().variants[0].parameters[0].values.size(), 2u);
}

TEST(RecordedSpace, NamesTheLineAndTheCauseOfWhatItRefuses) {
    EXPECT_NE(refusal(with("16,7,1,,,ok")).find("line 12: '7' is no value of B"), std::string::npos);
    EXPECT_NE(refusal(with("16,1,1,,ok")).find("line 12: there are 5 cells under 6 columns"), std::string::npos);
    EXPECT_NE(refusal(with("16,1,nan,,,ok")).find("time_ms is 'nan', which is no time above 0"), std::string::npos);
    EXPECT_NE(refusal(with("16,1,1e306,,,ok")).find("'1e306', which is no time above 0 that a double holds"),
              std::string::npos);
    EXPECT_NE(refusal(with("16,1,-1,,,ok")).find("no time above 0"), std::string::npos);
    EXPECT_NE(refusal(with("16,1,inf,,,ok")).find("no time above 0"), std::string::npos);
    EXPECT_NE(refusal(with("16,1,1e,,,ok")).find("no time above 0"), std::string::npos);
    EXPECT_NE(refusal(with("16,1,1,,,fine")).find("'fine' is no status"), std::string::npos);
    EXPECT_NE(refusal(with("16,0,9,,,ok")).find("two rows of the config 'A=16 B=0'"), std::string::npos);
    EXPECT_NE(refusal("").find("has no line that names the columns"), std::string::npos);
    EXPECT_NE(refusal("A,time_ms,sd_ms,cost_ms,status\n").find("no '# values A: ...'"), std::string::npos);
    EXPECT_NE(refusal("# values A: 1\nA,A,time_ms,sd_ms,cost_ms,status\n").find("two columns"), std::string::npos);
    EXPECT_NE(refusal("# values A:\n").find("has 0 values"), std::string::npos);
    EXPECT_NE(refusal("# values A: 1\nA,time_ms\n").find("time_ms,sd_ms,cost_ms,status"), std::string::npos);
    EXPECT_NE(refusal("# values A-B: 1\nA-B,time_ms,sd_ms,cost_ms,status\n").find("is no name"), std::string::npos);
}

// A line may hold 4,096 values, and the index of one has 16 bits.
TEST(RecordedSpace, SeveralLinesOfAParametersValuesHoldNoMoreThanOneMay) {
    std::string text;
    for (int line = 0; line < 17; ++line) {
        text += "# values A:";
        for (int i = 0; i < 4096; ++i) text += " " + std::to_string(line * 4096 + i);
        text += "\n";
    }
    text += "A,time_ms,sd_ms,cost_ms,status\n0,1,,,ok\n65536,2,,,ok\n";
    EXPECT_EQ(refusal(text), "the recorded space 'toy.csv' line 2: 'A' has 8192 values; 1 to 4096 are possible");
}

TEST(RecordedSpace, AnUnreadableDeviationOrCostIsNotTakenForNone) {
    EXPECT_NE(refusal(with("16,1,1,abc,,ok")).find("line 12: sd_ms is 'abc', which is neither empty nor a time"),
              std::string::npos)
        << refusal(with("16,1,1,abc,,ok"));
    EXPECT_NE(refusal(with("16,1,1,-1,,ok")).find("sd_ms is '-1'"), std::string::npos);
    EXPECT_NE(refusal(with("16,1,1,,nan,ok")).find("cost_ms is 'nan'"), std::string::npos);
    EXPECT_NE(refusal(with("16,1,error,,-5,compile")).find("cost_ms is '-5'"), std::string::npos);
    EXPECT_EQ(RecordedSpace::parse(with("16,1,1,0,0,ok"), "toy.csv").sorted_us().size(), 3u);
}

TEST(RecordedSpace, ALongCellIsCutInItsMessage) {
    EXPECT_LT(refusal(with("16,1," + std::string(100'000, '1') + ",,,ok")).size(), 300u);
    EXPECT_LT(refusal(with("16," + std::string(100'000, '1') + ",1,,,ok")).size(), 300u);
}

TEST(RecordedSpace, WhatItPrintsOfAFileSteersNoTerminal) {
    EXPECT_EQ(refusal(with("16,\x1b[2J,1,,,ok")).find('\x1b'), std::string::npos);
}

TEST(RecordedSpace, ASpaceWithoutRowsIsEmpty) {
    const RecordedSpace record = RecordedSpace::parse("# values A: 1\nA,time_ms,sd_ms,cost_ms,status\n", "toy.csv");
    EXPECT_EQ(record.space().size(), 0u);
    EXPECT_EQ(record.optimum_us(), 0);
}

TEST_F(RecordedFile, IsReadGzippedOrNot) {
    pack(folder / "toy.csv.gz", sound);
    std::ofstream{folder / "toy.csv"} << sound;
    EXPECT_EQ(RecordedSpace::read(folder / "toy.csv.gz").space().size(), 4u);
    EXPECT_EQ(RecordedSpace::read(folder / "toy.csv").space().size(), 4u);
}

TEST_F(RecordedFile, OneThatIsCutShortIsRefused) {
    std::string text = sound;
    for (int i = 0; i < 2000; ++i) text += "# " + std::to_string(i * i) + "\n";
    pack(folder / "whole.gz", text);
    std::ifstream stream{folder / "whole.gz", std::ios::binary};
    std::string packed{std::istreambuf_iterator<char>{stream}, {}};
    std::ofstream{folder / "cut.gz", std::ios::binary} << packed.substr(0, packed.size() / 2);
    EXPECT_NE(refusal_of_file(folder / "cut.gz").find("cut short"), std::string::npos)
        << refusal_of_file(folder / "cut.gz");
    packed[packed.size() / 2] = static_cast<char>(packed[packed.size() / 2] ^ 0x55);
    std::ofstream{folder / "flipped.gz", std::ios::binary} << packed;
    EXPECT_NE(refusal_of_file(folder / "flipped.gz").find("cannot be unpacked"), std::string::npos);
}

TEST_F(RecordedFile, OneThatUnpacksToMoreThanItMayIsRefused) {
    gzFile stream = gzopen((folder / "bomb.gz").c_str(), "wb1");
    const std::string part(1 << 20, '#');
    for (int i = 0; i < 257; ++i) gzwrite(stream, part.data(), static_cast<unsigned>(part.size()));
    gzclose(stream);
    EXPECT_NE(refusal_of_file(folder / "bomb.gz").find("more than 256 MiB"), std::string::npos);
}

TEST_F(RecordedFile, OneThatIsNotThereOrAFolderIsRefused) {
    EXPECT_NE(refusal_of_file(folder / "none.csv").find("none.csv"), std::string::npos);
    EXPECT_NE(refusal_of_file(folder).find("is not a file"), std::string::npos);
}

}  // namespace
}  // namespace autotune

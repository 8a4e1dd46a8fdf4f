// Goal: a shell completes what a command line can hold, and every command has a manual page.
// Method: the candidates of half-typed command lines; the bash script is run in bash as bash would call it, and pages
// are read by groff where there is one.
#include "tools/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "autotune/error.h"
#include "tools/help.h"
#include "tools/manual.h"
#include "tools/request.h"
#include "tools/subcommands.h"

namespace autotune {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// The candidates for the last word, without what is said about them.
std::vector<std::string> candidates(std::vector<std::string> words) {
    std::vector<std::string> found;
    std::istringstream lines{completions(words)};
    for (std::string line; std::getline(lines, line);) found.push_back(line.substr(0, line.find('\t')));
    return found;
}

TEST(Completion, KnowsEverySubcommand) {
    const std::vector<std::string> all = candidates({""});
    for (const Subcommand& sub : subcommands()) EXPECT_THAT(all, Contains(std::string{sub.name}));
    EXPECT_THAT(all, Contains("help"));
    EXPECT_THAT(candidates({"ver"}), ElementsAre("verify"));
    EXPECT_THAT(candidates({"db", "pa"}), ElementsAre("path"));
}

TEST(Completion, KnowsTheFlagsThatACommandTakesAndNoOthers) {
    EXPECT_THAT(candidates({"tune", "--bu"}), ElementsAre("--budget"));
    EXPECT_THAT(candidates({"--bu"}), ElementsAre("--budget")) << "tune needs no name";
    EXPECT_THAT(candidates({"query", "--bu"}), IsEmpty());
    EXPECT_THAT(candidates({"db", "path", "--d"}), ElementsAre("--db"));
}

TEST(Completion, KnowsTheValuesOfFlags) {
    EXPECT_THAT(candidates({"tune", "--strategy", "r"}), ElementsAre("random"));
    EXPECT_THAT(candidates({"query", "--as", ""}), ElementsAre("cpp", "toml", "json", "cubin", "t4", "kernel-tuner"));
    EXPECT_THAT(candidates({"tune", "--op", "att"}), ElementsAre("attention"));
    EXPECT_THAT(candidates({"tune", "--gpu", "emulated:a1"}), Contains("emulated:a100"));
    EXPECT_THAT(candidates({"tune", "--db", ""}), ElementsAre(":files"));
    EXPECT_THAT(candidates({"tune", "--budget", ""}), IsEmpty());
}

TEST(Completion, WhatAFlagSuggestsIsTaken) {
    for (const CommandRow& command : commands())
        for (const FlagRow& flag : command.flags) {
            if (!flag.takes_value || command.name != "tune") continue;
            for (const std::string& value : candidates({"tune", flag.names.back(), ""})) {
                if (value.starts_with(':')) continue;
                const std::array words{"autotune", "tune", flag.names.back().c_str(), value.c_str()};
                EXPECT_NO_THROW(parse_request(static_cast<int>(words.size()), words.data()))
                    << flag.names.back() << " " << value;
            }
        }
}

TEST(Completion, KnowsOpsAndTheirProblems) {
    EXPECT_THAT(candidates({"tune", "so"}), ElementsAre("softmax", "softmax_backward"));
    EXPECT_THAT(candidates({"tune", "softmax", ""}), ElementsAre("rows=", "cols=", "dtype="));
    EXPECT_THAT(candidates({"tune", "softmax", "cols=8,"}), ElementsAre("cols=8,rows=", "cols=8,dtype="));
    EXPECT_THAT(candidates({"tune", "softmax", "dtype=b"}), ElementsAre("dtype=bf16"));
    EXPECT_THAT(candidates({"tune", "--op", "softmax", "--problem", "rows=1,d"}), ElementsAre("rows=1,dtype="));
    EXPECT_THAT(candidates({"tune", "softmax", "--budget", "3", "--problem", "ro"}), ElementsAre("rows="));
    EXPECT_THAT(candidates({"tune", "softmax", "rows=4", "more"}), IsEmpty());
    EXPECT_THAT(candidates({"tune", "nonsense", ""}), IsEmpty());
    EXPECT_THAT(candidates({"nonsense", ""}), IsEmpty());
}

TEST(Completion, KnowsOpsOfTheUsersOwn) {
    const std::string folder = std::string{AUTOTUNE_SOURCE_DIR} + "/examples/matmul";
    EXPECT_THAT(candidates({"tune", "--ops", folder, "mat"}), ElementsAre("matmul"));
    EXPECT_THAT(candidates({"tune", "--ops", "/nonexistent", "so"}), ElementsAre("softmax", "softmax_backward"));
}

TEST(Completion, KnowsTopics) {
    EXPECT_THAT(candidates({"help", "exit"}), ElementsAre("exit-codes"));
    EXPECT_THAT(candidates({"help", "tun"}), ElementsAre("tune"));
}

TEST(Completion, ScriptsAreOfThreeShells) {
    for (const char* shell : {"bash", "zsh", "fish"})
        EXPECT_THAT(std::string{completion_script(shell)}, HasSubstr("__complete"));
    EXPECT_THROW(completion_script("tcsh"), Error);
    EXPECT_THROW(completion_script(""), Error);
}

std::string output_of(const std::string& command) {
    std::string text;
    std::FILE* pipe = popen(command.c_str(), "r");
    for (int c; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
    EXPECT_EQ(pclose(pipe), 0) << command;
    return text;
}

/// What bash would put in the place of its last word, when `line` is typed.
std::string completed_by_bash(const std::string& line) {
    const std::filesystem::path script = std::filesystem::path{testing::TempDir()} / "complete.sh";
    std::ofstream{script} << completion_script("bash") << "PATH=" AUTOTUNE_BINARY_DIR "/bin:$PATH\n"
                          << "COMP_LINE='" << line << "'\nCOMP_POINT=${#COMP_LINE}\n_autotune\n"
                          << "printf '%s|' \"${COMPREPLY[@]}\"\n";
    return output_of("bash --norc --noprofile " + script.string());
}

TEST(Completion, BashPutsCandidatesInThePlaceOfItsLastWord) {
    EXPECT_EQ(completed_by_bash("autotune tun"), "tune|");
    EXPECT_EQ(completed_by_bash("autotune tune softmax rows=4,dtype="), "f32|f16|bf16|") << "= ends a word of bash";
    EXPECT_EQ(completed_by_bash("autotune tune softmax rows=4,dt"), "4,dtype=|");
    EXPECT_EQ(completed_by_bash("autotune tune --strategy "),
              "guided|bayesian|portfolio|local|genetic|differential|swarm|annealing|halving|random|exhaustive|");
    EXPECT_EQ(completed_by_bash("autotune db pat"), "path|");
}

bool is_here(const std::string& program) { return std::system(("command -v " + program + " >/dev/null").c_str()) == 0; }

TEST(Completion, FishShowsWhatIsSaidOfEach) {
    if (!is_here("fish")) GTEST_SKIP() << "there is no fish here";
    const std::filesystem::path script = std::filesystem::path{testing::TempDir()} / "complete.fish";
    std::ofstream{script} << completion_script("fish") << "set PATH " AUTOTUNE_BINARY_DIR "/bin $PATH\n"
                          << "complete -C 'autotune tune softmax rows=4,dt'\n";
    EXPECT_THAT(output_of("fish --no-config " + script.string()), testing::StartsWith("rows=4,dtype=\tof x and y"));
}

TEST(Completion, ZshReadsItsScript) {
    if (!is_here("zsh")) GTEST_SKIP() << "there is no zsh here";
    const std::filesystem::path script = std::filesystem::path{testing::TempDir()} / "_autotune";
    std::ofstream{script} << completion_script("zsh");
    EXPECT_EQ(output_of("zsh -n " + script.string() + " 2>&1"), "");
}

TEST(Manual, HasAPageOfEveryCommand) {
    std::istringstream lines{manual_pages()};
    std::size_t pages = 0;
    for (std::string name; std::getline(lines, name); ++pages)
        EXPECT_THAT(manual_page(name), HasSubstr(".SH EXAMPLE")) << name;
    EXPECT_GT(pages, subcommands().size());
    EXPECT_THAT(manual_page(""), HasSubstr("autotune\\-tune"));
    EXPECT_THAT(manual_page("tune"), HasSubstr("\\-\\-budget"));
    EXPECT_THROW(manual_page("tun"), Error);
}

TEST(Manual, IsReadWithoutAWarning) {
    if (!is_here("groff")) GTEST_SKIP() << "there is no groff here";
    for (const CommandRow& command : commands()) {
        const std::filesystem::path page = std::filesystem::path{testing::TempDir()} / "page.1";
        std::ofstream{page} << manual_page(command.name);
        EXPECT_EQ(output_of("groff -man -Tascii -ww -z " + page.string() + " 2>&1"), "") << command.name;
    }
}

}  // namespace
}  // namespace autotune

#ifndef AUTOTUNE_TESTS_TOOLS_COMMAND_LINE_H
#define AUTOTUNE_TESTS_TOOLS_COMMAND_LINE_H

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace autotune {

/// Runs the built programs without a GPU (CUDA_VISIBLE_DEVICES hides one), in a folder with a cache of their own.
class CommandLine : public testing::Test {
protected:
    struct Answer {
        int code = -1;
        std::string out, err;

        /// The JSON lines on stdout; a line that is none fails the test.
        std::vector<nlohmann::json> lines() const {
            std::vector<nlohmann::json> lines;
            for (std::size_t begin = 0; begin < out.size();) {
                const std::size_t end = std::min(out.find('\n', begin), out.size());
                lines.push_back(nlohmann::json::parse(out.substr(begin, end - begin), nullptr, false));
                EXPECT_TRUE(lines.back().is_object()) << out.substr(begin, end - begin);
                begin = end + 1;
            }
            return lines;
        }
    };

    void SetUp() override {
        std::string pattern = (std::filesystem::temp_directory_path() / "autotune-cli-XXXXXX").string();
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        folder = pattern;
    }
    void TearDown() override { std::filesystem::remove_all(folder); }

    /// `autotune WORDS`.
    Answer run(const std::string& words) const { return shell("'" AUTOTUNE_BINARY_DIR "/bin/autotune' " + words); }
    /// The same on a made-up GPU that answers at once. variables: `NAME=value`, in front of the command.
    Answer scripted(const std::string& words, const std::string& variables = {}) const {
        return shell(variables + " '" AUTOTUNE_BINARY_DIR "/bin/scripted_autotune' 0 " + words);
    }
    Answer shell(const std::string& command) const {
        const std::string out = (folder / "out").string(), err = (folder / "err").string();
        const std::string whole = "cd '" + folder.string() + "' && export HOME='" + folder.string() +
                                  "' AUTOTUNE_CACHE_DIR='" + (folder / "cache").string() +
                                  "' CUDA_VISIBLE_DEVICES=-1 CI=1 && { " + command + " ; } >'" + out + "' 2>'" + err +
                                  "' </dev/null";
        const int status = std::system(whole.c_str());
        return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                .out = read(out),
                .err = read(err)};
    }

    static std::string read(const std::filesystem::path& path) {
        std::ifstream stream{path, std::ios::binary};
        return {std::istreambuf_iterator<char>{stream}, {}};
    }
    void write(const std::string& name, const std::string& text) const {
        std::filesystem::create_directories((folder / name).parent_path());
        std::ofstream{folder / name, std::ios::binary} << text;
    }

    std::filesystem::path folder;
};

}  // namespace autotune
#endif

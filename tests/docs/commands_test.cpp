// Goal: what the pages tell people to type runs as it is printed.
// Method: the commands of a page are run in its order and must end with 0, on a made-up GPU that answers at once, in a
// folder with the files that the pages speak of. A search for which a page names no budget gets one of five trials.
#include <gmock/gmock.h>

#include <sstream>

#include "cache/store/store.h"
#include "tests/tools/command_line.h"

namespace autotune {
namespace {

namespace fs = std::filesystem;

const fs::path root = AUTOTUNE_SOURCE_DIR;

std::string text_of(const fs::path& path) {
    std::ifstream file{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
}

/// A command as it stands in an indented block, and the lines below that show what it prints.
struct Shown {
    std::string command;
    std::vector<std::string> prints;
};

std::vector<Shown> commands_of(const std::string& page) {
    std::vector<Shown> commands;
    std::istringstream lines{text_of(root / page)};
    bool printing = false;
    for (std::string line; std::getline(lines, line);) {
        const bool prompt = line.starts_with("    $ autotune ");
        if (prompt || line.starts_with("    autotune "))
            commands.push_back({.command = line.substr(prompt ? 6 : 4), .prints = {}});
        else if (line.starts_with("    ") && printing)
            commands.back().prints.push_back(line.substr(4));
        else if (!line.empty())
            printing = false;
        printing = printing || prompt;
    }
    return commands;
}

std::vector<std::string> pages() {
    std::vector<std::string> found;
    for (const char* folder : {"", "docs", "docs/help"})
        for (const auto& entry : fs::directory_iterator{root / folder})
            if (const std::string page = entry.path().lexically_relative(root).string();
                page.ends_with(".md") && !commands_of(page).empty())
                found.push_back(page);
    std::ranges::sort(found);
    return found;
}

class Page : public CommandLine, public testing::WithParamInterface<std::string> {
protected:
    void SetUp() override {
        CommandLine::SetUp();
        fs::create_directory_symlink(root / "examples", folder / "examples");
        tuned("rows=64,cols=4096,dtype=f32", "old.db");
        tuned("rows=64,cols=4096,dtype=f32", "node1.db");
        tuned("rows=128,cols=4096,dtype=f32", "node2.db");
        for (const char* copy : {"new.db", "BROKEN.db"}) fs::copy_file(folder / "old.db", folder / copy);
        fs::resize_file(folder / "BROKEN.db", fs::file_size(folder / "old.db") - 4096);
        fs::resize_file(folder / "BROKEN.db", fs::file_size(folder / "old.db"));  // the last page is zeros
        // The database of here: also of two GPUs that differ in their fingerprints alone.
        tuned("rows=32768,cols=4096,dtype=bf16", "");
        tuned("rows=64,cols=4096,dtype=f32", "");
        Store store = Store::open({.path = folder / "cache/1/tune.db"});
        std::vector<Record> records = store.records({}, {});
        for (const char* fingerprint : {"3f1c09ab", "77e0d2c4"}) {
            for (Record& record : records) {
                record.device.fp = fingerprint + std::string(56, '0');
                record.run.uuid = fingerprint + std::string(24, '0');
            }
            store.put(records);
        }
        std::string space = "# kernel: gemm\n# device: V100\n# values MWG: 16 32 64 128\n# values SA: 0 1\n";
        space += "MWG,SA,time_ms,sd_ms,cost_ms,status\n";
        for (int mwg = 16; mwg <= 128; mwg *= 2)
            for (const char* sa : {",0,", ",1,"})
                space += std::to_string(mwg) + sa + std::to_string(700 / mwg) + ".5,0.2,,ok\n";
        write("gemm__V100.csv.gz", space);
    }

    void tuned(const std::string& problem, const std::string& db) const {
        const Answer r =
            scripted("tune softmax " + problem + " --budget 5 --seed 7" + (db.empty() ? "" : " --db " + db));
        ASSERT_EQ(r.code, 0) << r.err;
    }

    Answer typed(std::string command) const {
        const bool search = command.starts_with("autotune tune ") || command.starts_with("autotune --op ");
        if (search && command.find("--budget") == std::string::npos)
            command.insert(command.find("  #") == std::string::npos ? command.size() : command.find("  #"),
                           " --budget 5");
        return shell("autotune() { '" AUTOTUNE_BINARY_DIR "/bin/scripted_autotune' 0 \"$@\"; }\n(" + command + "\n)");
    }
};

TEST_P(Page, ShowsCommandsThatRun) {
    for (const Shown& shown : commands_of(GetParam())) {
        const Answer r = typed(shown.command);
        EXPECT_EQ(r.code, 0) << shown.command << "\n" << r.err << r.out;
        EXPECT_FALSE(r.out.empty() && r.err.empty()) << shown.command;
    }
}

std::string name_of(const testing::TestParamInfo<std::string>& page) {
    std::string name;
    for (const char c : page.param.substr(0, page.param.size() - 3)) name += std::isalnum(c) ? c : '_';
    return name;
}

INSTANTIATE_TEST_SUITE_P(Every, Page, testing::ValuesIn(pages()), name_of);

/// How a line begins: its indentation and first word, which tell what the line is about.
std::string beginning(const std::string& line) { return line.substr(0, line.find(' ', line.find_first_not_of(' '))); }

// The figures and configs are of another GPU; what each line is about and their order are not.
using Readme = Page;
TEST_F(Readme, ShowsTheLinesThatASearchPrints) {
    const std::vector<Shown> commands = commands_of("README.md");
    ASSERT_FALSE(commands.empty());
    ASSERT_GE(commands[0].prints.size(), 10u);
    const Answer r = typed(commands[0].command);
    std::istringstream lines{r.err + r.out};
    std::string line;
    for (const std::string& shown : commands[0].prints) {
        while (std::getline(lines, line) && beginning(line) != beginning(shown)) {
        }
        EXPECT_TRUE(lines) << "no line begins as: " << shown << "\n" << r.err << r.out;
    }
}

}  // namespace
}  // namespace autotune

// autotune-embed: the build's own tool. It turns the op files into a source that the library holds, checks op files,
// and writes the page docs/op-format.md.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/error.h"
#include "tuner/loader/format.h"
#include "tuner/loader/op_loader.h"
#include "tuner/model/op_json.h"

namespace {

namespace fs = std::filesystem;
using autotune::Error;

constexpr std::string_view usage =
    "usage: autotune-embed --embed SPACES TEMPLATES OUTPUT.cpp   the ops and their files as a C++ source\n"
    "       autotune-embed --check TEMPLATES FILE.toml...        load op files; their sources are beside them or in "
    "TEMPLATES\n"
    "       autotune-embed --docs EXAMPLES OUTPUT.md             the page of the format\n";

std::string read(const fs::path& path) {
    std::ifstream file{path, std::ios::binary};
    if (!file) throw Error{Error::Kind::usage, fmt::format("{} cannot be read", path.string())};
    return {std::istreambuf_iterator<char>{file}, std::istreambuf_iterator<char>{}};
}

/// Leaves a file alone that holds the text already, so that nothing is built again for it.
void write(const fs::path& path, const std::string& text) {
    if (fs::exists(path) && read(path) == text) return;
    std::ofstream file{path, std::ios::binary};
    file << text;
    file.close();
    if (!file) throw Error{Error::Kind::usage, fmt::format("{} cannot be written", path.string())};
}

std::vector<fs::path> listed(const fs::path& folder, std::initializer_list<std::string_view> extensions) {
    std::vector<fs::path> paths;
    if (!fs::exists(folder)) return paths;  // git keeps no empty folder
    for (const auto& entry : fs::directory_iterator{folder})
        if (std::ranges::find(extensions, entry.path().extension().string()) != extensions.end())
            paths.push_back(entry.path());
    std::ranges::sort(paths);
    return paths;
}

/// A text as C++ literals; compilers limit the length of one, not of several in a row.
std::string literal(std::string_view text) {
    constexpr std::size_t longest = 8000;
    constexpr std::string_view mark = "embedded_text";
    if (text.find(mark) != std::string_view::npos)
        throw Error{Error::Kind::usage, fmt::format("a text holds '{}', which ends a literal", mark)};
    std::string out;
    do {
        out += fmt::format("\n    R\"{0}({1}){0}\"", mark, text.substr(0, longest));
        text = text.size() > longest ? text.substr(longest) : std::string_view{};
    } while (!text.empty());
    return out + "sv";
}

autotune::Op load(const fs::path& toml, const autotune::FileSource& files, const std::string& name, bool builtin) {
    autotune::LoadOptions options;
    options.builtin = builtin;
    return autotune::load_op(read(toml), files, name, options);
}

void embed(const fs::path& spaces, const fs::path& templates, const fs::path& output) {
    const autotune::FolderFiles files{templates};
    std::string ops, texts;
    std::size_t op_count = 0, file_count = 0;
    for (const fs::path& path : listed(spaces, {".toml"})) {
        autotune::Op op = load(path, files, "search_spaces/" + path.filename().string(), true);
        if (op.name != path.stem())
            throw Error{Error::Kind::usage, fmt::format("{} holds op '{}'; a built-in op has the name of its file",
                                                        path.string(), op.name)};
        std::string names;
        for (const auto& [name, text] : op.files) {
            if (name.find('/') != std::string::npos)
                throw Error{Error::Kind::usage,
                            fmt::format("{} uses '{}'; the files of built-in ops are directly in kernel_templates",
                                        path.string(), name)};
            names += name + "\n";
        }
        op.files.clear();
        ops += fmt::format("    OpText{{{},{}}},\n", literal(autotune::op_to_json(op)), literal(names));
        ++op_count;
    }
    for (const fs::path& path : listed(templates, {".cu", ".cuh"})) {
        texts += fmt::format("    File{{{},{}}},\n", literal(path.filename().string()), literal(read(path)));
        ++file_count;
    }
    write(
        output,
        fmt::format(
            "// Made by autotune-embed from search_spaces/ and kernel_templates/.\n"
            "#include \"tuner/model/embedded.h\"\n\n#include <array>\n\n"
            "namespace autotune::embedded {{\nusing namespace std::string_view_literals;\nnamespace {{\n\n"
            "constexpr std::array<OpText, {}> op_texts{{{{\n{}}}}};\n\nconstexpr std::array<File, {}> "
            "file_texts{{{{\n{}}}}};\n\n"
            "}}  // namespace\n\nstd::span<const OpText> ops() noexcept {{ return op_texts; }}\n"
            "std::span<const File> files() noexcept {{ return file_texts; }}\n\n}}  // namespace autotune::embedded\n",
            op_count, ops, file_count, texts));
}

void docs(const fs::path& examples, const fs::path& output) {
    std::vector<std::pair<std::string, std::string>> pages;
    for (const fs::path& path : listed(examples, {".toml"})) {
        // The page's title of an example is the comment on its first line.
        std::string text = read(path), title = path.stem().string();
        if (text.starts_with("# ")) {
            title = text.substr(2, text.find('\n') - 2);
            text.erase(0, text.find('\n') + 1);
        }
        pages.emplace_back(std::move(title), std::move(text));
    }
    write(output, autotune::op_format_page(pages));
}

/// Files beside the op file first, then the templates.
class Either : public autotune::FileSource {
public:
    Either(const fs::path& own, const fs::path& other) : own_{own}, other_{other} {}
    std::optional<std::string> read(std::string_view path) const override {
        auto text = own_.read(path);
        return text ? text : other_.read(path);
    }

private:
    autotune::FolderFiles own_, other_;
};

void check(const fs::path& templates, const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
        const fs::path folder = fs::path{path}.has_parent_path() ? fs::path{path}.parent_path() : fs::path{"."};
        const autotune::Op op = load(path, Either{folder, templates}, path, true);
        fmt::print("{}: op '{}', {} variants, {} files\n", path, op.name, op.variants.size(), op.files.size());
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> arguments{argv + 1, argv + argc};
    try {
        if (arguments.size() == 4 && arguments[0] == "--embed") {
            embed(arguments[1], arguments[2], arguments[3]);
        } else if (arguments.size() == 3 && arguments[0] == "--docs") {
            docs(arguments[1], arguments[2]);
        } else if (arguments.size() >= 3 && arguments[0] == "--check") {
            check(arguments[1], {arguments.begin() + 2, arguments.end()});
        } else {
            fmt::print(stderr, "{}", usage);
            return 1;
        }
    } catch (const std::exception& error) {
        fmt::print(stderr, "error: {}\n", error.what());
        return 1;
    }
    return 0;
}

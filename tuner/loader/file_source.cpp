#include "tuner/loader/file_source.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <system_error>

#include "autotune/error.h"
#include "tuner/model/path.h"

namespace autotune {
namespace {

namespace fs = std::filesystem;

std::string_view trimmed_left(std::string_view text) {
    const std::size_t start = text.find_first_not_of(" \t");
    return start == std::string_view::npos ? std::string_view{} : text.substr(start);
}

[[noreturn]] void refuse_file(const std::string& message) { throw Error{Error::Kind::usage, message}; }

}  // namespace

FolderFiles::FolderFiles(fs::path folder) : folder_{std::move(folder)} {}

std::optional<fs::path> FolderFiles::inside(std::string_view path) const {
    if (const auto objection = path_objection(path)) refuse_file(fmt::format("the path '{}' {}", path, *objection));
    std::error_code error;
    const fs::path root = fs::canonical(folder_, error);
    if (error) return std::nullopt;
    const fs::path real = fs::canonical(root / path, error);
    if (error) return std::nullopt;
    const fs::path relative = real.lexically_relative(root);
    if (relative.empty() || *relative.begin() == "..")
        refuse_file(fmt::format("'{}' is a link that leaves the op's folder", path));
    if (!fs::is_regular_file(real, error)) refuse_file(fmt::format("'{}' is no regular file", path));
    return real;
}

bool FolderFiles::has(std::string_view path) const { return inside(path).has_value(); }

std::optional<std::string> FolderFiles::read(std::string_view path) const {
    const auto real = inside(path);
    if (!real) return std::nullopt;
    std::error_code error;
    const auto size = fs::file_size(*real, error);
    if (!error && size > largest_source)
        refuse_file(fmt::format("'{}' has {} bytes, a source at most {}", path, size, largest_source));
    std::ifstream file{*real, std::ios::binary};
    std::string text{std::istreambuf_iterator<char>{file}, std::istreambuf_iterator<char>{}};
    if (!file && !file.eof()) refuse_file(fmt::format("'{}' cannot be read", path));
    // An editor's mark of UTF-8: it would stand behind what is put before a source, where a compiler takes none.
    if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
    return text;
}

std::optional<std::string> MemoryFiles::read(std::string_view path) const {
    const auto found = files_.find(path);
    if (found == files_.end()) return std::nullopt;
    return found->second;
}

std::vector<std::string> quoted_includes(std::string_view source) {
    std::vector<std::string> names;
    while (!source.empty()) {
        const std::size_t end = source.find('\n');
        std::string_view line = trimmed_left(source.substr(0, end));
        source = end == std::string_view::npos ? std::string_view{} : source.substr(end + 1);
        if (!line.starts_with('#')) continue;
        line = trimmed_left(line.substr(1));
        if (!line.starts_with("include")) continue;
        line = trimmed_left(line.substr(7));
        if (!line.starts_with('"')) continue;
        const std::size_t close = line.find('"', 1);
        if (close != std::string_view::npos) names.emplace_back(line.substr(1, close - 1));
    }
    return names;
}

}  // namespace autotune

#include "tuner/model/path.h"

#include "tuner/model/utf8.h"

namespace autotune {

std::optional<std::string> path_objection(std::string_view path) {
    if (path.empty()) return "is empty";
    if (path.size() > 255) return "is longer than 255 bytes";
    if (path.find('\0') != std::string_view::npos || path.find('\\') != std::string_view::npos)
        return "holds a character that no path here has";
    if (!is_utf8(path)) return "is no UTF-8";
    if (path.front() == '/') return "is absolute; an op's files are in its folder";
    for (std::string_view rest = path; !rest.empty();) {
        const std::size_t end = rest.find('/');
        if (rest.substr(0, end) == "..") return "leaves the op's folder";
        rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    }
    return std::nullopt;
}

}  // namespace autotune

#include "tuner/model/printable.h"

namespace autotune {
namespace {

/// Bytes of the control character at `at`; 0 when there is none.
std::size_t control_at(std::string_view text, std::size_t at) noexcept {
    const auto c = static_cast<unsigned char>(text[at]);
    if (c < 0x20 && c != '\t' && c != '\n' && c != '\r') return 1;
    if (c == 0x7f) return 1;
    const bool c1 = c == 0xc2 && at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) >= 0x80 &&
                    static_cast<unsigned char>(text[at + 1]) < 0xa0;
    return c1 ? 2 : 0;
}

}  // namespace

bool steers_a_terminal(std::string_view text) noexcept {
    for (std::size_t i = 0; i < text.size(); ++i)
        if (control_at(text, i) > 0) return true;
    return false;
}

std::string printable(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t bytes = control_at(text, i);
        out += bytes > 0 ? '?' : text[i];
        i += bytes > 0 ? bytes : 1;
    }
    return out;
}

std::string one_line(std::string_view text) {
    std::string out = printable(text);
    for (char& c : out)
        if (c == '\n' || c == '\r' || c == '\t') c = ' ';
    while (out.ends_with('\\')) out.back() = '?';
    return out;
}

}  // namespace autotune

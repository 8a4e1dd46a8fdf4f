#include "tuner/model/printable.h"

namespace autotune {
namespace {

/// Bytes of the control character at `at`; 0 when there is none.
std::size_t control_at(std::string_view text, std::size_t at) noexcept {
    const auto c = static_cast<unsigned char>(text[at]);
    if (c < 0x20 && c != '\t' && c != '\n' && c != '\r') return 1;
    if (c == 0x7f) return 1;
    // Marks that turn a text around (200e, 200f, 202a to 202e, 2066 to 2069), break its line (2028, 2029) or are not
    // seen at all (feff): what is shown would not be what stands there.
    const auto byte = [&](std::size_t i) {
        return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : static_cast<unsigned char>(0);
    };
    if (c == 0xe2 && byte(1) == 0x80 && (byte(2) == 0x8e || byte(2) == 0x8f || (byte(2) >= 0xa8 && byte(2) <= 0xae)))
        return 3;
    if (c == 0xe2 && byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9) return 3;
    if (c == 0xef && byte(1) == 0xbb && byte(2) == 0xbf) return 3;
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

std::string shell_word(std::string_view text) {
    constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
    if (!text.empty() && text.find_first_not_of(plain) == std::string_view::npos) return std::string{text};
    std::string quoted = "'";
    for (const char c : text) quoted += c == '\'' ? std::string{"'\\''"} : std::string{c};
    return quoted + "'";
}

}  // namespace autotune

#include "device/emulator/ptx_lexer.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "autotune/error.h"

namespace autotune::emulator {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_letter(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}
bool is_hex(char c) noexcept { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

std::string printable(std::string_view text) {
    std::string shown;
    for (const char c : text.substr(0, 40)) shown += c >= ' ' && c <= '~' ? c : '?';
    return shown;
}

}  // namespace

PtxLexer::PtxLexer(std::string_view text) : text_{text} { next_ = read(); }

Token PtxLexer::take() {
    const Token token = next_;
    if (token.kind != Token::Kind::end) next_ = read();
    return token;
}

bool PtxLexer::accept(std::string_view sign_or_name) {
    if (!next_.is(sign_or_name)) return false;
    take();
    return true;
}

void PtxLexer::expect(std::string_view sign_or_name) {
    if (!accept(sign_or_name))
        fail(next_.kind == Token::Kind::end
                 ? fmt::format("'{}' is expected, and the text ends", sign_or_name)
                 : fmt::format("'{}' is expected where '{}' stands", sign_or_name, printable(next_.text)));
}

void PtxLexer::fail(const std::string& what) const {
    throw Error{Error::Kind::usage, fmt::format("PTX line {}: {}", next_.line ? next_.line : line_, what)};
}

void PtxLexer::skip_blanks() {
    while (at_ < text_.size()) {
        const char c = text_[at_];
        if (c == '\n') {
            ++line_;
            ++at_;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\0') {
            ++at_;
        } else if (c == '/' && text_.substr(at_, 2) == "//") {
            at_ = std::min(text_.find('\n', at_), text_.size());
        } else if (c == '/' && text_.substr(at_, 2) == "/*") {
            const std::size_t end = std::min(text_.find("*/", at_ + 2), text_.size());
            for (; at_ < end; ++at_) line_ += text_[at_] == '\n';
            at_ = std::min(end + 2, text_.size());
        } else if (c == '#') {  // a #line of inline assembly
            at_ = std::min(text_.find('\n', at_), text_.size());
        } else {
            return;
        }
    }
}

Token PtxLexer::read() {
    skip_blanks();
    Token token;
    token.line = line_;
    if (at_ >= text_.size()) return token;
    const std::size_t start = at_;
    const char c = text_[at_];
    if (is_digit(c)) return number();
    if (is_letter(c) || (c == '.' && at_ + 1 < text_.size() && is_letter(text_[at_ + 1]))) {
        ++at_;
        while (at_ < text_.size()) {
            if (is_letter(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '.')
                ++at_;
            else if (text_.substr(at_, 2) == "::")
                at_ += 2;
            else
                break;
        }
        token.kind = c == '.' ? Token::Kind::directive : Token::Kind::name;
        token.text = text_.substr(start, at_ - start);
        return token;
    }
    if (c == '"') {
        const std::size_t end = text_.find_first_of("\"\n", at_ + 1);
        if (end == std::string_view::npos || text_[end] != '"') {
            next_ = token;
            fail("a string does not end");
        }
        token.kind = Token::Kind::text;
        token.text = text_.substr(start + 1, end - start - 1);
        at_ = end + 1;
        return token;
    }
    token.kind = Token::Kind::sign;
    token.text = text_.substr(at_++, 1);
    return token;
}

Token PtxLexer::number() {
    Token token;
    token.kind = Token::Kind::integer;
    token.line = line_;
    const std::size_t start = at_;
    const char second = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    int base = 10;
    std::size_t skip = 0;
    if (text_[at_] == '0' && (second == 'f' || second == 'F' || second == 'd' || second == 'D')) {
        token.kind = Token::Kind::real;
        token.single = second == 'f' || second == 'F';
        base = 16, skip = 2;
    } else if (text_[at_] == '0' && (second == 'x' || second == 'X')) {
        base = 16, skip = 2;
    } else if (text_[at_] == '0' && (second == 'b' || second == 'B')) {
        base = 2, skip = 2;
    } else if (text_[at_] == '0' && is_digit(second)) {
        base = 8, skip = 1;
    }
    std::uint64_t value = 0;
    const char* const first = text_.data() + at_ + skip;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value, base);
    at_ = static_cast<std::size_t>(end - text_.data());
    bool bad = error != std::errc{} || end == first;
    if (base == 10 && at_ + 1 < text_.size() && text_[at_] == '.' && is_digit(text_[at_ + 1])) {  // 1.5
        token.kind = Token::Kind::real;
        double real = 0;
        const auto parsed = std::from_chars(text_.data() + start, text_.data() + text_.size(), real);
        bad = parsed.ec != std::errc{};
        at_ = static_cast<std::size_t>(parsed.ptr - text_.data());
        value = __builtin_bit_cast(std::uint64_t, real);
    }
    if (at_ < text_.size() && (text_[at_] == 'U' || text_[at_] == 'u')) ++at_;
    token.value = static_cast<std::int64_t>(value);
    token.text = text_.substr(start, at_ - start);
    if (bad || (at_ < text_.size() && (is_letter(text_[at_]) || is_hex(text_[at_])))) {
        // <4> of .reg and names such as 1D_x do not occur behind numbers
        next_ = token;
        fail(fmt::format("'{}' is no number", printable(text_.substr(start, 20))));
    }
    return token;
}

}  // namespace autotune::emulator

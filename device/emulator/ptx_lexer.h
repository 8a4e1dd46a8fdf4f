#ifndef AUTOTUNE_DEVICE_EMULATOR_PTX_LEXER_H
#define AUTOTUNE_DEVICE_EMULATOR_PTX_LEXER_H

#include <cstdint>
#include <string>
#include <string_view>

namespace autotune::emulator {

struct Token {
    enum class Kind : std::uint8_t { end, name, directive, integer, real, text, sign };
    Kind kind = Kind::end;
    bool single = false;  ///< of a real: 0f
    std::uint32_t line = 0;
    std::string_view text;   ///< of a name, directive (with its dot) or string (without quotes); the sign itself
    std::int64_t value = 0;  ///< of a number, or a real's bits

    bool is(std::string_view sign_or_name) const noexcept { return kind != Kind::text && text == sign_or_name; }
};

/// Splits PTX into tokens, one ahead. A name carries its dots (`%tid.x`, `ld.shared::cluster.f32`).
class PtxLexer {
public:
    explicit PtxLexer(std::string_view text);
    const Token& peek() const noexcept { return next_; }
    Token take();
    /// Takes the token if it is that one.
    bool accept(std::string_view sign_or_name);
    /// Takes it or throws.
    void expect(std::string_view sign_or_name);
    /// Throws Error{usage}: "PTX line 12: <what>".
    [[noreturn]] void fail(const std::string& what) const;

private:
    void skip_blanks();
    Token read();
    Token number();

    std::string_view text_;
    std::size_t at_ = 0;
    std::uint32_t line_ = 1;
    Token next_;
};

}  // namespace autotune::emulator
#endif

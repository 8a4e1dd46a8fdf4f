#include "tuner/model/value.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

namespace autotune {
namespace {

struct Texter {
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(double value) const {
        std::string text = fmt::format("{}", value);
        // A whole double keeps its point, so that it reads back as a double.
        if (std::isfinite(value) && text.find_first_of(".e") == std::string::npos) text += ".0";
        return text;
    }
    std::string operator()(const std::string& value) const { return value; }
};

template <class Number>
bool reads_whole(std::string_view text, Number& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size();
}

/// As a number, when it is one: long double holds every 64-bit integer and every double exactly.
std::optional<long double> number_of(const Value& value) {
    if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1.0L : 0.0L;
    if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<long double>(*integer);
    if (const auto* real = std::get_if<double>(&value)) return static_cast<long double>(*real);
    return std::nullopt;
}

}  // namespace

std::string to_text(const Value& value) { return std::visit(Texter{}, value); }

Value value_from_text(std::string_view text) {
    if (text == "true") return true;
    if (text == "false") return false;
    // from_chars also reads "inf" and "nan", which are words here.
    const std::size_t digit = text.starts_with('-') ? 1 : 0;
    if (digit < text.size() && (text[digit] == '.' || (text[digit] >= '0' && text[digit] <= '9'))) {
        std::int64_t integer = 0;
        if (reads_whole(text, integer)) return integer;
        double real = 0;
        if (reads_whole(text, real)) return real;
    }
    return std::string{text};
}

bool same_value(const Value& a, const Value& b) {
    const auto x = number_of(a), y = number_of(b);
    if (x && y) return *x == *y;
    return a == b;
}

}  // namespace autotune

#include "tuner/model/key_reader.h"

#include <bit>
#include <string>

#include "tuner/model/problem_key.h"

namespace autotune {
namespace {

enum class Tag : std::uint8_t { flag, integer, real, word };  // Value's alternatives, as CanonicalBytes writes them

std::uint64_t little_endian(std::span<const std::byte> bytes) noexcept {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < 8; ++i) value |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
    return value;
}

}  // namespace

Value KeyReader::Field::read() const {
    const std::uint64_t bits = little_endian(value.subspan(1));
    switch (static_cast<Tag>(value[0])) {
        case Tag::flag:
            return bits != 0;
        case Tag::integer:
            return static_cast<std::int64_t>(bits);
        case Tag::real:
            return std::bit_cast<double>(bits);
        case Tag::word:
            break;
    }
    return std::string{reinterpret_cast<const char*>(value.data()) + 9, value.size() - 9};
}

std::optional<std::int64_t> KeyReader::Field::integer() const noexcept {
    if (static_cast<Tag>(value[0]) != Tag::integer) return std::nullopt;
    return static_cast<std::int64_t>(little_endian(value.subspan(1)));
}

KeyReader::KeyReader(std::span<const std::byte> key) noexcept : rest_{key} {
    if (number() != problem_key_version) return;
    const auto op = text();
    const auto count = number();
    if (!op || !count) return;
    op_ = *op;
    left_ = *count;
    sound_ = true;
}

std::optional<KeyReader::Field> KeyReader::next() noexcept {
    if (!sound_ || left_ == 0) return std::nullopt;
    sound_ = false;
    const auto name = text();
    if (!name || rest_.empty() || static_cast<std::uint8_t>(rest_[0]) > static_cast<std::uint8_t>(Tag::word))
        return std::nullopt;
    const std::byte* const begin = rest_.data();
    const auto tag = static_cast<Tag>(rest_[0]);
    rest_ = rest_.subspan(1);
    if (tag == Tag::word ? !text() : !number()) return std::nullopt;
    sound_ = true;
    --left_;
    return Field{.name = *name, .value = {begin, rest_.data()}};
}

std::optional<std::uint64_t> KeyReader::number() noexcept {
    if (rest_.size() < 8) return std::nullopt;
    const std::uint64_t value = little_endian(rest_);
    rest_ = rest_.subspan(8);
    return value;
}

std::optional<std::string_view> KeyReader::text() noexcept {
    const auto size = number();
    if (!size || *size > rest_.size()) return std::nullopt;
    const std::string_view text{reinterpret_cast<const char*>(rest_.data()), static_cast<std::size_t>(*size)};
    rest_ = rest_.subspan(text.size());
    return text;
}

}  // namespace autotune

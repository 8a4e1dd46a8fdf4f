#include "cache/store/key_form.h"

#include <bit>
#include <cstring>
#include <optional>

#include "tuner/model/key_reader.h"

namespace autotune {

namespace {

constexpr std::size_t number_size = 8;
constexpr auto whole_number = std::byte{1};  // the tag of an integer, as CanonicalBytes writes it

std::uint64_t little_endian(const std::byte* at) noexcept {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < number_size; ++i) value |= std::to_integer<std::uint64_t>(at[i]) << (8 * i);
    return value;
}

void put_little_endian(std::byte* at, std::uint64_t value) noexcept {
    for (std::size_t i = 0; i < number_size; ++i) at[i] = static_cast<std::byte>(value >> (8 * i));
}

// A byte up to 240; 241 to 248 and another byte; 249 and two; 250 to 255 and three to eight. Each number has one way to
// be written, the shortest, and bytes order as numbers do.
constexpr std::uint64_t of_one = 240, of_two = of_one + 8 * 256 - 1, of_three = of_two + 65536;

void append_number(std::string& out, std::uint64_t value) {
    const auto byte = [&out](std::uint64_t bits) { out += static_cast<char>(bits & 0xff); };
    if (value <= of_one) return byte(value);
    if (value <= of_two) {
        byte(241 + (value - of_one) / 256);
        return byte(value - of_one);
    }
    if (value <= of_three) {
        byte(249);
        byte((value - of_two - 1) >> 8);
        return byte(value - of_two - 1);
    }
    const auto size = std::max<std::size_t>(3, (static_cast<std::size_t>(std::bit_width(value)) + 7) / 8);
    byte(247 + size);
    for (std::size_t i = size; i-- > 0;) byte(value >> (8 * i));
}

/// nullopt: there is none, or it could be written shorter.
std::optional<std::uint64_t> next_number(std::string_view& rest) noexcept {
    const auto byte = [&rest](std::size_t i) {
        return static_cast<std::uint64_t>(static_cast<unsigned char>(rest[i]));
    };
    if (rest.empty()) return std::nullopt;
    const std::uint64_t first = byte(0);
    const std::size_t more = first <= of_one ? 0 : first <= 248 ? 1 : first == 249 ? 2 : first - 247;
    if (rest.size() <= more) return std::nullopt;
    std::uint64_t value = 0;
    if (more == 0) {
        value = first;
    } else if (more == 1) {
        value = of_one + 256 * (first - 241) + byte(1);
        if (value == of_one) return std::nullopt;
    } else if (more == 2 && first == 249) {
        value = of_two + 1 + 256 * byte(1) + byte(2);
    } else {
        for (std::size_t i = 1; i <= more; ++i) value = value << 8 | byte(i);
        if (value <= of_three || (more > 3 && value >> (8 * (more - 1)) == 0)) return std::nullopt;
    }
    rest.remove_prefix(more + 1);
    return value;
}

/// Walks a layout as KeyReader does a key.
class LayoutReader {
public:
    explicit LayoutReader(std::string_view layout) : rest_{layout} {}

    bool take(std::size_t size) noexcept {
        if (size > rest_.size()) return false;
        rest_.remove_prefix(size);
        return true;
    }
    std::optional<std::uint64_t> number() noexcept {
        if (rest_.size() < number_size) return std::nullopt;
        const std::uint64_t value = little_endian(reinterpret_cast<const std::byte*>(rest_.data()));
        rest_.remove_prefix(number_size);
        return value;
    }
    std::optional<std::string_view> text() noexcept {
        const auto size = number();
        if (!size || *size > rest_.size()) return std::nullopt;
        const std::string_view text = rest_.substr(0, *size);
        rest_.remove_prefix(*size);
        return text;
    }
    std::optional<std::byte> tag() noexcept {
        if (rest_.empty()) return std::nullopt;
        const auto tag = static_cast<std::byte>(rest_.front());
        rest_.remove_prefix(1);
        return tag;
    }
    std::string_view rest() const noexcept { return rest_; }

private:
    std::string_view rest_;
};

}  // namespace

void KeyForm::split(std::span<const std::byte> key, std::string& layout, std::string& numbers) {
    const auto append = [](std::string& out, const std::byte* from, const std::byte* to) {
        out.append(reinterpret_cast<const char*>(from), static_cast<std::size_t>(to - from));
    };
    layout.clear();
    numbers.clear();
    const std::byte* copied = key.data();
    KeyReader reader{key};
    while (const auto field = reader.next()) {
        if (field->value[0] != whole_number) continue;
        const std::byte* const number = field->value.data() + 1;
        append(layout, copied, number);
        append_number(numbers, little_endian(number));
        copied = number + number_size;
    }
    append(layout, copied, key.data() + key.size());
    if (reader.whole()) return;
    layout.clear();
    numbers.clear();
    append(numbers, key.data(), key.data() + key.size());
}

KeyForm::KeyForm(std::string_view layout) : layout_{layout} {
    if (layout.empty()) return;
    LayoutReader reader{layout};
    auto copy_up_to = [this, copied = layout.data()](const char* end) mutable {
        const auto* const from = reinterpret_cast<const std::byte*>(copied);
        key_.insert(key_.end(), from, from + (end - copied));
        copied = end;
    };
    const auto walk = [&] {
        const bool version = reader.number().has_value();
        const auto op = version ? reader.text() : std::nullopt;
        const auto count = op ? reader.number() : std::nullopt;
        if (!count) return false;
        for (std::uint64_t i = 0; i < *count; ++i) {
            const auto name = reader.text();
            const auto tag = name ? reader.tag() : std::nullopt;
            if (!tag || std::to_integer<int>(*tag) > 3) return false;
            if (*tag == whole_number) {
                copy_up_to(reader.rest().data());
                holes_.push_back({.at = key_.size(), .name = std::string{*name}});
                key_.resize(key_.size() + number_size);
            } else if (*tag == std::byte{3} ? !reader.text() : !reader.take(number_size)) {
                return false;
            }
        }
        return reader.rest().empty();
    };
    sound_ = walk();
    copy_up_to(layout.data() + layout.size());
    // Read as a key is, so that the version counts as well.
    std::string again, numbers;
    if (sound_) split(key_, again, numbers);
    sound_ = sound_ && again == layout;
    if (!sound_) holes_.clear();
}

bool KeyForm::take_numbers(std::span<const std::byte> key, std::string& numbers) const {
    numbers.clear();
    if (layout_.empty() || !sound_ || key.size() != key_.size()) return false;
    std::size_t at = 0;
    for (const Hole& hole : holes_) {
        if (std::memcmp(key.data() + at, key_.data() + at, hole.at - at) != 0) return false;
        append_number(numbers, little_endian(key.data() + hole.at));
        at = hole.at + number_size;
    }
    return std::memcmp(key.data() + at, key_.data() + at, key.size() - at) == 0;
}

bool KeyForm::put_together(std::string_view numbers, std::vector<std::byte>& key) const {
    if (!sound_) return false;
    if (layout_.empty()) {
        const auto* const bytes = reinterpret_cast<const std::byte*>(numbers.data());
        key.assign(bytes, bytes + numbers.size());
        return true;
    }
    key.assign(key_.begin(), key_.end());
    for (const Hole& hole : holes_) {
        const auto value = next_number(numbers);
        if (!value) return false;
        put_little_endian(key.data() + hole.at, *value);
    }
    return numbers.empty();
}

bool KeyForm::read_numbers(std::string_view numbers, std::vector<std::int64_t>& values) const {
    values.clear();
    for (std::size_t i = 0; i < holes_.size(); ++i) {
        const auto value = next_number(numbers);
        if (!value) return false;
        values.push_back(static_cast<std::int64_t>(*value));
    }
    return numbers.empty();
}

}  // namespace autotune

#include "cache/dispatch/split_key.h"

#include <algorithm>
#include <cmath>

#include "tuner/model/key_reader.h"

namespace autotune {

KeySplitter::KeySplitter(const Op& op) {
    for (const Field& field : op.fields)
        if (field.near && field.key && field.kind == Field::Kind::dim) near_.push_back(field.name);
}

bool KeySplitter::split(std::span<const std::byte> key, SplitKey& out) const {
    out.fixed.clear();
    out.octaves.clear();
    out.aligns.clear();
    KeyReader reader{key};
    while (const auto field = reader.next()) {
        const bool align = field->name.ends_with(".align");
        const bool near = !align && std::ranges::find(near_, field->name) != near_.end();
        // Names cannot hold a zero, and a value tells its own length: no two lists of fields give the same bytes.
        out.fixed.append(field->name).push_back('\0');
        if (!align && !near) {
            out.fixed.append(reinterpret_cast<const char*>(field->value.data()), field->value.size());
            continue;
        }
        const auto number = field->integer();
        if (!number || *number < 1) return false;
        if (align)
            out.aligns.push_back(static_cast<std::uint8_t>(std::min<std::int64_t>(*number, 255)));
        else
            out.octaves.push_back(
                static_cast<std::int32_t>(std::lround(std::log2(static_cast<double>(*number)) * octave)));
    }
    return reader.whole();
}

std::string problem_text(const Op& op, std::span<const std::byte> key) {
    std::vector<std::pair<std::size_t, std::string>> words;
    KeyReader reader{key};
    while (const auto field = reader.next()) {
        if (field->name.find('.') != std::string_view::npos) continue;  // a tensor's
        const auto at = std::ranges::find(op.fields, field->name, &Field::name);
        words.emplace_back(at - op.fields.begin(), std::string{field->name} + '=' + to_text(field->read()));
    }
    std::ranges::stable_sort(words, {}, [](const auto& word) { return word.first; });
    std::string text;
    for (const auto& [place, word] : words) text += (text.empty() ? "" : " ") + word;
    return text;
}

}  // namespace autotune

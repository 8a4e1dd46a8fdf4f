#include "tuner/model/suggest.h"

#include <algorithm>
#include <vector>

namespace autotune {

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], before[j - 2] + 1);
        }
        std::swap(before, last);
        std::swap(last, row);
    }
    return last[b.size()];
}

std::optional<std::string> suggestion(std::string_view typed, std::span<const std::string> words) {
    // A third of the length, but one slip is always forgiven in words of three letters and more.
    const std::size_t most =
        typed.size() < 3 ? 0 : std::min<std::size_t>(2, std::max<std::size_t>(1, (typed.size() - 1) / 3));
    std::optional<std::string> best;
    std::size_t nearest = most + 1;
    for (const std::string& word : words) {
        const std::size_t distance = edit_distance(typed, word);
        if (distance == 0 || distance >= nearest) continue;
        nearest = distance;
        best = word;
    }
    return best;
}

std::string did_you_mean(std::string_view typed, std::span<const std::string> words) {
    const auto word = suggestion(typed, words);
    return word ? "; did you mean '" + *word + "'?" : std::string{};
}

std::string remedy(std::string_view typed, std::span<const std::string> words, std::string_view kind) {
    std::string meant = did_you_mean(typed, words);
    if (!meant.empty() || words.empty()) return meant;
    return "; the " + std::string{kind} + " are " + enumerated(words);
}

std::string enumerated(std::span<const std::string> words) {
    std::string out;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (i) out += i + 1 == words.size() ? " and " : ", ";
        out += words[i];
    }
    return out;
}

}  // namespace autotune

#include "tuner/model/diagram.h"

#include <algorithm>

namespace autotune {
namespace {

constexpr std::uint64_t rows_at_most = std::uint64_t{1} << 62;

std::uint64_t added(std::uint64_t a, std::uint64_t b) noexcept {
    return a >= rows_at_most || b >= rows_at_most || a + b >= rows_at_most ? Diagram::too_many : a + b;
}

}  // namespace

Diagram::Diagram(const std::vector<Layer>& layers) : values_(layers.size()) {
    std::vector<std::vector<std::uint64_t>> counts(layers.size() + 1);
    counts.back() = {1};
    for (std::size_t l = layers.size(); l-- > 0;) {
        const Layer& layer = layers[l];
        for (std::size_t n = 0; n < layer.first.size(); ++n) {
            const std::size_t end = n + 1 < layer.first.size() ? layer.first[n + 1] : layer.steps.size();
            std::uint64_t sum = 0;
            for (std::size_t s = layer.first[n]; s < end; ++s) sum = added(sum, counts[l + 1][layer.steps[s].target]);
            counts[l].push_back(sum);
        }
    }
    // Numbers of the nodes that lead somewhere, layer after layer; the root has one in any case.
    std::vector<std::vector<std::uint32_t>> numbers(counts.size());
    std::uint32_t next = 0;
    for (std::size_t l = 0; l < counts.size(); ++l)
        for (const std::uint64_t count : counts[l]) numbers[l].push_back(count > 0 || l == 0 ? next++ : 0);
    for (std::size_t l = 0; l < counts.size(); ++l)
        for (std::size_t n = 0; n < counts[l].size(); ++n) {
            if (counts[l][n] == 0 && l > 0) continue;
            rows_.push_back(counts[l][n]);
            first_.push_back(edges_.size());
            if (l == layers.size()) continue;
            const Layer& layer = layers[l];
            const std::size_t end = n + 1 < layer.first.size() ? layer.first[n + 1] : layer.steps.size();
            std::uint64_t before = 0;
            for (std::size_t s = layer.first[n]; s < end; ++s) {
                const std::uint64_t count = counts[l + 1][layer.steps[s].target];
                if (count == 0) continue;
                edges_.push_back({before, numbers[l + 1][layer.steps[s].target], layer.steps[s].value});
                values_[l].push_back(layer.steps[s].value);
                before = added(before, count);
            }
        }
    first_.push_back(edges_.size());
    for (std::vector<std::uint16_t>& list : values_) {
        std::ranges::sort(list);
        list.erase(std::unique(list.begin(), list.end()), list.end());
    }
}

Diagram Diagram::of_rows(std::span<const std::uint16_t> rows, std::size_t width) {
    std::vector<Layer> layers(width);
    if (width == 0) return Diagram{};
    const std::size_t count = rows.size() / width;
    layers[0].first.push_back(0);
    for (std::size_t r = 0; r < count; ++r) {
        const auto row = rows.subspan(r * width, width);
        std::size_t common = 0;
        while (r > 0 && row[common] == rows[(r - 1) * width + common]) ++common;
        for (std::size_t l = common; l < width; ++l) {
            if (l > common) layers[l].first.push_back(layers[l].steps.size());
            const std::size_t target = l + 1 < width ? layers[l + 1].first.size() : 0;
            layers[l].steps.push_back({static_cast<std::uint32_t>(target), row[l]});
        }
    }
    return Diagram{layers};
}

const Diagram::Edge* Diagram::find(std::uint32_t node, std::uint16_t value) const noexcept {
    const auto all = edges(node);
    const auto found = std::ranges::lower_bound(all, value, {}, &Edge::value);
    return found != all.end() && found->value == value ? &*found : nullptr;
}

const Diagram::Edge& Diagram::holding(std::uint32_t node, std::uint64_t number) const noexcept {
    return *std::prev(std::ranges::upper_bound(edges(node), number, {}, &Edge::before));
}

}  // namespace autotune

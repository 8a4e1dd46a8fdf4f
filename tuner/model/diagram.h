#ifndef AUTOTUNE_MODEL_DIAGRAM_H
#define AUTOTUNE_MODEL_DIAGRAM_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace autotune {

/// A set of rows of one width, as a graph in layers: a node is what the values so far leave open, an edge is a value,
/// and rows that go on alike share their end. Each node knows how many rows go on from it, so that rows are counted,
/// numbered in lexicographic order and found by number without being listed.
class Diagram {
public:
    struct Edge {
        std::uint64_t before = 0;  ///< rows of the node's smaller values
        std::uint32_t node = 0;    ///< where it leads
        std::uint16_t value = 0;
    };
    /// As it is built, from the first value to the last: a node's edges by value, to nodes of the next layer. The last
    /// layer's all lead to 0.
    struct Layer {
        struct Step {
            std::uint32_t target = 0;
            std::uint16_t value = 0;
        };
        std::vector<std::size_t> first;  ///< of each node, its first step
        std::vector<Step> steps;
    };

    static constexpr std::uint32_t root = 0;
    static constexpr std::uint64_t too_many = ~std::uint64_t{0};

    /// The one row of no values.
    Diagram() : Diagram{std::vector<Layer>{}} {}
    /// Nodes that lead nowhere are dropped.
    explicit Diagram(const std::vector<Layer>& layers);
    /// rows  one after another, in lexicographic order, each once
    static Diagram of_rows(std::span<const std::uint16_t> rows, std::size_t width);

    /// How many rows go on from a node; too_many: 2^62 or more.
    std::uint64_t rows(std::uint32_t node = root) const noexcept { return rows_[node]; }
    std::span<const Edge> edges(std::uint32_t node) const noexcept {
        return std::span{edges_}.subspan(first_[node], first_[node + 1] - first_[node]);
    }
    /// nullptr: no row goes on with this value.
    const Edge* find(std::uint32_t node, std::uint16_t value) const noexcept;
    /// The edge of the row that is `number`-th from here; number below rows(node).
    const Edge& holding(std::uint32_t node, std::uint64_t number) const noexcept;

    /// The values that occur in the rows at a place, in order.
    const std::vector<std::uint16_t>& values(std::size_t place) const noexcept { return values_[place]; }
    std::size_t nodes() const noexcept { return rows_.size(); }

private:
    std::vector<Edge> edges_;
    std::vector<std::size_t> first_;
    std::vector<std::uint64_t> rows_;
    std::vector<std::vector<std::uint16_t>> values_;
};

}  // namespace autotune
#endif

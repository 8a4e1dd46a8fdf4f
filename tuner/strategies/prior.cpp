#include "tuner/strategies/prior.h"

#include <algorithm>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "tuner/strategies/unvisited.h"

namespace autotune {
namespace {

/// Of the expected ones, those that the other strategy asks for too while they are outstanding are not asked twice.
class PriorFirst final : public Strategy {
public:
    PriorFirst(std::unique_ptr<Strategy> then, std::vector<std::size_t> first)
        : then_{std::move(then)}, first_{std::move(first)} {
        std::ranges::reverse(first_);  // the best stands last
    }

    std::vector<std::size_t> ask(std::size_t at_most) override {
        std::vector<std::size_t> asked;
        while (asked.size() < at_most && !first_.empty()) {
            const std::size_t number = first_.back();
            first_.pop_back();
            if (asked_.insert(number).second) asked.push_back(number);
        }
        while (asked.size() < at_most) {
            const std::vector<std::size_t> more = then_->ask(at_most - asked.size());
            if (more.empty()) break;
            std::ranges::copy_if(more, std::back_inserter(asked),
                                 [this](std::size_t number) { return !asked_.contains(number); });
        }
        return asked;
    }

    void tell(std::size_t number, const Outcome& outcome) override {
        std::erase(first_, number);
        then_->tell(number, outcome);
    }

    std::optional<double> expected_gain() const override {
        return first_.empty() ? then_->expected_gain() : std::nullopt;
    }

private:
    const std::unique_ptr<Strategy> then_;
    std::vector<std::size_t> first_;
    std::unordered_set<std::size_t> asked_;  ///< of the expected ones
};

}  // namespace

std::unique_ptr<Strategy> make_prior(std::unique_ptr<Strategy> then, std::vector<Expectation> expected,
                                     std::size_t first) {
    std::ranges::sort(expected, {}, [](const Expectation& e) { return std::tuple{e.time_us, e.number}; });
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < std::min(first, expected.size()); ++i) numbers.push_back(expected[i].number);
    return std::make_unique<PriorFirst>(std::move(then), std::move(numbers));
}

std::vector<std::size_t> sample_of(const Space& space, std::span<const std::size_t> without, std::size_t at_most,
                                   std::uint64_t seed) {
    RandomSource random{seed};
    Unvisited unvisited{space.size()};
    for (const std::size_t number : without) unvisited.take(number);
    std::vector<std::size_t> sample;
    while (sample.size() < at_most) {
        const std::optional<std::size_t> number = unvisited.draw(random);
        if (!number) break;
        sample.push_back(*number);
    }
    return sample;
}

}  // namespace autotune

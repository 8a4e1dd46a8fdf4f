#include "tuner/strategies/differential.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "tuner/strategies/moves.h"

namespace autotune {
namespace {

constexpr std::size_t members = 16;
constexpr double stretch = 0.7, crossover = 0.8;

class Differential final : public Strategy {
public:
    Differential(const Space& space, std::uint64_t seed) : space_{space}, moves_{space, seed} {}

    std::vector<std::size_t> ask(std::size_t at_most) override {
        std::vector<std::size_t> asked;
        while (asked.size() < at_most) {
            std::size_t member = members;
            std::optional<std::size_t> number;
            if (population_.size() < members) {
                number = moves_.draw();
            } else {
                member = turn_++ % members;
                number = offspring(member);
            }
            if (!number) break;
            replaces_[*number] = member;
            asked.push_back(*number);
        }
        return asked;
    }

    void tell(std::size_t number, const Outcome& outcome) override {
        moves_.take(number);
        const auto found = replaces_.find(number);
        const std::size_t member = found == replaces_.end() ? members : found->second;
        if (found != replaces_.end()) replaces_.erase(found);
        if (!outcome.ok() || !(outcome.time_us > 0)) return;
        if (population_.size() < members) {
            population_.emplace_back(outcome.time_us, number);
            return;
        }
        // What nobody was to replace, a late first one or one told from outside, stands in for the worst.
        auto& place = member < members ? population_[member] : *std::ranges::max_element(population_);
        if (outcome.time_us <= place.first) place = {outcome.time_us, number};
    }

private:
    std::optional<std::size_t> offspring(std::size_t member) {
        const std::size_t home = population_[member].second, variant = space_.variant_of(home);
        std::vector<std::size_t> kin;
        for (const auto& [time_us, number] : population_)
            if (space_.variant_of(number) == variant && number != home) kin.push_back(number);
        Space::Row row = space_.row(home);
        if (kin.size() < 3) return moves_.towards(row, home);
        moves_.random().shuffle(kin);
        const std::size_t certain = row.size() == 0 ? 0 : moves_.random().below(row.size());
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (i != certain && moves_.chance() >= crossover) continue;
            const auto at = [&](std::size_t k) { return static_cast<double>(space_.row(kin[k])[i]); };
            const double most = static_cast<double>(moves_.values(variant, i)) - 1;
            row[i] =
                static_cast<std::uint16_t>(std::clamp(std::nearbyint(at(0) + stretch * (at(1) - at(2))), 0.0, most));
        }
        return moves_.towards(row, home);
    }

    const Space& space_;
    Moves moves_;
    std::vector<std::pair<double, std::size_t>> population_;
    std::unordered_map<std::size_t, std::size_t> replaces_;  ///< which member an outstanding config stands against
    std::size_t turn_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> make_differential(const Space& space, std::uint64_t seed) {
    return std::make_unique<Differential>(space, seed);
}

}  // namespace autotune

#include "tuner/strategies/genetic.h"

#include <map>

#include "tuner/strategies/moves.h"

namespace autotune {
namespace {

constexpr std::size_t genetic_population = 20;
constexpr double mutation = 0.2;  // of a value
constexpr std::size_t tournament = 3;

class Genetic final : public Strategy {
public:
    Genetic(const Space& space, std::uint64_t seed) : space_{space}, moves_{space, seed} {}

    std::vector<std::size_t> ask(std::size_t at_most) override {
        std::vector<std::size_t> asked;
        while (asked.size() < at_most) {
            const auto number = begun_ < genetic_population || best_.size() < 2 ? moves_.draw() : child();
            if (!number) break;
            ++begun_;
            asked.push_back(*number);
        }
        return asked;
    }

    void tell(std::size_t number, const Outcome& outcome) override {
        moves_.take(number);
        if (!outcome.ok() || !(outcome.time_us > 0)) return;
        best_.emplace(outcome.time_us, number);
        if (best_.size() > genetic_population) best_.erase(std::prev(best_.end()));
    }

private:
    std::optional<std::size_t> child() {
        const std::size_t mother = parent(), father = parent();
        const std::size_t variant = space_.variant_of(mother);
        Space::Row row = space_.row(mother);
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (space_.variant_of(father) == variant && moves_.chance() < 0.5) row[i] = space_.row(father)[i];
            if (moves_.chance() < mutation)
                row[i] = static_cast<std::uint16_t>(moves_.random().below(moves_.values(variant, i)));
        }
        return moves_.towards(row, mother);
    }

    std::size_t parent() {
        std::size_t place = best_.size();
        for (std::size_t i = 0; i < tournament; ++i) place = std::min(place, moves_.random().below(best_.size()));
        return std::next(best_.begin(), static_cast<std::ptrdiff_t>(place))->second;
    }

    const Space& space_;
    Moves moves_;
    std::size_t begun_ = 0;
    std::multimap<double, std::size_t> best_;  ///< the population
};

}  // namespace

std::unique_ptr<Strategy> make_genetic(const Space& space, std::uint64_t seed) {
    return std::make_unique<Genetic>(space, seed);
}

}  // namespace autotune

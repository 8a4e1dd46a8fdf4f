#include "tuner/strategies/annealing.h"

#include <cmath>
#include <limits>

#include "tuner/strategies/moves.h"

namespace autotune {
namespace {

constexpr double hottest = 0.5, coldest = 0.01;  // of the logarithm of time: half as slow again is taken at first
constexpr double cooling = 0.97;                 // each trial

class Annealing final : public Strategy {
public:
    Annealing(const Space& space, std::uint64_t seed) : moves_{space, seed} {}

    std::vector<std::size_t> ask(std::size_t at_most) override {
        std::vector<std::size_t> asked;
        while (asked.size() < at_most) {
            std::optional<std::size_t> number = here_ ? moves_.beside(*here_) : std::nullopt;
            if (!number) number = moves_.draw();
            if (!number) break;
            asked.push_back(*number);
        }
        return asked;
    }

    void tell(std::size_t number, const Outcome& outcome) override {
        moves_.take(number);
        if (!outcome.ok() || !(outcome.time_us > 0)) return;
        const double cost = std::log(outcome.time_us);
        if (!here_ || cost <= cost_ || moves_.chance() < std::exp((cost_ - cost) / heat_)) {
            here_ = number;
            cost_ = cost;
        }
        if (cost < best_cost_) {
            best_ = number;
            best_cost_ = cost;
        }
        heat_ *= cooling;
        if (heat_ >= coldest) return;
        heat_ = hottest;
        here_ = best_;
        cost_ = best_cost_;
    }

private:
    Moves moves_;
    std::optional<std::size_t> here_, best_;
    double cost_ = 0, best_cost_ = std::numeric_limits<double>::infinity(), heat_ = hottest;
};

}  // namespace

std::unique_ptr<Strategy> make_annealing(const Space& space, std::uint64_t seed) {
    return std::make_unique<Annealing>(space, seed);
}

}  // namespace autotune

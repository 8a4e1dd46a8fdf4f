#include "tuner/strategies/local.h"

#include <limits>
#include <map>
#include <unordered_set>

#include "tuner/strategies/unvisited.h"

namespace autotune {
namespace {

/// Restarted greedy descent. A descent asks for the neighbours of its best config in random order, moves as soon as one
/// is faster, and ends when the whole neighbourhood is told. The default is the first start; where more is asked than
/// the neighbourhood holds, random configs are, and the fastest of them that no descent has used is the next start.
class Local final : public Strategy {
public:
    Local(const Space& space, std::uint64_t seed) : space_{space}, random_{seed}, unvisited_{space.size()} {}

    std::vector<std::size_t> ask(std::size_t at_most) override {
        std::vector<std::size_t> asked;
        while (asked.size() < at_most) {
            const std::optional<std::size_t> number = next();
            if (!number) break;
            asked.push_back(*number);
        }
        return asked;
    }

    void tell(std::size_t number, const Outcome& outcome) override {
        unvisited_.take(number);
        const bool neighbour = outstanding_.erase(number) > 0;
        if (!outcome.ok()) return;
        if (neighbour && outcome.time_us < here_us_) return move_to(number, outcome.time_us);
        if (!neighbour) starts_.emplace(outcome.time_us, number);
    }

private:
    std::optional<std::size_t> next() {
        while (true) {
            while (!neighbours_.empty()) {
                const std::size_t number = neighbours_.back();
                neighbours_.pop_back();
                if (!unvisited_.take(number)) continue;
                outstanding_.insert(number);
                return number;
            }
            if (!outstanding_.empty() || starts_.empty()) return unvisited_.draw(random_);
            const auto [time_us, start] = *starts_.begin();
            starts_.erase(starts_.begin());
            move_to(start, time_us);
        }
    }

    void move_to(std::size_t number, double time_us) {
        here_us_ = time_us;
        neighbours_ = space_.neighbours(number, Space::Neighbourhood::hamming);
        std::erase_if(neighbours_, [this](std::size_t n) { return !unvisited_.has(n); });
        random_.shuffle(neighbours_);
    }

    const Space& space_;
    RandomSource random_;
    Unvisited unvisited_;
    double here_us_ = std::numeric_limits<double>::infinity();
    std::vector<std::size_t> neighbours_;
    std::unordered_set<std::size_t> outstanding_;  ///< neighbours that were asked for and not told yet
    std::multimap<double, std::size_t> starts_;
};

}  // namespace

std::unique_ptr<Strategy> make_local(const Space& space, std::uint64_t seed) {
    return std::make_unique<Local>(space, seed);
}

}  // namespace autotune

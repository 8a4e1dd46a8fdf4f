#include "tuner/strategies/halving.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "tuner/strategies/moves.h"

namespace autotune {
namespace {

constexpr std::size_t starts = 16;

class Halving final : public Strategy {
public:
    Halving(const Space& space, std::uint64_t seed) : moves_{space, seed} {}

    std::vector<std::size_t> ask(std::size_t at_most) override {
        std::vector<std::size_t> asked;
        while (asked.size() < at_most) {
            if (queue_.empty() && outstanding_.empty()) begin_round();
            std::optional<std::size_t> number;
            if (!queue_.empty()) {
                const std::size_t camp = queue_.back();
                queue_.pop_back();
                number = moves_.beside(camps_[camp].best);
                if (number) outstanding_[*number] = camp;
            }
            if (!number)
                number = moves_.draw();  // a start, while the round ends, or a camp with nothing left around it
            if (!number) break;
            asked.push_back(*number);
        }
        return asked;
    }

    void tell(std::size_t number, const Outcome& outcome) override {
        moves_.take(number);
        const auto found = outstanding_.find(number);
        std::optional<std::size_t> camp;
        if (found != outstanding_.end()) {
            camp = found->second;
            outstanding_.erase(found);
        }
        if (!outcome.ok() || !(outcome.time_us > 0)) return;
        if (!camp)
            fresh_.push_back({number, outcome.time_us});
        else if (outcome.time_us < camps_[*camp].time_us)
            camps_[*camp] = {number, outcome.time_us};
    }

private:
    struct Camp {
        std::size_t best = 0;
        double time_us = 0;
    };

    /// The better half of the camps, each with twice the trials of before; new ones when one is left.
    void begin_round() {
        if (camps_.size() > 1) {
            std::ranges::stable_sort(camps_, {}, &Camp::time_us);
            camps_.resize((camps_.size() + 1) / 2);
            trials_ *= 2;
        } else {
            camps_.clear();
            if (fresh_.size() < starts) return;  // random ones are asked for until there are enough
            camps_ = std::exchange(fresh_, {});
            trials_ = 1;
        }
        for (std::size_t i = 0; i < trials_ * camps_.size(); ++i) queue_.push_back(i % camps_.size());
    }

    Moves moves_;
    std::vector<Camp> camps_, fresh_;
    std::size_t trials_ = 1;
    std::vector<std::size_t> queue_;                            ///< camps that are owed a trial this round
    std::unordered_map<std::size_t, std::size_t> outstanding_;  ///< the camps' trials, not the starts
};

}  // namespace

std::unique_ptr<Strategy> make_halving(const Space& space, std::uint64_t seed) {
    return std::make_unique<Halving>(space, seed);
}

}  // namespace autotune

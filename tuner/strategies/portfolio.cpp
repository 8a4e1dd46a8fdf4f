#include "tuner/strategies/portfolio.h"

#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "tuner/strategies/genetic.h"
#include "tuner/strategies/guided.h"
#include "tuner/strategies/local.h"

namespace autotune {
namespace {

constexpr double forgetting = 0.95, curiosity = 0.05;

class Portfolio final : public Strategy {
public:
    Portfolio(const Space& space, std::uint64_t seed) {
        for (const auto make : {make_guided, make_genetic, make_local}) members_.push_back({.own = make(space, seed)});
    }

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
        taken_.insert(number);
        const auto found = asked_by_.find(number);
        if (found != asked_by_.end()) {
            Member& member = members_[found->second];
            member.credit = forgetting * member.credit + (1 - forgetting) * worth(outcome);
        }
        if (outcome.ok() && outcome.time_us > 0 && outcome.time_us < best_us_) best_us_ = outcome.time_us;
        for (Member& member : members_) member.own->tell(number, outcome);
    }

private:
    struct Member {
        std::unique_ptr<Strategy> own;
        double credit = 1;  ///< how near to the best its configs were, lately
        std::size_t asked = 0;
        bool done = false;  ///< until something is told
    };

    double worth(const Outcome& outcome) const {
        if (!outcome.ok() || !(outcome.time_us > 0)) return 0;
        return std::isfinite(best_us_) ? std::min(best_us_ / outcome.time_us, 2.0) : 1;
    }

    std::optional<std::size_t> next() {
        for (Member& member : members_) member.done = false;
        while (Member* member = chosen()) {
            const std::vector<std::size_t> number = member->own->ask(1);
            member->done = number.empty();
            // Another member's config that is outstanding is not asked twice; its tell reaches both.
            if (number.empty() || !taken_.insert(number.front()).second) continue;
            asked_by_[number.front()] = static_cast<std::size_t>(member - members_.data());
            ++member->asked;
            ++asked_;
            return number.front();
        }
        return std::nullopt;
    }

    Member* chosen() {
        Member* best = nullptr;
        double most = -1;
        for (Member& member : members_) {
            if (member.done) continue;
            const double bonus = curiosity * std::sqrt(std::log(static_cast<double>(asked_) + 2) /
                                                       (static_cast<double>(member.asked) + 1));
            if (member.credit + bonus > most) {
                most = member.credit + bonus;
                best = &member;
            }
        }
        return best;
    }

    std::vector<Member> members_;
    std::unordered_map<std::size_t, std::size_t> asked_by_;
    std::unordered_set<std::size_t> taken_;
    std::size_t asked_ = 0;
    double best_us_ = std::numeric_limits<double>::infinity();
};

}  // namespace

std::unique_ptr<Strategy> make_portfolio(const Space& space, std::uint64_t seed) {
    return std::make_unique<Portfolio>(space, seed);
}

}  // namespace autotune

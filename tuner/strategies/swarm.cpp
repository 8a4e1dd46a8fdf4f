#include "tuner/strategies/swarm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "tuner/strategies/moves.h"

namespace autotune {
namespace {

constexpr std::size_t particles = 20;
constexpr double inertia = 0.5, own_pull = 1.5, common_pull = 1.2;

class Swarm final : public Strategy {
public:
    Swarm(const Space& space, std::uint64_t seed) : space_{space}, moves_{space, seed} {}

    std::vector<std::size_t> ask(std::size_t at_most) override {
        std::vector<std::size_t> asked;
        while (asked.size() < at_most) {
            const bool flies = swarm_.size() == particles;
            const std::size_t particle = flies ? turn_++ % particles : particles;
            const auto number = flies ? fly(swarm_[particle]) : moves_.draw();
            if (!number) break;
            flown_by_[*number] = particle;
            asked.push_back(*number);
        }
        return asked;
    }

    void tell(std::size_t number, const Outcome& outcome) override {
        moves_.take(number);
        const auto found = flown_by_.find(number);
        const std::size_t particle = found == flown_by_.end() ? particles : found->second;
        if (found != flown_by_.end()) flown_by_.erase(found);
        if (!outcome.ok() || !(outcome.time_us > 0)) return;
        if (outcome.time_us < best_us_) {
            best_us_ = outcome.time_us;
            best_ = number;
        }
        if (particle < particles && outcome.time_us < swarm_[particle].best_us) {
            Particle& found_better = swarm_[particle];
            if (space_.variant_of(number) != space_.variant_of(found_better.best)) land(found_better, number);
            found_better.best_us = outcome.time_us;
            found_better.best = number;
        } else if (particle == particles && swarm_.size() < particles) {
            land(swarm_.emplace_back(Particle{.best = number, .best_us = outcome.time_us}), number);
        }
    }

private:
    struct Particle {
        std::size_t best = 0;
        double best_us = 0;
        std::vector<double> place, speed;  ///< of its best config's variant, on value indices
    };

    void land(Particle& particle, std::size_t number) const {
        const auto row = space_.row(number);
        particle.place.assign(row.begin(), row.end());
        particle.speed.assign(row.size(), 0);
    }

    std::optional<std::size_t> fly(Particle& particle) {
        const std::size_t variant = space_.variant_of(particle.best);
        const bool shares = space_.variant_of(best_) == variant;
        const auto own = space_.row(particle.best), common = space_.row(shares ? best_ : particle.best);
        Space::Row row{own.size()};
        for (std::size_t i = 0; i < own.size(); ++i) {
            const double most = static_cast<double>(moves_.values(variant, i)) - 1;
            double& place = particle.place[i];
            double& speed = particle.speed[i];
            speed = inertia * speed + own_pull * moves_.chance() * (own[i] - place) +
                    common_pull * moves_.chance() * (common[i] - place);
            place = std::clamp(place + speed, 0.0, most);
            row[i] = static_cast<std::uint16_t>(std::nearbyint(place));
        }
        return moves_.towards(row, particle.best);
    }

    const Space& space_;
    Moves moves_;
    std::vector<Particle> swarm_;
    std::unordered_map<std::size_t, std::size_t> flown_by_;  ///< of what is outstanding
    std::size_t best_ = 0, turn_ = 0;
    double best_us_ = std::numeric_limits<double>::infinity();
};

}  // namespace

std::unique_ptr<Strategy> make_swarm(const Space& space, std::uint64_t seed) {
    return std::make_unique<Swarm>(space, seed);
}

}  // namespace autotune

#include "tuner/strategies/random.h"

#include "tuner/strategies/unvisited.h"

namespace autotune {
namespace {

class Random final : public Strategy {
public:
    Random(const Space& space, std::uint64_t seed) : random_{seed}, unvisited_{space.size()} {}

    std::vector<std::size_t> ask(std::size_t at_most) override {
        std::vector<std::size_t> asked;
        while (asked.size() < at_most) {
            const std::optional<std::size_t> number = unvisited_.draw(random_);
            if (!number) break;
            asked.push_back(*number);
        }
        return asked;
    }
    void tell(std::size_t number, const Outcome&) override { unvisited_.take(number); }

private:
    RandomSource random_;
    Unvisited unvisited_;
};

}  // namespace

std::unique_ptr<Strategy> make_random(const Space& space, std::uint64_t seed) {
    return std::make_unique<Random>(space, seed);
}

}  // namespace autotune

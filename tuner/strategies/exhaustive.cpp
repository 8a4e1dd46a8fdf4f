#include "tuner/strategies/exhaustive.h"

#include "tuner/strategies/unvisited.h"

namespace autotune {
namespace {

class Exhaustive final : public Strategy {
public:
    explicit Exhaustive(const Space& space) : size_{space.size()}, unvisited_{space.size()} {}

    std::vector<std::size_t> ask(std::size_t at_most) override {
        std::vector<std::size_t> asked;
        for (; asked.size() < at_most && next_ < size_; ++next_)
            if (unvisited_.take(next_)) asked.push_back(next_);
        return asked;
    }
    void tell(std::size_t number, const Outcome&) override { unvisited_.take(number); }

private:
    std::size_t size_;
    std::size_t next_ = 0;
    Unvisited unvisited_;
};

}  // namespace

std::unique_ptr<Strategy> make_exhaustive(const Space& space, std::uint64_t) {
    return std::make_unique<Exhaustive>(space);
}

}  // namespace autotune

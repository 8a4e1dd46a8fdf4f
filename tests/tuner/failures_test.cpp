// Goal: from how some configs ended it is known how others will.
// Method: a made-up space of 12 x 10 x 3 configs, of which those with A of 7 and more fail.
#include "tuner/strategies/failures.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/made_up_op.h"
#include "tuner/strategies/random_source.h"

namespace autotune {
namespace {

class FailuresOfASpace : public testing::Test {
protected:
    bool fails(std::size_t number) const { return space.row(number)[0] >= 7; }
    std::vector<std::size_t> shuffled() const {
        std::vector<std::size_t> numbers(space.size());
        std::iota(numbers.begin(), numbers.end(), std::size_t{0});
        RandomSource{3}.shuffle(numbers);
        return numbers;
    }

    const Op op = made_up_op({{"A", 12}, {"B", 10}, {"C", 3}});
    const Space space = Space::make(Instance::make(op, {}, made_up_limits()));
    const Features features = features_of(space, [this] {
        std::vector<std::size_t> all(space.size());
        std::iota(all.begin(), all.end(), std::size_t{0});
        return all;
    }());
};

TEST_F(FailuresOfASpace, TellMostOthersApartAfterTwentyTrials) {
    for (const bool fitted : {true, false}) {
        Failures failures{features, fitted};
        const std::vector<std::size_t> numbers = shuffled();
        for (std::size_t i = 0; i < 20; ++i) failures.note(numbers[i], fails(numbers[i]));
        failures.learn();
        std::size_t right = 0;
        for (std::size_t i = 20; i < numbers.size(); ++i)
            right += (failures.works(numbers[i]) < 0.5) == fails(numbers[i]);
        EXPECT_GT(right, (numbers.size() - 20) * (fitted ? 9 : 8) / 10);
    }
}

TEST_F(FailuresOfASpace, WhileNoneFailedEachWorks) {
    Failures failures{features, true};
    for (const std::size_t number : shuffled()) failures.note(number, false);
    failures.learn();
    for (std::size_t number = 0; number < space.size(); ++number) EXPECT_EQ(failures.works(number), 1);
}

// So that a space in which all fails, or all but one config does, is searched to its end.
TEST_F(FailuresOfASpace, NoConfigIsHopeless) {
    const std::vector<std::size_t> numbers = shuffled();
    for (const std::size_t working : {numbers.size(), std::size_t{0}, std::size_t{100}}) {
        Failures failures{features, true};
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            failures.note(numbers[i], i != working);
            failures.learn();
        }
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            ASSERT_GT(failures.works(numbers[i]), 0) << working;
            ASSERT_LT(failures.works(numbers[i]), i == working ? 1.01 : 0.4) << working;
        }
    }
}

}  // namespace
}  // namespace autotune

#include "tuner/statistics.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

namespace autotune {
namespace {

TEST(Statistics, TheMedianOfAnEvenCountLiesBetweenTheMiddleTwo) {
    const std::vector<double> samples{4, 1, 3, 2};
    EXPECT_DOUBLE_EQ(median_interval(samples).median, 2.5);
}

TEST(Statistics, FewSamplesGiveTheirExtremes) {
    const std::vector<double> samples{5, 1, 3};
    EXPECT_DOUBLE_EQ(median_interval(samples).low, 1);
    EXPECT_DOUBLE_EQ(median_interval(samples).high, 5);
}

// Ranks from the published table of binomial intervals: n = 15 gives the 4th and the 12th.
TEST(Statistics, TheIntervalHasTheRanksOfTheBinomialTable) {
    std::vector<double> samples(15);
    std::iota(samples.begin(), samples.end(), 1.0);
    EXPECT_DOUBLE_EQ(median_interval(samples).low, 4);
    EXPECT_DOUBLE_EQ(median_interval(samples).high, 12);
}

TEST(Statistics, TheIntervalHoldsTheTrueMedianInAtLeast95Of100Repetitions) {
    std::mt19937_64 random{20240607};
    std::lognormal_distribution<double> distribution{0.0, 0.3};  // true median 1
    int held = 0;
    constexpr int repetitions = 4000;
    for (int i = 0; i < repetitions; ++i) {
        std::vector<double> samples(15);
        for (double& sample : samples) sample = distribution(random);
        const Interval interval = median_interval(samples);
        held += interval.low <= 1 && 1 <= interval.high;
    }
    EXPECT_GE(held, repetitions * 95 / 100);
}

TEST(Statistics, OneOutlierMovesNothing) {
    std::vector<double> samples(21, 10.0);
    samples[3] = 1e9;
    const Interval interval = median_interval(samples);
    EXPECT_DOUBLE_EQ(interval.median, 10);
    EXPECT_DOUBLE_EQ(interval.high, 10);
}

TEST(Statistics, PairingRemovesWhatBothSidesShare) {
    std::vector<double> a, b;
    for (int i = 0; i < 15; ++i) {
        const double drift = 1 + 0.1 * i;
        a.push_back(1.02 * drift);
        b.push_back(drift);
    }
    const Interval ratio = paired_ratio(a, b);
    EXPECT_NEAR(ratio.low, 1.02, 1e-12);
    EXPECT_NEAR(ratio.high, 1.02, 1e-12);
}

TEST(Statistics, ManySamplesDoNotUnderflow) {
    std::vector<double> samples(5000);
    std::iota(samples.begin(), samples.end(), 0.0);
    const Interval interval = median_interval(samples);
    EXPECT_LT(interval.low, interval.median);
    EXPECT_GT(interval.high, interval.median);
    EXPECT_GT(interval.low, 2300);
}

TEST(Statistics, RankCorrelationLooksAtTheOrderOnly) {
    const std::vector<double> a{1, 2, 3, 4}, grown{1, 10, 100, 1000}, turned{4, 3, 2, 1}, tied{1, 2, 2, 4};
    EXPECT_DOUBLE_EQ(rank_correlation(a, grown).value(), 1.0);
    EXPECT_DOUBLE_EQ(rank_correlation(a, turned).value(), -1.0);
    EXPECT_NEAR(rank_correlation(a, tied).value(), 0.9486832980505138, 1e-12) << "ties share the mean of their ranks";
}

TEST(Statistics, RankCorrelationNeedsThreePairsAndTwoValues) {
    const std::vector<double> two{1, 2}, flat{5, 5, 5}, three{1, 2, 3};
    EXPECT_FALSE(rank_correlation(two, two));
    EXPECT_FALSE(rank_correlation(flat, three));
    EXPECT_FALSE(rank_correlation(three, flat));
}

}  // namespace
}  // namespace autotune

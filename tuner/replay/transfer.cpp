#include "tuner/replay/transfer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>

#include "tuner/strategies/features.h"

namespace autotune {
namespace {

std::vector<std::uint64_t> identities(const Space& space) {
    std::vector<std::size_t> all(space.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    return features_of(space, all).identity;
}

}  // namespace

Knowledge transfer(const Space& space, std::span<const RecordedSpace* const> records) {
    const std::vector<std::uint64_t> own = identities(space);
    std::unordered_map<std::uint64_t, std::size_t> number_of;
    for (std::size_t i = 0; i < own.size(); ++i) number_of[own[i]] = i;
    // Of each config on each record: the best time over its own; 0 where it failed or is not known.
    std::vector<std::vector<double>> speed(own.size(), std::vector<double>(records.size(), 0));
    std::vector<bool> known(own.size(), false);
    for (std::size_t r = 0; r < records.size(); ++r) {
        const std::vector<std::uint64_t> theirs = identities(records[r]->space());
        for (std::size_t i = 0; i < theirs.size(); ++i) {
            const auto found = number_of.find(theirs[i]);
            const Outcome outcome = records[r]->outcome(i);
            if (found == number_of.end()) continue;
            known[found->second] = true;
            if (outcome.ok()) speed[found->second][r] = records[r]->optimum_us() / outcome.time_us;
        }
    }
    constexpr double slowest = 1e-3;  // what a failure counts as
    Knowledge knowledge;
    std::vector<double> mean(own.size(), 0);
    for (std::size_t i = 0; i < own.size(); ++i) {
        if (!known[i]) continue;
        for (const double s : speed[i]) mean[i] += std::log(std::max(s, slowest)) / static_cast<double>(records.size());
        knowledge.expected.push_back({i, std::exp(-mean[i])});
    }
    std::set<std::size_t> among;
    for (std::size_t r = 0; r < records.size(); ++r) {
        std::vector<std::size_t> order(own.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        const auto most = static_cast<std::ptrdiff_t>(std::min(transferred_of_each, order.size()));
        std::ranges::partial_sort(order, order.begin() + most, [&](std::size_t a, std::size_t b) {
            return std::pair{speed[b][r], own[a]} < std::pair{speed[a][r], own[b]};
        });
        for (auto i = order.begin(); i < order.begin() + most && speed[*i][r] > 0; ++i) among.insert(*i);
    }
    knowledge.among.assign(among.begin(), among.end());
    std::vector<double> covered(records.size(), 0);
    const auto gain = [&](std::size_t i) {
        double sum = 0;
        for (std::size_t r = 0; r < covered.size(); ++r) sum += std::max(speed[i][r] - covered[r], 0.0);
        return sum;
    };
    while (knowledge.first.size() < std::min(transferred_first, knowledge.expected.size())) {
        std::pair<double, double> most{-1, 0};
        std::size_t best = own.size();
        for (std::size_t i = 0; i < own.size(); ++i) {
            if (!known[i] || std::ranges::find(knowledge.first, i) != knowledge.first.end()) continue;
            const std::pair<double, double> worth{gain(i), mean[i]};
            if (best != own.size() && worth <= most) continue;
            most = worth;
            best = i;
        }
        knowledge.first.push_back(best);
        for (std::size_t r = 0; r < covered.size(); ++r) covered[r] = std::max(covered[r], speed[best][r]);
    }
    return knowledge;
}

}  // namespace autotune

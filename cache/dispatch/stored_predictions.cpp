#include "cache/dispatch/stored_predictions.h"

#include <algorithm>
#include <exception>
#include <tuple>
#include <utility>

#include "device/identity.h"

namespace autotune {
namespace {

/// What is within 3 % of the best counts as good as it, as among records: ranks of a worse search in another store may
/// stand beside those of the best.
constexpr double as_good = 1.03;

/// A row, and what decides between rows of a problem: less is better, and equal groups were predicted alike.
struct PredictedRow {
    std::tuple<bool, double, std::string, int> group;  ///< stale, how unlike the part is, its fingerprint, -model
    std::string hash;                                  ///< of the config: decides between equal times
    PredictedConfig value;
};

PredictedRow row_of(const RecordView& view, const DeviceIdentity& device, Layer layer) {
    return {
        .group = {!view.stale.empty(), unlikeness(*view.device, device), view.device->fp, -view.environment->emulator},
        .hash = view.config->variant + ' ' + std::string{view.order.config_hash},
        .value = {.config = *view.config,
                  .part = view.device->name,
                  .stale = std::string{view.stale},
                  .nvrtc_major = view.environment->nvrtc_major,
                  .nvrtc_minor = view.environment->nvrtc_minor,
                  .time_us = static_cast<double>(view.time_ns) / 1000.0,
                  .layer = layer}};
}

std::vector<PredictedConfig> best_group(std::vector<PredictedRow>& rows) {
    std::ranges::sort(rows, {},
                      [](const PredictedRow& row) { return std::tie(row.group, row.value.time_us, row.hash); });
    std::vector<PredictedConfig> best;
    for (const PredictedRow& row : rows)
        if (row.group == rows.front().group && row.value.time_us <= rows.front().value.time_us * as_good)
            best.push_back(row.value);
    return best;
}

}  // namespace

StoredPredictions StoredPredictions::read(std::span<const LayeredStore> stores, std::string_view op,
                                          const DeviceIdentity& device, const Today& today) {
    std::map<std::vector<std::byte>, std::vector<PredictedRow>> found;
    for (const LayeredStore& layered : stores) {
        try {
            layered.store->scan({.op = std::string{op}, .predicted = true}, today, [&](const RecordView& view) {
                // What no machine of the user's has run, not even emulated, is no better than the default.
                if (view.device->limits.cc != device.limits.cc || view.verified == Verified::elsewhere) return;
                found[{view.problem_key.begin(), view.problem_key.end()}].push_back(
                    row_of(view, device, layered.layer));
            });
        } catch (const std::exception&) {
            continue;  // the records of that store say so
        }
    }
    StoredPredictions out;
    for (auto& [key, rows] : found) out.by_problem_[key] = best_group(rows);
    return out;
}

std::span<const PredictedConfig> StoredPredictions::find(std::span<const std::byte> problem_key) const {
    if (by_problem_.empty()) return {};
    const auto at = by_problem_.find({problem_key.begin(), problem_key.end()});
    return at == by_problem_.end() ? std::span<const PredictedConfig>{} : at->second;
}

}  // namespace autotune

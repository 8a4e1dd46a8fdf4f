#ifndef AUTOTUNE_CACHE_DISPATCH_STORED_PREDICTIONS_H
#define AUTOTUNE_CACHE_DISPATCH_STORED_PREDICTIONS_H

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/dispatch/snapshot.h"

namespace autotune {

/// A config that an emulator's model put first for a problem; measured by nobody.
struct PredictedConfig {
    Config config{};
    std::string part{};   ///< the emulated GPU: "NVIDIA H200"
    std::string stale{};  ///< why it is of another op or compiler than today's; empty: fresh
    int nvrtc_major = 0, nvrtc_minor = 0;
    double time_us = 0;
    Layer layer = Layer::project;
};

/// What models say of one op on GPUs of one capability: a few rows, looked at where no record answers.
class StoredPredictions {
public:
    /// Of each problem those of one part and one model, since times of two are not comparable: fresh ones before stale
    /// ones, then of the part that is most like the device, then of the newest model. Stores that cannot be read just
    /// now are left out.
    static StoredPredictions read(std::span<const LayeredStore> stores, std::string_view op,
                                  const DeviceIdentity& device, const Today& today);

    /// Fastest first; empty: none.
    std::span<const PredictedConfig> find(std::span<const std::byte> problem_key) const;

private:
    std::map<std::vector<std::byte>, std::vector<PredictedConfig>> by_problem_;
};

}  // namespace autotune
#endif

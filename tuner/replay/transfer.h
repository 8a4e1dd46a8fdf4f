#ifndef AUTOTUNE_REPLAY_TRANSFER_H
#define AUTOTUNE_REPLAY_TRANSFER_H

#include <span>

#include "tuner/replay/recorded_space.h"
#include "tuner/strategies/guided.h"

namespace autotune {

/// How many configs of other devices are tried before all others; up to `first_of_known`, the model chooses among so
/// many of the best of each device.
inline constexpr std::size_t transferred_first = 5, transferred_of_each = 50;

/// What the records of other devices tell of a space, without a look at its own times. Expected of a config is the
/// geometric mean of its times over the best of each record. First come those that together are nearest to the best on
/// all of the records: any of these devices may be the one that is most like the one at hand.
/// Configs are the same when all parameters have equal names and values; of those no record knows, nothing is expected.
Knowledge transfer(const Space& space, std::span<const RecordedSpace* const> records);

}  // namespace autotune
#endif

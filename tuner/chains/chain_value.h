#ifndef AUTOTUNE_CHAINS_CHAIN_VALUE_H
#define AUTOTUNE_CHAINS_CHAIN_VALUE_H

#include <cstdint>
#include <span>

#include "tuner/chains/chain.h"

namespace autotune {

/// One element's operands.
struct ChainOperands {
    std::span<const double> inputs, scalars;  ///< as Chain::inputs and Chain::scalars name them
    std::int64_t seed = 0;
    std::uint32_t offset = 0;
    std::uint64_t element = 0;  ///< of y, row-major: what the bits of a dropout depend on
    bool narrow = false;        ///< y's elements have 16 bits: some functions are computed to fewer, too
};

/// A result beside how far a float computation of the same steps may be from it.
struct ChainValue {
    double value, error;
};

/// The chain in double.
ChainValue value_of(const Chain& chain, const ChainOperands& operands);

}  // namespace autotune
#endif

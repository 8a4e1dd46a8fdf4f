#ifndef AUTOTUNE_CHAINS_CHAIN_TEXT_H
#define AUTOTUNE_CHAINS_CHAIN_TEXT_H

#include <string>

#include "tuner/chains/chain.h"

// Inside of tuner/chains: the two spellings of a chain.

namespace autotune {

/// Whether the step gives a condition.
bool is_condition(ChainStep step);

/// As a user would write it, with one space around operators and no bracket that is not needed. Parses to the same.
std::string text_of(const Chain& chain);

/// As C++ over a type of numbers F: inputs are `in_NAME`, scalars `given_NAME`, the random bits of a dropout `bits_I`.
std::string code_of(const Chain& chain);

}  // namespace autotune
#endif

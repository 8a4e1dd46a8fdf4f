#ifndef AUTOTUNE_CHAINS_CHAIN_OP_H
#define AUTOTUNE_CHAINS_CHAIN_OP_H

#include <string>
#include <string_view>
#include <vector>

#include "tuner/chains/chain.h"
#include "tuner/model/op_set.h"

namespace autotune {

/// The op file of a chain, as docs/op-format.md describes it.
std::string chain_toml(const Chain& chain);
/// Its kernels: NAME.cu and NAME_reference.cu.
std::string chain_source(const Chain& chain);
std::string chain_reference_source(const Chain& chain);

/// An op made of a text such as `dropout(relu(x + bias), p)`; see Chain. Tensors are [batch, rows, cols]: y, and one of
/// each free name, whose extents are y's or 1. It goes through the loader as any user's op does, and writes no file.
/// Throws Error{usage}.
Op chain_op(std::string_view text);

/// Adds the op of a chain to those that a user named. Returns notes for the user; throws Error{usage}, also where another
/// of these has its name.
std::vector<std::string> add_chain(OpSet& ops, std::string_view text);

}  // namespace autotune
#endif

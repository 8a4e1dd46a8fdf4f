#ifndef AUTOTUNE_LOADER_USER_OPS_H
#define AUTOTUNE_LOADER_USER_OPS_H

#include <filesystem>
#include <string>
#include <vector>

#include "tuner/model/op_set.h"

namespace autotune {

/// Adds the ops of a folder that a user named by `--ops`. Its files may include the built-in headers, replace an op
/// that is there, and extend one. Returns notes for the user; throws Error{usage}, see `load_op`.
std::vector<std::string> add_op_folder(OpSet& ops, const std::filesystem::path& folder);

}  // namespace autotune
#endif

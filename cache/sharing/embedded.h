#ifndef AUTOTUNE_CACHE_SHARING_EMBEDDED_H
#define AUTOTUNE_CACHE_SHARING_EMBEDDED_H

#include <string>
#include <vector>

#include "autotune/embedded_records.h"
#include "cache/store/store.h"
#include "tuner/model/op_set.h"

namespace autotune {

/// The records that an application carries, as a store in memory. They are judged as an import is, keep what they say
/// of their checks, and rank below equal ones that were measured here. `refused` gets a reason a record that is not
/// taken.
Store embedded_store(EmbeddedRecords records, const OpSet& ops, std::vector<std::string>& refused);

}  // namespace autotune
#endif

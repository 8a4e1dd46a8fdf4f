#ifndef AUTOTUNE_CACHE_SHARING_RECORD_FILTER_H
#define AUTOTUNE_CACHE_SHARING_RECORD_FILTER_H

#include <string>
#include <utility>
#include <vector>

#include "cache/store/store.h"

namespace autotune {

/// Which records leave a database; an empty member does not narrow.
struct RecordFilter {
    std::string op{};
    std::string gpu{};   ///< "sm_90", a part of the GPU's name in any case, or the beginning of its fingerprint
    Expression where{};  ///< over the problem's key fields; unknown names: no match
    std::vector<std::pair<std::string, Value>> problem{};  ///< fields that have these values

    bool takes(const DeviceIdentity& device) const;
    bool takes(const ProblemIdentity& problem) const;
};

/// Visits the records of the filter, then its predictions, in an order that depends on nothing but what they say: op,
/// GPU, problem, template, compiler, rank. Rows whose checksum fails are left out.
/// cost  2 KB a record, until its op and GPU are done
void for_each_record(const Store& store, const RecordFilter& filter, const Today& today,
                     const std::function<void(const Record&)>& sink);

}  // namespace autotune
#endif

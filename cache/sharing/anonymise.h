#ifndef AUTOTUNE_CACHE_SHARING_ANONYMISE_H
#define AUTOTUNE_CACHE_SHARING_ANONYMISE_H

#include "cache/store/database.h"
#include "cache/store/record.h"

namespace autotune {

/// Takes away what tells whose, and of which machine, a record is: names and addresses, and each text that may hold
/// anything and is not made of autotune's own words and numbers. Times, versions and hashes of sources stay.
void anonymise(Record& record);
void anonymise(DeviceIdentity& device);
/// The same of all rows of a database that nobody else sees.
void anonymise(Database& database);

}  // namespace autotune
#endif

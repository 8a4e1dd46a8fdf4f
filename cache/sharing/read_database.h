#ifndef AUTOTUNE_CACHE_SHARING_READ_DATABASE_H
#define AUTOTUNE_CACHE_SHARING_READ_DATABASE_H

#include <functional>

#include "cache/sharing/intake.h"
#include "cache/store/foreign_database.h"

namespace autotune {

/// Every record, then every prediction of a database of elsewhere, numbered from 1; the parts of each are judged
/// and stay until `all_read` has been called. Throws Error{usage} where the file cannot be read to its end.
void read_database(ForeignDatabase& file, const Judge& judge, const RowSink& sink,
                   const std::function<void()>& all_read);

}  // namespace autotune
#endif

#ifndef AUTOTUNE_CACHE_STORE_RELEASED_STEPS_H
#define AUTOTUNE_CACHE_STORE_RELEASED_STEPS_H

namespace autotune {

class Database;

// The steps of migrations().

/// 1 to 2. Until then a row was its run's, and what it had displaced was gone.
void tell_who_brought_rows(Database& tune);
/// 2 to 3. Until then each problem stood with its key twice and as JSON, and each run with all that runs share.
/// A row whose parts are missing was none for a reader, and goes; one that is damaged stays so.
void say_nothing_twice(Database& tune);
/// The same of trials.db, whose trials named the problem of their run.
void leave_problems_to_runs(Database& trials);

}  // namespace autotune
#endif

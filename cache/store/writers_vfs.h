#ifndef AUTOTUNE_CACHE_STORE_WRITERS_VFS_H
#define AUTOTUNE_CACHE_STORE_WRITERS_VFS_H

namespace autotune {

/// The name of the VFS through which writers open files; nullptr: SQLite's default. It differs in one thing.
/// SQLite syncs the folder of a rollback journal in each transaction, lest a power cut takes the journal's name while
/// the database is half written. Where this process has synced the folder since that very file got its name, the name
/// is on the disk already: a commit then waits for two syncs of the three.
const char* writers_vfs() noexcept;

/// Gives up the journal of that path, which is kept open while its name is known to be on the disk: nobody here writes
/// it any more. Another connection of this process that does syncs the folder once again.
void forget_journal(const char* path) noexcept;

}  // namespace autotune
#endif

#ifndef AUTOTUNE_CACHE_STORE_FOLD_LOCK_H
#define AUTOTUNE_CACHE_STORE_FOLD_LOCK_H

#include <filesystem>

namespace autotune {

/// One process among all hosts that share the folder: a hard link PATH-fold, which NFS makes atomically where its locks
/// cannot be relied on. It names its holder; one that has died on this host is passed over.
class FoldLock {
public:
    /// Throws Error{store} when another holds it, with who it is and the file to remove should that process be gone.
    explicit FoldLock(const std::filesystem::path& database);
    FoldLock(const FoldLock&) = delete;
    FoldLock& operator=(const FoldLock&) = delete;
    ~FoldLock();

private:
    std::filesystem::path lock_;
};

}  // namespace autotune
#endif

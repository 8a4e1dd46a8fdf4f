#ifndef AUTOTUNE_CACHE_DISPATCH_SNAPSHOT_ROWS_H
#define AUTOTUNE_CACHE_DISPATCH_SNAPSHOT_ROWS_H

#include <cstddef>
#include <iterator>

#include "cache/dispatch/snapshot_row.h"

namespace autotune {

/// The rows of a problem, best first; possibly none. The best one stands with the key and the others elsewhere, so who
/// needs no other does not wait for them.
class SnapshotRows {
public:
    class Iterator {
    public:
        using value_type = SnapshotRow;
        using difference_type = std::ptrdiff_t;

        Iterator() = default;
        Iterator(const SnapshotRow* row, const SnapshotRow* next) noexcept : row_{row}, next_{next} {}
        const SnapshotRow& operator*() const noexcept { return *row_; }
        const SnapshotRow* operator->() const noexcept { return row_; }
        Iterator& operator++() noexcept {
            row_ = row_->last ? nullptr : next_++;
            return *this;
        }
        Iterator operator++(int) noexcept {
            const Iterator before = *this;
            ++*this;
            return before;
        }
        friend bool operator==(const Iterator& a, const Iterator& b) noexcept { return a.row_ == b.row_; }
        friend bool operator==(const Iterator& at, std::default_sentinel_t) noexcept { return at.row_ == nullptr; }

    private:
        const SnapshotRow* row_ = nullptr;
        const SnapshotRow* next_ = nullptr;
    };

    SnapshotRows() = default;
    /// second: where the others follow each other, if `best` is not the last.
    SnapshotRows(const SnapshotRow* best, const SnapshotRow* second) noexcept : best_{best}, second_{second} {}

    bool empty() const noexcept { return best_ == nullptr; }
    const SnapshotRow& front() const noexcept { return *best_; }
    Iterator begin() const noexcept { return {best_, second_}; }
    static std::default_sentinel_t end() noexcept { return {}; }

private:
    const SnapshotRow* best_ = nullptr;
    const SnapshotRow* second_ = nullptr;
};

}  // namespace autotune
#endif

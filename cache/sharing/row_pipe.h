#ifndef AUTOTUNE_CACHE_SHARING_ROW_PIPE_H
#define AUTOTUNE_CACHE_SHARING_ROW_PIPE_H

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cache/sharing/intake.h"

namespace autotune {

/// A row with what its reader thinks of it.
struct JudgedRow {
    std::size_t number = 0;
    std::string op{};       ///< as the file says, of one that is refused
    std::string refused{};  ///< the reason; then nothing but this is looked at
    IncomingRow row{};
};

/// A file is read and judged on a thread of its own while this one puts the rows, some thousands at a time and no more
/// than some times that ahead. What either throws ends both, and run() throws it.
class RowPipe {
public:
    explicit RowPipe(std::function<void(std::vector<JudgedRow>&)> put) : put_{std::move(put)} {}

    /// `read` pushes rows and drains before what they point to goes.
    void run(const std::function<void()>& read);

    // -- by `read`
    void push(JudgedRow&& row);
    /// Waits until all that was pushed is put.
    void drain();

private:
    /// The other side has thrown.
    struct Ended {};
    void hand_over();
    void put_until_read();

    static constexpr std::size_t rows_at_once = 2048, most_waiting = 3;
    std::function<void(std::vector<JudgedRow>&)> put_;
    std::vector<JudgedRow> collected_{};  ///< of the reader
    bool threaded_ = false;
    std::exception_ptr of_putter_{};

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::vector<JudgedRow>> waiting_{}, spare_{};
    bool putting_ = false, read_ = false, ended_ = false;
};

}  // namespace autotune
#endif

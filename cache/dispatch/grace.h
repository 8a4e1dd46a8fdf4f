#ifndef AUTOTUNE_CACHE_DISPATCH_GRACE_H
#define AUTOTUNE_CACHE_DISPATCH_GRACE_H

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace autotune {

/// Lets readers use shared tables without a lock, and tells when what they may still see can go. A reader counts itself
/// in and out, on a cache line that few threads share; what was replaced goes once everybody who was in has come out.
/// source  sleepable read-copy-update, McKenney 2006
class Grace {
    struct alignas(64) Lane {
        std::array<std::atomic<std::uint64_t>, 2> in{}, out{};
    };

public:
    static constexpr std::size_t stripes = 32;
    /// Which of the stripes is this thread's.
    static std::size_t stripe() noexcept;

    /// Held while shared tables are read.
    class Reader {
    public:
        Reader(Grace& grace, std::size_t stripe) noexcept
            : lane_{grace.lanes_[stripe]}, phase_{grace.phase_.load(std::memory_order_seq_cst) & 1} {
            lane_.in[phase_].fetch_add(1, std::memory_order_seq_cst);
        }
        ~Reader() { lane_.out[phase_].fetch_add(1, std::memory_order_seq_cst); }
        Reader(const Reader&) = delete;
        Reader& operator=(const Reader&) = delete;

    private:
        Lane& lane_;
        std::size_t phase_;
    };

    /// Takes what readers may still see. One thread at a time calls this and `reclaim`.
    void retire(std::shared_ptr<const void> object) { retired_.push_back(std::move(object)); }
    /// Frees what nobody can see any more; never waits. `forget` drops hints that readers keep to retired objects: it
    /// is called again after each wait, since a reader that is still in may set such a hint after the first time.
    void reclaim(const std::function<void()>& forget);
    std::size_t waiting() const noexcept { return retired_.size() + leaving_.size(); }

private:
    bool drained(std::size_t phase) const noexcept;

    std::array<Lane, stripes> lanes_{};
    std::atomic<std::size_t> phase_{0};
    std::vector<std::shared_ptr<const void>> retired_, leaving_;
    int rounds_left_ = 0;
};

}  // namespace autotune
#endif

#include "cache/dispatch/grace.h"

namespace autotune {

std::size_t Grace::stripe() noexcept {
    static std::atomic<std::size_t> next{0};
    thread_local const std::size_t mine = next.fetch_add(1, std::memory_order_relaxed) % stripes;
    return mine;
}

bool Grace::drained(std::size_t phase) const noexcept {
    // Outs first: a reader that comes in between is then seen as in.
    std::uint64_t out = 0, in = 0;
    for (const Lane& lane : lanes_) out += lane.out[phase].load(std::memory_order_seq_cst);
    for (const Lane& lane : lanes_) in += lane.in[phase].load(std::memory_order_seq_cst);
    return in == out;
}

void Grace::reclaim(const std::function<void()>& forget) {
    const std::size_t phase = phase_.load(std::memory_order_relaxed) & 1;
    if (rounds_left_ > 0) {
        if (!drained(phase ^ 1)) return;
        if (--rounds_left_ > 0) {
            forget();
            phase_.fetch_add(1, std::memory_order_seq_cst);
            return;
        }
        leaving_.clear();
    }
    if (retired_.empty() || !drained(phase ^ 1)) return;
    leaving_.swap(retired_);
    // Three waits: for who may set a hint late, for who may follow it then, and for who had read the phase before the
    // first turn and counted itself in after it.
    rounds_left_ = 3;
    forget();
    phase_.fetch_add(1, std::memory_order_seq_cst);
}

}  // namespace autotune

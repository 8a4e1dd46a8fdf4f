#include "device/emulator/counters.h"

namespace autotune::emulator {

Counters& Counters::operator+=(const Counters& other) noexcept {
    for (std::size_t i = 0; i < classes.size(); ++i) {
        classes[i].warps += other.classes[i].warps;
        classes[i].lanes += other.classes[i].lanes;
    }
    constexpr std::uint64_t Counters::*sums[] = {&Counters::blocks,
                                                 &Counters::warps,
                                                 &Counters::instructions,
                                                 &Counters::lane_instructions,
                                                 &Counters::flops,
                                                 &Counters::divergent_branches,
                                                 &Counters::barriers,
                                                 &Counters::global_load_requests,
                                                 &Counters::global_load_sectors,
                                                 &Counters::global_load_bytes,
                                                 &Counters::global_store_requests,
                                                 &Counters::global_store_sectors,
                                                 &Counters::global_store_bytes,
                                                 &Counters::atomic_requests,
                                                 &Counters::local_bytes,
                                                 &Counters::shared_load_requests,
                                                 &Counters::shared_load_wavefronts,
                                                 &Counters::shared_load_bytes,
                                                 &Counters::shared_store_requests,
                                                 &Counters::shared_store_wavefronts,
                                                 &Counters::shared_store_bytes,
                                                 &Counters::shared_conflicts,
                                                 &Counters::async_bytes};
    for (std::uint64_t Counters::*sum : sums) this->*sum += other.*sum;
    return *this;
}

}  // namespace autotune::emulator

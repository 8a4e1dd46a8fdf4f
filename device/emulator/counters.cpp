#include "device/emulator/counters.h"

#include <cstddef>

namespace autotune::emulator {

Counters& Counters::operator+=(const Counters& other) noexcept {
    for (std::size_t i = 0; i < classes.size(); ++i) {
        classes[i].warps += other.classes[i].warps;
        classes[i].lanes += other.classes[i].lanes;
    }
    for (const CounterSum& sum : counter_sums) this->*sum.value += other.*sum.value;
    return *this;
}

}  // namespace autotune::emulator

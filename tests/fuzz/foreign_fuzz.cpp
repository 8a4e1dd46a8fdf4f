// Any bytes either are a file of another tuner (T1, T4 or a cache), and results then write and read back equal and
// stand in the space that they name, which is written as a recorded one; or they end in an Error{usage}.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "autotune/error.h"
#include "tuner/interchange/measured_space.h"
#include "tuner/interchange/t1.h"
#include "tuner/interchange/t4.h"
#include "tuner/replay/recorded_space.h"

namespace {

template <class Read>
void read_or_refuse(Read&& read) {
    try {
        read();
    } catch (const autotune::Error& error) {
        if (error.kind() != autotune::Error::Kind::usage) std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    read_or_refuse([&] { autotune::op_of_t1(autotune::t1_from_text(text, "fuzz")); });
    read_or_refuse([&] {
        const auto read = autotune::measurements_from_text(text, "fuzz");
        const std::string written = autotune::t4_text(read.configs);
        if (autotune::t4_text(autotune::measurements_from_text(written, "fuzz").configs) != written) std::abort();
    });
    read_or_refuse([&] {
        using namespace autotune;
        const Measurements read = measurements_from_text(text, "fuzz");
        const Op op = op_of_measurements(read);
        const Space space = Space::make(Instance::make(op, {}, DeviceLimits{}));
        const MeasuredSpace measured = measured_space(space, read, "fuzz");
        if (!measured.rows.empty()) RecordedSpace::parse(recorded_text(space, measured, "fuzz"), "fuzz");
    });
    return 0;
}

// Any text either is a recorded space, whose every config is found by its own name and has an outcome, or ends in an
// Error{usage}.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "autotune/error.h"
#include "tuner/replay/recorded_space.h"

using namespace autotune;

namespace {

void require(bool holds) {
    if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        const RecordedSpace record = RecordedSpace::parse({reinterpret_cast<const char*>(data), size}, "input");
        std::size_t works = 0;
        for (std::size_t number = 0; number < record.space().size(); ++number) {
            require(record.space().find(record.space().config(number)) == number);
            works += record.outcome(number).ok();
        }
        require(works == record.sorted_us().size());
        require(works == 0 || record.optimum_us() > 0);
    } catch (const Error& error) {
        require(error.kind() == Error::Kind::usage);
    }
    return 0;
}

// Any bytes either are a database or lines of records, of which each is taken or refused, or end in an Error{usage};
// and what was taken is sound, and is taken again from its own export.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "autotune/error.h"
#include "tests/cache/sharing_samples.h"

using namespace autotune;

namespace {

void require(bool holds) {
    if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto* begin = reinterpret_cast<const std::byte*>(data);
    const TakingInOptions options{.ops = &samples::shared_ops(), .limits = {.time = std::chrono::seconds{5}}};
    Store store = Store::in_memory();
    try {
        const TakenIn taken = take_in_bytes(store, {begin, begin + size}, "input", options);
        require(taken.rows == taken.added + taken.better + taken.not_better + taken.refused);
        require(store.check().empty());
        const std::string text = samples::exported(store);
        if (text.empty()) return 0;
        Store again = Store::in_memory();
        require(take_in_bytes(again, samples::bytes_of(text), "export", options).refused == 0);
        require(samples::exported(again) == text);
    } catch (const Error& error) {
        require(error.kind() == Error::Kind::usage);
    }
    return 0;
}

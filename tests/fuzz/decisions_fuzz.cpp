// Goal: decisions of another process are read as it wrote them or refused, and none gets through that the op does not
// declare.
// Method: each input as it comes, and once more as lines behind a head that fits them, so that what follows the
// checksum is reached.
#include "cache/dispatch/decisions.h"

#include <algorithm>

#include "tests/cache/dispatch_samples.h"
#include "tests/fuzz/fuzzing.h"
#include "tuner/model/hashing.h"

namespace {

using namespace autotune;
using namespace autotune::fuzzing;

const OpSet& ops() {
    static const OpSet set = OpSet::of({samples::scale_op()});
    return set;
}

void read_decisions(std::string_view text) {
    Decisions decisions;
    if (!or_error([&] { decisions = Decisions::read(std::as_bytes(std::span{text})); })) return;
    const std::vector<std::byte> bytes = decisions.bytes();
    const Decisions again = Decisions::read(bytes);
    require(again.bytes() == bytes && again.hash() == decisions.hash());
    std::vector<std::string> why;
    const std::size_t refused = decisions.refuse_unknown(ops(), why);
    require(refused + decisions.size() == again.size());
    require(decisions.refuse_unknown(ops(), why) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text = text_of({data, size});
    read_decisions(text);
    const std::string_view lines =
        text.substr(std::min(text.find('\n'), text.size() - (text.empty() ? 0 : 1)) + (text.empty() ? 0 : 1));
    read_decisions("{\"autotune_decisions\":1,\"count\":" + std::to_string(std::ranges::count(lines, '\n')) +
                   ",\"sha256\":\"" + sha256_hex(lines) + "\"}\n" + std::string{lines});
    return 0;
}

// Any text: refused with a message, or taken, and then its canonical spelling is taken too and says the same; the op
// that is made of it is one that the loader takes.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "autotune/error.h"
#include "tuner/chains/chain_op.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace autotune;
    Chain chain;
    try {
        chain = Chain::parse({reinterpret_cast<const char*>(data), size});
    } catch (const Error& error) {
        if (error.kind() != Error::Kind::usage) std::abort();
        return 0;
    }
    if (Chain::parse(chain.text).text != chain.text) std::abort();
    try {
        (void)chain_op(chain.text);
    } catch (const Error& error) {  // names that clash
        if (error.kind() != Error::Kind::usage) std::abort();
    }
    return 0;
}

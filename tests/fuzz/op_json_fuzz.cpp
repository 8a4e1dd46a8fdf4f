// Any text either is an op in JSON, and then writes and reads back the same, or ends in an Error{usage}.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "autotune/error.h"
#include "tuner/model/op_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        const autotune::Op op = autotune::op_from_json({reinterpret_cast<const char*>(data), size});
        const std::string json = autotune::op_to_json(op);
        if (autotune::op_to_json(autotune::op_from_json(json)) != json) std::abort();
    } catch (const autotune::Error& error) {
        if (error.kind() != autotune::Error::Kind::usage) std::abort();
    }
    return 0;
}

// Any text either is a list of values or a condition as Python writes it, or ends in a ParseError with an offset inside
// it; what is read parses again as one of our own expressions.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string_view>

#include "tuner/interchange/python_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    try {
        const auto values = autotune::values_from_python(text);
        if (std::set<autotune::Value>{values.begin(), values.end()}.size() != values.size()) std::abort();
    } catch (const autotune::ParseError& error) {
        if (error.offset() > size) std::abort();
    }
    try {
        const auto condition = autotune::expression_from_python(text);
        if (autotune::Expression::parse(condition.text()).names() != condition.names()) std::abort();
    } catch (const autotune::ParseError& error) {
        if (error.offset() > size) std::abort();
    }
    return 0;
}

// Any text either parses or ends in a ParseError with an offset inside it; what parses evaluates to a value or an
// EvaluationError, and parses again to the same names.
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "tuner/model/expression.h"

namespace {

struct Names final : autotune::Scope {
    std::map<std::string, autotune::Value, std::less<>> values{{"m", std::int64_t{4096}},      {"k", std::int64_t{-7}},
                                                               {"zero", std::int64_t{0}},      {"x", 0.5},
                                                               {"dtype", std::string{"bf16"}}, {"causal", true}};
    const autotune::Value* find(std::string_view name) const override {
        const auto found = values.find(name);
        return found == values.end() ? nullptr : &found->second;
    }
    std::optional<std::int64_t> tensor_align(std::string_view name) const override {
        return name == "a" ? std::optional<std::int64_t>{8} : std::nullopt;
    }
};

void demand(bool holds) {
    if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    try {
        const auto expression = autotune::Expression::parse(text);
        demand(expression.text() == text);
        demand(autotune::Expression::parse(expression.text()).names() == expression.names());
        for (const std::string& name : expression.names())
            demand(text.substr(expression.offset_of(name)).starts_with(name));
        try {
            static const Names names;
            const autotune::Value value = expression.evaluate(names);
            demand(autotune::Expression::parse(autotune::Expression::constant(value).text()).constant_value() == value);
        } catch (const autotune::EvaluationError&) {
        }
    } catch (const autotune::ParseError& error) {
        demand(error.offset() <= size);
    }
    return 0;
}

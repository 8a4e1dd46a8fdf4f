// Goal: whatever the bytes of a key, a layout or its numbers are, they come back to the byte or are refused.
// Method: each input as a key, and as a layout with numbers, of every length behind it.
#include "cache/store/key_form.h"

#include "tests/fuzz/fuzzing.h"

namespace {

using namespace autotune;
using namespace autotune::fuzzing;

void take_apart(std::span<const std::byte> key) {
    std::string layout, numbers, again;
    KeyForm::split(key, layout, numbers);
    const KeyForm form{layout};
    std::vector<std::byte> put;
    require(form.sound() && form.put_together(numbers, put));
    require(std::ranges::equal(put, key));
    require(layout.empty() || (form.take_numbers(key, again) && again == numbers));
}

void read_layout(std::string_view layout, std::string_view numbers) {
    const KeyForm form{layout};
    std::vector<std::byte> key;
    std::vector<std::int64_t> values;
    const bool fits = form.put_together(numbers, key);
    require(form.sound() || !fits);
    if (!layout.empty()) require(fits == (form.sound() && form.read_numbers(numbers, values)));
    if (!fits || layout.empty()) return;
    std::string same, again;
    KeyForm::split(key, same, again);
    require(same == layout && again == numbers);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text = text_of({data, size});
    take_apart(std::as_bytes(std::span{text}));
    constexpr std::size_t most_numbers = 40;
    for (std::size_t left = 0; left <= std::min(size, most_numbers); ++left)
        read_layout(text.substr(0, size - left), text.substr(size - left));
    return 0;
}

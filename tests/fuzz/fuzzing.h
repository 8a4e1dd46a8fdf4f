#ifndef AUTOTUNE_TESTS_FUZZ_FUZZING_H
#define AUTOTUNE_TESTS_FUZZ_FUZZING_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

#include "autotune/error.h"

namespace autotune::fuzzing {

inline void require(bool holds) {
    if (!holds) std::abort();
}

/// Whether it ended without an Error, the one way to refuse an input.
template <class Action>
bool or_error(const Action& action) {
    try {
        action();
        return true;
    } catch (const Error&) {
        return false;
    }
}

inline void write_input(const std::filesystem::path& path, std::span<const std::uint8_t> input) {
    std::ofstream{path, std::ios::binary}.write(reinterpret_cast<const char*>(input.data()),
                                                static_cast<std::streamsize>(input.size()));
}

inline std::string_view text_of(std::span<const std::uint8_t> input) {
    return {reinterpret_cast<const char*>(input.data()), input.size()};
}

/// Choices that an input makes; zeros once it is used up.
class Choices {
public:
    explicit Choices(std::span<const std::uint8_t> input) noexcept : left_{input} {}
    bool empty() const noexcept { return left_.empty(); }
    std::uint8_t byte() noexcept {
        if (left_.empty()) return 0;
        const std::uint8_t first = left_.front();
        left_ = left_.subspan(1);
        return first;
    }
    /// Below `count`.
    std::size_t one_of(std::size_t count) noexcept { return byte() % count; }
    std::int64_t number() noexcept {
        std::int64_t number = 0;
        const std::size_t size = std::min(left_.size(), sizeof number);
        if (size) std::memcpy(&number, left_.data(), size);
        left_ = left_.subspan(size);
        return number;
    }
    /// Of up to 31 bytes.
    std::string text() {
        const std::size_t size = std::min<std::size_t>(left_.size(), byte() & 31);
        const std::string text{text_of(left_.first(std::min(size, left_.size())))};
        left_ = left_.subspan(text.size());
        return text;
    }

private:
    std::span<const std::uint8_t> left_;
};

}  // namespace autotune::fuzzing
#endif

#ifndef AUTOTUNE_MODEL_KEY_READER_H
#define AUTOTUNE_MODEL_KEY_READER_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "tuner/model/value.h"

namespace autotune {

/// Walks the fields of a problem's canonical key (Instance::key()), in name order: the op's key fields, and of each
/// present tensor `x.align` and `x.layout`. Whatever the bytes are, it stays within them and allocates nothing.
class KeyReader {
public:
    struct Field {
        std::string_view name;
        std::span<const std::byte> value;  ///< as the key holds it: equal bytes are equal values
        Value read() const;
        std::optional<std::int64_t> integer() const noexcept;
    };

    explicit KeyReader(std::span<const std::byte> key) noexcept;
    std::string_view op() const noexcept { return op_; }
    /// nullopt at the end, and where the bytes are no key.
    std::optional<Field> next() noexcept;
    /// The whole key was walked, and it was one.
    bool whole() const noexcept { return sound_ && left_ == 0 && rest_.empty(); }

private:
    std::optional<std::uint64_t> number() noexcept;
    std::optional<std::string_view> text() noexcept;

    std::span<const std::byte> rest_;
    std::string_view op_;
    std::uint64_t left_ = 0;
    bool sound_ = false;
};

}  // namespace autotune
#endif

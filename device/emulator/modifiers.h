#ifndef AUTOTUNE_DEVICE_EMULATOR_MODIFIERS_H
#define AUTOTUNE_DEVICE_EMULATOR_MODIFIERS_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "device/emulator/op.h"

namespace autotune::emulator {

/// The parts of an opcode behind its base, `rn`, `ftz` and `f32` of add.rn.ftz.f32, each to be taken by who knows it:
/// one that is left over makes the instruction one that is not emulated.
class Modifiers {
public:
    explicit Modifiers(std::string_view opcode);
    std::string_view base() const noexcept { return base_; }
    /// Takes a modifier wherever it stands.
    bool take(std::string_view name) noexcept;
    /// Takes any of a list; its index, or -1.
    template <std::size_t N>
    int take_any(const std::array<std::string_view, N>& names) noexcept {
        for (std::size_t i = 0; i < N; ++i)
            if (take(names[i])) return static_cast<int>(i);
        return -1;
    }
    /// Takes every one that begins so: L2::128B, L1::no_allocate.
    void drop_prefix(std::string_view prefix) noexcept;
    /// Takes the next type, from the left; `none` where there is none.
    PtxType type() noexcept;
    /// Takes the next that begins so and returns it, or an empty one.
    std::string_view take_prefix(std::string_view prefix) noexcept;
    bool empty() const noexcept { return parts_.empty(); }

    Rounding rounding() noexcept;
    Compare compare(bool& found) noexcept;

private:
    std::string_view base_;
    std::vector<std::string_view> parts_;
};

}  // namespace autotune::emulator
#endif

#include "device/emulator/modifiers.h"

#include <algorithm>

namespace autotune::emulator {

Modifiers::Modifiers(std::string_view opcode) {
    std::size_t at = opcode.find('.');
    base_ = opcode.substr(0, at);
    while (at != std::string_view::npos) {
        const std::size_t next = opcode.find('.', at + 1);
        const std::string_view part = opcode.substr(at + 1, next == std::string_view::npos ? next : next - at - 1);
        if (!part.empty()) parts_.push_back(part);
        at = next;
    }
}

bool Modifiers::take(std::string_view name) noexcept {
    const auto found = std::find(parts_.begin(), parts_.end(), name);
    if (found == parts_.end()) return false;
    parts_.erase(found);
    return true;
}

void Modifiers::drop_prefix(std::string_view prefix) noexcept {
    std::erase_if(parts_, [&](std::string_view part) { return part.starts_with(prefix); });
}

std::string_view Modifiers::take_prefix(std::string_view prefix) noexcept {
    for (auto i = parts_.begin(); i != parts_.end(); ++i)
        if (i->starts_with(prefix)) {
            const std::string_view found = *i;
            parts_.erase(i);
            return found;
        }
    return {};
}

PtxType Modifiers::type() noexcept {
    for (auto i = parts_.begin(); i != parts_.end(); ++i)
        if (const PtxType type = ptx_type_named(*i); type != PtxType::none) {
            parts_.erase(i);
            return type;
        }
    return PtxType::none;
}

Rounding Modifiers::rounding() noexcept {
    constexpr std::array<std::string_view, 9> names{"rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"};
    const int found = take_any(names);
    return found < 0 ? Rounding::none : static_cast<Rounding>(found + 1);
}

Compare Modifiers::compare(bool& found) noexcept {
    constexpr std::array<std::string_view, 18> names{"eq",  "ne",  "lt",  "le",  "gt",  "ge", "equ", "neu", "ltu",
                                                     "leu", "gtu", "geu", "num", "nan", "lo", "ls",  "hi",  "hs"};
    const int which = take_any(names);
    found = which >= 0;
    constexpr std::array<Compare, 4> unsigned_ones{Compare::lt, Compare::le, Compare::gt, Compare::ge};
    if (which >= 14) return unsigned_ones[static_cast<std::size_t>(which - 14)];
    return which < 0 ? Compare::eq : static_cast<Compare>(which);
}

}  // namespace autotune::emulator

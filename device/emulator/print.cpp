#include "device/emulator/print.h"

#include <cstdio>
#include <cstring>
#include <string>

#include "device/emulator/accesses.h"
#include "device/emulator/block.h"
#include "device/emulator/fault.h"

namespace autotune::emulator {
namespace {

constexpr std::size_t most_printed = 65536, longest_string = 4096;

/// Bytes behind a generic address, as many as are there of `count`.
std::string bytes_at(Warp& w, int lane, std::uint64_t address, std::size_t count) {
    const Space space = space_of(w, address);
    const SpaceView& view = w.views[static_cast<int>(space)];
    const std::uint64_t from = address - window_of(space) - view.start;
    if (from >= view.size) return {};
    const std::size_t length = std::min<std::uint64_t>(count, view.size - from);
    return {reinterpret_cast<const char*>(view.base + from + static_cast<std::uint64_t>(lane) * view.lane_stride),
            length};
}

std::string string_at(Warp& w, int lane, std::uint64_t address) {
    std::string text = bytes_at(w, lane, address, longest_string);
    text.resize(std::min(text.size(), text.find('\0')));
    return text;
}

std::uint64_t argument(Warp& w, int lane, const CallSite& site, std::size_t number) {
    std::uint64_t value = 0;
    if (number >= site.arguments.size()) return 0;
    const CallSite::Move& move = site.arguments[number];
    if (move.bytes < 0) {
        const auto size = static_cast<std::size_t>(-move.bytes);
        std::memcpy(&value, w.row<std::byte>(move.row) + size * static_cast<std::size_t>(lane),
                    std::min<std::size_t>(size, 8));
    } else {
        std::memcpy(&value, w.local.get() + static_cast<std::size_t>(lane) * w.program->local_bytes + move.from,
                    std::min<std::size_t>(static_cast<std::size_t>(move.bytes), 8));
    }
    return value;
}

/// One argument as its conversion, which is known to be harmless: flags, width and precision are digits and signs.
std::string formatted(const std::string& conversion, char kind, std::uint64_t raw, const std::string& text) {
    char out[512];
    int length = 0;
    const auto with = [&](const char* size, auto value) {
        const std::string full = conversion + size + kind;
        length = std::snprintf(out, sizeof out, full.c_str(), value);
    };
    switch (kind) {
        case 'd':
        case 'i':
            with("ll", static_cast<long long>(raw));
            break;
        case 'u':
        case 'x':
        case 'X':
        case 'o':
            with("ll", static_cast<unsigned long long>(raw));
            break;
        case 'e':
        case 'E':
        case 'f':
        case 'F':
        case 'g':
        case 'G':
        case 'a':
        case 'A':
            with("", __builtin_bit_cast(double, raw));
            break;
        case 'c':
            with("", static_cast<int>(raw));
            break;
        case 's':
            with("", text.c_str());
            break;
        case 'p':
            with("", reinterpret_cast<void*>(raw));
            break;
        default:
            return {};
    }
    return {out, static_cast<std::size_t>(std::clamp(length, 0, static_cast<int>(sizeof out) - 1))};
}

std::string line_of(Warp& w, int lane, const std::string& format, std::uint64_t arguments) {
    std::string line;
    std::uint64_t at = arguments;
    for (std::size_t i = 0; i < format.size(); ++i) {
        if (format[i] != '%') {
            line += format[i];
            continue;
        }
        if (i + 1 < format.size() && format[i + 1] == '%') {
            line += '%';
            ++i;
            continue;
        }
        std::string conversion = "%";
        std::size_t end = i + 1;
        int digits = 0;
        while (end < format.size() && std::strchr("-+ #.0123456789", format[end]) && digits < 12) {
            conversion += format[end++];
            ++digits;
        }
        int longs = 0;
        while (end < format.size() && std::strchr("lhjzt", format[end]))
            longs += std::strchr("ljzt", format[end++]) != nullptr;
        if (end >= format.size()) break;
        const char kind = format[end];
        const bool wide = longs > 0 || std::strchr("eEfFgGaAsp", kind);
        const std::uint64_t size = wide ? 8 : 4;
        at = (at + size - 1) / size * size;
        const std::string bytes = bytes_at(w, lane, at, size);
        at += size;
        std::uint64_t raw = 0;
        std::memcpy(&raw, bytes.data(), std::min<std::size_t>(bytes.size(), 8));
        if (!wide && (kind == 'd' || kind == 'i'))
            raw = static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(raw)});
        line += formatted(conversion, kind, raw, kind == 's' ? string_at(w, lane, raw) : std::string{});
        i = end;
    }
    return line;
}

}  // namespace

void print(Warp& w, const Op&, std::uint32_t m, const CallSite& site) {
    std::string* const out = w.block->launch->printed;
    if (!out) return;
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        if (out->size() >= most_printed) return;
        *out += line_of(w, i, string_at(w, i, argument(w, i, site, 0)), argument(w, i, site, 1));
    }
    if (out->size() > most_printed) out->resize(most_printed);
}

void assertion_failed(Warp& w, const Op& op, std::uint32_t m, const CallSite& site) {
    const int lane = __builtin_ctz(m);
    const auto text = [&](std::size_t number) { return string_at(w, lane, argument(w, lane, site, number)); };
    const auto line = static_cast<std::uint32_t>(argument(w, lane, site, 2));
    fail(w, op, lane, DeviceFault::Kind::crashed,
         "the assertion '" + text(0) + "' (" + text(1) + ":" + std::to_string(line) + ") fails");
}

}  // namespace autotune::emulator

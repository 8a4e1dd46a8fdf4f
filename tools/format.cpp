#include "tools/format.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace autotune {
namespace {

/// Four significant digits, without an exponent.
std::string digits(double value) {
    if (!std::isfinite(value)) return "?";
    const double size = std::abs(value);
    if (size >= 999.95) return fmt::format("{:.0f}", value);
    if (size >= 99.995) return fmt::format("{:.1f}", value);
    if (size >= 9.9995) return fmt::format("{:.2f}", value);
    return fmt::format("{:.3f}", value);
}

}  // namespace

std::string format_time(double time_us) {
    if (time_us >= 1e6) return digits(time_us / 1e6) + " s";
    if (time_us >= 1e4) return digits(time_us / 1e3) + " ms";
    if (time_us >= 99.95) return fmt::format("{:.1f} us", time_us);
    return fmt::format("{:.2f} us", std::isfinite(time_us) ? time_us : 0.0);
}

std::string format_duration(double seconds) {
    const auto whole = static_cast<std::int64_t>(std::isfinite(seconds) ? std::max(0.0, std::round(seconds)) : 0.0);
    if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
    return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string format_seconds(double seconds) { return fmt::format("{:.1f} s", std::isfinite(seconds) ? seconds : 0.0); }

std::string format_bandwidth(double gbs) { return fmt::format("{:.0f} GB/s", std::isfinite(gbs) ? gbs : 0.0); }

std::string format_rate(double flops_per_s) {
    if (flops_per_s >= 1e12)
        return flops_per_s >= 1e14 ? fmt::format("{:.0f} TFLOP/s", flops_per_s / 1e12)
                                   : fmt::format("{:.1f} TFLOP/s", flops_per_s / 1e12);
    return fmt::format("{:.1f} GFLOP/s", std::isfinite(flops_per_s) ? flops_per_s / 1e9 : 0.0);
}

std::string format_bytes(std::uint64_t bytes) {
    constexpr std::array<std::string_view, 5> units{"bytes", "KiB", "MiB", "GiB", "TiB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 1024 && unit + 1 < units.size()) {
        value /= 1024;
        ++unit;
    }
    if (unit == 0) return bytes == 1 ? "1 byte" : fmt::format("{} bytes", bytes);
    return value == std::floor(value) ? fmt::format("{:.0f} {}", value, units[unit])
                                      : fmt::format("{:.2f} {}", value, units[unit]);
}

std::string format_speedup(double ratio) { return fmt::format("{:.2f}x", std::isfinite(ratio) ? ratio : 0.0); }

std::string format_count(std::size_t count, std::string_view one, std::string_view many) {
    return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::size_t columns(std::string_view text) {
    std::size_t count = 0;
    for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    return count;
}

std::string cut(std::string_view text, std::size_t width) {
    std::size_t shown = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) continue;
        if (shown++ == width) return std::string{text.substr(0, i)};
    }
    return std::string{text};
}

std::string pad_right(std::string_view text, std::size_t width) {
    const std::size_t have = columns(text);
    return std::string{text} + std::string(width > have ? width - have : 0, ' ');
}

std::string pad_left(std::string_view text, std::size_t width) {
    const std::size_t have = columns(text);
    return std::string(width > have ? width - have : 0, ' ') + std::string{text};
}

}  // namespace autotune

#ifndef AUTOTUNE_TOOLS_FORMAT_H
#define AUTOTUNE_TOOLS_FORMAT_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace autotune {

// Numbers as people read them, with their unit, in four significant digits. Never "nan" or "inf".

std::string format_time(double time_us);        ///< "0.84 us", "168.2 us", "1.234 ms", "12.3 s"
std::string format_duration(double seconds);    ///< "0:31", "3:42", "1:02:03"
std::string format_seconds(double seconds);     ///< "48.3 s"
std::string format_bandwidth(double gbs);       ///< "3192 GB/s"
std::string format_rate(double flops_per_s);    ///< "812 TFLOP/s", "51.3 TFLOP/s", "23 GFLOP/s"
std::string format_bytes(std::uint64_t bytes);  ///< "96 KiB", "1.50 GiB"; whole bytes below 1 KiB
std::string format_speedup(double ratio);       ///< "1.41x"
std::string format_count(std::size_t count, std::string_view one,
                         std::string_view many);  ///< "1 config", "412 configs"

/// Columns that a terminal shows for UTF-8 text: one a code point.
std::size_t columns(std::string_view text);
/// The text cut to `width` columns; nothing is wrapped.
std::string cut(std::string_view text, std::size_t width);
/// Padded with blanks to `width` columns.
std::string pad_right(std::string_view text, std::size_t width);
std::string pad_left(std::string_view text, std::size_t width);

}  // namespace autotune
#endif

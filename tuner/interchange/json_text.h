#ifndef AUTOTUNE_INTERCHANGE_JSON_TEXT_H
#define AUTOTUNE_INTERCHANGE_JSON_TEXT_H

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tuner/model/value.h"

// Inside of tuner/interchange: files of other tools, read as hostile.

namespace autotune {

/// A cache file is one object of a hundred thousand members, so its members are looked up, not searched; JSON gives
/// them no order.
using ForeignJson = nlohmann::json;

/// What to do about a file that is refused.
inline constexpr const char* foreign_help = "autotune help interchange";
inline constexpr std::size_t foreign_bytes_at_most = std::size_t{128} << 20;

/// Throws Error{usage} for what cannot be read, is no plain file or has more than foreign_bytes_at_most.
std::string foreign_text(const std::filesystem::path& path);
/// Throws Error{usage} naming file, line and column, also for NaN, bytes that are no UTF-8, more than 64
/// levels and more than 2^24 values.
ForeignJson json_from_text(std::string_view text, const std::string& file);
/// Throws Error{usage} with `where`, for what is no boolean, number or string.
Value value_of_json(const ForeignJson& json, const std::string& where);
ForeignJson json_of_value(const Value& value);
/// `2024-05-01T10:00:00+00:00`. seconds: since 1970
std::string utc_text(std::int64_t seconds);

}  // namespace autotune
#endif

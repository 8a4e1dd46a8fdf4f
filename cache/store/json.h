#ifndef AUTOTUNE_CACHE_STORE_JSON_H
#define AUTOTUNE_CACHE_STORE_JSON_H

#include <concepts>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "cache/store/record.h"

namespace autotune {

// The JSON in the database's columns and in the lines of an export. Reading throws Error{usage} for what does not fit.

/// A text of elsewhere is nested no deeper than this: it is parsed without a stack, but printed and copied with one.
inline constexpr int deepest_nesting = 16;
/// Throws Error{usage} for a text that is nested deeper or has an object with a member twice,
/// nlohmann::json::parse_error for one that is no JSON.
nlohmann::json parse_json(std::string_view text);

/// A whole number as it is read, for whatever type takes it: Error{usage} where it does not fit in there.
struct WholeNumber {
    std::uint64_t positive = 0;
    std::int64_t negative = 0;  ///< 0: it is not below 0
    const char* name = "";      ///< of the field, for a message

    template <std::integral Number>
    operator Number() const {  // NOLINT(google-explicit-constructor): the field says its type
        if (negative < 0 ? !std::in_range<Number>(negative) : !std::in_range<Number>(positive)) throw_out_of_range();
        return negative < 0 ? static_cast<Number>(negative) : static_cast<Number>(positive);
    }

private:
    [[noreturn]] void throw_out_of_range() const;
};
/// Throws Error{usage} for what is no whole number.
WholeNumber whole(const nlohmann::json& json, const char* name);

nlohmann::json to_json(const Value& value);
Value value_from_json(const nlohmann::json& json);

/// [["THREADS",256],["VEC",4]]: order is kept, and names and values are stored, never indices into a list.
nlohmann::json to_json(const Config& config);
Config config_from_json(std::string variant, const nlohmann::json& json);

/// {"fields":[["rows",4096],...],"key":{...}}
nlohmann::json to_json(const ProblemIdentity& problem);
/// The same as text, without a detour where the names and values are plain ones.
std::string problem_json_text(const ProblemIdentity& problem);
void read_problem_json(const nlohmann::json& json, ProblemIdentity& problem);

/// What the device table has no column for.
nlohmann::json device_attributes(const DeviceIdentity& device);
void read_device_attributes(const nlohmann::json& json, DeviceIdentity& device);

// The parts of a line. A whole number that its field cannot hold is refused; whether it makes sense is for others to
// say.
DeviceIdentity device_from_json(const nlohmann::json& json);
Environment environment_from_json(const nlohmann::json& json);
TemplateIdentity template_from_json(const nlohmann::json& json);
RunInfo run_from_json(const nlohmann::json& json);

/// A record as one line, with its whole provenance: what spool files and exports are made of. Equal records give equal
/// lines.
std::string to_line(const Record& record);
Record record_from_line(std::string_view line);

std::string to_hex(std::span<const std::byte> bytes);
std::vector<std::byte> from_hex(std::string_view text);

}  // namespace autotune
#endif

#include "tuner/replay/recorded_space.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "autotune/error.h"
#include "tuner/model/printable.h"

namespace autotune {
namespace {

constexpr std::size_t text_at_most = std::size_t{256} << 20;
constexpr std::size_t configs_at_most = 4'000'000;
constexpr std::size_t parameters_at_most = 64;
constexpr std::size_t values_at_most = 4096;
constexpr double us_per_ms = 1000;

Error bad_record(const std::string& name, const std::string& what) {
    return {Error::Kind::usage, fmt::format("the recorded space '{}' {}", name, what), "autotune help search"};
}

/// The whole text of a file that zlib reads, gzipped or not.
std::string text_of(const std::filesystem::path& file) {
    std::error_code failed;
    if (!std::filesystem::is_regular_file(file, failed))
        throw bad_record(file.string(), failed ? "cannot be read: " + failed.message() : "is not a file");
    const auto close = [](gzFile stream) { gzclose(stream); };
    const std::unique_ptr<gzFile_s, decltype(close)> stream{gzopen(file.c_str(), "rb"), close};
    if (!stream) throw bad_record(file.string(), fmt::format("cannot be opened: {}", std::strerror(errno)));
    std::string text;
    std::array<char, 1 << 16> part;
    while (true) {
        const int got = gzread(stream.get(), part.data(), static_cast<unsigned>(part.size()));
        int error = Z_OK;
        const char* message = gzerror(stream.get(), &error);
        if (got < 0 || (error != Z_OK && error != Z_STREAM_END))
            throw bad_record(file.string(),
                             fmt::format("cannot be unpacked: {}", error == Z_BUF_ERROR ? "it is cut short" : message));
        if (got == 0) return text;
        text.append(part.data(), static_cast<std::size_t>(got));
        if (text.size() > text_at_most)
            throw bad_record(file.string(), fmt::format("holds more than {} MiB of text", text_at_most >> 20));
    }
}

/// A cell or word in a message, which may be a megabyte.
std::string shown(std::string_view text) {
    constexpr std::size_t at_most = 60;
    return text.size() > at_most ? printable(text.substr(0, at_most)) + " ..." : printable(text);
}

std::vector<std::string_view> split_at(std::string_view line, char separator) {
    std::vector<std::string_view> parts;
    while (true) {
        const std::size_t end = line.find(separator);
        parts.push_back(line.substr(0, end));
        if (end == std::string_view::npos) return parts;
        line.remove_prefix(end + 1);
    }
}

std::vector<std::string_view> words_of(std::string_view text) {
    std::vector<std::string_view> words = split_at(text, ' ');
    std::erase(words, std::string_view{});
    return words;
}

bool is_identifier(std::string_view text) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    return !text.empty() && letter(text[0]) &&
           std::ranges::all_of(text, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

std::optional<double> number_of(std::string_view text) {
    double number = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || rest != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
    return number;
}

std::optional<Ending> ending_of(std::string_view status) {
    if (status == "ok") return Ending::timed;
    if (status == "compile") return Ending::compile_failed;
    if (status == "runtime" || status == "failed") return Ending::launch_failed;
    return std::nullopt;
}

/// What stands in one line of a record, read from its start.
class RecordReader {
public:
    struct Row {
        std::vector<std::uint16_t> values;
        double time_ms = 0, sd_ms = 0;
        float cost_ms = -1;
        Ending ending = Ending::timed;
    };

    RecordReader(std::string_view text, const std::string& name) : name_{name} {
        if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // some editors begin UTF-8 so
        while (!text.empty()) {
            const std::size_t end = std::min(text.find('\n'), text.size());
            std::string_view line = text.substr(0, end);
            text.remove_prefix(std::min(end + 1, text.size()));
            ++line_;
            if (line.ends_with('\r')) line.remove_suffix(1);
            if (line.empty()) continue;
            if (line.front() == '#')
                read_remark(line.substr(1));
            else if (columns_.empty())
                read_header(line);
            else
                read_row(line);
        }
        if (columns_.empty()) refuse("has no line that names the columns");
    }

    std::string kernel, device;
    std::vector<Parameter> parameters;  ///< in the order of the columns
    std::vector<Row> rows;

private:
    [[noreturn]] void refuse(const std::string& what) const { throw bad_record(name_, what); }
    [[noreturn]] void refuse_line(const std::string& what) const { refuse(fmt::format("line {}: {}", line_, what)); }

    void read_remark(std::string_view text) {
        const std::size_t colon = text.find(':');
        if (colon == std::string_view::npos) return;
        const std::vector<std::string_view> key = words_of(text.substr(0, colon));
        const std::vector<std::string_view> words = words_of(text.substr(colon + 1));
        if (key.size() == 1 && key[0] == "kernel" && words.size() == 1) kernel = printable(words[0]);
        if (key.size() == 1 && key[0] == "device" && words.size() == 1) device = printable(words[0]);
        if (key.size() != 2 || key[0] != "values") return;
        const auto refuse_if_out_of_bounds = [&](std::size_t count) {
            if (count == 0 || count > values_at_most)
                refuse_line(
                    fmt::format("'{}' has {} values; 1 to {} are possible", shown(key[1]), count, values_at_most));
        };
        refuse_if_out_of_bounds(words.size());
        std::map<std::string, std::uint16_t, std::less<>>& values = values_[std::string{key[1]}];
        for (const std::string_view word : words)  // a value that is listed twice is one
            values.try_emplace(std::string{word}, static_cast<std::uint16_t>(values.size()));
        refuse_if_out_of_bounds(values.size());  // earlier lines may have begun the list
    }

    void read_header(std::string_view line) {
        columns_ = split_at(line, ',');
        std::size_t own = 0;
        while (own < columns_.size() && columns_[own] != "time_ms") ++own;
        static constexpr std::array<std::string_view, 4> last{"time_ms", "sd_ms", "cost_ms", "status"};
        if (columns_.size() != own + last.size() ||
            !std::equal(last.begin(), last.end(), columns_.begin() + static_cast<std::ptrdiff_t>(own)))
            refuse_line("the columns are not the parameters, then time_ms,sd_ms,cost_ms,status");
        if (own == 0 || own > parameters_at_most)
            refuse_line(fmt::format("there are {} parameters; 1 to {} are possible", own, parameters_at_most));
        for (std::size_t i = 0; i < own; ++i) add_parameter(std::string{columns_[i]});
    }

    void add_parameter(const std::string& name) {
        if (!is_identifier(name)) refuse_line(fmt::format("'{}' is no name of a parameter", shown(name)));
        if (std::ranges::find(parameters, name, &Parameter::name) != parameters.end())
            refuse_line(fmt::format("the parameter '{}' has two columns", name));
        const auto found = values_.find(name);
        if (found == values_.end())
            refuse_line(fmt::format("no '# values {}: ...' before it says which values there are", name));
        Parameter parameter{.name = name};
        parameter.values.resize(found->second.size());
        for (const auto& [text, index] : found->second) parameter.values[index] = value_from_text(text);
        parameter.fallback = Expression::constant(parameter.values.front());
        parameters.push_back(std::move(parameter));
        index_.push_back(&found->second);
    }

    void read_row(std::string_view line) {
        const std::vector<std::string_view> cells = split_at(line, ',');
        if (cells.size() != columns_.size())
            refuse_line(fmt::format("there are {} cells under {} columns", cells.size(), columns_.size()));
        if (rows.size() == configs_at_most) refuse(fmt::format("holds more than {} configs", configs_at_most));
        Row row;
        for (std::size_t i = 0; i < index_.size(); ++i) {
            const auto found = index_[i]->find(cells[i]);
            if (found == index_[i]->end())
                refuse_line(fmt::format("'{}' is no value of {}", shown(cells[i]), parameters[i].name));
            row.values.push_back(found->second);
        }
        const std::size_t time = index_.size();
        const std::optional<Ending> ending = ending_of(cells[time + 3]);
        if (!ending) refuse_line(fmt::format("'{}' is no status", shown(cells[time + 3])));
        row.ending = *ending;
        const std::optional<double> sd_ms = none_or_time(cells[time + 1], "sd_ms");
        if (row.ending == Ending::timed) {
            row.time_ms = positive(cells[time], "time_ms");
            row.sd_ms = sd_ms.value_or(0);
        }
        row.cost_ms = static_cast<float>(none_or_time(cells[time + 2], "cost_ms").value_or(-1));
        rows.push_back(std::move(row));
    }

    double positive(std::string_view text, std::string_view column) const {
        const std::optional<double> number = number_of(text);
        if (!number || !(*number > 0) || !std::isfinite(*number * us_per_ms))
            refuse_line(fmt::format("{} is '{}', which is no time above 0 that a double holds", column, shown(text)));
        return *number;
    }

    /// nullopt: the cell is empty.
    std::optional<double> none_or_time(std::string_view text, std::string_view column) const {
        if (text.empty()) return std::nullopt;
        const std::optional<double> number = number_of(text);
        if (!number || *number < 0)
            refuse_line(fmt::format("{} is '{}', which is neither empty nor a time", column, shown(text)));
        return number;
    }

    const std::string& name_;
    std::size_t line_ = 0;
    std::vector<std::string_view> columns_;
    std::map<std::string, std::map<std::string, std::uint16_t, std::less<>>> values_;
    std::vector<const std::map<std::string, std::uint16_t, std::less<>>*> index_;  ///< of the columns
};

/// An op of which nothing but its parameters matters.
std::unique_ptr<Op> op_of(const std::string& kernel, std::vector<Parameter> parameters) {
    auto op = std::make_unique<Op>();
    op->name = kernel;
    Variant variant{.name = "recorded", .source = "recorded.cu", .entry = "recorded"};
    variant.parameters = std::move(parameters);
    op->variants.push_back(std::move(variant));
    return op;
}

}  // namespace

RecordedSpace RecordedSpace::read(const std::filesystem::path& file) { return parse(text_of(file), file.string()); }

RecordedSpace RecordedSpace::parse(std::string_view text, const std::string& name) {
    RecordReader reader{text, name};
    RecordedSpace out;
    out.kernel_ = reader.kernel.empty() ? "unknown" : reader.kernel;
    out.device_ = reader.device.empty() ? "unknown" : reader.device;
    std::ranges::stable_sort(reader.rows, {}, &RecordReader::Row::values);
    if (const auto twice = std::ranges::adjacent_find(reader.rows, {}, &RecordReader::Row::values);
        twice != reader.rows.end()) {
        std::string config;
        for (std::size_t i = 0; i < reader.parameters.size(); ++i)
            config += fmt::format("{}{}={}", i ? " " : "", reader.parameters[i].name,
                                  to_text(reader.parameters[i].values[twice->values[i]]));
        throw bad_record(name, fmt::format("has two rows of the config '{}'", config));
    }
    out.op_ = op_of(out.kernel_, std::move(reader.parameters));
    out.instance_ = Instance::make(*out.op_, {}, DeviceLimits{});
    std::vector<std::uint16_t> flat;
    for (const RecordReader::Row& row : reader.rows) {
        flat.insert(flat.end(), row.values.begin(), row.values.end());
        out.rows_.push_back({.time_us = row.time_ms * us_per_ms,
                             .sd_us = row.sd_ms * us_per_ms,
                             .cost_ms = row.cost_ms,
                             .ending = row.ending});
        if (row.ending == Ending::timed) out.sorted_us_.push_back(row.time_ms * us_per_ms);
    }
    out.space_ = std::make_unique<Space>(Space::of_rows(*out.instance_, flat));
    std::ranges::sort(out.sorted_us_);
    return out;
}

Outcome RecordedSpace::outcome(std::size_t number) const {
    const Row& row = rows_[number];
    if (row.ending != Ending::timed) return {.ending = row.ending, .reason = "it failed when it was recorded"};
    return {.ending = Ending::timed, .samples_us = {row.time_us}, .time_us = row.time_us, .method = "recorded"};
}

std::optional<double> RecordedSpace::cost_ms(std::size_t number) const {
    return rows_[number].cost_ms < 0 ? std::nullopt : std::optional<double>{rows_[number].cost_ms};
}

}  // namespace autotune

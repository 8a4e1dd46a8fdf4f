#include "cache/sharing/read_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "autotune/error.h"
#include "cache/store/crc32.h"
#include "cache/store/json.h"
#include "tuner/model/hashing.h"
#include "tuner/model/printable.h"

namespace autotune {

namespace {

constexpr std::size_t longest_line = 1 << 16;
constexpr std::string_view line_format = "1";

/// The members of a line that are looked at, each as its text in the file. What a problem says beside its key is not.
enum Member : std::size_t {
    in_v,
    in_kind,
    in_device,
    in_template,
    in_key,
    in_env,
    in_run,
    in_config,
    in_rank,
    in_time,
    in_low,
    in_high,
    in_samples,
    in_evaluated,
    in_space,
    in_verified,
    in_error,
    in_tuned,
    in_model,
    in_crc,
    in_default,
    in_problem,
    members
};
constexpr std::array<std::string_view, members> member_names{
    "v",         "kind",     "device",        "template", "key",        "env",       "run",        "config",
    "rank",      "time_us",  "low_us",        "high_us",  "samples",    "evaluated", "space_size", "verified",
    "max_error", "tuned_at", "model_version", "crc",      "default_us", "problem"};
using Members = std::array<std::string_view, members>;

/// Finds where the members of an object begin and end, which costs a tenth of a parse: most of a line's members were
/// seen in an earlier one. What is inside them is parsed when it is new; what stands as in the line before is not even
/// looked through.
class LineScanner {
public:
    /// False: it is no object, or goes too deep. The line outlives the next scan.
    bool scan(std::string_view line, Members& found) {
        at_ = line.data();
        end_ = at_ + line.size();
        const bool whole = scan_members(found);
        before_ = whole ? found : Members{};
        return whole;
    }

private:
    bool scan_members(Members& found) {
        blanks();
        if (!take('{')) return false;
        blanks();
        if (take('}')) return at_end();
        for (std::size_t place = 0;; ++place) {
            std::string_view name, value;
            if (!text(name)) return false;
            const std::size_t member = member_named(name, place);
            blanks();
            if (!take(':')) return false;
            blanks();
            if (!(member < members && same_as_before(before_[member], value)) && !any(value)) return false;
            if (member < members) {
                if (!found[member].empty()) return false;  // of two, which counts?
                found[member] = value;
            }
            blanks();
            if (take('}')) return at_end();
            if (!take(',')) return false;
            blanks();
        }
    }

    /// Lines mostly have the same members at the same places; `members`: it is none.
    std::size_t member_named(std::string_view name, std::size_t place) {
        if (place < order_.size() && order_[place] < members && member_names[order_[place]] == name)
            return order_[place];
        const auto found = std::ranges::find(member_names, name);
        const auto member = static_cast<std::size_t>(found - member_names.begin());
        if (place < order_.size()) order_[place] = member;
        return member;
    }
    /// An object, a list or a text ends where it ended in the line before, if all its bytes are the same.
    bool same_as_before(std::string_view before, std::string_view& value) {
        if (before.empty() || (before.front() != '{' && before.front() != '[' && before.front() != '"')) return false;
        if (!std::string_view{at_, static_cast<std::size_t>(end_ - at_)}.starts_with(before)) return false;
        value = {at_, before.size()};
        at_ += before.size();
        return true;
    }
    bool at_end() {
        blanks();
        return at_ == end_;
    }
    void blanks() {
        while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r')) ++at_;
    }
    bool take(char c) {
        if (at_ == end_ || *at_ != c) return false;
        ++at_;
        return true;
    }
    /// A text without its quotes.
    bool text(std::string_view& out) {
        const char* const begin = at_;
        if (!skip_text()) return false;
        out = {begin + 1, static_cast<std::size_t>(at_ - begin) - 2};
        return true;
    }
    bool skip_text() {
        if (!take('"')) return false;
        for (; at_ != end_; ++at_) {
            if (*at_ == '"') {
                ++at_;
                return true;
            }
            if (*at_ == '\\' && ++at_ == end_) return false;
        }
        return false;
    }
    bool any(std::string_view& out) {
        const char* const begin = at_;
        if (at_ != end_ && *at_ == '"') {
            if (!skip_text()) return false;
        } else if (at_ != end_ && (*at_ == '{' || *at_ == '[')) {
            if (!skip_nested()) return false;
        } else {
            while (at_ != end_ && *at_ != ',' && *at_ != '}' && *at_ != ' ') ++at_;
        }
        out = {begin, static_cast<std::size_t>(at_ - begin)};
        return !out.empty();
    }
    bool skip_nested() {
        for (int depth = 0; at_ != end_;) {
            switch (*at_) {
                case '"':
                    if (!skip_text()) return false;
                    continue;
                case '{':
                case '[':
                    if (++depth > deepest_nesting) return false;
                    break;
                case '}':
                case ']':
                    if (--depth == 0) {
                        ++at_;
                        return true;
                    }
                    break;
                default:
                    break;
            }
            ++at_;
        }
        return false;
    }

    const char *at_ = nullptr, *end_ = nullptr;
    Members before_{};
    std::array<std::size_t, members> order_ = [] {
        std::array<std::size_t, members> unknown{};
        unknown.fill(members);
        return unknown;
    }();
};

template <class T>
bool number_of(std::string_view text, T& number) {
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && rest == text.data() + text.size();
}

/// As the database keeps it; -1, which is refused, for what is no time.
std::int64_t nanoseconds_of(std::string_view text) {
    constexpr double longest_us = 1e15;
    double us = 0;
    return number_of(text, us) && us >= 0 && us < longest_us ? nanoseconds(us) : -1;
}

/// A text's contents, where it holds no escape; none of ours does.
std::string_view unquoted(std::string_view text) {
    const bool quotes = text.size() >= 2 && text.front() == '"' && text.back() == '"';
    if (!quotes || text.find('\\') != std::string_view::npos) return {};
    return text.substr(1, text.size() - 2);
}

/// False: the text is none.
bool read_hex(std::string_view text, std::vector<std::byte>& bytes) {
    static constexpr std::array<std::int8_t, 256> values = [] {
        std::array<std::int8_t, 256> made{};
        made.fill(-1);
        for (int i = 0; i < 10; ++i) made[static_cast<std::size_t>('0' + i)] = static_cast<std::int8_t>(i);
        for (int i = 0; i < 6; ++i) made[static_cast<std::size_t>('a' + i)] = static_cast<std::int8_t>(10 + i);
        return made;
    }();
    if (text.size() % 2) return false;
    bytes.resize(text.size() / 2);
    int faults = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const int high = values[static_cast<unsigned char>(text[2 * i])],
                  low = values[static_cast<unsigned char>(text[2 * i + 1])];
        faults |= high | low;
        bytes[i] = static_cast<std::byte>((high & 15) << 4 | (low & 15));
    }
    return faults >= 0;
}

/// Whole numbers stand where ours have them: a real one would not fit into them.
void require_whole_numbers(const nlohmann::json& object) {
    for (const auto& [name, value] : object.items())
        if (value.is_number_float() && name != "power_w" && name != "temp_max")
            throw Error{Error::Kind::usage, fmt::format("its {} is no whole number", printable(name.substr(0, 64)))};
}

struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
};

/// The parts of lines by their text, each read and judged once.
class LineParts {
public:
    explicit LineParts(const Judge& judge) : judge_{judge} {}

    Part<DeviceIdentity>* device(std::string_view text) {
        return part(devices_, text, [&](Part<DeviceIdentity>& part, const nlohmann::json& json) {
            require_whole_numbers(json);
            part.value = device_from_json(json);
            part.hash = part.value.fp;
            part.crc = crc32(part.hash);
            return judge_.objection(part.value);
        });
    }
    Part<Environment>* environment(std::string_view text) {
        return part(environments_, text, [&](Part<Environment>& part, const nlohmann::json& json) {
            require_whole_numbers(json);
            part.value = environment_from_json(json);
            part.hash = part.value.hash();
            return judge_.objection(part.value);
        });
    }
    Part<TemplateIdentity>* source(std::string_view text) {
        return part(sources_, text, [&](Part<TemplateIdentity>& part, const nlohmann::json& json) {
            require_whole_numbers(json);
            part.value = template_from_json(json);
            part.hash = part.value.hash();
            part.crc = crc32(part.hash);
            return judge_.objection(part.value, part.hash);
        });
    }
    Part<Config>* config(const TemplateIdentity& source, std::string_view text) {
        return part(
            configs_, with_op(source, source.variant, text),
            [&](Part<Config>& part, const nlohmann::json&) {
                part.value = config_from_json(source.variant, nlohmann::json::parse(text));
                part.hash = part.value.hash();
                part.crc = crc32(part.value.variant + ' ' + part.hash);
                return judge_.objection(source.op, part.value, part.hash);
            },
            text);
    }
    /// The problem of the row, which has its template; text: the key in hex, quoted.
    void problem(std::string_view text, IncomingRow& row) {
        const std::string& op = row.source->value.op;
        const std::string_view digits = unquoted(text);
        if (digits.empty() || !read_hex(digits, key_)) {
            row.form = &no_form_;
            try {
                from_hex(digits);
            } catch (const Error& error) {
                row.problem_refused = error.what();
            }
            return;
        }
        row.problem_crc = crc32(std::span<const std::byte>{key_});
        if (!last_form_ || last_form_->value.op != op || !last_form_->value.form.take_numbers(key_, row.numbers)) {
            KeyForm::split(key_, layout_, row.numbers);
            const auto [at, is_new] = forms_.try_emplace({op, layout_});
            if (is_new) at->second.refused = judge_.read_form(op, layout_, at->second.value);
            last_form_ = &at->second;
        }
        row.form = last_form_;
        if (row.form->refused.empty()) row.problem_refused = Judge::objection(row.form->value, row.numbers);
    }
    RunPart* run(std::string_view text, Part<DeviceIdentity>* device, Part<Environment>* environment) {
        RunPart* run = part(runs_, text, [&](RunPart& part, const nlohmann::json& json) {
            part.device = device;
            part.environment = environment;
            require_whole_numbers(json);
            part.value = run_from_json(json);
            part.hash = part.value.uuid;
            part.crc = crc32(part.hash);
            return judge_.objection(part.value);
        });
        const bool read = run->environment != nullptr;  // else it is no run, and `refused` says why
        if (read && run->environment->hash == environment->hash) return run;
        return &mismatch(device, environment, read ? "its run had another environment" : run->refused);
    }

private:
    template <class T>
    struct Table {
        std::unordered_map<std::string, T, TextHash, std::equal_to<>> parts{};
        std::pair<const std::string, T>* last = nullptr;  ///< mostly the next one's too
    };

    template <class T, class Read>
    T* part(Table<T>& table, std::string_view name, const Read& read) {
        return part(table, name, read, name);
    }
    template <class T, class Read>
    T* part(Table<T>& table, std::string_view name, const Read& read, std::string_view text) {
        if (table.last && table.last->first == name) return &table.last->second;
        auto at = table.parts.find(name);
        const bool known = at != table.parts.end();
        if (!known) at = table.parts.try_emplace(std::string{name}).first;
        table.last = &*at;
        T* const made = &at->second;
        if (known) return made;
        try {
            made->refused = read(*made, parse_json(text));
        } catch (const nlohmann::json::exception&) {
            made->refused = "one of its parts is no JSON of ours";
        } catch (const Error& error) {
            made->refused = error.what();
        }
        return made;
    }

    std::string_view with_op(const TemplateIdentity& source, std::string_view variant, std::string_view text) {
        name_.assign(source.op).append(1, '\0').append(variant).append(1, '\0').append(text);
        return name_;
    }

    RunPart& mismatch(Part<DeviceIdentity>* device, Part<Environment>* environment, const std::string& why) {
        mismatch_.refused = why;
        mismatch_.device = device;
        mismatch_.environment = environment;
        return mismatch_;
    }

    const Judge& judge_;
    Table<Part<DeviceIdentity>> devices_;
    Table<Part<Environment>> environments_;
    Table<Part<TemplateIdentity>> sources_;
    Table<Part<Config>> configs_;
    std::map<std::pair<std::string, std::string>, Part<JudgedForm>> forms_;  ///< by op and layout
    Part<JudgedForm>* last_form_ = nullptr;                                  ///< mostly the next one's too
    Part<JudgedForm> no_form_{.refused = "the key of its problem does not decode"};
    std::vector<std::byte> key_;
    std::string layout_;
    Table<RunPart> runs_;
    RunPart mismatch_{};
    std::string name_;
};

/// Fills the row in; false: a figure is none.
bool read_figures(const Members& m, IncomingRow& row) {
    RowFigures& f = row.figures;
    f.time_ns = nanoseconds_of(m[in_time]);
    f.low_ns = nanoseconds_of(m[in_low]);
    f.high_ns = nanoseconds_of(m[in_high]);
    f.default_ns = m[in_default].empty() ? -1 : std::max<std::int64_t>(nanoseconds_of(m[in_default]), 0);
    const auto verified = verified_named(unquoted(m[in_verified]));
    if (!verified) return false;
    f.verified = static_cast<int>(*verified);
    f.nvrtc_major = row.run->environment->value.nvrtc_major;
    f.nvrtc_minor = row.run->environment->value.nvrtc_minor;
    f.effort = static_cast<int>(row.run->value.effort);
    row.predicted = unquoted(m[in_kind]) == "predicted";
    row.model_version = unquoted(m[in_model]);
    std::uint32_t crc = 0;
    const bool numbers = number_of(m[in_rank], f.rank) && number_of(m[in_samples], f.samples) &&
                         number_of(m[in_evaluated], f.evaluated) && number_of(m[in_space], f.space_size) &&
                         number_of(m[in_error], f.max_error) && number_of(m[in_tuned], f.tuned_at) &&
                         number_of(m[in_crc], crc);
    row.crc = crc;
    constexpr std::size_t longest_model = 64;
    return numbers && row.model_version.size() <= longest_model && !steers_a_terminal(row.model_version) &&
           (row.predicted || unquoted(m[in_kind]) == "record");
}

}  // namespace

ForeignLines ForeignLines::of(std::vector<std::byte> bytes, const std::string& name) {
    ForeignLines lines;
    lines.bytes_ = std::move(bytes);
    const std::string_view text{reinterpret_cast<const char*>(lines.bytes_.data()), lines.bytes_.size()};
    Members members{};
    const std::string_view first = text.substr(0, std::min(text.find('\n'), text.size()));
    if (first.size() > longest_line || !LineScanner{}.scan(first, members) || members[in_v].empty() ||
        members[in_kind].empty())
        throw Error{Error::Kind::usage, fmt::format("'{}' is not taken in: its first line is no record", name),
                    "autotune db export --as lines writes such files"};
    if (members[in_v] != line_format)
        throw Error{Error::Kind::usage,
                    fmt::format("'{}' is not taken in: its lines have format {}, this program reads {}", name,
                                printable(members[in_v].substr(0, 16)), line_format),
                    "update autotune, or ask for an export of an older one"};
    lines.sha256_ = sha256_hex(lines.bytes_);
    return lines;
}

void ForeignLines::read(const Judge& judge, const RowSink& sink,
                        const std::function<void(std::size_t number, const std::string& reason)>& refuse,
                        const std::function<void()>& all_read) const {
    LineParts parts{judge};
    LineScanner scanner;
    std::size_t number = 0;
    for (std::string_view rest{reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; !rest.empty();) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        const std::string_view line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        ++number;
        if (line.empty()) continue;
        if (line.size() > longest_line) {
            refuse(number, fmt::format("the line has {} bytes, and {} are allowed", line.size(), longest_line));
            continue;
        }
        Members m{};
        if (!scanner.scan(line, m)) {
            refuse(number, "the line is no record");
            continue;
        }
        if (m[in_v] != line_format) {
            refuse(number, fmt::format("the line has format {}", printable(m[in_v].substr(0, 16))));
            continue;
        }
        const bool whole = std::none_of(m.begin(), m.begin() + in_default, [](auto member) { return member.empty(); });
        if (!whole) {
            refuse(number, "the line lacks a part of a record");
            continue;
        }
        IncomingRow row{.number = number, .device = parts.device(m[in_device]), .source = parts.source(m[in_template])};
        parts.problem(m[in_key], row);
        row.config = parts.config(row.source->value, m[in_config]);
        row.run = parts.run(m[in_run], row.device, parts.environment(m[in_env]));
        row.figures.readable = read_figures(m, row);  // refused for it, where its parts are sound
        sink(row);
    }
    all_read();
}

}  // namespace autotune

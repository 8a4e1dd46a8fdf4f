#include "cache/store/miss_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "autotune/error.h"
#include "cache/store/file.h"
#include "cache/store/json.h"
#include "cache/store/location.h"
#include "cache/store/writer_lock.h"

namespace autotune {

namespace fs = std::filesystem;

namespace {

using nlohmann::json;

constexpr std::size_t most_names = 256;

json named_values(const std::vector<std::pair<std::string, Value>>& values) {
    json out = json::array();
    for (const auto& [name, value] : values) out.push_back({name, autotune::to_json(value)});
    return out;
}

template <class Number>
json named_numbers(const std::vector<std::pair<std::string, Number>>& numbers) {
    json out = json::array();
    for (const auto& [name, number] : numbers) out.push_back({name, number});
    return out;
}

const json& few(const json& in) {
    if (!in.is_array() || in.size() > most_names) throw Error{Error::Kind::usage, "a miss has too many names"};
    return in;
}

template <class Number>
std::vector<std::pair<std::string, Number>> numbers_from(const json& in) {
    std::vector<std::pair<std::string, Number>> out;
    for (const json& pair : few(in))
        out.emplace_back(pair.at(0).get<std::string>(), Number{whole(pair.at(1), "number")});
    return out;
}

std::string line_of_miss(const StoredMiss& miss) {
    const json out{{"v", 1},
                   {"op", miss.op},
                   {"fields", named_values(miss.fields)},
                   {"strides", named_numbers(miss.strides)},
                   {"align", named_numbers(miss.align)},
                   {"device", miss.device_fp},
                   {"device_name", miss.device},
                   {"processes", miss.processes},
                   {"last", miss.last}};
    return out.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
}

StoredMiss miss_from_line(std::string_view line) {
    const json in = json::parse(line);
    if (in.at("v").get<std::int64_t>() != 1) throw Error{Error::Kind::usage, "the miss is of a newer program"};
    StoredMiss miss{.op = in.at("op"),
                    .strides = numbers_from<std::int64_t>(in.at("strides")),
                    .align = numbers_from<int>(in.at("align")),
                    .device_fp = in.at("device"),
                    .device = in.at("device_name"),
                    .processes = whole(in.at("processes"), "processes"),
                    .last = whole(in.at("last"), "last")};
    if (miss.processes < 0 || miss.last < 0) throw Error{Error::Kind::usage, "the miss has a number below zero"};
    for (const json& pair : few(in.at("fields")))
        miss.fields.emplace_back(pair.at(0).get<std::string>(), autotune::value_from_json(pair.at(1)));
    return miss;
}

MissList::Contents read_misses(const fs::path& path) {
    std::error_code error;
    const auto bytes_there = fs::file_size(path, error);
    if (error) return {};
    if (bytes_there > MissList::most_bytes) return {.misses = {}, .left_out = 1};
    const auto bytes = read_file_whole(path);
    if (!bytes) return {};
    MissList::Contents out;
    std::string_view rest{reinterpret_cast<const char*>(bytes->data()), bytes->size()};
    while (!rest.empty() && out.misses.size() < MissList::most) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        const std::string_view line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        if (line.empty()) continue;
        try {
            if (line.size() > MissList::most_line_bytes) throw Error{Error::Kind::usage, "a miss is too long"};
            out.misses.push_back(miss_from_line(line));
        } catch (const Error&) {
            ++out.left_out;
        } catch (const json::exception&) {
            ++out.left_out;
        }
    }
    return out;
}

}  // namespace

std::string StoredMiss::name() const {
    return json{op, named_values(fields), named_numbers(strides), named_numbers(align), device_fp}.dump(
        -1, ' ', false, json::error_handler_t::replace);
}

StoredMiss miss_of(const Instance& instance, std::string device_fp, std::string device_name) {
    StoredMiss miss{.op = instance.op().name,
                    .fields = instance.problem().fields,
                    .strides = instance.binding().strides,
                    .device_fp = std::move(device_fp),
                    .device = std::move(device_name)};
    for (const auto& [tensor, bytes] : instance.binding().align)
        if (bytes < 16) miss.align.emplace_back(tensor, bytes);
    return miss;
}

MissList::MissList(const fs::path& named) {
    const fs::path database = behind_links(named);
    path_ = database.filename() == "tune.db" ? database.parent_path() / "misses.jsonl"
                                             : fs::path{database}.replace_extension(".misses.jsonl");
}

MissList::Contents MissList::contents() const {
    Contents out = read_misses(path_);
    std::ranges::stable_sort(out.misses, std::ranges::greater{}, &StoredMiss::processes);
    return out;
}

bool MissList::change(const std::function<bool(std::vector<StoredMiss>&)>& change, std::chrono::milliseconds patience) {
    if (!path_.parent_path().empty() && !make_private_folder(path_.parent_path())) return false;
    WriterLock lock{path_};
    const WriterTurn turn{lock, patience};
    if (!turn.held()) return false;
    std::vector<StoredMiss> misses = read_misses(path_).misses;
    if (!change(misses)) return true;
    if (misses.size() > most) {
        std::ranges::stable_sort(misses, std::ranges::greater{}, &StoredMiss::last);
        misses.resize(most);
    }
    std::string text;
    for (const StoredMiss& miss : misses) {
        const std::string line = line_of_miss(miss);
        if (line.size() <= most_line_bytes && text.size() + line.size() <= most_bytes) text += line;
    }
    return write_file_whole(path_, std::as_bytes(std::span{text}));
}

bool MissList::add(std::span<const StoredMiss> added, std::chrono::milliseconds patience) {
    if (added.empty()) return true;
    return change(
        [&](std::vector<StoredMiss>& misses) {
            std::map<std::string, std::size_t> places;
            for (std::size_t i = 0; i < misses.size(); ++i) places.emplace(misses[i].name(), i);
            for (const StoredMiss& miss : added) {
                const auto [at, is_new] = places.emplace(miss.name(), misses.size());
                if (is_new) {
                    misses.push_back(miss);
                    continue;
                }
                StoredMiss& known = misses[at->second];
                if (known.processes < std::int64_t{1} << 40) known.processes += miss.processes;
                known.last = std::max(known.last, miss.last);
            }
            return true;
        },
        patience);
}

bool MissList::drop(const std::function<bool(const StoredMiss&)>& done, std::chrono::milliseconds patience) {
    std::error_code error;
    if (!fs::exists(path_, error)) return true;
    return change([&](std::vector<StoredMiss>& misses) { return std::erase_if(misses, done) > 0; }, patience);
}

}  // namespace autotune

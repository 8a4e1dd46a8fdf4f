#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "autotune/error.h"
#include "cache/sharing/anonymise.h"
#include "cache/sharing/exports.h"
#include "tuner/model/cpp_word.h"

namespace autotune {

namespace {

/// A C++ string literal of any bytes. Octal, since a hexadecimal escape has no end; and no question mark, which could
/// begin a trigraph.
std::string literal(std::string_view bytes) {
    std::string text = "\"";
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        if (std::isalnum(byte) || (c != '\0' && std::string_view{" _-+.=,:/"}.find(c) != std::string_view::npos))
            text += c;
        else
            text += fmt::format("\\{:03o}", byte);
    }
    return text + '"';
}

bool is_cpp_name(std::string_view name) {
    return !name.empty() && !is_cpp_word(name) && !std::isdigit(static_cast<unsigned char>(name.front())) &&
           std::ranges::all_of(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
}

std::string values_of(const Config& config) {
    std::string text;
    for (const auto& [name, value] : config.values) text += (text.empty() ? "" : " ") + name + '=' + to_text(value);
    return text;
}

std::string gpu_of(const DeviceIdentity& device) {
    const DeviceLimits& limits = device.limits;
    return fmt::format(
        "{{\n    .fp = {},\n    .name = {},\n    .cc = {},\n    .sm_count = {},\n    .bandwidth_gbs = {},\n"
        "    .max_threads = {},\n    .max_shared = {},\n    .shared_per_sm = {},\n    .registers_per_sm = {},\n"
        "    .threads_per_sm = {}}}",
        literal(device.fp), literal(device.name), limits.cc, limits.sm_count, device.bandwidth_gbs, limits.max_threads,
        limits.max_shared, limits.shared_per_sm, limits.registers_per_sm, limits.threads_per_sm);
}

/// gpu: the name of the record's GPU in the file.
std::string row_of(const Record& r, std::string_view gpu) {
    const std::string_view key{reinterpret_cast<const char*>(r.problem.key.data()), r.problem.key.size()};
    return fmt::format(
        "    {{.op = {},\n     .variant = {},\n     .config = {},\n     .problem_key = {{{}, {}}},\n     .device = "
        "{},\n"
        "     .source_hash = {},\n     .space_hash = {},\n     .abi = {},\n     .nvrtc_major = {},\n     .nvrtc_minor "
        "= "
        "{},\n     .time_ns = {},\n     .default_ns = {},\n     .tuned_at = {},\n     .effort = {},\n     .verified = "
        "{}}},\n",
        literal(r.source.op), literal(r.source.variant), literal(values_of(r.config)), literal(key), key.size(), gpu,
        literal(r.source.source_hash), literal(r.source.space_hash), r.source.abi, r.environment.nvrtc_major,
        r.environment.nvrtc_minor, nanoseconds(r.time_us), r.default_us ? nanoseconds(*r.default_us) : 0, r.tuned_at,
        static_cast<int>(r.run.effort), static_cast<int>(r.verified));
}

}  // namespace

std::string export_cpp(const Store& store, const ExportOptions& options, const std::string& name) {
    if (!is_cpp_name(name))
        throw Error{Error::Kind::usage, fmt::format("'{}' is no name of a table in C++", name), "--name my_records"};
    std::string rows, gpus;
    std::map<std::string, std::string> names;  // of the GPUs in the file
    for_each_record(store, options.filter, options.today, [&](const Record& stored) {
        if (stored.predicted) return;
        Record record = stored;
        if (options.anonymise) anonymise(record);
        const auto [at, is_new] = names.try_emplace(record.device.fp, fmt::format("{}_gpu_{}", name, names.size() + 1));
        if (is_new)
            gpus += fmt::format("inline constexpr autotune::EmbeddedDevice {}{};\n", at->second, gpu_of(record.device));
        rows += row_of(record, at->second);
    });
    if (rows.empty())
        throw Error{Error::Kind::nothing_found, "no record matches, and a table in C++ has at least one",
                    "autotune query"};
    std::string text =
        "// Made by autotune db export --as cpp: hand the table to Dispatcher::Options::embedded_records.\n#pragma "
        "once\n\n"
        "#include <autotune/embedded_records.h>\n\n";
    return text + gpus + fmt::format("\ninline constexpr autotune::EmbeddedRecord {}[] = {{\n{}}};\n", name, rows);
}

}  // namespace autotune

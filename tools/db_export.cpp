#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "autotune/error.h"
#include "cache/sharing/exports.h"
#include "cache/store/location.h"
#include "tools/db.h"
#include "tools/format.h"
#include "tools/json_events.h"
#include "tools/named_file.h"
#include "tools/record_filter_flags.h"
#include "tools/session.h"
#include "tools/subcommands.h"

namespace autotune {
namespace {

struct ExportFlags {
    RecordFilterFlags filter;
    std::string as, output, name = "tuned_records";
    bool anonymise = false, csv = false;
    std::string flat;
};

constexpr std::array<std::string_view, 5> export_forms{"db", "lines", "cpp", "csv", "flat"};

/// What was asked for, else what the file's name says, else lines.
std::string form_of(const ExportFlags& flags) {
    if (!flags.flat.empty()) return "flat";
    if (flags.csv) return "csv";
    if (!flags.as.empty()) {
        if (std::ranges::find(export_forms, flags.as) == export_forms.end())
            throw usage(fmt::format("--as is {}, not '{}'", fmt::join(export_forms, ", "), flags.as));
        return flags.as;
    }
    const std::string extension = std::filesystem::path{flags.output}.extension().string();
    if (extension == ".db") return "db";
    if (extension == ".h" || extension == ".hpp") return "cpp";
    return extension == ".csv" ? "csv" : "lines";
}

ExportOptions export_options(const ExportFlags& flags, const Request& request, const Session& session) {
    return {.filter = record_filter(flags.filter, request, session),
            .anonymise = flags.anonymise,
            .today = session.today(session.ops().all())};
}

void write_export(const ExportFlags& flags, const Store& store, Console& console, std::string_view text) {
    if (flags.output.empty()) return console.raw(text);
    write_named_file(flags.output, text, store.path());
}

/// What was written before stays as it is where nothing would take its place.
[[noreturn]] void refuse_nothing(const std::string& to) {
    throw Error{Error::Kind::nothing_found,
                to.empty() ? "no record matches" : fmt::format("no record matches, and '{}' is left alone", shown(to)),
                "autotune query shows what is stored"};
}

std::size_t run_export_form(const std::string& form, const ExportFlags& flags, const Store& store,
                            const ExportOptions& options, Console& console) {
    if (form == "db" || form == "flat") {
        const std::string& to = form == "flat" && !flags.flat.empty() ? flags.flat : flags.output;
        if (to.empty()) throw usage("a database is no text for a terminal", "add -o records.db");
        refuse_as_output(to, store.path());
        if (export_lines(store, options, [](const std::string&) {}) == 0) refuse_nothing(to);
        return form == "db" ? export_database(store, options, to) : export_flat(store, options, to);
    }
    std::string text;
    if (form == "cpp") {
        text = export_cpp(store, options, flags.name);
        write_export(flags, store, console, text);
        return export_lines(store, options, [](const std::string&) {});
    }
    const auto add = [&](const std::string& line) {
        text += line;
        text += '\n';
    };
    const std::size_t count = form == "csv" ? export_csv(store, options, add) : export_lines(store, options, add);
    if (count == 0) refuse_nothing(flags.output);
    write_export(flags, store, console, text);
    return count;
}

int run_db_export(const ExportFlags& flags, const Request& request, Console& console) {
    const std::string form = form_of(flags);
    if (console.json() && flags.output.empty() && flags.flat.empty())
        throw usage("--json and an export to stdout are two answers", "add -o FILE");
    const Session session{request, console};
    const Store store = session.open_present_store(Store::Mode::read);
    const ExportOptions options = export_options(flags, request, session);
    const std::size_t count = run_export_form(form, flags, store, options, console);
    const std::string to = flags.flat.empty() ? flags.output : flags.flat;
    console.line(fmt::format("{} exported{}", format_count(count, "record", "records"),
                             to.empty() ? "" : fmt::format(" to {}", shown(to))));
    console.json_line(json_event("db_export", {{"form", form}, {"records", count}, {"path", to}}));
    return 0;
}

DbRun declare_db_export(CLI::App& app) {
    auto flags = std::make_shared<ExportFlags>();
    add_record_filter(app, flags->filter);
    app.add_option("--as", flags->as, "db, lines, cpp, csv or flat; default: by the ending of -o, else lines");
    app.add_flag("--csv", flags->csv, "comma-separated values");
    app.add_option("--flat", flags->flat, "a file with plain tables for viewers, which no import takes");
    app.add_option("--name", flags->name, "of the table in a C++ header");
    app.add_flag("--anonymise", flags->anonymise, "without the names and addresses of GPUs and hosts");
    app.add_option("-o,--output", flags->output, "the file to write; default: stdout");
    return [flags](const Request& request, Console& console) { return run_db_export(*flags, request, console); };
}

}  // namespace

DbVerb db_export() {
    return {.name = "export",
            .about = "records for others: a database, JSON lines, a C++ header, tables",
            .example = "autotune db export softmax --gpu sm_90 -o softmax.jsonl",
            .flags = takes_op | takes_store,
            .declare = declare_db_export};
}

}  // namespace autotune

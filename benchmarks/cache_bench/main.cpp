// What the cache, the dispatcher and sharing cost beside what they may: a row a figure, the table last. The driver is a
// table whose launches return at once.
//
//     cache_bench [--only lookup,open] [--full] [--json] [--list]
#include <fmt/core.h>
#include <sqlite3.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "benchmarks/cache_bench/figure.h"

namespace autotune::cache_bench {
namespace {

struct Row {
    Figure figure;
    Measured measured;
};

std::vector<Figure> all_figures() {
    std::vector<Figure> all;
    for (const auto& figures :
         {snapshot_figures(), dispatch_figures(), sharing_figures(), store_figures(), process_figures()})
        all.insert(all.end(), figures.begin(), figures.end());
    return all;
}

/// Those whose names begin with a word of --only, else all; those that take long with --full, or where they are named
/// whole.
std::vector<Figure> chosen(std::vector<Figure> all, const std::vector<std::string>& only, bool full) {
    for (const std::string& word : only)
        if (std::ranges::none_of(all, [&](const Figure& figure) { return figure.name.starts_with(word); }))
            throw CLI::ValidationError("--only", fmt::format("no figure is called '{}': see --list", word));
    std::erase_if(all, [&](const Figure& figure) {
        const bool asked = only.empty() || std::ranges::any_of(only, [&](const std::string& word) {
                               return figure.name.starts_with(word);
                           });
        const bool named = std::ranges::find(only, figure.name) != only.end();
        return !asked || (figure.full && !full && !named);
    });
    return all;
}

std::string cpu_name() {
    std::string line;
    for (std::ifstream in{"/proc/cpuinfo"}; std::getline(in, line);)
        if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
    return "unknown CPU";
}

double load() {
    double load = 0;
    ::getloadavg(&load, 1);
    return load;
}

std::string verdict(const Row& row) {
    if (!row.measured.median) return "not measured";
    if (!row.figure.target) return "told";
    const bool met = row.figure.better == Figure::Better::lower ? *row.measured.median <= *row.figure.target
                                                                : *row.measured.median >= *row.figure.target;
    return met ? "met" : "MISSED";
}

std::string number(const std::optional<double>& value) {
    if (!value) return "-";
    return *value >= 1000 ? fmt::format("{:.0f}", *value) : fmt::format("{:.3g}", *value);
}

void print_json(const Row& row) {
    nlohmann::json line{{"figure", row.figure.name},     {"what", row.figure.what},     {"unit", row.figure.unit},
                        {"verdict", verdict(row)},       {"state", row.measured.state}, {"load", load()},
                        {"sqlite", sqlite3_libversion()}};
    if (row.figure.target) line["target"] = *row.figure.target;
    if (row.measured.median) line["median"] = *row.measured.median;
    if (row.measured.best) line["best"] = *row.measured.best;
    if (row.measured.cpu) line["cpu"] = *row.measured.cpu;
    fmt::print("{}\n", line.dump());
    std::fflush(stdout);
}

void print_table(const std::vector<Row>& rows, double load_before) {
    const double most_load = std::max(load_before, load());
    fmt::print("{}, {} cores, load {:.1f} before and {:.1f} after; SQLite {}\n", cpu_name(),
               std::thread::hardware_concurrency(), load_before, load(), sqlite3_libversion());
    if (most_load > std::thread::hardware_concurrency())
        fmt::print(
            "the machine is busy with more than this: times wait for others, and cpu tells what the work costs\n");
    fmt::print("\n");
    fmt::print("{:<19} {:<44} {:>11} {:>9} {:>9} {:>9} {:<6} {:<12} {}\n", "name", "figure", "target", "median", "best",
               "cpu", "unit", "", "state");
    for (const Row& row : rows) {
        const std::string bound = row.figure.better == Figure::Better::lower ? "<=" : ">=";
        const std::string target = row.figure.target ? fmt::format("{} {}", bound, number(row.figure.target)) : "";
        fmt::print("{:<19} {:<44} {:>11} {:>9} {:>9} {:>9} {:<6} {:<12} {}\n", row.figure.name, row.figure.what, target,
                   number(row.measured.median), number(row.measured.best), number(row.measured.cpu), row.figure.unit,
                   verdict(row), row.measured.state);
    }
    const auto with = [&](std::string_view word) {
        return std::ranges::count_if(rows, [&](const Row& row) { return verdict(row) == word; });
    };
    const auto missed = with("MISSED");
    fmt::print("\n{}\n", missed == 0 ? "every target that was measured is met"
                                     : fmt::format("{} of {} targets missed", missed, missed + with("met")));
}

int run(int count, char** arguments) {
    CLI::App app{"What the cache, the dispatcher and sharing cost beside what they may."};
    std::vector<std::string> only;
    std::string tune_file;
    bool full = false, as_json = false, list = false;
    app.add_option("--only", only, "figures whose names begin so")->delimiter(',');
    app.add_flag("--full", full, "also those that take minutes or 2 GiB");
    app.add_flag("--json", as_json, "a line of JSON a figure, in place of the table");
    app.add_flag("--list", list, "name the figures and measure none");
    app.add_option("--tune-into", tune_file)->group("");  // what this program runs itself with
    try {
        app.parse(count, arguments);
        if (!tune_file.empty()) return tune_into(tune_file);
        const std::vector<Figure> figures = chosen(all_figures(), only, full || list);
        const double load_before = load();
        std::vector<Row> rows;
        for (const Figure& figure : figures) {
            if (list) {
                fmt::print("{:<19} {}{}\n", figure.name, figure.what, figure.full ? " (--full)" : "");
                continue;
            }
            fmt::print(stderr, "measuring {}\n", figure.name);
            rows.push_back({figure, figure.measure()});
            if (as_json) print_json(rows.back());
        }
        if (!list && !as_json) print_table(rows, load_before);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 1;
    }
    return 0;
}

}  // namespace
}  // namespace autotune::cache_bench

int main(int count, char** arguments) {
    try {
        return autotune::cache_bench::run(count, arguments);
    } catch (const std::exception& error) {
        fmt::print(stderr, "error: {}\n", error.what());
        return 70;
    }
}

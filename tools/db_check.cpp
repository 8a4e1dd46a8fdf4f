#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cache/store/location.h"
#include "cache/store/upkeep.h"
#include "tools/db.h"
#include "tools/format.h"
#include "tools/json_events.h"
#include "tools/subcommands.h"
#include "tuner/model/printable.h"

namespace autotune {
namespace {

constexpr std::size_t most_faults_told = 20;

int run_db_check(const std::string& file, const Request& request, Console& console) {
    const std::string& named = file.empty() ? request.db : file;
    const std::filesystem::path path = named.empty() ? Store::default_path() : std::filesystem::path{named};
    if (path.empty() || path == "none") throw usage("there is no file to check", "name one: autotune db check FILE");
    const std::vector<std::string> faults = faults_of(path);
    const std::string name = shown(path);
    for (std::size_t i = 0; i < faults.size() && i < most_faults_told; ++i) console.result(faults[i]);
    if (faults.size() > most_faults_told)
        console.result(fmt::format("and {}", format_count(faults.size() - most_faults_told, "more", "more")));
    console.json_line(json_event("db_check", {{"path", path.string()}, {"faults", faults}}));
    if (faults.empty()) {
        console.result(fmt::format("'{}' is sound", name));
        return 0;
    }
    console.error(fmt::format("'{}' has {}", name, format_count(faults.size(), "fault", "faults")),
                  fmt::format("autotune db salvage {} NEW.db copies what is sound", shell_word(path.string())));
    return exit_code(Error::Kind::check);
}

DbRun declare_db_check(CLI::App& app) {
    auto file = std::make_shared<std::string>();
    app.add_option("file", *file, "a database; default: that of --db");
    return [file](const Request& request, Console& console) { return run_db_check(*file, request, console); };
}

}  // namespace

DbVerb db_check() {
    return {.name = "check",
            .about = "look at every page, reference and checksum of the database; exit code 4 where one fails",
            .example = "autotune db check",
            .flags = takes_store,
            .declare = declare_db_check};
}

}  // namespace autotune

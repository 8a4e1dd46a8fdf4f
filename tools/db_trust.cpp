#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "autotune/error.h"
#include "cache/sharing/signing_key.h"
#include "cache/store/location.h"
#include "cache/store/store.h"
#include "tools/db.h"
#include "tools/json_events.h"
#include "tools/subcommands.h"

namespace autotune {
namespace {

int run_db_keygen(const std::string& file, Console& console) {
    if (file.empty()) throw usage("which file the key goes into is not said", "autotune db keygen release.key");
    const SigningKey key = SigningKey::generate();
    key.write(file);
    console.result(
        fmt::format("{} signs and stays with you, {}.pub is for those who are to trust it", shown(file), shown(file)));
    console.json_line(json_event("db_keygen", {{"path", file}, {"key", key.public_key().hex()}}));
    return 0;
}

DbRun declare_db_keygen(CLI::App& app) {
    auto file = std::make_shared<std::string>();
    app.add_option("file", *file, "the file to write; its public half goes into FILE.pub");
    return [file](const Request&, Console& console) { return run_db_keygen(*file, console); };
}

struct TrustFlags {
    std::string action, what, name;
};

void tell_trust(std::string_view action, const std::string& name, const PublicKey& key, Console& console) {
    console.json_line(json_event("db_trust", {{"action", action}, {"name", name}, {"key", key.hex()}}));
}

void list_trusted(const TrustList& trusted, Console& console) {
    const auto keys = trusted.keys([&](const std::string& text) { console.warning(text); });
    for (const auto& [name, key] : keys) {
        console.result(fmt::format("{}  {}", key.hex(), name));
        tell_trust("list", name, key, console);
    }
    if (keys.empty()) console.line(fmt::format("no key is trusted: {} holds none", shown(trusted.folder())));
}

/// FILE.pub is trusted under what FILE is called, where no name is given.
void add_trusted(const TrustList& trusted, const TrustFlags& flags, Console& console) {
    const PublicKey key = read_public_key(flags.what);
    const std::string name = flags.name.empty() ? std::filesystem::path{flags.what}.stem().string() : flags.name;
    if (const auto known = trusted.name_of(key))
        throw usage(fmt::format("this key is trusted already, as '{}'", *known), "autotune db trust list");
    trusted.add(key, name);
    console.result(fmt::format("'{}' is trusted: binaries that it signed may run in your applications", name));
    tell_trust("add", name, key, console);
}

void remove_trusted(const TrustList& trusted, const std::string& name, Console& console) {
    const auto keys = trusted.keys();
    const auto found = keys.find(name);
    trusted.remove(name);
    console.result(fmt::format("'{}' is trusted no longer; binaries that came with it before stay", name));
    tell_trust("remove", name, found == keys.end() ? PublicKey{} : found->second, console);
}

int run_db_trust(const TrustFlags& flags, const Request& request, Console& console) {
    const bool takes_word = flags.action == "add" || flags.action == "remove";
    if (!takes_word && flags.action != "list")
        throw usage(flags.action.empty() ? "what to do with trusted keys is not said"
                                         : fmt::format("db trust is add, list or remove, not '{}'", flags.action),
                    "autotune db trust list");
    if (takes_word && flags.what.empty())
        throw usage(fmt::format("which key to {} is not said", flags.action),
                    flags.action == "add" ? "autotune db trust add release.key.pub" : "autotune db trust list");
    const std::filesystem::path database =
        request.db.empty() ? Store::default_path() : std::filesystem::path{request.db};
    if (database.empty() || database == "none")
        throw usage("keys are trusted beside a database, and there is none", "add --db FILE");
    const TrustList trusted{database};
    if (flags.action == "list")
        list_trusted(trusted, console);
    else if (flags.action == "add")
        add_trusted(trusted, flags, console);
    else
        remove_trusted(trusted, flags.what, console);
    return 0;
}

DbRun declare_db_trust(CLI::App& app) {
    auto flags = std::make_shared<TrustFlags>();
    app.add_option("action", flags->action, "add, list or remove");
    app.add_option("what", flags->what, "a file as db keygen makes FILE.pub, or the name of a trusted key");
    app.add_option("--name", flags->name, "what the key is called here; default: what its file is");
    return [flags](const Request& request, Console& console) { return run_db_trust(*flags, request, console); };
}

}  // namespace

DbVerb db_keygen() {
    return {.name = "keygen",
            .about = "make a key that signs bundles",
            .example = "autotune db keygen release.key",
            .declare = declare_db_keygen};
}

DbVerb db_trust() {
    return {.name = "trust",
            .about = "whose signed binaries may run here",
            .example = "autotune db trust add release.key.pub --name release",
            .flags = takes_store,
            .declare = declare_db_trust};
}

}  // namespace autotune

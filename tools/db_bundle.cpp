#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "autotune/error.h"
#include "cache/sharing/bundle.h"
#include "cache/store/file.h"
#include "cache/store/location.h"
#include "cache/store/stored_problem.h"
#include "device/compiler.h"
#include "tools/db.h"
#include "tools/format.h"
#include "tools/json_events.h"
#include "tools/search.h"
#include "tools/session.h"
#include "tools/subcommands.h"

namespace autotune {
namespace {

struct BundleFlags {
    std::string output, sign;
    bool binaries = false;
};

/// The stored binaries of a record, by the compiler that made what was timed, else the newest; and those of the default
/// config, which runs where the record can't. A config whose sources have changed since has none.
void add_binaries(const Record& record, const Op& op, const BinaryStore& stored, std::set<std::string>& seen,
                  std::vector<Binary>& out) {
    const Instance instance = instance_of(record.problem, op, record.device.limits);
    for (const Config& config : {record.config, instance.default_config()}) {
        if (instance.objection(config)) continue;
        for (const SourceSpec& source : instance.sources(config)) {
            const std::string name = source_key(source, Compiler::fixed_options(), asked_arch(source, instance));
            std::vector<std::string> keys = stored.keys_of(name);
            const std::string exact =
                fmt::format("{}-{}.{}", name, record.environment.nvrtc_major, record.environment.nvrtc_minor);
            std::ranges::stable_partition(keys, [&](const std::string& key) { return key == exact; });
            for (const std::string& key : keys) {
                if (seen.contains(key)) break;
                if (auto binary = stored.get(key)) {
                    seen.insert(key);
                    out.push_back(std::move(*binary));
                    break;
                }
            }
        }
    }
}

std::vector<Binary> binaries_of(const std::vector<Record>& records, const Session& session, const Store& store,
                                Console& console) {
    const BinaryStore stored{store.binaries_folder()};
    std::vector<Binary> out;
    std::set<std::string> seen;
    for (const Record& record : records) {
        const Op* op = session.ops().find_or_null(record.source.op);
        if (!op) continue;
        try {
            add_binaries(record, *op, stored, seen, out);
        } catch (const Error& error) {
            console.warning(fmt::format("no binary of {} {} goes along: {}", record.source.op, record.problem.text(),
                                        error.what()));
        }
    }
    return out;
}

int run_db_bundle(const BundleFlags& flags, const Request& request, Console& console) {
    if (flags.output.empty()) throw usage("which file the bundle goes into is not said", "add -o tuned.bundle");
    const Session session{request, console};
    if (!request.op.empty()) session.op();  // a typo in the op is no empty bundle
    std::optional<SigningKey> key;
    if (!flags.sign.empty()) key = SigningKey::read(flags.sign);
    const Store store = session.open_store(Store::Mode::read);
    BundleContents contents{.records = store.records({.op = request.op}, session.today(session.ops().all())),
                            .created = static_cast<std::int64_t>(std::time(nullptr))};
    if (contents.records.empty())
        throw usage("no record is stored that could go into a bundle", "autotune tune OP stores some");
    if (flags.binaries) contents.binaries = binaries_of(contents.records, session, store, console);
    const std::vector<std::byte> bytes = make_bundle(contents, key ? &*key : nullptr);
    if (!write_file_whole(flags.output, bytes))
        throw Error{Error::Kind::store, fmt::format("'{}' could not be written", shown(flags.output))};
    console.result(fmt::format("{} and {} in {}, {}{}", format_count(contents.records.size(), "record", "records"),
                               format_count(contents.binaries.size(), "binary", "binaries"), shown(flags.output),
                               format_bytes(bytes.size()), key ? ", signed" : ""));
    console.json_line(json_event("db_bundle", {{"path", flags.output},
                                               {"records", contents.records.size()},
                                               {"binaries", contents.binaries.size()},
                                               {"bytes", bytes.size()},
                                               {"key", key ? key->public_key().hex() : ""}}));
    return 0;
}

DbRun declare_db_bundle(CLI::App& app) {
    auto flags = std::make_shared<BundleFlags>();
    app.add_option("-o,--output", flags->output, "the file to write");
    app.add_flag("--binaries", flags->binaries, "with the stored cubins of the records and of the defaults");
    app.add_option("--sign", flags->sign, "a key as db keygen makes it");
    return [flags](const Request& request, Console& console) { return run_db_bundle(*flags, request, console); };
}

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

}  // namespace

DbVerb db_bundle() {
    return {.name = "bundle",
            .about = "records and their binaries in one file, for an application to bring along",
            .example = "autotune db bundle softmax --binaries -o tuned.bundle",
            .flags = takes_op | takes_store,
            .declare = declare_db_bundle};
}

DbVerb db_keygen() {
    return {.name = "keygen",
            .about = "make a key that signs bundles",
            .example = "autotune db keygen release.key",
            .declare = declare_db_keygen};
}

}  // namespace autotune

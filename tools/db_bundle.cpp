#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "autotune/error.h"
#include "cache/sharing/anonymise.h"
#include "cache/sharing/bundle.h"
#include "cache/sharing/foreign_binaries.h"
#include "cache/sharing/record_filter.h"
#include "cache/store/location.h"
#include "cache/store/stored_problem.h"
#include "tools/db.h"
#include "tools/format.h"
#include "tools/json_events.h"
#include "tools/named_file.h"
#include "tools/record_filter_flags.h"
#include "tools/session.h"
#include "tools/subcommands.h"

namespace autotune {
namespace {

struct BundleFlags {
    RecordFilterFlags filter;
    std::string output, sign;
    bool binaries = false, anonymise = false;
};

/// The stored binaries of a record, by the compiler that made what was timed, else the newest; and those of the default
/// config, which runs where the record can't. A config whose sources have changed since has none.
void add_binaries(const Record& record, const Op& op, const BinaryStore& stored, std::map<std::string, Binary>& out) {
    for (const NeededSource& source :
         needed_sources(instance_of(record.problem, op, record.device.limits), record.config)) {
        std::vector<std::string> keys = stored.keys_of(source.source_key);
        const std::string exact =
            fmt::format("{}-{}.{}", source.source_key, record.environment.nvrtc_major, record.environment.nvrtc_minor);
        std::ranges::stable_partition(keys, [&](const std::string& key) { return key == exact; });
        for (const std::string& key : keys) {
            if (out.contains(key)) break;
            if (auto binary = stored.get(key)) {
                out.emplace(key, std::move(*binary));
                break;
            }
        }
    }
}

std::vector<Binary> stored_binaries(const std::vector<Record>& records, const Session& session, const Store& store,
                                    Console& console) {
    const BinaryStore stored{store.binaries_folder()};
    std::map<std::string, Binary> found;
    for (const Record& record : records) {
        const Op* op = session.ops().find_or_null(record.source.op);
        if (!op) continue;
        try {
            add_binaries(record, *op, stored, found);
        } catch (const Error& error) {
            console.warning(fmt::format("no binary of {} {} goes along: {}", record.source.op, record.problem.text(),
                                        error.what()));
        }
    }
    std::vector<Binary> binaries;
    for (auto& [key, binary] : found) binaries.push_back(std::move(binary));
    return binaries;
}

/// What was measured; predictions are made anew by whoever wants some.
std::vector<Record> records_to_bundle(const BundleFlags& flags, const Request& request, const Session& session,
                                      const Store& store) {
    std::vector<Record> records;
    for_each_record(store, record_filter(flags.filter, request, session), session.today(session.ops().all()),
                    [&](const Record& record) {
                        if (!record.predicted) records.push_back(record);
                    });
    if (records.empty())
        throw usage(fmt::format("no record that could go into a bundle is in '{}'{}", shown(store.path()),
                                store.records({.op = request.op, .predicted = true}, {}).empty()
                                    ? ""
                                    : ": what it holds was predicted, not measured"),
                    "autotune query shows what is stored");
    return records;
}

int run_db_bundle(const BundleFlags& flags, const Request& request, Console& console) {
    if (flags.output.empty()) throw usage("which file the bundle goes into is not said", "add -o tuned.bundle");
    const Session session{request, console};
    std::optional<SigningKey> key;
    if (!flags.sign.empty()) key = SigningKey::read(flags.sign);
    const Store store = session.open_present_store(Store::Mode::read);
    BundleContents contents{.records = records_to_bundle(flags, request, session, store),
                            .db_uuid = flags.anonymise ? "" : store.uuid(),
                            .created = static_cast<std::int64_t>(std::time(nullptr))};
    if (flags.binaries) contents.binaries = stored_binaries(contents.records, session, store, console);
    if (flags.binaries && contents.binaries.empty())
        console.warning("no binary of these records and of today's sources is stored; autotune build makes some");
    if (flags.anonymise)
        for (Record& record : contents.records) anonymise(record);
    const std::vector<std::byte> bytes = make_bundle(contents, key ? &*key : nullptr);
    write_named_file(flags.output, bytes, store.path());
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
    add_record_filter(app, flags->filter);
    app.add_option("-o,--output", flags->output, "the file to write");
    app.add_flag("--binaries", flags->binaries, "with the stored cubins of the records and of the defaults");
    app.add_option("--sign", flags->sign, "a key as db keygen makes it");
    app.add_flag("--anonymise", flags->anonymise, "without the names and addresses of GPUs and hosts");
    return [flags](const Request& request, Console& console) { return run_db_bundle(*flags, request, console); };
}

}  // namespace

DbVerb db_bundle() {
    return {.name = "bundle",
            .about = "records and their binaries in one file, for an application to bring along",
            .example = "autotune db bundle softmax --binaries -o tuned.bundle",
            .flags = takes_op | takes_store,
            .declare = declare_db_bundle};
}

}  // namespace autotune

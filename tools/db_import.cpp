#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ctime>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "autotune/error.h"
#include "cache/sharing/foreign_binaries.h"
#include "cache/sharing/pending_binaries.h"
#include "cache/sharing/signing_key.h"
#include "cache/sharing/taking_in.h"
#include "cache/store/location.h"
#include "tools/db.h"
#include "tools/format.h"
#include "tools/interrupt.h"
#include "tools/json_events.h"
#include "tools/session.h"
#include "tools/subcommands.h"
#include "tools/taken_in_text.h"

namespace autotune {
namespace {

struct ImportFlags {
    std::vector<std::string> files, ops;
    bool dry_run = false, binaries = false, trust_this_file = false;
};

/// The binaries of the bundles that are imported: judged before a record is written, put to wait for their check after.
class BinaryIntake {
public:
    BinaryIntake(const ImportFlags& flags, const Session& session, const Store& store, Console& console)
        : flags_{flags}, ops_{session.ops()}, store_{store}, console_{console} {}

    void see(const Bundle& bundle) {
        if (!flags_.binaries) {
            if (const std::size_t count = bundle.binary_keys().size(); count > 0)
                console_.note(fmt::format("{} of {} left out; --binaries takes what a trusted key signed",
                                          format_count(count, "binary", "binaries"), bundle.name()));
            return;
        }
        const std::string signer = whose(bundle);
        bundles_.push_back({bundle.name(), signer, judged_binaries(bundle, ops_)});
    }

    std::size_t bundles() const noexcept { return bundles_.size(); }

    void put() {
        PendingBinaries pending{store_.binaries_folder()};
        for (const Seen& seen : bundles_) {
            if (!flags_.dry_run)
                for (const Binary& binary : seen.judged.needed)
                    if (!pending.put(binary))
                        throw Error{Error::Kind::store,
                                    fmt::format("a binary could not be kept in {}", shown(store_.binaries_folder()))};
            console_.result(fmt::format(
                "{}  {} of {}, {} left out{}", seen.bundle,
                format_count(seen.judged.needed.size(), "binary", "binaries"),
                seen.signer.empty() ? "nobody that is trusted" : fmt::format("'{}'", seen.signer), seen.judged.left_out,
                seen.judged.needed.empty() ? "" : "   (not used before autotune verify --imported)"));
            console_.json_line(json_event("db_import_binaries", {{"file", seen.bundle},
                                                                 {"signer", seen.signer},
                                                                 {"binaries", seen.judged.needed.size()},
                                                                 {"left_out", seen.judged.left_out},
                                                                 {"dry_run", flags_.dry_run}}));
        }
    }

private:
    struct Seen {
        std::string bundle, signer;
        ForeignBinaries judged;
    };

    /// What the key that signed it is called here; empty: nobody whom this user trusts, but this file is to be trusted.
    std::string whose(const Bundle& bundle) const {
        const auto& signer = bundle.signer();
        if (signer && !store_.path().empty())
            if (const auto name =
                    TrustList{store_.path()}.name_of(*signer, [&](const std::string& text) { console_.warning(text); }))
                return *name;
        if (flags_.trust_this_file) return {};
        const std::string help =
            "leave out --binaries, or, where you know that its maker means well, add --trust-this-file";
        if (!signer)
            throw usage(fmt::format("'{}' is not taken in: nobody signed it, and its binaries are code", bundle.name()),
                        help);
        throw usage(fmt::format("'{}' is not taken in: the key that signed its binaries, {}, is not trusted here",
                                bundle.name(), signer->hex()),
                    "autotune db trust add FILE.pub, or " + help);
    }

    const ImportFlags& flags_;
    const OpSet& ops_;
    const Store& store_;
    Console& console_;
    std::vector<Seen> bundles_;
};

int run_db_import(const ImportFlags& flags, const Request& given, Console& console) {
    if (flags.files.empty()) throw usage("an import needs a file", "autotune db import softmax.jsonl");
    if (flags.trust_this_file && !flags.binaries)
        throw usage("--trust-this-file is about binaries, and none are asked for", "add --binaries");
    Request request = given;
    request.ops = flags.ops;
    const Session session{request, console};
    Store store = session.open_store(flags.dry_run ? Store::Mode::read : Store::Mode::write);
    BinaryIntake binaries{flags, session, store, console};
    const std::vector<TakenIn> reports = take_in(store, {flags.files.begin(), flags.files.end()},
                                                 {.ops = &session.ops(),
                                                  .trust = Trust::elsewhere,
                                                  .dry_run = flags.dry_run,
                                                  .see_bundle = [&](const Bundle& bundle) { binaries.see(bundle); },
                                                  .stopped = [] { return interrupted() != 0; }});
    const int code = tell_taken_in(reports, "db_import", flags.dry_run, console);
    if (flags.binaries && binaries.bundles() == 0)
        console.warning("--binaries is about bundles, and none is among the files");
    binaries.put();
    return code;
}

DbRun declare_db_import(CLI::App& app) {
    auto flags = std::make_shared<ImportFlags>();
    app.add_option("files", flags->files, "databases, JSON lines as db export writes them, or bundles");
    app.add_option("--ops", flags->ops, "a folder with ops of your own")->allow_extra_args(false);
    app.add_flag("--dry-run", flags->dry_run, "tell what would be, and write nothing");
    app.add_flag("--binaries", flags->binaries, "also the binaries of bundles that a trusted key signed");
    app.add_flag("--trust-this-file", flags->trust_this_file, "with --binaries, whoever signed them or nobody");
    return [flags](const Request& request, Console& console) { return run_db_import(*flags, request, console); };
}

struct RevertFlags {
    std::string id;
    bool dry_run = false;
};

int run_db_revert(const RevertFlags& flags, const Request& request, Console& console) {
    if (flags.id.empty()) throw usage("which import goes is not said", "autotune db imports");
    const Session session{request, console};
    Store store = session.open_present_store(flags.dry_run ? Store::Mode::read : Store::Mode::write);
    const auto id = static_cast<std::int64_t>(
        whole_of("the number of an import", flags.id, 1, std::numeric_limits<std::int64_t>::max()));
    const Reverted reverted = revert_import(store, id, flags.dry_run);
    // Which import a binary that waits came by is not kept, and another import brings it again.
    if (!flags.dry_run) PendingBinaries{store.binaries_folder()}.clear();
    const std::string back = reverted.back == 0 ? ""
                                                : fmt::format(", {} back that {} displaced", reverted.back,
                                                              reverted.back == 1 ? "was" : "were");
    console.result(fmt::format("import {}: {} and {} {}{}", id, format_count(reverted.records, "record", "records"),
                               format_count(reverted.predictions, "prediction", "predictions"),
                               flags.dry_run ? "would go (dry run)" : "gone", back));
    console.json_line(json_event("db_revert_import", {{"id", id},
                                                      {"records", reverted.records},
                                                      {"predictions", reverted.predictions},
                                                      {"back", reverted.back},
                                                      {"dry_run", flags.dry_run}}));
    return 0;
}

DbRun declare_db_revert(CLI::App& app) {
    auto flags = std::make_shared<RevertFlags>();
    app.add_option("id", flags->id, "the import's number, as db imports shows it");
    app.add_flag("--dry-run", flags->dry_run, "tell what would go, and write nothing");
    return [flags](const Request& request, Console& console) { return run_db_revert(*flags, request, console); };
}

int run_db_imports(const Request& request, Console& console) {
    const Session session{request, console};
    const Store store = session.open_store(Store::Mode::read);
    for (const ImportEntry& entry : imports(store)) {
        console.result(fmt::format(
            "{} {}: {:%Y-%m-%d %H:%M} UTC, {} of {} rows taken, {} here now{}, sha256 {}", entry.policy, entry.id,
            fmt::gmtime(static_cast<std::time_t>(entry.when)), entry.accepted, entry.rows, entry.standing,
            entry.beside == 0 ? "" : fmt::format(", {} behind better ones", entry.beside), entry.sha256.substr(0, 16)));
        console.json_line(json_event("db_import_entry", {{"id", entry.id},
                                                         {"when", entry.when},
                                                         {"policy", entry.policy},
                                                         {"sha256", entry.sha256},
                                                         {"source_uuid", entry.source_uuid},
                                                         {"rows", entry.rows},
                                                         {"accepted", entry.accepted},
                                                         {"standing", entry.standing},
                                                         {"beside", entry.beside}}));
    }
    return 0;
}

}  // namespace

DbVerb db_import() {
    return {.name = "import",
            .about = "take records of others in, each judged, ranked below what was measured here",
            .example = "autotune db import softmax.jsonl --dry-run",
            .flags = takes_store,
            .declare = declare_db_import};
}

DbVerb db_imports() {
    return {.name = "imports",
            .about = "what was imported and merged, and when",
            .example = "autotune db imports",
            .flags = takes_store,
            .run = run_db_imports};
}

DbVerb db_revert_import() {
    return {.name = "revert-import",
            .about = "take an import or a merge out, as if it had never been",
            .example = "autotune db revert-import 3",
            .flags = takes_store,
            .declare = declare_db_revert};
}

}  // namespace autotune

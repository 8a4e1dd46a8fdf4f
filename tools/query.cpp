#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "autotune/error.h"
#include "cache/store/binaries.h"
#include "cache/store/location.h"
#include "cache/store/stored_problem.h"
#include "device/compiler.h"
#include "device/identity.h"
#include "tools/format.h"
#include "tools/json_events.h"
#include "tools/named_file.h"
#include "tools/record_text.h"
#include "tools/session.h"
#include "tools/subcommands.h"
#include "tools/suggestion.h"
#include "tuner/chains/chain.h"
#include "tuner/interchange/kernel_tuner_cache.h"
#include "tuner/interchange/t4.h"
#include "tuner/model/compile_request.h"
#include "tuner/model/printable.h"
#include "tuner/model/suggest.h"

namespace autotune {
namespace {

std::string state_of(const Record& record) {
    if (record.predicted) return "predicted: emulated, used only where nothing was measured";
    if (!record.fresh()) return "stale: " + record.stale;
    return "fresh";
}

/// The problem of a record as it was tuned, with today's op. Throws Error{usage} where its config is no longer valid.
Instance instance_of_record(const Record& record, const Op& op) {
    Instance instance = instance_of(record.problem, op, record.device.limits);
    if (const auto objection = instance.objection(record.config))
        throw usage(fmt::format("the stored config {} is no longer valid: {}", record.config.text(), *objection),
                    fmt::format("autotune tune {} {}", op.name, problem_words(instance, ",")));
    return instance;
}

/// For people: with the alignments and strides that its fields do not tell.
std::string problem_text(const Record& record, const Session& session) {
    if (const Op* op = session.ops().find_or_null(record.source.op)) try {
            return problem_words(instance_of(record.problem, *op, record.device.limits), " ");
        } catch (const Error&) {  // the op has changed since
        }
    return record.problem.text();
}

std::vector<std::vector<std::string>> rows_of(const std::vector<Record>& records, const Session& session) {
    std::vector<std::vector<std::string>> rows{{"problem", "gpu", "time_us", "default", "config", "state"}};
    for (const Record& r : records)
        rows.push_back({one_line(fmt::format("{} {}", r.source.op, problem_text(r, session))), one_line(r.device.name),
                        fmt::format("{:.2f}", r.time_us),
                        r.default_us ? format_speedup(*r.default_us / r.time_us) : "-", one_line(r.config.text()),
                        state_of(r)});
    return rows;
}

void print_table(const std::vector<Record>& records, const Session& session, Console& console) {
    const auto rows = rows_of(records, session);
    std::vector<std::size_t> widths(rows.front().size(), 0);
    for (const auto& row : rows)
        for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], columns(row[c]));
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t c = 0; c < row.size(); ++c)
            line += (c == 2 ? pad_left(row[c], widths[c]) : pad_right(row[c], widths[c])) + "  ";
        console.result(line.substr(0, line.find_last_not_of(' ') + 1));
    }
}

void print_csv(const std::vector<Record>& records, const Session& session, Console& console) {
    for (const auto& row : rows_of(records, session)) {
        std::string line;
        for (const std::string& cell : row) {
            std::string doubled;
            for (const char c : cell) doubled += c == '"' ? std::string{"\"\""} : std::string{c};
            line += fmt::format("{}\"{}\"", line.empty() ? "" : ",", doubled);
        }
        console.result(line);
    }
}

void write(const Request& request, const Store& store, Console& console, std::string_view bytes) {
    if (request.output.empty()) return console.raw(bytes);
    constexpr unsigned as_other_programs_do = 0666;
    write_named_file(request.output, bytes, store.path(), as_other_programs_do);
}

/// The very bytes that were timed, where the binary store still has them; else the same source compiled again.
Artefact artefact_of(const Record& record, const Instance& instance, const Store& store) {
    const std::vector<SourceSpec> sources = instance.sources(record.config);
    if (sources.size() != 1)
        throw usage(fmt::format("{} is compiled from {} sources, so no single cubin is it", record.config.text(),
                                sources.size()),
                    "--as json");
    const std::string arch = asked_arch(sources.front(), instance);
    const BinaryStore binaries{store.binaries_folder()};
    if (const auto binary = binaries.get(binary_key(sources.front(), Compiler::fixed_options(), arch,
                                                    record.environment.nvrtc_major, record.environment.nvrtc_minor)))
        return binary->artefact;
    Compiler compiler;
    CompileResult result = compiler.compile(compile_request(sources.front(), arch));
    if (!result.ok)
        throw Error{Error::Kind::compile, fmt::format("{} does not compile: {}", record.config.text(), result.log)};
    return std::move(result.artefact);
}

/// Every trial of the search that the record came from, as other tuners write theirs down. A variant is a parameter
/// like others.
Measurements trials_behind(const Record& record, const Store& store) {
    const std::vector<StoredRun> runs = store.runs(record.source.op);
    const auto run = std::ranges::find_if(runs, [&](const StoredRun& r) { return r.info.uuid == record.run.uuid; });
    if (run == runs.end() || run->id == 0)
        throw usage(fmt::format("the trials behind record {} are not in this database: it came from elsewhere",
                                record.id.text()),
                    "--as json");
    Measurements measured{.kernel = record.source.op, .device = record.device.name};
    for (const StoredTrial& trial : store.trials(run->id))
        measured.configs.push_back(measured_config(trial.config, trial.outcome, trial.ended));
    even_out(measured);
    return measured;
}

void write_one(const Request& request, const std::vector<Record>& records, const Session& session, const Store& store,
               Console& console) {
    const Record& record = records.front();
    if (records.size() > 1)
        console.note(fmt::format("{} records match; this is {} on {}", records.size(), record.problem.text(),
                                 record.device.name),
                     "--where, --gpu narrow them");
    if (request.as == "t4") return write(request, store, console, t4_text(trials_behind(record, store).configs));
    if (request.as == "kernel-tuner")
        return write(request, store, console,
                     kernel_tuner_cache_text(trials_behind(record, store), record.problem.text()));
    const Instance instance = instance_of_record(record, session.ops().find(record.source.op));
    if (request.as == "cpp") return write(request, store, console, record_as_cpp(record, instance));
    if (request.as == "toml") return write(request, store, console, record_as_toml(record));
    if (request.as == "json") return write(request, store, console, record_as_json(record, instance) + "\n");
    const Artefact artefact = artefact_of(record, instance, store);
    if (request.output.empty()) throw usage("a cubin is no text for a terminal", "add -o kernel.cubin");
    write(request, store, console, {reinterpret_cast<const char*>(artefact.cubin.data()), artefact.cubin.size()});
    console.line(
        fmt::format("wrote {}: {}, {}", one_line(request.output), format_bytes(artefact.cubin.size()), artefact.arch));
}

/// A name that no problem has would match nothing, in silence.
void refuse_unknown_names(const Expression& where, const std::vector<const Op*>& ops) {
    std::vector<std::string> fields;
    for (const Op* op : ops)
        for (const Field& field : op->fields) fields.push_back(field.name);
    for (const std::string& name : where.names())
        if (std::ranges::find(fields, name) == fields.end())
            throw usage(fmt::format("--where names '{}', which is no field of {}{}", name,
                                    ops.size() == 1 ? fmt::format("'{}'", ops.front()->name) : "any op",
                                    did_you_mean(name, fields)),
                        ops.size() == 1 ? fmt::format("autotune ops {}", ops.front()->name) : "autotune ops");
}

std::string no_records(const Request& request, const Store& store) {
    std::error_code unreadable;
    if (!request.db.empty() && request.db != "none" && !std::filesystem::exists(request.db, unreadable) && !unreadable)
        return fmt::format("there is no database '{}' yet, so no record", shown(request.db));
    return fmt::format("{} holds no record{} that matches",
                       store.path().empty() ? "the database" : store.path().string(),
                       request.op.empty() ? "" : fmt::format(" of '{}'", request.op));
}

/// What --where says, of the chains that were given alone: chains of one name share an op's records.
std::string where_of(const Request& request) {
    std::string of_chains;
    for (const std::string& text : request.chains) {
        const Chain chain = Chain::parse(text);
        if (request.op.empty() || request.op == chain.name)
            of_chains += fmt::format("{}chain == '{}'", of_chains.empty() ? "" : " or ", chain.text);
    }
    if (of_chains.empty() || request.where.empty()) return of_chains.empty() ? request.where : of_chains;
    return fmt::format("({}) and ({})", request.where, of_chains);
}

RecordQuery query_of(const Request& request, const Session& session, const std::vector<const Op*>& ops) {
    RecordQuery query{.op = request.op, .winners_only = true};
    if (!request.op.empty()) session.op();  // a typo in the op is no empty answer
    if (const std::string where = where_of(request); !where.empty()) query.where = where_from_text(where);
    refuse_unknown_names(query.where, ops);
    if (!request.gpu.empty()) query.device_fp = session.gpus().front().identity.fp;
    return query;
}

}  // namespace

int run_query(const Request& request, Console& console) {
    constexpr std::array<std::string_view, 7> forms{"", "cpp", "toml", "json", "cubin", "t4", "kernel-tuner"};
    if (std::ranges::find(forms, request.as) == forms.end())
        throw usage(fmt::format("--as is cpp, toml, json, cubin, t4 or kernel-tuner, not '{}'", request.as));
    const Session session{request, console};
    const Store store = session.open_store(Store::Mode::read);
    std::vector<const Op*> ops = request.op.empty() ? session.ops().all() : std::vector<const Op*>{&session.op()};
    RecordQuery query = query_of(request, session, ops);
    std::vector<Record> records = store.records(query, session.today(ops));
    if (records.empty()) {
        query.predicted = true;
        records = store.records(query, session.today(ops));
        if (!records.empty()) console.warning("nothing was measured: what follows is PREDICTED by an emulator");
    }
    if (const std::size_t left_out = store.left_out())
        console.warning(fmt::format("{} left out", format_count(left_out, "damaged record is", "damaged records are")),
                        "autotune db check");
    if (records.empty())
        throw Error{
            Error::Kind::nothing_found, no_records(request, store),
            fmt::format("autotune tune {}{}", request.op.empty() ? "softmax" : request.op, same_flags(request))};
    if (!request.as.empty())
        write_one(request, records, session, store, console);
    else if (request.csv)
        print_csv(records, session, console);
    else if (!console.json())
        print_table(records, session, console);
    if (console.json() && request.as.empty())
        for (const Record& record : records) {
            const Op* op = session.ops().find_or_null(record.source.op);
            if (!op) continue;
            try {
                console.json_line(record_as_json(record, instance_of_record(record, *op)));
            } catch (const Error& e) {  // one row that is out of date hides no other
                console.warning(fmt::format("record {} is left out: {}", record.id.text(), e.what()), e.help());
            }
        }
    return 0;
}

}  // namespace autotune

#include "cache/sharing/read_database.h"

#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "autotune/error.h"
#include "cache/store/crc32.h"
#include "cache/store/json.h"

namespace autotune {

namespace {

constexpr std::size_t longest_json = 1 << 16;

/// Whether the columns hold what the schema says: i, r, t, b; a capital letter: or NULL. A file may hold anything.
bool typed(const Query& row, std::string_view types) {
    for (std::size_t i = 0; i < types.size(); ++i) {
        const ColumnType type = row.type(static_cast<int>(i));
        const char wanted = types[i];
        if (wanted == 'I' && type == ColumnType::null) continue;
        const bool fits = wanted == 'r'   ? type == ColumnType::real
                          : wanted == 't' ? type == ColumnType::text
                          : wanted == 'b' ? type == ColumnType::blob
                                          : type == ColumnType::integer;
        if (!fits) return false;
    }
    return true;
}

/// An integer column as an int; what does not fit becomes -1, which every judge refuses.
int narrow(const Query& row, int column) {
    const std::int64_t number = row.integer(column);
    return number < 0 || number > std::numeric_limits<int>::max() ? -1 : static_cast<int>(number);
}

/// The parts of a database's rows, each read and judged once.
class ForeignParts {
public:
    ForeignParts(Database& database, const Judge& judge) : db_{database}, judge_{judge} {}

    Part<DeviceIdentity>* device(std::int64_t id) {
        return part(devices_, id, [&](Part<DeviceIdentity>& part) { return read(part, id); });
    }
    Part<Environment>* environment(std::int64_t id) {
        return part(environments_, id, [&](Part<Environment>& part) { return read(part, id); });
    }
    Part<TemplateIdentity>* source(std::int64_t id) {
        return part(sources_, id, [&](Part<TemplateIdentity>& part) { return read(part, id); });
    }
    Part<ProblemIdentity>* problem(std::int64_t id) {
        return part(problems_, id, [&](Part<ProblemIdentity>& part) { return read(part, id); });
    }
    Part<Config>* config(std::int64_t id) {
        return part(configs_, id, [&](Part<Config>& part) { return read(part, id); });
    }
    RunPart* run(std::int64_t id) {
        return part(runs_, id, [&](RunPart& part) { return read(part, id); });
    }

private:
    /// Rows that follow each other mostly share a part.
    template <class T>
    struct Table {
        std::unordered_map<std::int64_t, T> parts{};
        std::int64_t last_id = 0;
        T* last = nullptr;
    };

    template <class T, class Read>
    T* part(Table<T>& table, std::int64_t id, const Read& read) {
        if (table.last && table.last_id == id) return table.last;
        const auto [at, is_new] = table.parts.try_emplace(id);
        table.last_id = id;
        table.last = &at->second;
        if (is_new) try {
                at->second.refused = read(at->second);
            } catch (const nlohmann::json::exception&) {
                at->second.refused = "one of its parts is no JSON of ours";
            } catch (const Error& error) {
                at->second.refused = error.what();
            }
        return &at->second;
    }

    std::string read(Part<DeviceIdentity>& part, std::int64_t id) {
        Query row = db_.query(
            "SELECT fp, name, vendor, cc, sm, core_khz, bw_gbs, l2, smem_block, smem_sm, regs_sm, threads_sm, mig, "
            "ecc, "
            "pci_id, attrs_json FROM device WHERE id = ?");
        row.bind(id);
        if (!row.step() || !typed(row, "tttiiiiiiiiititt") || row.text(15).size() > longest_json)
            return "its GPU is missing or damaged";
        DeviceIdentity& d = part.value;
        read_device_attributes(nlohmann::json::parse(row.text(15)), d);
        d.fp = row.text(0);
        d.name = row.text(1);
        d.vendor = row.text(2);
        d.limits.cc = narrow(row, 3);
        d.limits.sm_count = narrow(row, 4);
        d.core_khz = narrow(row, 5);
        d.bandwidth_gbs = narrow(row, 6);
        d.limits.l2_bytes = row.integer(7);
        d.limits.max_shared = narrow(row, 8);
        d.limits.shared_per_sm = narrow(row, 9);
        d.limits.registers_per_sm = narrow(row, 10);
        d.limits.threads_per_sm = narrow(row, 11);
        d.mig = row.text(12);
        d.ecc = row.integer(13) != 0;
        d.pci_id = row.text(14);
        part.hash = d.fp;
        part.crc = crc32(d.fp);
        return judge_.objection(d);
    }

    std::string read(Part<Environment>& part, std::int64_t id) {
        Query row = db_.query(
            "SELECT hash, nvrtc_major, nvrtc_minor, driver, runtime, emulator, tool_version, os FROM env WHERE id = ?");
        row.bind(id);
        if (!row.step() || !typed(row, "tiitiitt")) return "its environment is missing or damaged";
        part.value = {.nvrtc_major = narrow(row, 1),
                      .nvrtc_minor = narrow(row, 2),
                      .driver = std::string{row.text(3)},
                      .runtime = narrow(row, 4),
                      .emulator = narrow(row, 5),
                      .tool_version = std::string{row.text(6)},
                      .os = std::string{row.text(7)}};
        part.hash = row.text(0);
        std::string why = judge_.objection(part.value);
        return why.empty() && part.value.hash() != part.hash ? "its environment does not fit its hash" : why;
    }

    std::string read(Part<TemplateIdentity>& part, std::int64_t id) {
        Query row = db_.query("SELECT hash, op, variant, source_hash, space_hash, abi FROM template WHERE id = ?");
        row.bind(id);
        if (!row.step() || !typed(row, "ttttti")) return "its template is missing or damaged";
        part.value = {.op = std::string{row.text(1)},
                      .variant = std::string{row.text(2)},
                      .source_hash = std::string{row.text(3)},
                      .space_hash = std::string{row.text(4)},
                      .abi = narrow(row, 5)};
        part.hash = row.text(0);
        part.crc = crc32(part.hash);
        return judge_.objection(part.value, part.hash);
    }

    std::string read(Part<ProblemIdentity>& part, std::int64_t id) {
        Query row = db_.query("SELECT op, key FROM problem WHERE id = ?");
        row.bind(id);
        if (!row.step() || !typed(row, "tb")) return "its problem is missing or damaged";
        part.crc = crc32(row.blob(1));
        return judge_.read_key(row.text(0), row.blob(1), part.value);
    }

    std::string read(Part<Config>& part, std::int64_t id) {
        Query row = db_.query("SELECT op, variant, hash, body_json FROM config WHERE id = ?");
        row.bind(id);
        if (!row.step() || !typed(row, "tttt") || row.text(3).size() > longest_json)
            return "its config is missing or damaged";
        part.value = config_from_json(std::string{row.text(1)}, nlohmann::json::parse(row.text(3)));
        part.hash = row.text(2);
        part.crc = crc32(part.value.variant + ' ' + part.hash);
        return judge_.objection(row.text(0), part.value, part.hash);
    }

    std::string read(RunPart& part, std::int64_t id) {
        part.environment = &none_;
        Query row = db_.query(
            "SELECT uuid, device, env, started, ended, strategy, seed, budget, effort, clock_policy, locked_mhz, "
            "power_w, temp_max, l2_policy, graph_mode, tolerance, reference, host_hash, origin FROM run WHERE id = ?");
        row.bind(id);
        if (!row.step() || !typed(row, "tiiiititttirrtttttt")) return "its run is missing or damaged";
        const auto text = [&row](int column) { return std::string{row.text(column)}; };
        const auto effort = search_effort_named(row.text(8));
        if (!effort) return "its run's effort is no word of ours";
        part.value = {.uuid = text(0),
                      .strategy = text(5),
                      .seed = static_cast<std::uint64_t>(row.integer(6)),
                      .budget = text(7),
                      .effort = *effort,
                      .clock_policy = text(9),
                      .locked_mhz = narrow(row, 10),
                      .power_w = row.real(11),
                      .temperature_max = row.real(12),
                      .l2_policy = text(13),
                      .method = text(14),
                      .reference = text(16),
                      .tolerance = text(15),
                      .host_hash = text(17),
                      .origin = text(18),
                      .started = row.integer(3),
                      .ended = row.integer(4)};
        part.hash = part.value.uuid;
        part.crc = crc32(part.hash);
        part.device = device(row.integer(1));
        part.environment = environment(row.integer(2));
        return judge_.objection(part.value);
    }

    Database& db_;
    const Judge& judge_;
    Table<Part<DeviceIdentity>> devices_;
    Table<Part<Environment>> environments_;
    Table<Part<TemplateIdentity>> sources_;
    Table<Part<ProblemIdentity>> problems_;
    Table<Part<Config>> configs_;
    Table<RunPart> runs_;
    Part<Environment> none_{};  ///< of a run that could not be read
};

/// The parts of a row fit each other: all are of one op, and the config is one of the template's variant.
void require_one_op(IncomingRow& row, Part<TemplateIdentity>& mismatch) {
    const TemplateIdentity& source = row.source->value;
    const bool parts_stand = row.source->refused.empty() && row.problem->refused.empty() && row.config->refused.empty();
    if (parts_stand && row.problem->value.op == source.op && row.config->value.variant == source.variant) return;
    if (parts_stand) row.source = &mismatch;
}

void read_records(Database& db, ForeignParts& parts, Part<TemplateIdentity>& mismatch, std::size_t& number,
                  const std::function<void(IncomingRow&, std::size_t)>& sink) {
    Query row = db.query(
        "SELECT device, template, problem, config, run, nvrtc_major, nvrtc_minor, rank, time_ns, lo_ns, hi_ns, "
        "samples, "
        "evaluated, space_size, effort, verified, tuned_at, crc, default_ns, max_err, flags FROM record");
    while (row.step()) {
        IncomingRow in{.device = parts.device(row.integer(0)),
                       .source = parts.source(row.integer(1)),
                       .problem = parts.problem(row.integer(2)),
                       .config = parts.config(row.integer(3)),
                       .run = parts.run(row.integer(4))};
        require_one_op(in, mismatch);
        RowFigures& f = in.figures;
        f.rank = -1;  // refused, unless the columns hold what they should
        if (typed(row, "iiiiiiiiiiiiiiiiiiIri") && row.integer(20) == 0) f.rank = narrow(row, 7);
        f.nvrtc_major = narrow(row, 5);
        f.nvrtc_minor = narrow(row, 6);
        f.time_ns = row.integer(8);
        f.low_ns = row.integer(9);
        f.high_ns = row.integer(10);
        f.samples = row.integer(11);
        f.evaluated = row.integer(12);
        f.space_size = row.integer(13);
        f.effort = row.integer(14);
        f.verified = row.integer(15);
        f.tuned_at = row.integer(16);
        in.crc = static_cast<std::uint32_t>(row.integer(17));
        f.default_ns = row.null(18) ? -1 : std::max<std::int64_t>(row.integer(18), 0);
        f.max_error = row.real(19);
        sink(in, ++number);
    }
}

void read_predictions(Database& db, ForeignParts& parts, Part<TemplateIdentity>& mismatch, std::size_t& number,
                      const std::function<void(IncomingRow&, std::size_t)>& sink) {
    constexpr std::size_t longest_model = 64;
    Query row = db.query("SELECT template, problem, config, run, rank, time_ns, checked, model_version FROM predicted");
    while (row.step()) {
        IncomingRow in{.source = parts.source(row.integer(0)),
                       .problem = parts.problem(row.integer(1)),
                       .config = parts.config(row.integer(2)),
                       .run = parts.run(row.integer(3)),
                       .predicted = true,
                       .model_version = row.text(7)};
        in.device = in.run->device ? in.run->device : parts.device(0);
        require_one_op(in, mismatch);
        const bool sound = typed(row, "iiiiiiit") && in.model_version.size() <= longest_model;
        in.figures.rank = sound ? narrow(row, 4) : -1;
        in.figures.time_ns = in.figures.low_ns = in.figures.high_ns = row.integer(5);
        in.figures.samples = 1;
        in.figures.verified = static_cast<int>(row.integer(6) != 0 ? Verified::checked : Verified::elsewhere);
        sink(in, ++number);
    }
}

}  // namespace

void read_database(ForeignDatabase& file, const Judge& judge,
                   const std::function<void(IncomingRow& row, std::size_t number)>& sink,
                   const std::function<void()>& all_read) {
    ForeignParts parts{file.database(), judge};
    file.ask([&] {
        Part<TemplateIdentity> mismatch{.refused = "its parts are of different ops"};
        std::size_t number = 0;
        read_records(file.database(), parts, mismatch, number, sink);
        read_predictions(file.database(), parts, mismatch, number, sink);
    });
    all_read();
}

}  // namespace autotune

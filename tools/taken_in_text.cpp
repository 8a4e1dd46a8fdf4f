#include "tools/taken_in_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "autotune/error.h"
#include "tools/format.h"
#include "tools/json_events.h"
#include "tuner/model/printable.h"

namespace autotune {

std::string taken_in_line(const TakenIn& report, std::size_t width) {
    std::string line =
        fmt::format("{}  {}: {} new, {} better, {} not better", pad_right(one_line(report.file), width),
                    format_count(report.rows, "record", "records"), report.added, report.better, report.not_better);
    if (report.refused > 0) line += fmt::format(", {} refused", report.refused);
    if (report.import_id > 0) line += fmt::format("   (import {})", report.import_id);
    return line;
}

int tell_taken_in(std::span<const TakenIn> reports, const std::string& event, bool dry_run, Console& console) {
    std::size_t width = 0, rows = 0, refused = 0;
    for (const TakenIn& report : reports) width = std::max(width, columns(report.file));
    for (const TakenIn& report : reports) {
        console.result(taken_in_line(report, width));
        rows += report.rows;
        refused += report.refused;
    }
    for (const TakenIn& report : reports) {
        for (const RefusedRow& row : report.named)
            console.result(one_line(fmt::format("refused: {} record {}{}: {}", report.file, row.number,
                                                row.op.empty() ? "" : fmt::format(" of '{}'", row.op), row.reason)));
        if (report.refused > report.named.size())
            console.result(
                fmt::format("refused: {} more of {}", report.refused - report.named.size(), one_line(report.file)));
        nlohmann::json named = nlohmann::json::array();
        for (const RefusedRow& row : report.named)
            named.push_back({{"number", row.number}, {"op", row.op}, {"reason", row.reason}});
        console.json_line(json_event(event, {{"file", report.file},
                                             {"sha256", report.sha256},
                                             {"import", report.import_id},
                                             {"records", report.rows},
                                             {"new", report.added},
                                             {"better", report.better},
                                             {"not_better", report.not_better},
                                             {"refused", report.refused},
                                             {"refused_rows", named},
                                             {"reasons", report.reasons},
                                             {"dry_run", dry_run}}));
    }
    if (dry_run) console.result("nothing written (dry run)");
    return rows > 0 && refused == rows ? exit_code(Error::Kind::nothing_found) : 0;
}

}  // namespace autotune

#include "cache/sharing/record_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <tuple>

#include "cache/store/database.h"
#include "cache/store/entities.h"
#include "cache/store/record_rows.h"

namespace autotune {

namespace {

std::string lower(std::string_view text) {
    std::string out{text};
    for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

}  // namespace

bool RecordFilter::takes(const DeviceIdentity& device) const {
    return gpu.empty() || gpu == fmt::format("sm_{}", device.limits.cc) ||
           lower(device.name).find(lower(gpu)) != std::string::npos || (gpu.size() >= 8 && device.fp.starts_with(gpu));
}

bool RecordFilter::takes(const ProblemIdentity& of) const {
    for (const auto& [name, value] : problem) {
        const auto found = std::ranges::find(of.fields, name, &std::pair<std::string, Value>::first);
        if (found == of.fields.end() || !same_value(found->second, value)) return false;
    }
    return matches(where, of);
}

void for_each_record(const Store& store, const RecordFilter& filter, const Today& today,
                     const std::function<void(const Record&)>& sink) {
    std::set<std::pair<std::string, std::string>> groups;  // op and GPU
    store.inspect([&](Database& db) {
        Query row = db.query("SELECT DISTINCT t.op, d.fp FROM template t, device d WHERE ?1 IN ('', t.op)");
        row.bind(filter.op);
        while (row.step()) groups.emplace(row.text(0), row.text(1));
    });
    for (const auto& [op, fp] : groups)
        for (const bool predicted : {false, true}) {
            std::vector<Record> records;
            store.scan({.op = op, .device_fp = fp, .predicted = predicted}, today, [&](const RecordView& view) {
                if (!filter.takes(*view.device)) return;
                Record record = to_record(view);
                if (filter.takes(record.problem)) records.push_back(std::move(record));
            });
            std::vector<std::pair<std::string, const Record*>> order;  // a template's hash costs more than a comparison
            order.reserve(records.size());
            for (const Record& record : records) order.emplace_back(record.source.hash(), &record);
            std::ranges::sort(order, [](const auto& a, const auto& b) {
                const auto key = [](const auto& pair) {
                    const Record& r = *pair.second;
                    return std::tie(r.problem.key, r.source.variant, pair.first, r.environment.nvrtc_major,
                                    r.environment.nvrtc_minor, r.model_version, r.rank);
                };
                return key(a) < key(b);
            });
            for (const auto& [hash, record] : order) sink(*record);
        }
}

}  // namespace autotune

#include "cache/sharing/anonymise.h"
#include "cache/sharing/exports.h"
#include "cache/store/json.h"

namespace autotune {

std::size_t export_lines(const Store& store, const ExportOptions& options,
                         const std::function<void(const std::string& line)>& sink) {
    std::size_t count = 0;
    for_each_record(store, options.filter, options.today, [&](const Record& stored) {
        Record record = stored;
        if (!record.local()) record.run.origin = "import";
        record.source.manifest.clear();
        if (options.anonymise) anonymise(record);
        sink(to_line(record));
        ++count;
    });
    return count;
}

}  // namespace autotune

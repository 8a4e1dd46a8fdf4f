// Goal: any bytes in the place of a spool file are records or refused lines, and no record is lost on its way into the
// database.
// Method: each input as a file beside a database, read, then seen by a reader, then taken in by a writer.
#include "cache/store/spool.h"

#include <algorithm>

#include "cache/store/json.h"
#include "cache/store/location.h"
#include "cache/store/store.h"
#include "tests/cache/samples.h"
#include "tests/fuzz/fuzzing.h"

namespace {

namespace fs = std::filesystem;
using namespace autotune;
using namespace autotune::fuzzing;

std::vector<std::string> lines_of(const Store& store) {
    std::vector<std::string> lines;
    for (const bool predicted : {false, true})
        for (Record& record : store.records({.predicted = predicted}, {})) {
            record.id = {};
            lines.push_back(to_line(record));
        }
    std::ranges::sort(lines);
    return lines;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const samples::Folder folder;
    const fs::path database = folder / "tune.db", spool = folder / "spool";
    fs::create_directory(spool);
    write_input(spool / "one.jsonl", {data, size});
    const auto contents = read_spool(spool / "one.jsonl", Writers::trusted);
    require(contents.has_value());
    for (const Record& record : contents->records) {
        const std::string line = to_line(record);
        require(to_line(record_from_line(line)) == line);
    }
    std::vector<std::string> seen;
    const bool readable = or_error([&] {
        const Store reader = Store::open({.path = database, .mode = Store::Mode::read});
        seen = lines_of(reader);
    });
    require(readable);
    if (!contents->records.empty()) {
        Store writer = Store::open({.path = database});
        if (or_error([&] { writer.fold_spools(); })) {
            require(lines_of(writer) == seen);
            require(writer.check().empty());
        }
    }
    fs::remove_all(spool);
    for (const fs::path& file : {database, trials_path(database)})
        for (const char* companion : {"", "-journal", "-lock", "-queue"}) fs::remove(file.string() + companion);
    return 0;
}

// Goal: any bytes in the place of a database, or of the trials beside one, are read, checked, written to and salvaged,
// or refused with an Error; what is salvaged is sound.
#include <sqlite3.h>

#include <filesystem>
#include <memory>

#include "cache/store/location.h"
#include "cache/store/upkeep.h"
#include "tests/cache/samples.h"
#include "tests/fuzz/fuzzing.h"

namespace {

namespace fs = std::filesystem;
using namespace autotune;
using namespace autotune::fuzzing;

void read_all(const fs::path& path) {
    Store store = Store::open({.path = path, .mode = Store::Mode::read});
    or_error([&] { store.scan({.with_problem = false}, {}, [](const RecordView&) {}); });
    or_error([&] { (void)store.records({}, {}); });
    or_error([&] { (void)store.records({.predicted = true}, {}); });
    or_error([&] {
        for (const StoredRun& run : store.runs()) (void)store.trials(run.id);
    });
    or_error([&] { (void)store.negatives("scale", "h200"); });
    or_error([&] { (void)store.aliases(); });
    or_error([&] { (void)store.devices(); });
    or_error([&] { (void)Upkeep{store}.statistics({}); });
}

void write_one(const fs::path& path) {
    Store store = Store::open({.path = path});
    const Record one = samples::record(77, 10.0);
    or_error([&] { store.put(std::span{&one, 1}); });
    or_error([&] { samples::search(store, samples::start(78), {{samples::config(64), 20.0}}); });
    or_error([&] { Upkeep{store}.prune({.trials = true, .stale = true}, samples::today(), false); });
    or_error([&] { Upkeep{store}.compact(); });
}

void forget(const fs::path& database) {
    fs::remove_all(database.parent_path() / "spool");
    for (const fs::path& file : {database, trials_path(database)})
        for (const char* companion : {"", "-journal", "-wal", "-shm", "-lock", "-queue"})
            fs::remove(file.string() + companion);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const samples::Folder folder;
    const fs::path from = folder / "in.db", to = folder / "out.db";
    static const fs::path sound = [] {
        fs::path path = folder / "sound.db";
        samples::search(*std::make_unique<Store>(Store::open({.path = path})), samples::start(),
                        {{samples::config(64), 20.0}, {samples::config(128), 21.0}});
        // Its trials are those of the corpus.
        sqlite3* db = nullptr;
        require(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
        require(sqlite3_exec(db, "UPDATE meta SET value = '0123456789abcdef0123456789abcdef' WHERE key = 'db_uuid'",
                             nullptr, nullptr, nullptr) == SQLITE_OK);
        sqlite3_close(db);
        return path;
    }();
    // Trials of nothing are not read, so they lie beside a database that is sound.
    if (text_of({data, size}).find("CREATE TABLE trial") != std::string_view::npos) {
        fs::copy_file(sound, from);
        write_input(trials_path(from), {data, size});
    } else {
        write_input(from, {data, size});
    }
    or_error([&] { read_all(from); });
    or_error([&] { (void)faults_of(from); });
    or_error([&] {
        salvage(from, to);
        require(faults_of(to).empty());
    });
    or_error([&] { write_one(from); });
    forget(from);
    forget(to);
    return 0;
}

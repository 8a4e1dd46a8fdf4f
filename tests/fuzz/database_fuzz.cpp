// Any bytes in the place of a database are read, checked and salvaged, or refused with an Error; what is salvaged is
// sound.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "autotune/error.h"
#include "cache/store/location.h"
#include "cache/store/upkeep.h"

namespace {

namespace fs = std::filesystem;
using namespace autotune;

template <class Action>
void or_error(const Action& action) {
    try {
        action();
    } catch (const Error&) {
    }
}

struct TemporaryFolder {
    TemporaryFolder() {
        std::string pattern = (fs::temp_directory_path() / "autotune-fuzz-XXXXXX").string();
        path = ::mkdtemp(pattern.data());
    }
    ~TemporaryFolder() { fs::remove_all(path); }
    fs::path path;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const TemporaryFolder folder;
    const fs::path from = folder.path / "in.db", to = folder.path / "out.db";
    std::ofstream{from, std::ios::binary}.write(reinterpret_cast<const char*>(data),
                                                static_cast<std::streamsize>(size));
    or_error([&] {
        const Store store = Store::open({.path = from, .mode = Store::Mode::read});
        or_error([&] { store.scan({.with_problem_json = false}, {}, [](const RecordView&) {}); });
        or_error([&] { (void)store.records({}, {}); });
        or_error([&] { (void)store.records({.predicted = true}, {}); });
        or_error([&] { (void)store.runs(); });
        or_error([&] { (void)store.negatives("scale", "h200"); });
    });
    or_error([&] { (void)faults_of(from); });
    or_error([&] {
        salvage(from, to);
        if (!faults_of(to).empty()) std::abort();
    });
    for (const fs::path& file : {from, to})
        for (const fs::path& one : {file, trials_path(file)})
            for (const char* companion : {"", "-journal", "-lock", "-queue"})
                ::unlink((one.string() + companion).c_str());
    return 0;
}

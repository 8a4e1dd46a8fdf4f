// Goal: a list of misses, whoever wrote it, is read as far as it makes sense, and counting one more keeps what was
// read. Method: each input as the file beside a database.
#include <algorithm>

#include "cache/store/miss_list.h"
#include "tests/cache/samples.h"
#include "tests/fuzz/fuzzing.h"

namespace {

using namespace autotune;
using namespace autotune::fuzzing;

std::vector<std::string> names_of(const MissList& list) {
    std::vector<std::string> names;
    for (const StoredMiss& miss : list.read()) names.push_back(miss.name());
    std::ranges::sort(names);
    return names;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const samples::Folder folder;
    const MissList list{folder / "tune.db"};
    write_input(list.path(), {data, size});
    std::vector<std::string> before = names_of(list);
    require(before.size() <= MissList::most);
    const StoredMiss one{.op = "added here", .device_fp = std::string(64, 'a'), .last = 1};
    require(list.read().size() == before.size());
    MissList changed = list;
    require(changed.add(std::span{&one, 1}));
    const std::vector<std::string> after = names_of(changed);
    if (before.size() < MissList::most) {
        if (!std::ranges::binary_search(before, one.name())) before.push_back(one.name());
        std::ranges::sort(before);
        require(after == before);
    }
    require(changed.drop([](const StoredMiss&) { return true; }));
    require(changed.read().empty());
    return 0;
}

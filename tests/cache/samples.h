#ifndef AUTOTUNE_TESTS_CACHE_SAMPLES_H
#define AUTOTUNE_TESTS_CACHE_SAMPLES_H

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "cache/store/store.h"

namespace autotune::samples {

/// A folder of its own, removed with everything in it.
class Folder {
public:
    Folder();
    ~Folder();
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    const std::filesystem::path& path() const noexcept { return path_; }
    std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

private:
    std::filesystem::path path_;
};

DeviceIdentity device(std::string fp = "h200");
Environment environment();
/// op 'scale' with the variants 'vector' and 'naive'.
std::vector<TemplateIdentity> templates();
ProblemIdentity problem(std::int64_t n = 1024);
Config config(std::int64_t threads, std::int64_t vec = 1, std::string variant = "vector");
Outcome timed(double time_us);
Outcome failed(Ending ending);
RunStart start(std::int64_t n = 1024);
Finalist finalist(Config config, double time_us);
/// A whole search: two trials and a finalist each for the configs.
RunSummary search(Store& store, const RunStart& start, const std::vector<std::pair<Config, double>>& times);
Today today();
Record record(std::int64_t n, double time_us);
/// A run's: the same for the same name.
std::string uuid_named(std::string_view name);

}  // namespace autotune::samples
#endif

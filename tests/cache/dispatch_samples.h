#ifndef AUTOTUNE_TESTS_CACHE_DISPATCH_SAMPLES_H
#define AUTOTUNE_TESTS_CACHE_DISPATCH_SAMPLES_H

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autotune/dispatcher.h"
#include "cache/store/binaries.h"
#include "tests/cache/fake_driver.h"
#include "tests/cache/samples.h"
#include "tuner/model/op_set.h"

namespace autotune::samples {

/// An op of two variants: 'vector' (VEC, THREADS; a vector must divide n; scratch where SPLIT is 2) and 'naive'.
Op scale_op();
/// The same as a folder for --ops.
void write_scale_op(const std::filesystem::path& folder);

/// A database and a folder of binaries for scale_op, in a folder of their own, on the fake driver.
class DispatchSetting {
public:
    DispatchSetting();

    fake::Driver driver;  ///< first: the others ask it
    Folder folder;
    OpSet ops = OpSet::of({scale_op()});
    std::vector<std::string> logged{};

    const Op& op() const { return ops.find("scale"); }
    Instance instance(std::int64_t n, const std::string& dtype = "f32", int align = 16) const;
    /// Stores a search: the configs with their times, the fastest first.
    void tuned(std::int64_t n, const std::vector<std::pair<Config, double>>& times,
               Verified verified = Verified::verified);
    /// Stores a search on an emulated GPU of the fake one's capability.
    void predicted(std::int64_t n, const std::vector<std::pair<Config, double>>& times,
                   const std::string& part = "twin", int sm_count = 0, int model = 1);
    /// Puts a binary where the dispatcher looks, its bytes the config's text.
    void put_binary(const Config& config, std::int64_t n, std::pair<int, int> nvrtc = {13, 0},
                    const std::string& arch = "sm_90");
    Dispatcher::Options options();
    RunStart start(std::int64_t n) const;

    /// A call with n elements at addresses that are 256-byte aligned, shifted by `shift` bytes.
    Decision launch(Dispatcher& dispatcher, const Handle& handle, std::int64_t n, CUstream stream = nullptr,
                    std::uintptr_t shift = 0, double alpha = 2.0);
    Decision ready(Dispatcher& dispatcher, const Handle& handle, std::int64_t n, CUstream stream = nullptr);
};

Config vector_config(std::int64_t vec, std::int64_t threads = 256, std::int64_t split = 1);
Config naive_config();

}  // namespace autotune::samples
#endif

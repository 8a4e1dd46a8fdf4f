#ifndef AUTOTUNE_CACHE_DISPATCH_KERNELS_H
#define AUTOTUNE_CACHE_DISPATCH_KERNELS_H

#include <cuda.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/sharing/bundle.h"
#include "cache/store/binaries.h"
#include "device/compiler.h"
#include "device/driver.h"
#include "tuner/model/instance.h"

namespace autotune {

/// A binary that the driver has loaded: independent of contexts.
struct LoadedLibrary {
    CUlibrary library = nullptr;
    std::vector<KernelInfo> kernels{};
    std::map<std::string, CUkernel, std::less<>> handles{};  ///< by the name that the source gives
    int nvrtc_major = 0, nvrtc_minor = 0;
};

/// The libraries of one config, by source.
struct KernelSet {
    std::map<std::string, LoadedLibrary*, std::less<>> libraries{};
    int device = 0;
    bool compiled_otherwise = false;  ///< by another NVRTC than was asked for first, or for an earlier part
};

/// Kernels by what they are made from. Each is loaded once a process; a binary comes from the folders of stored ones,
/// or a bundle, or is compiled when there is none. Without a compiler one for an earlier part of the same major
/// capability does, unless the source names its target. One thread at a time.
class Kernels {
public:
    struct Options {
        std::vector<BinaryStore> binaries{};   ///< searched in order
        std::vector<const Bundle*> bundles{};  ///< then these
        std::optional<BinaryStore> keep_in{};  ///< takes what is compiled
        bool compile = true;
    };
    Kernels(const DriverCalls& calls, Options options) : calls_{calls}, options_{std::move(options)} {}
    ~Kernels();
    Kernels(const Kernels&) = delete;
    Kernels& operator=(const Kernels&) = delete;

    /// The kernels of a config on a device. versions: of NVRTC, the one that made what was measured first.
    /// loaded_only: as under capture; then nullopt where something would have to be loaded into the current context.
    /// Throws Error: no binary and no compiler, a source that does not compile; DeviceFailure for a binary that does
    /// not load.
    std::optional<KernelSet> get(const Instance& instance, const Config& config, int device,
                                 std::span<const std::pair<int, int>> versions, bool loaded_only);

    /// A kernel of the set, ready in the current context. Throws DeviceFailure when there is none of that name.
    CUfunction function(const KernelSet& set, const std::string& source, const std::string& entry,
                        std::uint32_t shared_bytes, std::uint32_t cluster_blocks);
    CUdeviceptr variable(const KernelSet& set, const std::string& source, const std::string& symbol,
                         std::uint64_t bytes);
    /// Blocks of the kernel that an SM holds.
    int blocks_per_sm(const KernelSet& set, const Launch& launch);

private:
    struct Found {
        LoadedLibrary* library = nullptr;  ///< null: it would have to be loaded
        bool for_earlier_part = false;
    };
    Found library(const SourceSpec& source, int cc, std::span<const std::pair<int, int>> versions, bool loaded_only);
    /// What there is for this arch, loaded or, unless loaded_only, stored; null: nothing.
    LoadedLibrary* existing(const SourceSpec& source, const std::string& arch,
                            std::span<const std::pair<int, int>> versions, bool loaded_only);
    std::optional<Binary> stored(std::string_view key) const;
    std::optional<Binary> stored_of_any_version(std::string_view source_key) const;
    Binary compiled(const SourceSpec& source, int cc, const std::string& key);
    LoadedLibrary* load(const Binary& binary);
    CUkernel kernel(LoadedLibrary& library, const std::string& entry);
    CUcontext context() const noexcept;

    const DriverCalls& calls_;
    Options options_;
    std::unique_ptr<Compiler> compiler_;
    std::map<std::string, std::unique_ptr<LoadedLibrary>, std::less<>> loaded_;  ///< by binary key
    std::map<std::pair<CUkernel, int>, std::uint32_t> shared_set_;  ///< opted in so far, by kernel and device
    /// Where a kernel of a library was made ready: in another context its first launch would load it.
    std::set<std::pair<const LoadedLibrary*, CUcontext>> ready_;
};

}  // namespace autotune
#endif

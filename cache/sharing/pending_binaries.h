#ifndef AUTOTUNE_CACHE_SHARING_PENDING_BINARIES_H
#define AUTOTUNE_CACHE_SHARING_PENDING_BINARIES_H

#include <cstddef>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "cache/store/binaries.h"
#include "tuner/model/instance.h"

namespace autotune {

/// Binaries of others that no check has seen run here: in the folder `pending` of the binaries, where nothing looks for
/// what it launches. A re-check of imported records runs them in place of what it would compile, and what passes
/// becomes a binary like those compiled here. Any thread may call it.
class PendingBinaries {
public:
    /// folder: of the binaries; empty: there are none. nvrtc_major, nvrtc_minor: of the compiler here, since a time is
    /// stored under its version; 0: there is none, and a binary of any does.
    explicit PendingBinaries(const std::filesystem::path& folder, int nvrtc_major = 0, int nvrtc_minor = 0);

    bool put(const Binary& binary);
    std::size_t count() const;
    /// Every one goes.
    void clear();

    /// What is to run in place of a compile; nullopt: there is none, or it has failed. arch: of the device; the
    /// source's own wins.
    std::optional<Artefact> find(const SourceSpec& source, const std::string& arch);
    /// The config passed: of what `find` gave for it, the very bytes become binaries. Returns how many did,
    /// those that had passed before left out.
    std::size_t accept(const Instance& instance, const Config& config);
    /// The config failed: what `find` gave for it goes, though it may have passed for another problem. Returns how many
    /// it was made of; 0: what failed was compiled here.
    std::size_t drop(const Instance& instance, const Config& config);

private:
    struct Given {
        Binary binary;
        bool failed = false, passed = false;
    };
    template <class Deed>
    std::size_t for_given(const Instance& instance, const Config& config, const Deed& deed);

    BinaryStore binaries_, pending_;
    std::string version_{};  ///< "-13.0"; empty: any
    std::mutex mutex_{};
    std::map<std::string, Given> given_{};  ///< by source_key; guarded by mutex_
};

}  // namespace autotune
#endif

#include "cache/sharing/pending_binaries.h"

#include <fmt/format.h>

#include "device/compiler.h"
#include "device/identity.h"

namespace autotune {

namespace {

std::filesystem::path pending_folder(const std::filesystem::path& folder) {
    return folder.empty() ? folder : folder / "pending";
}

std::string pending_key(const SourceSpec& source, const std::string& arch) {
    return source_key(source, Compiler::fixed_options(), source.arch.empty() ? arch : source.arch);
}

}  // namespace

PendingBinaries::PendingBinaries(const std::filesystem::path& folder, int nvrtc_major, int nvrtc_minor)
    : binaries_{folder}, pending_{pending_folder(folder)} {
    if (nvrtc_major > 0) version_ = fmt::format("-{}.{}", nvrtc_major, nvrtc_minor);
}

bool PendingBinaries::put(const Binary& binary) { return pending_.put(binary); }

std::size_t PendingBinaries::count() const { return pending_.keys().size(); }

void PendingBinaries::clear() {
    for (const std::string& key : pending_.keys()) pending_.remove(key);
}

std::optional<Artefact> PendingBinaries::find(const SourceSpec& source, const std::string& arch) {
    const std::string name = pending_key(source, arch);
    const std::lock_guard lock{mutex_};
    if (const auto given = given_.find(name); given != given_.end())
        return given->second.failed ? std::nullopt : std::optional{given->second.binary.artefact};
    std::optional<Binary> binary;
    if (!version_.empty())
        binary = pending_.get(name + version_);
    else if (const std::vector<std::string> keys = pending_.keys_of(name); !keys.empty())
        binary = pending_.get(keys.front());
    if (!binary) return std::nullopt;
    return given_.emplace(name, Given{std::move(*binary)}).first->second.binary.artefact;
}

template <class Deed>
std::size_t PendingBinaries::for_given(const Instance& instance, const Config& config, const Deed& deed) {
    const std::lock_guard lock{mutex_};
    if (given_.empty()) return 0;
    std::size_t count = 0;
    for (const SourceSpec& source : instance.sources(config)) {
        const auto given = given_.find(pending_key(source, arch_name(instance.limits().cc)));
        if (given != given_.end() && deed(given->second)) ++count;
    }
    return count;
}

std::size_t PendingBinaries::accept(const Instance& instance, const Config& config) {
    return for_given(instance, config, [&](Given& given) {
        if (given.failed || given.passed || !binaries_.put(given.binary)) return false;
        given.passed = true;
        pending_.remove(given.binary.key);
        return true;
    });
}

std::size_t PendingBinaries::drop(const Instance& instance, const Config& config) {
    return for_given(instance, config, [&](Given& given) {
        given.failed = true;
        pending_.remove(given.binary.key);
        binaries_.remove(given.binary.key);
        return true;
    });
}

}  // namespace autotune

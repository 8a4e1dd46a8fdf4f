#include "cache/dispatch/dispatcher_impl.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "cache/store/location.h"

namespace autotune {

namespace {

constexpr std::size_t most_said = 4096;

}  // namespace

Dispatcher::Impl::Impl(Options given) : options{std::move(given)} {
    if (!options.ops) builtin.emplace();
    calls = driver_if_present(&no_driver);
    if (calls && calls->cuDeviceGetCount(&device_count) != CUDA_SUCCESS) device_count = 0;
    if (calls) workspaces = std::make_unique<Workspaces>(*calls);
    devices.resize(static_cast<std::size_t>(std::max(device_count, 1)));
    places = find_places();
    databases = open_databases();
    open_embedded();
    bundled = open_bundles(options, [this](const std::string& what) { log(what); });
    if (calls) kernels = std::make_unique<Kernels>(*calls, kernel_options());
    start_threads();
}

/// The user's own folder of binaries comes first, and only it takes what is compiled: an application's is read.
Kernels::Options Dispatcher::Impl::kernel_options() {
    Kernels::Options about{.compile = options.compile};
    for (const DatabasePlace& place : places) {
        const std::filesystem::path folder = behind_links(place.path).parent_path() / "binaries";
        if (const auto why = shared_folders_are_allowed() ? std::nullopt : untrusted(folder / "any")) {
            log(fmt::format("the binaries beside '{}' are not loaded, since {}", place.path, why->why));
            continue;
        }
        std::error_code error;
        if (std::filesystem::exists(folder, error) && !std::filesystem::is_directory(folder, error)) {
            log(fmt::format("'{}' is no folder, so no binary is found or kept there", folder.string()));
            continue;
        }
        about.binaries.emplace_back(folder);
        if (options.keep_binaries && place.layer == Layer::user) about.keep_in = BinaryStore{folder};
    }
    for (const Bundle& bundle : bundled->with_code) about.bundles.push_back(&bundle);
    return about;
}

Dispatcher::Impl::~Impl() {
    if (!in_child()) {
        online.reset();
        tuning.reset();
        learner.reset();
        return;
    }
    static_cast<void>(online.release());
    static_cast<void>(tuning.release());  // their threads are the parent's
    static_cast<void>(learner.release());
    static_cast<void>(kernels.release());  // a child of a fork may not call the driver
    static_cast<void>(workspaces.release());
    static_cast<void>(bundled.release());
    static_cast<void>(new Databases{std::move(databases)});  // nor close its parent's connections
}

void Dispatcher::Impl::log(std::string sentence) {
    if (!options.log || said.size() >= most_said || !said.insert(sentence).second) return;
    try {
        options.log(sentence);
    } catch (...) {  // a line that cannot be written is no reason to launch nothing
    }
}

}  // namespace autotune

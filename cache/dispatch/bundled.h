#ifndef AUTOTUNE_CACHE_DISPATCH_BUNDLED_H
#define AUTOTUNE_CACHE_DISPATCH_BUNDLED_H

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autotune/dispatcher.h"
#include "cache/sharing/bundle.h"
#include "cache/store/store.h"

namespace autotune {

/// What an application brings along.
struct Bundled {
    std::vector<Bundle> with_code{};  ///< whose binaries may be loaded
    std::optional<Store> records{};   ///< of all of them, in memory; none: they hold none
};

/// Opens the bundles that the options name. log: gets a sentence for each that does not count, or not wholly.
std::unique_ptr<Bundled> open_bundles(const Dispatcher::Options& options,
                                      const std::function<void(const std::string&)>& log);

}  // namespace autotune
#endif

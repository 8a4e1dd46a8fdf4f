#include "cache/dispatch/bundled.h"

#include <fmt/core.h>

#include "autotune/error.h"
#include "cache/store/location.h"

namespace autotune {

std::unique_ptr<Bundled> open_bundles(const Dispatcher::Options& options,
                                      const std::function<void(const std::string&)>& log) {
    auto bundled = std::make_unique<Bundled>();
    const auto take = [&](const std::function<Bundle()>& open, const std::optional<Untrusted>& distrust) {
        try {
            Bundle bundle = open();
            if (const std::vector<Record> records = bundle.records(log); !records.empty()) {
                if (!bundled->records) bundled->records = Store::in_memory();
                bundled->records->put(records);
            }
            if (bundle.binary_keys().empty()) return;
            if (distrust)
                log(fmt::format("the binaries of the bundle '{}' are not loaded, since {}", bundle.name(), distrust->why));
            else
                bundled->with_code.push_back(std::move(bundle));
        } catch (const Error& error) {
            log(error.what());
        }
    };
    for (const std::string& path : options.bundles) take([&] { return Bundle::read(path); }, untrusted(path));
    for (std::size_t i = 0; i < options.embedded_bundles.size(); ++i)
        take([&] { return Bundle::view(options.embedded_bundles[i], fmt::format("embedded bundle {}", i + 1)); },
             std::nullopt);
    return bundled;
}

}  // namespace autotune

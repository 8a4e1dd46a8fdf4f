// Which databases a dispatcher reads, and when it reads them anew.
#include <fmt/core.h>

#include <algorithm>

#include "autotune/error.h"
#include "cache/dispatch/dispatcher_impl.h"
#include "cache/sharing/embedded.h"
#include "cache/store/database.h"
#include "cache/store/location.h"
#include "cache/store/opening.h"

namespace autotune {

namespace {

/// How long a reader waits for a writer's commit; the dispatcher comes back later rather than wait more.
constexpr std::chrono::milliseconds reading_patience{1000};

}  // namespace

/// A system layer counts only if it is there: whoever puts one there later has applications refresh or start again.
std::vector<DatabasePlace> Dispatcher::Impl::find_places() const {
    std::vector<DatabasePlace> out;
    if (options.user_database)
        if (const auto own = Store::default_path(); !own.empty()) out.push_back({own.string(), Layer::user});
    for (const std::string& path : options.databases)
        if (out.empty() || out.front().path != path) out.push_back({path, Layer::project});
    if (!options.learn.empty() && std::ranges::find(out, options.learn, &DatabasePlace::path) == out.end())
        out.push_back({options.learn, Layer::project});
    std::error_code error;
    if (options.system_database)
        for (const std::filesystem::path& path : system_databases())
            if (std::filesystem::exists(path, error)) out.push_back({path.string(), Layer::system});
    return out;
}

Databases Dispatcher::Impl::open_databases() {
    Databases out;
    for (const DatabasePlace& place : places) {
        try {
            Store store =
                Store::open({.path = place.path,
                             .mode = Store::Mode::read,
                             .warn = [this](const std::string& what) { log(what); },
                             .patience = reading_patience,
                             .immutable = place.layer == Layer::system && options.system_database_is_immutable});
            out.generations.push_back(store.generation());
            out.stores.push_back(std::move(store));
            out.layers.push_back(place.layer);
        } catch (const Error& error) {
            if (error.help() == locked_help)
                out.locked = true;
            else
                log(fmt::format("{}; it is ignored", error.what()));
        } catch (const DatabaseFailure& failure) {
            if (failure.busy())
                out.locked = true;  // opened, and held by a writer when it was read
            else
                log(fmt::format("'{}' is damaged ({}); it is ignored", shown(place.path), failure.what()));
        }
    }
    last_look = std::chrono::steady_clock::now();
    return out;
}

void Dispatcher::Impl::open_embedded() {
    if (!options.embedded_database.empty()) {
        try {
            embedded.push_back(Store::open_bytes(options.embedded_database));
        } catch (const Error& error) {
            log(error.what());
        }
    }
    if (options.embedded_records.empty()) return;
    std::vector<std::string> refused;
    embedded.push_back(embedded_store(options.embedded_records, ops(), refused));
    for (std::string& sentence : refused) log(std::move(sentence));
}

std::vector<LayeredStore> Dispatcher::Impl::readable() {
    std::vector<LayeredStore> stores;
    for (std::size_t i = 0; i < databases.stores.size(); ++i)
        stores.push_back({&databases.stores[i], databases.layers[i]});
    for (Store& store : embedded) stores.push_back({&store, Layer::embedded});
    if (bundled->records) stores.push_back({&*bundled->records, Layer::embedded});
    return stores;
}

/// Looks whether a database changed, at most once a second unless asked to; then all plans are made anew. While one is
/// locked, what is known stays. To retry: also what has failed.
void Dispatcher::Impl::look_for_news(Look look) {
    const bool now = look != Look::once_a_second;
    if (!now && std::chrono::steady_clock::now() - last_look < std::chrono::seconds{1}) return;
    last_look = std::chrono::steady_clock::now();
    bool changed = now || databases.stores.size() != places.size();  // one may have come into being
    bool replaced = false;
    for (std::size_t i = 0; i < databases.stores.size(); ++i) {
        try {
            const std::int64_t generation = databases.stores[i].generation();
            changed = changed || databases.stores[i].path().empty() || generation != databases.generations[i];
            replaced = replaced || generation < 0;
        } catch (const Error& error) {
            if (error.help() == locked_help) return;
            changed = true;  // opened anew it says what ails it, and keeps no news of the others back
        }
    }
    if (!changed) return;
    if (now) places = find_places();
    Databases next = open_databases();
    if (next.locked) return;
    const bool same = !now && !replaced && !databases.locked && next.generations == databases.generations;
    databases = std::move(next);
    if (same) return;                                 // a file that is still not there is no news
    if (look == Look::now_and_retry) failed.clear();  // a compiler or a binary may have come as well
    knowledge.clear();
    forget_plans();
}

}  // namespace autotune

// The GPUs of a database, and which of them are one silicon under two fingerprints. An alias is a row of meta, so that
// older programs read the file as before: "alias:FP:OTHER", with the time it was made.
#include <fmt/core.h>

#include <algorithm>

#include "autotune/error.h"
#include "cache/store/entities.h"
#include "cache/store/shared_rows.h"
#include "cache/store/store.h"
#include "cache/store/store_impl.h"

namespace autotune {

namespace {

constexpr std::string_view alias_prefix = "alias:";

std::string alias_key(std::string_view fp, std::string_view other) {
    return fmt::format("{}{}:{}", alias_prefix, std::min(fp, other), std::max(fp, other));
}

}  // namespace

std::vector<DeviceIdentity> Store::devices(std::string_view op) const {
    return impl_->ask([&] {
        // Records are found by device and template, so each is asked for its first one only.
        Query row = impl_->tune().query(
            "SELECT d.id FROM device d WHERE EXISTS (SELECT 1 FROM template t WHERE ?1 IN ('', t.op) AND EXISTS "
            "(SELECT 1 FROM record r WHERE r.device = d.id AND r.template = t.id))");
        row.bind(op);
        Entities entities{impl_->tune()};
        std::vector<DeviceIdentity> devices;
        while (row.step())
            if (const auto* device = entities.device(row.integer(0))) devices.push_back(device->value);
        return devices;
    });
}

void Store::put_alias(const DeviceIdentity& one, const DeviceIdentity& other) {
    if (one.fp == other.fp) throw Error{Error::Kind::usage, fmt::format("'{}' is no alias of itself", one.name)};
    if (one.vendor != other.vendor || one.limits.cc != other.limits.cc)
        throw Error{Error::Kind::usage, fmt::format("'{}' (sm_{}) and '{}' (sm_{}) are not the same silicon", one.name,
                                                    one.limits.cc, other.name, other.limits.cc)};
    impl_->require_kept();
    impl_->write(false, [&] {
        Database& db = impl_->tune();
        intern(db, one);
        intern(db, other);
        db.query("INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)")
            .bind(alias_key(one.fp, other.fp), std::to_string(impl_->now()))
            .run();
        impl_->count_generation();
    });
}

bool Store::remove_alias(std::string_view fp, std::string_view other_fp) {
    bool removed = false;
    impl_->require_kept();
    impl_->write(false, [&] {
        impl_->tune().query("DELETE FROM meta WHERE key = ?").bind(alias_key(fp, other_fp)).run();
        removed = impl_->tune().changes() > 0;
        if (removed) impl_->count_generation();
    });
    return removed;
}

std::vector<std::pair<std::string, std::string>> Store::aliases() const {
    return impl_->ask([&] {
        std::vector<std::pair<std::string, std::string>> pairs;
        Query row = impl_->tune().query("SELECT key FROM meta WHERE key > 'alias:' AND key < 'alias;' ORDER BY key");
        while (row.step()) {
            const std::string_view pair = row.text(0).substr(alias_prefix.size());
            const std::size_t colon = pair.find(':');
            if (colon == 0 || colon == std::string_view::npos || colon + 1 == pair.size()) continue;
            pairs.emplace_back(pair.substr(0, colon), pair.substr(colon + 1));
        }
        return pairs;
    });
}

}  // namespace autotune

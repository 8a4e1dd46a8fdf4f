#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "device/identity.h"
#include "tools/db.h"
#include "tools/json_events.h"
#include "tools/session.h"
#include "tools/subcommands.h"

namespace autotune {
namespace {

constexpr std::size_t fewest_digits = 8;  ///< of a fingerprint, as they are shown

struct AliasFlags {
    std::vector<std::string> fingerprints;
    bool remove = false;
};

std::string short_of(std::string_view fp) { return std::string{fp.substr(0, 16)}; }

/// The GPUs of the records and those that are here, each once.
std::vector<DeviceIdentity> known_gpus(const Store& store) {
    std::vector<DeviceIdentity> gpus = store.devices();
    for (DeviceIdentity& here : present_devices())
        if (std::ranges::find(gpus, here.fp, &DeviceIdentity::fp) == gpus.end()) gpus.push_back(std::move(here));
    std::ranges::sort(gpus, {}, &DeviceIdentity::fp);
    return gpus;
}

/// The one fingerprint that begins with these digits.
std::string fingerprint_named(const std::vector<std::string>& all, const std::string& digits) {
    if (digits.size() < fewest_digits)
        throw usage(fmt::format("'{}' is too short for a fingerprint: {} digits tell one", digits, fewest_digits),
                    "autotune db alias");
    std::vector<std::string> found;
    for (const std::string& fp : all)
        if (fp.starts_with(digits)) found.push_back(fp);
    if (found.size() == 1) return found.front();
    throw usage(found.empty() ? fmt::format("no GPU of the database has a fingerprint that begins with '{}'", digits)
                              : fmt::format("{} GPUs have a fingerprint that begins with '{}'", found.size(), digits),
                "autotune db alias");
}

const DeviceIdentity& gpu_named(const std::vector<DeviceIdentity>& gpus, const std::string& digits) {
    std::vector<std::string> all;
    for (const DeviceIdentity& gpu : gpus) all.push_back(gpu.fp);
    return *std::ranges::find(gpus, fingerprint_named(all, digits), &DeviceIdentity::fp);
}

void tell_alias(std::string_view one, std::string_view other, std::string_view state, Console& console) {
    const std::string_view said = state == "made"      ? "are one GPU now"
                                  : state == "removed" ? "are two GPUs again"
                                                       : "are one GPU";
    console.result(fmt::format("{} and {} {}", short_of(one), short_of(other), said));
    console.json_line(json_event("db_alias", {{"one", one}, {"other", other}, {"state", state}}));
}

int list_gpus(const Store& store, Console& console) {
    for (const DeviceIdentity& gpu : known_gpus(store)) {
        console.result(fmt::format("{}  {}, {}, {} SMs", short_of(gpu.fp), gpu.name, arch_name(gpu.limits.cc),
                                   gpu.limits.sm_count));
        console.json_line(json_event("db_gpu", {{"fp", gpu.fp},
                                                {"gpu", gpu.name},
                                                {"arch", arch_name(gpu.limits.cc)},
                                                {"sm_count", gpu.limits.sm_count}}));
    }
    for (const auto& [one, other] : store.aliases()) tell_alias(one, other, "is", console);
    return 0;
}

void remove_alias(Store& store, const AliasFlags& flags, Console& console) {
    std::vector<std::string> joined;  // a GPU that is joined need have no record left
    for (const auto& [one, other] : store.aliases()) joined.insert(joined.end(), {one, other});
    std::ranges::sort(joined);
    joined.erase(std::ranges::unique(joined).begin(), joined.end());
    const std::string one = fingerprint_named(joined, flags.fingerprints[0]),
                      other = fingerprint_named(joined, flags.fingerprints[1]);
    if (!store.remove_alias(one, other))
        throw usage(fmt::format("{} and {} are not joined", short_of(one), short_of(other)), "autotune db alias");
    tell_alias(one, other, "removed", console);
}

int run_db_alias(const AliasFlags& flags, const Request& request, Console& console) {
    const Session session{request, console};
    if (flags.fingerprints.empty() && !flags.remove) return list_gpus(session.open_store(Store::Mode::read), console);
    if (flags.fingerprints.size() != 2)
        throw usage("an alias needs two fingerprints; without any, the GPUs of the database are listed",
                    "autotune db alias");
    Store store = session.open_store(Store::Mode::write);
    if (flags.remove) {
        remove_alias(store, flags, console);
        return 0;
    }
    const std::vector<DeviceIdentity> gpus = known_gpus(store);
    const DeviceIdentity &one = gpu_named(gpus, flags.fingerprints[0]), &other = gpu_named(gpus, flags.fingerprints[1]);
    store.put_alias(one, other);
    tell_alias(one.fp, other.fp, "made", console);
    return 0;
}

DbRun declare_db_alias(CLI::App& app) {
    auto flags = std::make_shared<AliasFlags>();
    app.add_option("fingerprints", flags->fingerprints,
                   "two, by their first 8 digits or more; without any, the GPUs of the database are listed");
    app.add_flag("--remove", flags->remove, "part them again");
    return [flags](const Request& request, Console& console) { return run_db_alias(*flags, request, console); };
}

}  // namespace

DbVerb db_alias() {
    return {.name = "alias",
            .about = "GPUs of the database, and which of them are one silicon under two fingerprints",
            .example = "autotune db alias 3f1c09ab 77e0d2c4",
            .flags = takes_store,
            .declare = declare_db_alias};
}

}  // namespace autotune

#include "c_api/given_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <span>

#include "autotune/tuning.h"
#include "c_api/guarded.h"

namespace autotune::c_api {
namespace {

constexpr std::uint64_t known_flags = AUTOTUNE_NO_USER_DATABASE | AUTOTUNE_NO_PREDICTIONS | AUTOTUNE_NO_COMPILE |
                                      AUTOTUNE_KEEP_NO_BINARIES | AUTOTUNE_NO_SYSTEM_DATABASE |
                                      AUTOTUNE_SYSTEM_DATABASE_IS_IMMUTABLE | AUTOTUNE_ONLY_LOCAL;

/// What the first version of the struct had; more may have come.
constexpr std::size_t least_options = offsetof(autotune_options, online_share) + sizeof(double);

std::chrono::milliseconds milliseconds_of(std::uint64_t given, std::chrono::milliseconds usual) {
    constexpr std::uint64_t most = 86'400'000;  // a day
    return given ? std::chrono::milliseconds{std::min(given, most)} : usual;
}

void set_policy(const autotune_options& given, Dispatcher::Options& wanted) {
    if (given.on_miss < AUTOTUNE_RUN_DEFAULT || given.on_miss > AUTOTUNE_FAIL)
        throw misuse(
            fmt::format("autotune_options.on_miss is {}, which is none of enum autotune_on_miss", given.on_miss));
    wanted.on_miss = static_cast<OnMiss>(given.on_miss);
    wanted.tune_budget = milliseconds_of(given.tune_budget_ms, wanted.tune_budget);
    wanted.tune_patience = milliseconds_of(given.tune_patience_ms, wanted.tune_patience);
    if (given.learn) wanted.learn = given.learn;
    if (wanted.on_miss != OnMiss::tune_now && wanted.on_miss != OnMiss::tune_behind) return;
    if (wanted.learn.empty() && !wanted.user_database)
        throw misuse(
            "on_miss tunes, but neither the user's database is used nor is one named in autotune_options.learn");
    wanted.tune = tuner_for({.database = wanted.learn, .ops = wanted.ops, .worker = {}, .log = wanted.log});
}

std::span<const std::byte> bytes_of(const autotune_bytes& piece, std::string_view what) {
    require(piece.data || piece.size == 0, what);
    return {static_cast<const std::byte*>(piece.data), piece.size};
}

std::vector<std::span<const std::byte>> bytes_of(const autotune_bytes* pieces, std::size_t count) {
    std::vector<std::span<const std::byte>> out;
    require(pieces || count == 0, "embedded_bundles");
    for (std::size_t i = 0; i < count; ++i) out.push_back(bytes_of(pieces[i], fmt::format("embedded_bundles[{}]", i)));
    return out;
}

}  // namespace

void require(bool given, std::string_view what) {
    if (!given) throw misuse(fmt::format("{} is a null pointer", what));
}

autotune_options options_of(const autotune_options* given) {
    autotune_options options{};
    options.size = sizeof options;
    if (!given) return options;
    if (given->size < least_options)
        throw misuse(
            fmt::format("autotune_options.size is {}, and the least there is is {}", given->size, least_options));
    std::memcpy(&options, given, std::min(given->size, sizeof options));
    const auto* bytes = reinterpret_cast<const unsigned char*>(given);
    for (std::size_t i = sizeof options; i < given->size; ++i)
        if (bytes[i])
            throw misuse(fmt::format("autotune_options has something set that this library ({}) does not know",
                                     autotune_version()));
    if (options.flags & ~known_flags)
        throw misuse(fmt::format("autotune_options.flags has a bit that this library ({}) does not know: {:#x}",
                                 autotune_version(), options.flags & ~known_flags));
    return options;
}

std::vector<std::string> words_of(const char* const* words, std::size_t count, std::string_view what) {
    std::vector<std::string> out;
    require(words || count == 0, what);
    for (std::size_t i = 0; i < count; ++i) {
        require(words[i], fmt::format("{}[{}]", what, i));
        out.emplace_back(words[i]);
    }
    return out;
}

Dispatcher::Options dispatcher_options(const autotune_options& options, const OpSet* ops) {
    Dispatcher::Options wanted{
        .databases = words_of(options.databases, options.database_count, "databases"),
        .user_database = !(options.flags & AUTOTUNE_NO_USER_DATABASE),
        .system_database = !(options.flags & AUTOTUNE_NO_SYSTEM_DATABASE),
        .system_database_is_immutable = (options.flags & AUTOTUNE_SYSTEM_DATABASE_IS_IMMUTABLE) != 0,
        .embedded_database = bytes_of(options.embedded_database, "embedded_database.data"),
        .only_local = (options.flags & AUTOTUNE_ONLY_LOCAL) != 0,
        .bundles = words_of(options.bundles, options.bundle_count, "bundles"),
        .embedded_bundles = bytes_of(options.embedded_bundles, options.embedded_bundle_count),
        .ops = ops,
        .predictions = !(options.flags & AUTOTUNE_NO_PREDICTIONS),
        .compile = !(options.flags & AUTOTUNE_NO_COMPILE),
        .keep_binaries = !(options.flags & AUTOTUNE_KEEP_NO_BINARIES),
        .online = words_of(options.online, options.online_count, "online")};
    if (options.online_share != 0) wanted.online_share = options.online_share;
    if (options.most_problems) wanted.most_problems = options.most_problems;
    if (options.log)
        wanted.log = [log = options.log, context = options.log_context](const std::string& sentence) {
            try {
                log(context, sentence.c_str());
            } catch (...) {  // a line that cannot be written is no reason to launch nothing
            }
        };
    set_policy(options, wanted);
    return wanted;
}

}  // namespace autotune::c_api

#include "cache/store/record.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "cache/store/crc32.h"

namespace autotune {

namespace {

constexpr std::array<std::string_view, 3> verified_names{"elsewhere", "checked", "verified"};
constexpr std::array<std::string_view, 4> effort_names{"online", "quick", "normal", "full"};

template <class Enum, std::size_t count>
std::optional<Enum> named(const std::array<std::string_view, count>& names, std::string_view name) noexcept {
    for (std::size_t i = 0; i < count; ++i)
        if (names[i] == name) return static_cast<Enum>(i);
    return std::nullopt;
}

/// Cells of 2 %. Equal within the cell; the borders make it transitive, which a plain margin is not.
std::int64_t time_cell(std::int64_t time_ns) noexcept {
    const auto ns = static_cast<double>(std::max<std::int64_t>(1, time_ns));
    return static_cast<std::int64_t>(std::floor(std::log(ns) / std::log(1.02)));
}

}  // namespace

std::string_view name_of(Verified verified) noexcept { return verified_names[static_cast<std::size_t>(verified)]; }
std::string_view name_of(SearchEffort effort) noexcept { return effort_names[static_cast<std::size_t>(effort)]; }
std::optional<Verified> verified_named(std::string_view name) noexcept { return named<Verified>(verified_names, name); }
std::optional<SearchEffort> search_effort_named(std::string_view name) noexcept {
    return named<SearchEffort>(effort_names, name);
}

std::string RecordKey::text() const {
    return fmt::format("{}-{}-{}-{}.{}-{}", device, source, problem, nvrtc_major, nvrtc_minor, rank);
}

std::optional<RecordKey> RecordKey::parse(std::string_view text) {
    std::array<std::int64_t, 6> numbers{};
    const char* at = text.data();
    const char* const end = text.data() + text.size();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const auto [next, error] = std::from_chars(at, end, numbers[i]);
        if (error != std::errc{} || numbers[i] < 0 || (i >= 3 && numbers[i] > 1'000'000)) return std::nullopt;
        at = next;
        if (i + 1 == numbers.size()) break;
        if (at == end || *at != (i == 3 ? '.' : '-')) return std::nullopt;
        ++at;
    }
    if (at != end) return std::nullopt;
    return RecordKey{.device = numbers[0],
                     .source = numbers[1],
                     .problem = numbers[2],
                     .nvrtc_major = static_cast<int>(numbers[3]),
                     .nvrtc_minor = static_cast<int>(numbers[4]),
                     .rank = static_cast<int>(numbers[5])};
}

std::string stale_reason(const TemplateIdentity& source, const Environment& environment, const Today& today) {
    const auto same = std::find_if(today.templates.begin(), today.templates.end(), [&](const TemplateIdentity& t) {
        return t.op == source.op && t.variant == source.variant;
    });
    if (same == today.templates.end()) {
        const bool known = std::any_of(today.templates.begin(), today.templates.end(),
                                       [&](const TemplateIdentity& t) { return t.op == source.op; });
        return known ? fmt::format("variant '{}' is gone", source.variant)
                     : fmt::format("the op '{}' is not loaded", source.op);
    }
    if (same->abi != source.abi) return fmt::format("the parameters of '{}' mean something else today", source.variant);
    if (same->source_hash != source.source_hash) return fmt::format("the source of '{}' has changed", source.variant);
    if (same->space_hash != source.space_hash) return fmt::format("the space of '{}' has changed", source.variant);
    if (today.nvrtc_major != 0 &&
        (environment.nvrtc_major != today.nvrtc_major || environment.nvrtc_minor != today.nvrtc_minor))
        return fmt::format("measured with NVRTC {}.{}", environment.nvrtc_major, environment.nvrtc_minor);
    return {};
}

std::strong_ordering compare(const OrderKey& a, const OrderKey& b) {
    using Order = std::strong_ordering;
    if (const Order o = b.verified <=> a.verified; o != 0) return o;
    if (const Order o = b.fresh <=> a.fresh; o != 0) return o;
    if (const Order o = b.locked_clocks <=> a.locked_clocks; o != 0) return o;
    if (const Order o = b.effort <=> a.effort; o != 0) return o;
    if (const Order o = b.local <=> a.local; o != 0) return o;
    if (const Order o = a.layer <=> b.layer; o != 0) return o;
    if (const Order o = time_cell(a.time_ns) <=> time_cell(b.time_ns); o != 0) return o;
    if (const Order o = b.tuned_at <=> a.tuned_at; o != 0) return o;
    if (const Order o = a.config_hash <=> b.config_hash; o != 0) return o;
    // No two different records are equal, else the order of merging would show.
    if (const Order o = a.template_hash <=> b.template_hash; o != 0) return o;
    if (const Order o = a.time_ns <=> b.time_ns; o != 0) return o;
    if (const Order o = a.run_uuid <=> b.run_uuid; o != 0) return o;
    if (const Order o = a.rank <=> b.rank; o != 0) return o;
    return a.crc <=> b.crc;
}

RecordOrder::RecordOrder(const Record& r)
    : config_hash{r.config.hash()},
      template_hash{r.source.hash()},
      key{.verified = r.verified,
          .fresh = r.fresh(),
          .locked_clocks = r.run.clock_policy == "locked",
          .effort = r.run.effort,
          .local = r.local(),
          .time_ns = nanoseconds(r.time_us),
          .tuned_at = r.tuned_at,
          .config_hash = config_hash,
          .template_hash = template_hash,
          .run_uuid = r.run.uuid,
          .rank = r.rank,
          .crc = crc_of(r)} {}

std::strong_ordering compare(const Record& a, const Record& b) {
    return compare(RecordOrder{a}.key, RecordOrder{b}.key);
}

std::uint32_t crc_of_row(const CrcParts& parts, const std::array<std::int64_t, 13>& numbers,
                         double max_error) noexcept {
    // One run over all bytes: adding field by field takes twice as long.
    std::array<std::byte, 5 * sizeof(std::uint32_t) + sizeof numbers + sizeof max_error> bytes;
    std::byte* at = bytes.data();
    for (const std::uint32_t part : {parts.device, parts.source, parts.problem, parts.config, parts.run}) {
        std::memcpy(at, &part, sizeof part);
        at += sizeof part;
    }
    std::memcpy(at, numbers.data(), sizeof numbers);
    std::memcpy(at + sizeof numbers, &max_error, sizeof max_error);
    return crc32(std::span<const std::byte>{bytes});
}

std::uint32_t crc_of(const Record& r, const CrcParts& parts) noexcept {
    const std::array<std::int64_t, 13> numbers{r.environment.nvrtc_major,
                                               r.environment.nvrtc_minor,
                                               r.rank,
                                               nanoseconds(r.time_us),
                                               nanoseconds(r.low_us),
                                               nanoseconds(r.high_us),
                                               r.samples,
                                               r.default_us ? nanoseconds(*r.default_us) : -1,
                                               static_cast<std::int64_t>(r.evaluated),
                                               static_cast<std::int64_t>(r.space_size),
                                               static_cast<std::int64_t>(r.run.effort),
                                               static_cast<std::int64_t>(r.verified),
                                               r.tuned_at};
    return crc_of_row(parts, numbers, r.max_error);
}

std::uint32_t crc_of(const Record& r) {
    return crc_of(r, {.device = crc32(r.device.fp),
                      .source = crc32(r.source.hash()),
                      .problem = crc32(std::span<const std::byte>{r.problem.key}),
                      .config = crc32(r.config.variant + ' ' + r.config.hash()),
                      .run = crc32(r.run.uuid)});
}

}  // namespace autotune

#include "cache/store/record.h"

#include <fmt/core.h>
#include <sodium.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "cache/store/crc32.h"
#include "tuner/model/hashing.h"

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

RunUuid run_uuid(std::string_view text) {
    // A value for each character; that of what is no digit has bits beyond a digit's.
    static constexpr std::array<std::uint8_t, 256> values = [] {
        std::array<std::uint8_t, 256> all{};
        all.fill(0x80);
        for (std::uint8_t i = 0; i < 16; ++i) all["0123456789abcdef"[i]] = i;
        return all;
    }();
    RunUuid uuid;
    const auto take = [&](std::string_view digits) {
        std::uint8_t seen = 0;
        for (std::size_t i = 0; i < uuid.size(); ++i) {
            const std::uint8_t high = values[static_cast<std::uint8_t>(digits[2 * i])],
                               low = values[static_cast<std::uint8_t>(digits[2 * i + 1])];
            seen |= high | low;
            uuid[i] = static_cast<std::byte>(high << 4 | low);
        }
        return seen < 0x80;
    };
    if (text.size() != 2 * uuid.size() || !take(text)) take(sha256_hex(text));
    return uuid;
}

namespace {

constexpr std::size_t days_size = 6;

std::array<char, 2 * std::tuple_size_v<RunUuid>> digits_of(const RunUuid& uuid) noexcept {
    constexpr std::string_view digits = "0123456789abcdef";
    std::array<char, 2 * std::tuple_size_v<RunUuid>> text;
    for (std::size_t i = 0; i < uuid.size(); ++i) {
        text[2 * i] = digits[std::to_integer<std::size_t>(uuid[i]) >> 4];
        text[2 * i + 1] = digits[std::to_integer<std::size_t>(uuid[i]) & 15];
    }
    return text;
}

}  // namespace

std::string text_of(const RunUuid& uuid) {
    const auto text = digits_of(uuid);
    return {text.begin(), text.end()};
}

std::string new_run_uuid(std::int64_t started) {
    RunUuid uuid;
    randombytes_buf(uuid.data(), uuid.size());
    auto days = static_cast<std::uint64_t>(std::max<std::int64_t>(0, started)) >> 22;
    for (std::size_t i = days_size; i-- > 0; days >>= 8) uuid[i] = static_cast<std::byte>(days & 0xff);
    return text_of(uuid);
}

RunUuid uuid_of_imported(std::string_view text) {
    const RunUuid own = run_uuid(text);
    RunUuid uuid = run_uuid(fmt::format("import {}", text));
    // One without days, as runs had before there were any, has the name that earlier imports gave it.
    const auto days = std::span{own}.first<days_size>();
    if (std::ranges::all_of(days.first<days_size - 2>(), [](std::byte byte) { return byte == std::byte{0}; }))
        std::ranges::copy(days, uuid.begin());
    return uuid;
}

std::uint32_t crc_of(const RunUuid& uuid) noexcept {
    const auto text = digits_of(uuid);
    return crc32(std::string_view{text.data(), text.size()});
}

std::string RecordKey::text() const {
    std::string numbers;
    for (const char c : problem.numbers)
        fmt::format_to(std::back_inserter(numbers), "{:02x}", static_cast<unsigned char>(c));
    return fmt::format("{}-{}-{}x{}-{}.{}-{}", device, source, problem.form, numbers, nvrtc_major, nvrtc_minor, rank);
}

std::optional<RecordKey> RecordKey::parse(std::string_view text) {
    bool sound = true;
    const auto number = [&](std::int64_t most) {
        std::int64_t value = 0;
        const auto [next, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        sound = sound && error == std::errc{} && value >= 0 && value <= most;
        text.remove_prefix(static_cast<std::size_t>(next - text.data()));
        return value;
    };
    const auto mark = [&](char c) {
        sound = sound && text.starts_with(c);
        text.remove_prefix(std::min<std::size_t>(1, text.size()));
    };
    const auto bytes = [&] {
        std::string out;
        for (unsigned byte = 0; sound && text.size() >= 2 && text.front() != '-'; text.remove_prefix(2)) {
            const auto [next, error] = std::from_chars(text.data(), text.data() + 2, byte, 16);
            sound = error == std::errc{} && next == text.data() + 2;
            out += static_cast<char>(byte);
        }
        return out;
    };
    constexpr std::int64_t most_id = std::numeric_limits<std::int64_t>::max(), most = 1'000'000;
    RecordKey key;
    key.device = number(most_id);
    mark('-');
    key.source = number(most_id);
    mark('-');
    key.problem.form = number(most_id);
    mark('x');
    key.problem.numbers = bytes();
    mark('-');
    key.nvrtc_major = static_cast<int>(number(most));
    mark('.');
    key.nvrtc_minor = static_cast<int>(number(most));
    mark('-');
    key.rank = static_cast<int>(number(most));
    return sound && text.empty() ? std::optional{key} : std::nullopt;
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
      run_uuid{autotune::run_uuid(r.run.uuid)},
      key{.verified = r.verified,
          .fresh = r.fresh(),
          .locked_clocks = r.run.clock_policy == "locked",
          .effort = r.run.effort,
          .local = r.local(),
          .time_ns = nanoseconds(r.time_us),
          .tuned_at = r.tuned_at,
          .config_hash = config_hash,
          .template_hash = template_hash,
          .run_uuid = bytes_of(run_uuid),
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

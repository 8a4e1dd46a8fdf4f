#include "tools/shard.h"

#include <fmt/format.h>

#include <charconv>
#include <string>

#include "autotune/error.h"
#include "tuner/model/hashing.h"

namespace autotune {

namespace {

constexpr std::uint64_t most_shards = 1'000'000;

/// 0: it is no such number.
std::uint64_t count_in(std::string_view text) {
    std::uint64_t number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    return read.ec == std::errc{} && read.ptr == text.data() + text.size() && number <= most_shards ? number : 0;
}

}  // namespace

bool Shard::holds(std::span<const std::byte> key) const {
    constexpr std::size_t digits = 15;
    return count == 1 || std::stoull(sha256_hex(key).substr(0, digits), nullptr, 16) % count == number - 1;
}

Shard Shard::parse(std::string_view text) {
    const std::size_t slash = text.find('/');
    const Shard shard{.number = count_in(text.substr(0, slash)),
                      .count = slash == std::string_view::npos ? 0 : count_in(text.substr(slash + 1))};
    if (shard.number == 0 || shard.count == 0 || shard.number > shard.count)
        throw Error{Error::Kind::usage, fmt::format("--shard is which of how many, from 1/N to N/N, not '{}'", text),
                    "--shard 2/8"};
    return shard;
}

}  // namespace autotune

#ifndef AUTOTUNE_CACHE_DISPATCH_DECISIONS_H
#define AUTOTUNE_CACHE_DISPATCH_DECISIONS_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "autotune/dispatcher.h"
#include "tuner/model/config.h"
#include "tuner/model/op_set.h"

namespace autotune {

/// Which config a problem of an op gets, and how good an answer that was where it was decided.
struct DecidedConfig {
    std::string op{}, device_fp{};
    std::vector<std::byte> problem_key{};
    std::string problem{};  ///< for people
    Config config{};
    Rung rung = Rung::default_config;
    bool verified = false, stale = false;
};

/// Configs by op, problem and device; what processes hand to each other so that all launch the same.
class Decisions {
public:
    static constexpr std::size_t most = 262'144;             ///< that are read
    static constexpr std::size_t most_bytes = 64 << 20;      ///< of a text that is read
    static constexpr std::size_t most_line_bytes = 1 << 16;  ///< of one decision

    /// In place of an earlier one of the same op, problem and device.
    void put(DecidedConfig decided);
    void take_over(const Decisions& others);
    /// Of the device; else of any other, the same one at each call, since ranks on unlike GPUs agree on a config too;
    /// nullptr: none.
    const DecidedConfig* find(std::string_view op, std::span<const std::byte> problem_key,
                              std::string_view device_fp) const;
    std::size_t size() const noexcept { return by_key_.size(); }
    bool empty() const noexcept { return by_key_.empty(); }
    void clear() noexcept { by_key_.clear(); }

    /// The first 64 bits of a SHA-256 over ops, problems and configs in order. Devices and rungs are left out: it
    /// tells whether two processes run the same, not why.
    std::uint64_t hash() const;
    /// Lines of JSON: a head with their number and checksum, then a decision a line. Equal decisions give equal bytes.
    std::vector<std::byte> bytes() const;
    /// Throws Error{usage} for bytes that are none of ours, damaged, cut off, of a newer format or too many.
    static Decisions read(std::span<const std::byte> bytes);

    /// Takes out what the ops of today do not declare; one sentence each, in `why` as long as that is short.
    std::size_t refuse_unknown(const OpSet& ops, std::vector<std::string>& why);

private:
    using Key = std::tuple<std::string, std::vector<std::byte>, std::string>;  ///< op, problem, device
    std::map<Key, DecidedConfig> by_key_;
};

}  // namespace autotune
#endif

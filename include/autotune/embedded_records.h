#ifndef AUTOTUNE_EMBEDDED_RECORDS_H
#define AUTOTUNE_EMBEDDED_RECORDS_H

#include <cstdint>
#include <span>
#include <string_view>

namespace autotune {

/// A record that an application carries in itself, without a file: `autotune db export --as cpp` writes tables of them,
/// Dispatcher::Options::embedded_records takes one. The texts must outlive the dispatcher.
struct EmbeddedRecord {
    std::string_view op{}, variant{};
    std::string_view config{};       ///< `THREADS=256 VEC=8`; counts only where the op has all these values
    std::string_view problem_key{};  ///< the bytes of the problem's canonical key
    std::string_view device_fp{};    ///< 64 hex digits: the kind of GPU that it was measured on
    std::string_view source_hash{}, space_hash{};
    int abi = 1;
    int nvrtc_major = 0, nvrtc_minor = 0;
    std::int64_t time_ns = 0;
    std::int64_t default_ns = 0;  ///< 0: not known
    std::int64_t tuned_at = 0;    ///< seconds since 1970, UTC
    int effort = 2;               ///< 0 online, 1 quick, 2 normal, 3 full
    int verified = 0;             ///< 0 elsewhere, 1 before it was timed, 2 and again after that
};

using EmbeddedRecords = std::span<const EmbeddedRecord>;

}  // namespace autotune
#endif

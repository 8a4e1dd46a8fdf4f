#ifndef AUTOTUNE_EMBEDDED_RECORDS_H
#define AUTOTUNE_EMBEDDED_RECORDS_H

#include <cstdint>
#include <span>
#include <string_view>

namespace autotune {

/// A kind of GPU, as far as it takes to tell how like another one it is. cc: 90 for 9.0; 0: nothing but `fp` is known,
/// and only the same kind is answered.
struct EmbeddedDevice {
    std::string_view fp{};    ///< 64 hex digits: what decides a kernel's speed
    std::string_view name{};  ///< "NVIDIA H200": for people
    int cc = 0, sm_count = 0;
    int bandwidth_gbs = 0;
    int max_threads = 1024;  ///< a block
    int max_shared = 0;      ///< bytes a block
    int shared_per_sm = 0;   ///< bytes
    int registers_per_sm = 0, threads_per_sm = 0;
};

/// A record that an application carries in itself, without a file: `autotune db export --as cpp` writes tables of them,
/// Dispatcher::Options::embedded_records takes one. The texts must outlive the dispatcher.
struct EmbeddedRecord {
    std::string_view op{}, variant{};
    std::string_view config{};       ///< `THREADS=256 VEC=8`; counts only where the op has all these values
    std::string_view problem_key{};  ///< the bytes of the problem's canonical key
    EmbeddedDevice device{};         ///< the kind of GPU that it was measured on
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

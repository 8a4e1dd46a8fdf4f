#ifndef AUTOTUNE_CACHE_STORE_IDENTITY_H
#define AUTOTUNE_CACHE_STORE_IDENTITY_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/device.h"
#include "tuner/model/instance.h"

namespace autotune {

/// What ran, beside the device: no wall between rows, but what makes one stale.
struct Environment {
    int nvrtc_major = 0, nvrtc_minor = 0;  ///< 0.0: no compiler here
    std::string driver{};                  ///< "580.159.04"
    int runtime = 0;                       ///< CUDA version of the driver, 13000 for 13.0
    int emulator = 0;                      ///< version of the emulator's model; 0: a real GPU ran
    std::string tool_version{}, os{};
    /// SHA-256, hex, over all of the above.
    std::string hash() const;
    friend bool operator==(const Environment&, const Environment&) = default;
};

/// One variant of an op as it stands in its files today.
struct TemplateIdentity {
    std::string op{}, variant{};
    std::string source_hash{};  ///< SHA-256, hex: the source and every header's bytes, options and defines
    std::string space_hash{};   ///< SHA-256, hex: parameters, their values, needs, constraints, launches
    int abi = 1;                ///< raised when old configs no longer mean the same
    std::string manifest{};     ///< JSON for people: parameters with their values, constraints
    /// SHA-256, hex, over all but the manifest: the key of its row.
    std::string hash() const;
    friend bool operator==(const TemplateIdentity&, const TemplateIdentity&) = default;
};

TemplateIdentity template_of(const Op& op, const Variant& variant);
std::vector<TemplateIdentity> templates_of(const Op& op);

/// A problem as the store keeps it: the key decides, the rest is for queries and people.
struct ProblemIdentity {
    std::string op{};
    std::vector<std::byte> key{};                         ///< Instance::key()
    std::string json{};                                   ///< Instance::key_json()
    std::vector<std::pair<std::string, Value>> fields{};  ///< key fields in the op's order
    /// `rows=32768 cols=4096 dtype=bf16`
    std::string text() const;
};

ProblemIdentity problem_of(const Instance& instance);

/// All that decides a binary's bytes but the compiler's version, 64 hex digits: key version, source with headers,
/// defines, options, target. The driver is not in it.
/// fixed_options  of every compile: Compiler::fixed_options()
/// arch           the one the cubin is for: Artefact::arch
std::string source_key(const SourceSpec& source, std::span<const std::string_view> fixed_options,
                       std::string_view arch);
/// The strict key of a binary: its source_key and the version of NVRTC, "SOURCEKEY-13.0".
std::string binary_key(const SourceSpec& source, std::span<const std::string_view> fixed_options, std::string_view arch,
                       int nvrtc_major, int nvrtc_minor);

}  // namespace autotune
#endif

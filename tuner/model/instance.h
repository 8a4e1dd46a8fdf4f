#ifndef AUTOTUNE_MODEL_INSTANCE_H
#define AUTOTUNE_MODEL_INSTANCE_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/device.h"
#include "tuner/model/config.h"
#include "tuner/model/op.h"

namespace autotune {

/// The fields of a problem, in the op's order, each with a value.
struct Problem {
    std::vector<std::pair<std::string, Value>> fields;
    const Value* find(std::string_view name) const noexcept;
    /// `rows=32768 cols=4096 dtype=bf16`: every field, in the op's order; what `key = false` fields fill inputs with
    /// too.
    std::string text() const;
    friend bool operator==(const Problem&, const Problem&) = default;
};

/// What a caller says beyond the problem: everything has a default.
struct Binding {
    std::vector<std::pair<std::string, Value>> scalars = {};         ///< by name
    std::vector<std::pair<std::string, std::int64_t>> strides = {};  ///< free stride names, elements; default: packed
    std::vector<std::pair<std::string, int>> align = {};             ///< tensor -> bytes, at most 16; default 16
};

/// A tensor with its numbers.
struct BoundTensor {
    std::string name;
    DType dtype = DType::f32;
    Role role = Role::in;
    bool present = true;
    std::vector<std::int64_t> shape, strides;  ///< elements
    std::uint64_t elements = 0;                ///< product of the shape
    std::uint64_t bytes = 0;                   ///< span from the first to the last element
    int align = 16;  ///< min(16, the largest power of two dividing the pointer and every stride in bytes but the last)
    bool contiguous = true;
    const Tensor* spec = nullptr;
};

/// What one compile needs, besides the device's arch.
struct SourceSpec {
    std::string source;  ///< file name, as messages name it
    std::string text;
    std::vector<std::pair<std::string, std::string>> headers;  ///< name -> text
    std::vector<std::pair<std::string, std::string>> defines;  ///< sorted by name
    std::vector<std::string> options;
    std::vector<std::string> entries;  ///< names, or name expressions (those with '<' or ':')
    std::string arch;                  ///< "sm_90a" or empty: the device's own
    /// SHA-256, hex, over all of the above: with arch and NVRTC version the key of a binary.
    std::string hash() const;
};

/// The names of device limits in expressions: `cc`, `sm_count`, `max_shared` and so on. `blocks_per_sm`, known in the
/// grid of a launch only, is not among them.
std::span<const std::string_view> device_names() noexcept;

/// An op with one problem on one device: everything an expression can name, but the parameters. The one place where
/// the op's expressions become numbers. Immutable and cheap to copy; the op must outlive it.
class Instance {
public:
    /// Completes `given` from defaults and `from`s; a scalar may be given as well. A field with a `from` that is given
    /// without its scalar takes the first of the scalar's check values, 0, 1 and 0.5 that leads to it.
    /// Throws Error{usage} naming the field for: an unknown field, a choice not declared, a dim below 1 or above 2^40,
    /// a failed problem constraint, a tensor beyond 2^62 bytes or aligned to less than its elements.
    static Instance make(const Op& op, const std::vector<std::pair<std::string, Value>>& given,
                         const DeviceLimits& limits, const Binding& binding = {});

    const Op& op() const noexcept;
    const Problem& problem() const noexcept;
    const DeviceLimits& limits() const noexcept;
    const std::vector<BoundTensor>& tensors() const noexcept;
    const std::vector<std::pair<std::string, Value>>& scalars() const noexcept;
    const Binding& binding() const noexcept;
    double flops() const noexcept;  ///< 0: not said
    double bytes() const noexcept;  ///< compulsory traffic; 0: not said
    /// From the output's tolerance: u_out of the value, plus rel; of the magnitude 2 sqrt(terms) 2^-24 for "fma" (never
    /// above terms 2^-24; 2^-53 where the output is f64) or ceil(terms / 16) 2^-23 for "mma", plus the unit roundoff of
    /// an intermediate dtype; the smallest subnormal, plus abs. All zero where exact. An output without a tolerance is
    /// exact if it holds integers, else it is one rounding of one term.
    Bound bound_of(std::string_view tensor) const;
    bool exact(std::string_view tensor) const;
    /// The fill with its arguments as numbers. "normal" on an integer dtype means integers from -8 (unsigned: 0) to 8.
    /// "lengths" runs from 0 (`zeros`) or 1 to `max`; like 'full' is the constant `max`, 'skewed' sets modulus 1.
    FillSpec fill_of(const BoundTensor& tensor, std::uint64_t seed) const;

    /// Canonical key: version, op, then the key fields and the implied align and layout fields in name order, fixed
    /// width little-endian. Equal problems have equal keys and only they.
    const std::vector<std::byte>& key() const noexcept;
    /// The same for people and JSON: {"cols":4096,...,"x.align":16,"x.layout":"contiguous"}.
    std::string key_json() const;

    /// Scope of the problem, lets, limits and, with a config, its parameters. The config must outlive it.
    std::unique_ptr<Scope> scope(const Config* config = nullptr) const;

    /// Why the config may not run here: the claim that fails, with numbers; nullopt: valid. Covers the variant's needs
    /// and constraints, declared values, and the device's limits on the launch (threads, shared memory, grid).
    std::optional<std::string> objection(const Config& config) const;
    /// The first variant, in file order, whose needs and constraints hold at its defaults. Throws Error{nothing_found}
    /// when there is none: a fault of the op file.
    Config default_config() const;
    /// The variant's defaults, each an expression over problem, device and earlier parameters; nullopt when `needs`
    /// fails or a default has no value. A default that equals a declared value is that value; one that does not stays
    /// as it is, and is an objection.
    std::optional<Config> defaults_of(const Variant& variant) const;
    /// A config as a person or a foreign file gives it, made whole: values take the type and order of the declared ones
    /// they equal, parameters left out their defaults; a variant left out is the first that has all parameters named.
    /// Throws Error{usage} for unknown variants and parameters and for values not declared.
    Config resolve(const Config& config) const;

    /// The sources of a config (one per distinct `source` of the launches that take place), and its launches. Headers
    /// are those of the op's files that a source includes, also indirectly, and what the variant's `include` names.
    /// Throws Error{usage} for what no objection covers: an argument that is none, a macro that is no word.
    /// blocks_per_sm: what the name means in a grid expression; nullopt where no launch uses it.
    std::vector<SourceSpec> sources(const Config& config) const;
    LaunchSequence launches(const Config& config, std::optional<int> blocks_per_sm = std::nullopt) const;
    /// Whether the grid of a launch that the config makes names blocks_per_sm.
    bool needs_blocks_per_sm(const Config& config) const;

    /// The device reference (op.reference.launches): sources and launches; buffers are the tensors, then per output its
    /// value and its magnitude array of doubles, as scratch in op order.
    std::vector<SourceSpec> reference_sources() const;
    LaunchSequence reference_launches() const;

    struct Data;  ///< tuner/model/instance_data.h
    const Data& data() const noexcept { return *data_; }

private:
    explicit Instance(std::shared_ptr<const Data> data) : data_{std::move(data)} {}
    std::shared_ptr<const Data> data_;
};

}  // namespace autotune
#endif

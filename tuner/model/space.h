#ifndef AUTOTUNE_MODEL_SPACE_H
#define AUTOTUNE_MODEL_SPACE_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tuner/model/instance.h"

namespace autotune {

/// The valid configs of a problem on a device, numbered 0 to size() - 1: variants in file order, then values in file
/// order with the last parameter running fastest. Constraints are applied at the first parameter where all their names
/// are known. The op must outlive it; the instance need not.
class Space {
public:
    /// Rejected raw configs of one variant, by the first claim that failed.
    struct Rejection {
        std::string claim;
        double raw_configs = 0;  ///< a cut subtree counts all it holds
    };
    struct VariantSpace {
        const Variant* variant = nullptr;
        double raw = 0;                          ///< product of the value counts
        std::size_t first = 0, count = 0;        ///< its valid configs, by number
        std::string unmet = {};                  ///< why `needs` excludes all of it; empty when it does not
        std::vector<Rejection> rejections = {};  ///< in order of the claims
    };

    /// Throws Error{usage} when a variant has more than `at_most` valid configs, or when looking for them takes more
    /// than `steps_at_most` values: claims that name all parameters cut nothing off, and a person waits for the answer.
    static Space make(const Instance& instance, std::size_t at_most = 4'000'000,
                      std::uint64_t steps_at_most = std::uint64_t{1} << 28);
    /// Only these configs, for tests and `--config`; numbered in the same order as make() does, whatever theirs, each
    /// once. Throws Error{usage} for one that is not valid.
    static Space of(const Instance& instance, std::span<const Config> configs);

    std::size_t size() const noexcept;
    double raw_size() const noexcept;
    const std::vector<VariantSpace>& variants() const noexcept { return variants_; }
    /// Throws Error{internal} for a number beyond the space, as default_number() is of an empty one.
    Config config(std::size_t number) const;
    std::optional<std::size_t> find(const Config& config) const;
    /// The default config's; 0 when it is not in the space.
    std::size_t default_number() const noexcept { return default_; }

    /// The variant of a config, and the index of each parameter's value in its list.
    std::size_t variant_of(std::size_t number) const noexcept;
    std::span<const std::uint16_t> row(std::size_t number) const noexcept;

    enum class Neighbourhood { hamming, adjacent };
    /// Valid configs of the same variant that differ in one parameter: any other value, or the next one up or down in
    /// the list of values.
    std::vector<std::size_t> neighbours(std::size_t number, Neighbourhood kind) const;

private:
    void set_default(const Instance& instance);
    std::optional<std::size_t> find_row(std::size_t part, std::span<const std::uint16_t> wanted) const noexcept;

    std::vector<VariantSpace> variants_;
    std::vector<std::vector<std::uint16_t>> rows_;  ///< one flat table a variant
    std::size_t default_ = 0;
};

}  // namespace autotune
#endif

#ifndef AUTOTUNE_MODEL_SPACE_H
#define AUTOTUNE_MODEL_SPACE_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tuner/model/diagram.h"
#include "tuner/model/instance.h"

namespace autotune {

struct ParameterGroup;

/// The valid configs of a problem on a device, numbered 0 to size() - 1: variants in file order, then values in file
/// order with the last parameter running fastest. They are not listed: parameters that no constraint connects are kept
/// apart, and of those it does the values are walked one parameter after another, where configs that ask the same of
/// the rest go on as one. So 10^12 valid configs are counted, numbered and drawn from like 10^3. The op must outlive
/// it; the instance need not.
///
/// A variant whose constraints reach too far across its parameters to be walked in file order is walked, and numbered,
/// in an order that closes constraints early: VariantSpace::order, which depends on op, problem and device alone.
class Space {
public:
    /// The index of each parameter's value in its list.
    class Row {
    public:
        Row() = default;
        explicit Row(std::size_t size) : size_{size} {}
        std::size_t size() const noexcept { return size_; }
        std::uint16_t operator[](std::size_t parameter) const noexcept { return values_[parameter]; }
        std::uint16_t& operator[](std::size_t parameter) noexcept { return values_[parameter]; }
        const std::uint16_t* begin() const noexcept { return values_.data(); }
        const std::uint16_t* end() const noexcept { return values_.data() + size_; }

    private:
        std::array<std::uint16_t, 64> values_{};
        std::size_t size_ = 0;
    };

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
        std::vector<std::size_t> order = {};     ///< its parameters, the one that runs fastest last; see above
    };

    /// Throws Error{usage} when a variant has more than `at_most` valid configs, or when finding them takes more than
    /// `steps_at_most` values: claims that tie all parameters to each other leave nothing to share, and a person waits.
    static Space make(const Instance& instance, std::size_t at_most = std::size_t{1} << 56,
                      std::uint64_t steps_at_most = std::uint64_t{1} << 26);
    /// Only these configs, for tests and `--config`; numbered in file order, whatever theirs, each once. Throws
    /// Error{usage} for one that is not valid.
    static Space of(const Instance& instance, std::span<const Config> configs);

    /// Of an op with one variant, what somebody else found to be valid: value indices, one row after the other in
    /// lexicographic order, none twice. Nothing is checked.
    static Space of_rows(const Instance& instance, std::span<const std::uint16_t> rows);

    std::size_t size() const noexcept;
    double raw_size() const noexcept;
    const std::vector<VariantSpace>& variants() const noexcept { return variants_; }
    /// Throws Error{internal} for a number beyond the space, as default_number() is of an empty one.
    Config config(std::size_t number) const;
    std::optional<std::size_t> find(const Config& config) const;
    /// The default config's; 0 when it is not in the space.
    std::size_t default_number() const noexcept { return default_; }

    /// The variant of a config, and its row. The cost of a row is a few steps a parameter.
    std::size_t variant_of(std::size_t number) const noexcept;
    Row row(std::size_t number) const noexcept;
    /// The config of a row; nullopt: it is not valid.
    std::optional<std::size_t> number_of(std::size_t variant, const Row& row) const noexcept;

    /// hamming            one parameter differs, by any value
    /// adjacent           any parameters differ, each by moving to the nearest value, up or down the list, that occurs
    ///                    in a valid config of the variant
    /// strictly_adjacent  the same, but to the next value of the list, whether it occurs or not
    enum class Neighbourhood { hamming, adjacent, strictly_adjacent };
    /// Valid configs of the same variant near one, without itself. Of the adjacent ones, which can be 3 to the power of
    /// the parameters, the first `at_most` in order.
    std::vector<std::size_t> neighbours(std::size_t number, Neighbourhood kind,
                                        std::size_t at_most = std::size_t{1} << 16) const;

private:
    /// One variant's groups of parameters that constraints connect, and for each place of the order whose it is.
    struct Part {
        std::vector<Diagram> groups;
        std::vector<std::size_t> group_of;
    };
    class Cursor;
    class Surroundings;

    void add(VariantSpace variant, std::vector<ParameterGroup> groups);
    void set_default(const Instance& instance);

    std::vector<VariantSpace> variants_;
    std::vector<Part> parts_;
    std::size_t default_ = 0;
};

}  // namespace autotune
#endif

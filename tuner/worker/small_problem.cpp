#include "tuner/worker/small_problem.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "autotune/error.h"
#include "tuner/worker/ragged.h"

namespace autotune {
namespace {

constexpr double enough_flops = 3e7, enough_elements = 3e5;  // some 0.1 s with every check on
constexpr double bearable = 20;                              // times that
/// From large to small, at each scale a prime, then what aligned vectors divide but tiles do not, then a power of two.
constexpr std::array<std::int64_t, 43> extents{65543, 65544, 65536, 16411, 16424, 16384, 8209, 8216, 8192, 4099, 4104,
                                               4096,  2053,  2056,  2048,  1031,  1032,  1024, 521,  520,  512,  257,
                                               264,   256,   131,   136,   128,   67,    72,   64,   37,   40,   32,
                                               19,    24,    16,    7,     8,     5,     4,    3,    2,    1};

/// Work, in what is enough of it: what a config keeps between its launches is work, too.
double size_of_work(const Instance& instance, const Config& config) {
    double elements = 0;
    for (const BoundTensor& tensor : instance.tensors())
        if (tensor.present) elements += static_cast<double>(tensor.elements);
    try {
        for (const ScratchBuffer& scratch : instance.launches(config, 1).scratch)
            elements += static_cast<double>(scratch.bytes) / sizeof(float);
    } catch (const EvaluationError&) {  // said when it is tried
    }
    return std::max(instance.flops() / enough_flops, elements / enough_elements);
}

/// What is compiled for a problem may have some of its dims in it: the binary that is checked is the one that is timed.
bool same_binaries(const Instance& a, const Instance& b, const Config& config) {
    const std::vector<SourceSpec> left = a.sources(config), right = b.sources(config);
    return std::ranges::equal(left, right, [](const SourceSpec& one, const SourceSpec& other) {
        return one.source == other.source && one.defines == other.defines && one.entries == other.entries;
    });
}

std::optional<Instance> with_fields(const Instance& instance, const Config& config, const GivenFields& fields) {
    try {
        Instance cut = Instance::make(instance.op(), fields, instance.limits(),
                                      {.scalars = instance.binding().scalars, .align = instance.binding().align});
        if (!cut.objection(config) && same_binaries(cut, instance, config)) return cut;
    } catch (const Error&) {  // no legal problem
    }
    return std::nullopt;
}

/// With its followers where it cannot change alone.
std::optional<Instance> with_extent(const Instance& instance, const Config& config, const std::string& name,
                                    std::int64_t extent) {
    GivenFields fields = given_fields(instance);
    for (auto& [field, value] : fields)
        if (field == name) value = extent;
    if (std::optional<Instance> alone = with_fields(instance, config, fields)) return alone;
    const GivenFields together = with_followers(instance, name, extent);
    return together.empty() ? std::nullopt : with_fields(instance, config, together);
}

/// The problem with one dim cut to the next smaller extent that makes it less work; nullopt where none does.
std::optional<Instance> cut_once(const Instance& instance, const Config& config) {
    std::vector<std::pair<std::int64_t, std::string>> dims;
    for (const auto& [name, value] : given_fields(instance)) {
        const Field* field = instance.op().field(name);
        const auto* extent = std::get_if<std::int64_t>(&value);
        if (field && field->kind == Field::Kind::dim && extent && *extent > 1) dims.emplace_back(*extent, name);
    }
    std::ranges::sort(dims, std::greater{});
    for (const auto& [now, name] : dims)
        for (const std::int64_t extent : extents) {
            if (extent > now * 3 / 4) continue;  // of this scale, or larger
            std::optional<Instance> cut = with_extent(instance, config, name, extent);
            if (cut && size_of_work(*cut, config) < size_of_work(instance, config)) return cut;
        }
    return std::nullopt;
}

}  // namespace

std::optional<Instance> small_problem(const Instance& instance, const Config& config) {
    Instance small = instance;
    while (size_of_work(small, config) > 1) {
        std::optional<Instance> cut = cut_once(small, config);
        if (!cut) break;
        small = std::move(*cut);
    }
    if (size_of_work(small, config) > bearable) return std::nullopt;
    return small;
}

}  // namespace autotune

#include "device/emulator/program.h"

#include <fmt/format.h>

#include <algorithm>

namespace autotune::emulator {
namespace {

constexpr std::array<std::string_view, specials> special_names{"tid.x",
                                                               "tid.y",
                                                               "tid.z",
                                                               "ntid.x",
                                                               "ntid.y",
                                                               "ntid.z",
                                                               "ctaid.x",
                                                               "ctaid.y",
                                                               "ctaid.z",
                                                               "nctaid.x",
                                                               "nctaid.y",
                                                               "nctaid.z",
                                                               "laneid",
                                                               "warpid",
                                                               "nwarpid",
                                                               "smid",
                                                               "nsmid",
                                                               "gridid",
                                                               "lanemask_eq",
                                                               "lanemask_le",
                                                               "lanemask_lt",
                                                               "lanemask_ge",
                                                               "lanemask_gt",
                                                               "dynamic_smem_size",
                                                               "total_smem_size",
                                                               "clusterid.x",
                                                               "clusterid.y",
                                                               "clusterid.z",
                                                               "nclusterid.x",
                                                               "nclusterid.y",
                                                               "nclusterid.z",
                                                               "cluster_ctaid.x",
                                                               "cluster_ctaid.y",
                                                               "cluster_ctaid.z",
                                                               "cluster_nctaid.x",
                                                               "cluster_nctaid.y",
                                                               "cluster_nctaid.z",
                                                               "cluster_ctarank",
                                                               "cluster_nctarank",
                                                               "is_explicit_cluster"};

}  // namespace

int special_named(std::string_view name) noexcept {
    if (name.starts_with('%')) name.remove_prefix(1);
    const auto found = std::find(special_names.begin(), special_names.end(), name);
    return found == special_names.end() ? -1 : static_cast<int>(found - special_names.begin());
}

const DecodedFunction* Program::function(std::string_view name) const noexcept {
    for (auto one = functions.rbegin(); one != functions.rend(); ++one)  // a definition stands behind its declarations
        if (one->name == name) return &*one;
    return nullptr;
}

const DecodedFunction& Program::owner(const Op& op) const noexcept {
    const auto pc = static_cast<std::uint32_t>(&op - ops.data());
    for (const DecodedFunction& one : functions)
        if (pc >= one.first && pc < one.last) return one;
    return functions.front();
}

std::string Program::place(const Op& op) const {
    const SourceLine& line = module.locations[op.location];
    const auto shown = [&](std::uint32_t file, std::uint32_t number) {
        const std::string_view name = file < module.files.size() ? module.files[file] : std::string_view{};
        return fmt::format("{}:{}", name.substr(name.find_last_of('/') + 1), number);
    };
    if (line.line == 0) return fmt::format("line {} of the PTX", text_lines[op.instruction]);
    const std::string inner = shown(line.file, line.line);
    if (line.outer_file == line.file && line.outer_line == line.line) return inner;
    return fmt::format("{} (inlined at {})", inner, shown(line.outer_file, line.outer_line));
}

}  // namespace autotune::emulator

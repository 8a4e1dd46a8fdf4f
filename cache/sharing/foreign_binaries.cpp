#include "cache/sharing/foreign_binaries.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "autotune/error.h"
#include "cache/sharing/judge.h"
#include "cache/store/stored_problem.h"
#include "device/compiler.h"
#include "device/cubin.h"
#include "device/identity.h"
#include "device/occupancy.h"
#include "tuner/model/printable.h"

namespace autotune {

namespace {

constexpr int most_registers = 255;  ///< a thread, on every GPU

/// 90 for "sm_90" and "sm_90a".
std::optional<int> capability_of_arch(std::string_view arch) {
    if (!arch.starts_with("sm_")) return std::nullopt;
    if (arch.ends_with('a') || arch.ends_with('f')) arch.remove_suffix(1);
    int cc = 0;
    const char* end = arch.data() + arch.size();
    const auto [rest, error] = std::from_chars(arch.data() + 3, end, cc);
    return error == std::errc{} && rest == end ? std::optional{cc} : std::nullopt;
}

std::string kernel_objection(const KernelInfo& told, const std::vector<CubinKernel>& kernels,
                             const DeviceLimits& limits) {
    const auto found = std::ranges::find(kernels, told.symbol, &CubinKernel::symbol);
    const std::string name = printable(told.name.substr(0, 64));
    if (found == kernels.end()) return fmt::format("its cubin has no kernel '{}'", name);
    const KernelInfo real = kernel_info(*found);
    if (real.registers != told.registers || real.static_shared_bytes != told.static_shared_bytes ||
        real.stack_bytes != told.stack_bytes || real.barriers != told.barriers || real.max_threads != told.max_threads)
        return fmt::format("its head tells another story of '{}' than its cubin", name);
    if (real.registers < 0 || real.registers > most_registers)
        return fmt::format("'{}' takes {} registers a thread, and no GPU gives more than {}", name, real.registers,
                           most_registers);
    if (real.static_shared_bytes < 0 || real.static_shared_bytes > limits.max_shared)
        return fmt::format("'{}' takes {} bytes of shared memory a block, and an sm_{} has {}", name,
                           real.static_shared_bytes, limits.cc, limits.max_shared);
    if (told.spill_bytes < 0) return fmt::format("'{}' spills {} bytes", name, told.spill_bytes);
    return {};
}

/// What kernels are checked against is compiled here, always.
bool is_of_reference(const NeededSource& needed, const Instance& instance) {
    return std::ranges::any_of(instance.reference_sources(), [&](const SourceSpec& source) {
        return source_key(source, Compiler::fixed_options(), needed.arch) == needed.source_key;
    });
}

/// What the records of a bundle need, as far as they are records for the ops here: sources under their keys.
std::map<std::string, NeededSource> needed_by_records(const Bundle& bundle, const OpSet& ops) {
    const Judge judge{ops};
    std::map<std::string, NeededSource> needed;
    for (Record& record : bundle.records()) {
        const Op* op = ops.find_or_null(record.source.op);
        ProblemIdentity problem;
        if (!op || !judge.objection(record.device).empty() ||
            !judge.objection(op->name, record.config, record.config.hash()).empty() ||
            !judge.read_key(op->name, record.problem.key, problem).empty())
            continue;
        try {
            const Instance instance = instance_of(problem, *op, record.device.limits);
            for (NeededSource& source : needed_sources(instance, record.config))
                if (!is_of_reference(source, instance)) needed.emplace(source.source_key, std::move(source));
        } catch (const Error&) {  // no problem of today's op: its record is refused, too
        }
    }
    return needed;
}

/// Why it is no binary of that source.
std::string misfit(const Binary& binary, const NeededSource& source) {
    const int asked = capability_of_arch(source.arch).value_or(0);
    const int made = capability_of_arch(binary.artefact.arch).value_or(0);
    if (made / 10 != asked / 10 || made > asked)
        return fmt::format("it is for {} where {} was asked for", binary.artefact.arch, source.arch);
    for (const std::string& entry : source.entries)
        if (std::ranges::none_of(binary.artefact.kernels, [&](const KernelInfo& kernel) {
                return kernel.name == entry || kernel.symbol == entry;
            }))
            return fmt::format("it lacks the kernel '{}' of its source", entry);
    return {};
}

}  // namespace

std::vector<NeededSource> needed_sources(const Instance& instance, const Config& config) {
    std::vector<NeededSource> needed;
    for (const Config& each : {config, instance.default_config()}) {
        if (instance.objection(each)) continue;
        for (const SourceSpec& source : instance.sources(each)) {
            const std::string arch = source.arch.empty() ? arch_name(instance.limits().cc) : source.arch;
            std::string key = source_key(source, Compiler::fixed_options(), arch);
            if (std::ranges::find(needed, key, &NeededSource::source_key) == needed.end())
                needed.push_back({.source_key = std::move(key), .arch = arch, .entries = source.entries});
        }
    }
    return needed;
}

std::string objection(const Binary& binary) {
    const Artefact& artefact = binary.artefact;
    const std::optional<int> cc = capability_of_arch(artefact.arch);
    if (!cc) return fmt::format("'{}' is no architecture", printable(artefact.arch.substr(0, 32)));
    if (!binary.key.ends_with(fmt::format("-{}.{}", binary.nvrtc_major, binary.nvrtc_minor)))
        return "its key is of another NVRTC than its head";
    const std::optional<DeviceLimits> limits = limits_of_capability(*cc);
    if (!limits) return fmt::format("sm_{} is no capability that is known here", *cc);
    try {
        const Cubin cubin = read_cubin(artefact.cubin);
        if (cubin.cc != *cc) return fmt::format("its head says {} and its cubin sm_{}", artefact.arch, cubin.cc);
        if (artefact.kernels.empty()) return "it has no kernel";
        for (const KernelInfo& kernel : artefact.kernels)
            if (std::string why = kernel_objection(kernel, cubin.kernels, *limits); !why.empty()) return why;
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

ForeignBinaries judged_binaries(const Bundle& bundle, const OpSet& ops) {
    ForeignBinaries judged;
    const std::vector<std::string> keys = bundle.binary_keys();
    if (keys.empty()) return judged;
    const auto refuse = [&](const std::string& key, const std::string& why) {
        throw Error{Error::Kind::usage,
                    fmt::format("'{}' is not taken in: of its binary {}: {}", bundle.name(), key, why),
                    "leave out --binaries: its records are compiled here"};
    };
    const std::map<std::string, NeededSource> needed = needed_by_records(bundle, ops);
    for (const std::string& key : keys) {
        std::optional<Binary> binary = bundle.binary(key);
        if (!binary) refuse(key, "it is damaged, or of another key");
        if (const std::string why = objection(*binary); !why.empty()) refuse(key, why);
        const auto source = needed.find(key.substr(0, key.find('-')));
        if (source == needed.end()) {
            ++judged.left_out;
            continue;
        }
        if (const std::string why = misfit(*binary, source->second); !why.empty()) refuse(key, why);
        judged.needed.push_back(std::move(*binary));
    }
    return judged;
}

}  // namespace autotune

#include "device/emulator/loaded_module.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "autotune/error.h"

namespace autotune::emulator {
namespace {

[[noreturn]] void out_of_memory(std::string_view name, std::uint64_t bytes) {
    throw DeviceFailure{
        {.kind = DeviceFault::Kind::out_of_memory,
         .message = fmt::format("variable '{}' of {} bytes does not fit the emulated device", name, bytes)}};
}

/// Nothing where the cubin cannot be read: it only refines predictions.
std::vector<KernelCode> code_of(const Artefact& artefact) {
    if (artefact.cubin.empty()) return {};
    try {
        return count_kernels(artefact.cubin);
    } catch (const Error&) {
        return {};
    }
}

std::uint64_t code_address(const PtxModule& module, std::string_view name) {
    for (std::size_t i = module.functions.size(); i-- > 0;)
        if (module.functions[i].name == name) return code_window + 16 * i;
    return 0;
}

}  // namespace

LoadedModule::LoadedModule(const Artefact& artefact, GlobalMemory& memory)
    : memory_{memory}, kernels_{artefact.kernels}, code_{code_of(artefact)} {
    PtxModule module = parse_ptx(artefact.ptx);
    try {
        for (const Variable& one : module.variables) {
            if (one.space == StateSpace::shared || symbols_.contains(one.name)) continue;
            const std::uint64_t bytes = std::max<std::uint64_t>(one.bytes, 1);
            const auto address = memory_.allocate(bytes, 0, fmt::format("variable '{}'", one.name));
            if (!address) out_of_memory(one.name, bytes);
            symbols_[std::string{one.name}] = {*address, one.bytes};
        }
        initialise(module);
        program_ =
            decode(std::move(module), [&](std::string_view name) { return symbols_.find(name)->second.address; });
    } catch (...) {
        for (const auto& [name, one] : symbols_) memory_.release(one.address);
        throw;
    }
}

LoadedModule::~LoadedModule() {
    for (const auto& [name, one] : symbols_) memory_.release(one.address);
}

/// Variables are zero where nothing is said.
void LoadedModule::initialise(const PtxModule& module) {
    for (const Variable& one : module.variables) {
        if (one.space == StateSpace::shared) continue;
        const Symbol& symbol = symbols_.find(one.name)->second;
        memory_.mark(symbol.address, symbol.bytes, ByteState::initialised);
        const auto size = static_cast<std::uint64_t>(std::max(1, bytes_of(one.type)));
        std::uint64_t at = 0;
        for (const Initialiser& value : one.values) {
            if (at + size > symbol.bytes) break;
            std::uint64_t bits = static_cast<std::uint64_t>(value.value);
            if (!value.symbol.empty()) {
                const Symbol* const other = this->symbol(value.symbol);
                bits += other ? other->address : code_address(module, value.symbol);
            }
            std::memcpy(memory_.host(symbol.address + at), &bits, std::min<std::uint64_t>(size, 8));
            at += size;
        }
    }
}

const DecodedFunction* LoadedModule::kernel(const std::string& entry) const {
    const KernelInfo* const known = resources(entry);
    const DecodedFunction* const found = program_.function(known ? known->symbol : entry);
    return found && found->entry ? found : nullptr;
}

const KernelInfo* LoadedModule::resources(const std::string& entry) const {
    for (const KernelInfo& one : kernels_)
        if (one.name == entry || one.symbol == entry) return &one;
    return nullptr;
}

CodeCounts LoadedModule::machine_code(const std::string& entry) const {
    const KernelInfo* const known = resources(entry);
    for (const KernelCode& one : code_)
        if (one.symbol == (known ? known->symbol : entry)) return one.counts;
    return {};
}

const LoadedModule::Symbol* LoadedModule::symbol(std::string_view name) const {
    const auto found = symbols_.find(name);
    return found == symbols_.end() ? nullptr : &found->second;
}

}  // namespace autotune::emulator

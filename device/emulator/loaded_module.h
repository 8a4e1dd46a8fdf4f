#ifndef AUTOTUNE_DEVICE_EMULATOR_LOADED_MODULE_H
#define AUTOTUNE_DEVICE_EMULATOR_LOADED_MODULE_H

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "device/emulator/memory.h"
#include "device/emulator/program.h"
#include "device/machine_code.h"

namespace autotune::emulator {

/// A module on the emulated device: its program, and its variables in global memory.
class LoadedModule {
public:
    /// throws  Error{usage} for what is no PTX, DeviceFailure when its variables do not fit
    LoadedModule(const Artefact& artefact, GlobalMemory& memory);
    ~LoadedModule();
    LoadedModule(const LoadedModule&) = delete;
    LoadedModule& operator=(const LoadedModule&) = delete;

    const Program& program() const noexcept { return program_; }
    /// A kernel by the name that the source gives it, or null.
    const DecodedFunction* kernel(const std::string& entry) const;
    const KernelInfo* resources(const std::string& entry) const;
    /// What its machine code consists of; zeros where the artefact has none.
    CodeCounts machine_code(const std::string& entry) const;

    struct Symbol {
        std::uint64_t address = 0, bytes = 0;
    };
    /// A variable by its name; null where there is none.
    const Symbol* symbol(std::string_view name) const;

private:
    void initialise(const PtxModule& module);

    GlobalMemory& memory_;
    std::vector<KernelInfo> kernels_;
    std::vector<KernelCode> code_;
    std::map<std::string, Symbol, std::less<>> symbols_;
    Program program_;
};

}  // namespace autotune::emulator
#endif

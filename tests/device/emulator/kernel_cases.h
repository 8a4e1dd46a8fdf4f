#ifndef AUTOTUNE_TESTS_DEVICE_EMULATOR_KERNEL_CASES_H
#define AUTOTUNE_TESTS_DEVICE_EMULATOR_KERNEL_CASES_H

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "tests/device/emulator/kernel.h"

namespace autotune {

/// What a case runs its kernels on.
struct Ground {
    std::function<KernelOn<Device>(const Artefact&)> load;
    /// Last bits of `.approx` functions and of sums in tensor cores, the order of atomics and what the manual leaves
    /// open are the silicon's own: a case asks for what is documented and no more.
    bool hardware = false;
};

/// A new emulated device for each module.
inline Ground emulated_ground(const std::string& part) {
    return {[part](const Artefact& artefact) {
        return KernelOn<Device>{std::shared_ptr<Device>{make_emulated_device(part)}, artefact};
    }};
}

/// Kernels and what they must give, wherever they run. All are for sm_90.
struct KernelCase {
    std::string name;
    std::function<void(const Ground&)> run;
};

inline void PrintTo(const KernelCase& one, std::ostream* out) { *out << one.name; }

std::vector<KernelCase> hopper_cases();  ///< compiled from CUDA: clusters, mbarriers, bulk copies, tensor maps, wgmma
std::vector<KernelCase> matrix_cases();  ///< PTX: mma.sync, wgmma, atomics
std::vector<KernelCase> opcode_cases();  ///< PTX: one a scalar or packed instruction

}  // namespace autotune
#endif

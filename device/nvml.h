#ifndef AUTOTUNE_DEVICE_NVML_H
#define AUTOTUNE_DEVICE_NVML_H

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace autotune {

/// The state of a GPU as its management library tells it. Whatever it does not tell here stays empty.
struct GpuState {
    std::optional<double> sm_clock_mhz, memory_clock_mhz, max_sm_clock_mhz;
    std::optional<double> power_w, power_limit_w;
    std::optional<double> temperature_c;
    std::optional<std::uint64_t> throttle_reasons;   ///< bits as NVML numbers them; see `slowdown` and `power_capped`
    std::optional<std::vector<unsigned>> processes;  ///< ids of all that hold a compute context, ourselves included
};

/// A thermal or hardware slowdown: taints a measurement.
bool slowdown(std::uint64_t throttle_reasons) noexcept;
/// Clocks held back by the power limit: the normal state of a busy card.
bool power_capped(std::uint64_t throttle_reasons) noexcept;

/// Reads one GPU's state through libnvidia-ml.so.1, opened at run time.
class GpuMonitor {
public:
    /// By PCI id, "0000:65:00.0"; null where there is no such library or GPU: measurements go on without.
    static std::unique_ptr<GpuMonitor> open(const std::string& pci_id);
    /// Costs some milliseconds: not for a timed region.
    GpuState state() const;
    /// The one value that each timing asks for.
    std::optional<double> sm_clock_mhz() const;
    /// The two that say whether a measurement was disturbed: bits for `slowdown`, and GpuState::processes.
    std::optional<std::uint64_t> throttle_reasons() const;
    std::optional<std::vector<unsigned>> processes() const;

private:
    explicit GpuMonitor(void* device) noexcept : device_{device} {}
    void* device_;
};

/// "580.159.04", or empty where it is not told.
std::string nvml_driver_version();

}  // namespace autotune
#endif

#include "device/nvml.h"

#include <array>

#include "device/shared_library.h"

namespace autotune {
namespace {

// nvml.h does not come with NVRTC's wheels, so what is used of its stable interface is declared here.
using Return = int;
constexpr Return success = 0, insufficient_size = 7;
constexpr int driver_version_bytes = 80;

enum ClockDomain : int { clock_sm = 1, clock_memory = 2 };

/// nvmlProcessInfo_v2_t, which the `_v3` calls fill.
struct ProcessInfo {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
};

struct Calls {
    Return (*init)() = nullptr;
    Return (*driver_version)(char*, unsigned) = nullptr;
    Return (*by_pci_id)(const char*, void**) = nullptr;
    Return (*clock)(void*, int, unsigned*) = nullptr;
    Return (*max_clock)(void*, int, unsigned*) = nullptr;
    Return (*power)(void*, unsigned*) = nullptr;
    Return (*power_limit)(void*, unsigned*) = nullptr;
    Return (*temperature)(void*, int, unsigned*) = nullptr;
    Return (*throttle_reasons)(void*, unsigned long long*) = nullptr;
    Return (*processes)(void*, unsigned*, ProcessInfo*) = nullptr;
    bool ready = false;
};

const Calls& calls() {
    static const Calls once = [] {
        Calls table;
        std::string why;
        const auto library = SharedLibrary::open("libnvidia-ml.so.1", why);
        if (!library) return table;
        const auto load = [&]<class Call>(Call& call, const char* symbol) {
            call = reinterpret_cast<Call>(library->find(symbol));
        };
        load(table.init, "nvmlInit_v2");
        load(table.driver_version, "nvmlSystemGetDriverVersion");
        load(table.by_pci_id, "nvmlDeviceGetHandleByPciBusId_v2");
        load(table.clock, "nvmlDeviceGetClockInfo");
        load(table.max_clock, "nvmlDeviceGetMaxClockInfo");
        load(table.power, "nvmlDeviceGetPowerUsage");
        load(table.power_limit, "nvmlDeviceGetEnforcedPowerLimit");
        load(table.temperature, "nvmlDeviceGetTemperature");
        load(table.throttle_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
        load(table.processes, "nvmlDeviceGetComputeRunningProcesses_v3");
        table.ready = table.init && table.by_pci_id && table.init() == success;
        return table;
    }();
    return once;
}

/// The value of a call that writes one, if the library has it and it succeeds.
template <class Raw, class Call, class... Leading>
std::optional<Raw> ask(Call call, void* device, Leading... leading) {
    Raw value{};
    if (!call || call(device, leading..., &value) != success) return std::nullopt;
    return value;
}

std::optional<double> scaled(std::optional<unsigned> value, double scale) {
    if (!value) return std::nullopt;
    return *value * scale;
}

std::optional<std::vector<unsigned>> running(void* device) {
    if (!calls().processes) return std::nullopt;
    std::array<ProcessInfo, 256> infos{};
    auto count = static_cast<unsigned>(infos.size());
    const Return status = calls().processes(device, &count, infos.data());
    if (status != success && status != insufficient_size) return std::nullopt;
    std::vector<unsigned> ids;
    for (unsigned i = 0; i < count && i < infos.size(); ++i) ids.push_back(infos[i].pid);
    return ids;
}

}  // namespace

bool slowdown(std::uint64_t reasons) noexcept {
    constexpr std::uint64_t hardware = 0x8, software_thermal = 0x20, hardware_thermal = 0x40, power_brake = 0x80;
    return (reasons & (hardware | software_thermal | hardware_thermal | power_brake)) != 0;
}

bool power_capped(std::uint64_t reasons) noexcept {
    constexpr std::uint64_t software_power_cap = 0x4;
    return (reasons & software_power_cap) != 0;
}

std::unique_ptr<GpuMonitor> GpuMonitor::open(const std::string& pci_id) {
    void* device = nullptr;
    if (!calls().ready || calls().by_pci_id(pci_id.c_str(), &device) != success) return nullptr;
    return std::unique_ptr<GpuMonitor>{new GpuMonitor{device}};
}

std::optional<double> GpuMonitor::sm_clock_mhz() const {
    return scaled(ask<unsigned>(calls().clock, device_, clock_sm), 1);
}

std::optional<std::uint64_t> GpuMonitor::throttle_reasons() const {
    return ask<unsigned long long>(calls().throttle_reasons, device_);
}

std::optional<std::vector<unsigned>> GpuMonitor::processes() const { return running(device_); }

GpuState GpuMonitor::state() const {
    const Calls& nvml = calls();
    GpuState state;
    state.sm_clock_mhz = scaled(ask<unsigned>(nvml.clock, device_, clock_sm), 1);
    state.memory_clock_mhz = scaled(ask<unsigned>(nvml.clock, device_, clock_memory), 1);
    state.max_sm_clock_mhz = scaled(ask<unsigned>(nvml.max_clock, device_, clock_sm), 1);
    state.power_w = scaled(ask<unsigned>(nvml.power, device_), 1e-3);
    state.power_limit_w = scaled(ask<unsigned>(nvml.power_limit, device_), 1e-3);
    state.temperature_c = scaled(ask<unsigned>(nvml.temperature, device_, 0), 1);
    state.throttle_reasons = throttle_reasons();
    state.processes = processes();
    return state;
}

std::string nvml_driver_version() {
    std::array<char, driver_version_bytes> text{};
    const Calls& nvml = calls();
    if (!nvml.ready || !nvml.driver_version ||
        nvml.driver_version(text.data(), static_cast<unsigned>(text.size())) != success)
        return {};
    return text.data();
}

}  // namespace autotune

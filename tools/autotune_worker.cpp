// autotune-worker: what the tuner starts to compile, to run and to compute references. Not meant for people.
#include <string_view>

#include "device/emulator/emulated_device.h"
#include "tuner/references/table.h"
#include "tuner/worker/serve.h"

int main(int argc, char** argv) {
    using namespace autotune;
    RunHooks devices = cuda_devices();
    devices.open = [open_cuda = devices.open](const std::string& device) -> std::unique_ptr<Device> {
        constexpr std::string_view emulated = "emulated:";
        if (!device.starts_with(emulated)) return open_cuda(device);
        EmulatorOptions options;
        // What is modelled is never touched whole, so the part's own memory is the limit, not this machine's.
        if (const std::optional<DeviceIdentity> part = emulated_device(device))
            options.memory_bytes = static_cast<std::uint64_t>(part->limits.memory_bytes);
        return make_emulated_device(device.substr(emulated.size()), options);
    };
    return worker_main(argc, argv, {.compiler = nvrtc_compile, .run = devices, .references = builtin_reference});
}

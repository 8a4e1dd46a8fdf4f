// A PTX text in any state: it is parsed, decoded and run for a few steps, or refused with a sentence.
#include <cstddef>
#include <cstdint>
#include <string>

#include "autotune/error.h"
#include "device/emulator/emulated_device.h"

using namespace autotune;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static std::string printed;
    static EmulatedDevice& device = *[] {
        EmulatorOptions options;
        options.steps = 20'000;
        options.memory_bytes = std::uint64_t{1} << 26;
        options.printed = &printed;
        return make_emulated_device("sm_90", options).release();
    }();
    static const Buffer buffer = device.allocate(4096);
    printed.clear();
    Artefact artefact;
    artefact.ptx.assign(reinterpret_cast<const char*>(data), size);
    try {
        const Module module = device.load(artefact);
        // The kernels of the corpus are called `kernel` and take up to four pointers.
        for (std::size_t arguments = 0; arguments < 5; ++arguments) {
            LaunchSequence sequence;
            Launch launch;
            launch.entry = "kernel";
            launch.block = {arguments == 3 ? 128u : 48u};
            launch.shared_bytes = 256;
            launch.arguments.assign(arguments, BufferArgument{0});
            sequence.launches.push_back(launch);
            BoundSequence bound;
            bound.sequence = &sequence;
            bound.module = module;
            bound.buffers = {buffer};
            try {
                device.run(bound);
            } catch (const DeviceFailure&) {
            }
        }
        device.unload(module);
    } catch (const DeviceFailure&) {
    } catch (const Error&) {
    }
    return 0;
}

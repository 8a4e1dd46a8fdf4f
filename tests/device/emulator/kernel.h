#ifndef AUTOTUNE_TESTS_DEVICE_EMULATOR_KERNEL_H
#define AUTOTUNE_TESTS_DEVICE_EMULATOR_KERNEL_H

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "device/compiler.h"
#include "device/emulator/emulated_device.h"
#include "device/nvrtc.h"

namespace autotune {

/// Why nothing can be compiled here; empty: it can.
inline const std::string& no_compiler() {
    static const std::string why = [] {
        std::string reason;
        return nvrtc_if_present(&reason) ? compiler_trouble() : reason;
    }();
    return why;
}

inline Artefact compiled(const std::string& source, const std::string& arch = "sm_80") {
    static Compiler compiler;
    CompileRequest request;
    request.name = "kernel.cu";
    request.source = source;
    request.arch = arch;
    CompileResult result = compiler.compile(request);
    if (!result.ok) throw std::runtime_error{result.log};
    return std::move(result.artefact);
}

inline Artefact ptx_only(std::string ptx) {
    Artefact artefact;
    artefact.ptx = std::move(ptx);
    return artefact;
}

template <class T>
ValueArgument value(T x) {
    ValueArgument made;
    std::memcpy(made.bytes.data(), &x, sizeof x);
    made.size = sizeof x;
    return made;
}

/// Runs kernels of one module on buffers of whole elements, and leaves nothing behind on the device.
template <class DeviceType>
class KernelOn {
public:
    KernelOn(std::shared_ptr<DeviceType> on, const Artefact& artefact)
        : device{std::move(on)}, module_{device->load(artefact)} {}
    KernelOn(KernelOn&&) noexcept = default;
    ~KernelOn() {
        if (!device) return;
        try {
            for (const Buffer& one : buffers) device->release(one);
            device->unload(module_);
        } catch (const DeviceFailure&) {  // the context is lost, and all that it held
        }
    }

    template <class T>
    std::uint32_t buffer(const std::vector<T>& contents) {
        buffers.push_back(device->allocate(contents.size() * sizeof(T)));
        device->write(buffers.back(), 0, std::as_bytes(std::span{contents}));
        return static_cast<std::uint32_t>(buffers.size() - 1);
    }
    /// Never written.
    std::uint32_t empty(std::uint64_t bytes) {
        buffers.push_back(device->allocate(bytes));
        return static_cast<std::uint32_t>(buffers.size() - 1);
    }
    template <class T>
    std::vector<T> contents(std::uint32_t number) {
        std::vector<T> all(buffers[number].bytes / sizeof(T));
        device->read(buffers[number], 0, std::as_writable_bytes(std::span{all}));
        return all;
    }

    void run(const std::string& entry, Dim3 grid, Dim3 block, std::vector<Argument> arguments, std::uint32_t shared = 0,
             bool cooperative = false) {
        Launch launch;
        launch.entry = entry;
        launch.grid = grid;
        launch.block = block;
        launch.shared_bytes = shared;
        launch.cooperative = cooperative;
        launch.arguments = std::move(arguments);
        this->launch(std::move(launch));
    }

    void launch(Launch launch) {
        LaunchSequence sequence;
        sequence.launches.push_back(std::move(launch));
        BoundSequence bound;
        bound.sequence = &sequence;
        bound.module = module_;
        bound.buffers = buffers;
        device->run(bound);
    }

    std::shared_ptr<DeviceType> device;
    std::vector<Buffer> buffers;

private:
    Module module_;
};

/// On an emulated device of its own.
class Kernel : public KernelOn<EmulatedDevice> {
public:
    explicit Kernel(const Artefact& artefact, const std::string& part = "sm_80", EmulatorOptions options = {})
        : KernelOn{make_emulated_device(part, std::move(options)), artefact} {}
};

}  // namespace autotune
#endif

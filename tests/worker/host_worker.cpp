// A worker program whose device is the host and whose kernels and compiler are scripts, by the names of the kernels in
// tests/bad_kernels: what the tests of the tuner's side start, with real processes and real deaths.
#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "autotune/error.h"
#include "device/emulator/emulated_device.h"
#include "tests/support/host_device.h"
#include "tuner/worker/serve.h"

namespace autotune {
namespace {

void scale(const HostCall& call) {
    const auto n = call.value<std::int32_t>(2);
    for (std::int32_t i = 0; i < n; ++i) call.pointer<float>(1)[i] = 2 * call.pointer<const float>(0)[i];
}

void ragged(const HostCall& call) {
    const auto n = call.value<std::int32_t>(2) / 256 * 256;
    for (std::int32_t i = 0; i < n; ++i) call.pointer<float>(1)[i] = 2 * call.pointer<const float>(0)[i];
}

void half(const HostCall& call) {
    const auto n = call.value<std::int32_t>(2) / 2;
    for (std::int32_t i = 0; i < n; ++i) call.pointer<float>(1)[i] = 2 * call.pointer<const float>(0)[i];
}

void writes_input(const HostCall& call) {
    scale(call);
    call.pointer<float>(0)[7] = 0;
}

void not_repeatable(const HostCall& call) {
    scale(call);
    static int turn = 0;
    auto* y = call.pointer<float>(1);
    if (++turn % 2) y[0] = std::nextafter(y[0], 100.0f);
}

HostKernel scale_reference(double factor) {
    return [factor](const HostCall& call) {
        const auto n = call.value<std::int32_t>(3);
        for (std::int32_t i = 0; i < n; ++i) {
            call.pointer<double>(1)[i] = factor * static_cast<double>(call.pointer<const float>(0)[i]);
            call.pointer<double>(2)[i] = std::abs(call.pointer<double>(1)[i]);
        }
    };
}

/// Says something, as a kernel's printf does, and is gone.
void crashes(const HostCall&) {
    std::puts("last words of a kernel");
    std::fflush(stdout);
    raise(SIGABRT);
}

/// What the emulator beside this GPU runs of some kernels; the others have no PTX.
std::string ptx_of(const std::string& entry) {
    const auto kernel = [&](const std::string& second, const std::string& body) {
        return ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry " + entry + "(.param .u64 x, .param ." +
               second +
               " y, .param .u32 n) {\n"
               ".reg .u64 %rd<8>; .reg .u32 %r<8>; .reg .f32 %f<4>; .reg .pred %p<4>;\n"
               "ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u32 %r1, [n];\n"
               "mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mad.lo.s32 %r4, %r3, 256, %r2;\n"
               "setp.ge.s32 %p1, %r4, %r1; @%p1 bra end; mul.wide.s32 %rd3, %r4, 4; add.s64 %rd4, %rd2, %rd3;\n"
               "add.s64 %rd5, %rd1, %rd3; ld.global.f32 %f1, [%rd5]; add.f32 %f2, %f1, %f1;\n" +
               body + "\nend: ret;\n}\n.file 1 \"/somewhere/bad.cu\"\n";
    };
    const std::string stores = ".loc 1 27 9\nst.global.f32 [%rd4], %f2;\n";
    if (entry == "null_write" || entry == "good" || entry == "traps") return kernel("u64", stores);
    if (entry == "out_of_bounds")
        return kernel("u64", stores + "sub.s32 %r5, %r1, 1; setp.eq.s32 %p2, %r4, %r5;\n"
                                      ".loc 1 34 9\n@%p2 st.global.f32 [%rd4+4], %f2;\n");
    if (entry == "hang") return kernel("u64", "around: bra around;");
    return {};
}

/// Any GPU but an emulated one is this.
std::unique_ptr<Device> host_device(const std::string& name) {
    constexpr std::string_view emulated = "emulated:";
    if (name.starts_with(emulated)) return make_emulated_device(name.substr(emulated.size()));
    auto device = std::make_unique<HostDevice>();
    device->told.limits.l2_bytes = 1 << 16;
    device->bandwidth_gbs = 100'000;  // so that no test's made-up time is below the floor
    // Milliseconds, so that the host time of these loops never looks hopeless beside them.
    device->define("good", scale, 20000);
    device->define("hang", hanging(1e6));
    device->define("null_write", faulting());
    device->define("out_of_bounds", writing_outside(scale, 1, 0));
    device->define("writes_nothing", writing_nothing());
    device->define("writes_half", half);
    device->define("writes_nan", writing_nan(scale, 1, 128));
    device->define("writes_input", writes_input);
    device->define("ragged", ragged, 18000);
    device->define("misaligned", faulting());
    device->define("traps", crashes);
    device->define("not_repeatable", not_repeatable);
    device->define("scale_reference", scale_reference(2));
    device->define("lying_reference", scale_reference(3));
    return device;
}

[[noreturn]] void take_all_memory() {
    for (std::vector<char*> all;;) {
        all.push_back(new char[16 << 20]);
        std::memset(all.back(), 1, 16 << 20);
    }
}

CompileAnswer compile(const CompileTask& task) {
    const std::string entry = task.source.entries.empty() ? "" : task.source.entries.front();
    if (entry == "time_bomb")
        for (;;) pause();
    if (entry == "memory_bomb") take_all_memory();
    if (entry == "crashes_the_compiler") raise(SIGABRT);
    if (entry == "is_killed") raise(SIGKILL);
    if (entry == "has_no_room") return {.log = "Catastrophic error: unable to obtain mapped memory\n"};
    if (entry == "no_headers") throw Error{Error::Kind::compile, "no folder with cuda_fp16.h was found here", "pip"};
    if (entry == "does_not_compile" || entry == "missing_header")
        return {.log = task.source.source + "(2): error: identifier \"half16\" is undefined\n"};
    KernelInfo kernel{.name = entry, .symbol = entry, .registers = 32};
    if (entry == "spills") kernel.spill_bytes = 64;
    CompileAnswer answer{.ok = true, .artefact = {.arch = task.arch, .ptx = ptx_of(entry)}};
    for (const std::string& name : task.source.entries) {
        kernel.name = kernel.symbol = name;
        kernel.static_shared_bytes = name == "too_much_shared" ? 32768 : 0;
        answer.artefact.kernels.push_back(kernel);
    }
    return answer;
}

}  // namespace
}  // namespace autotune

int main(int argc, char** argv) {
    using namespace autotune;
    return worker_main(argc, argv,
                       {.compiler = [] { return CompileHook{compile}; },
                        .run = {.list = [] { return std::vector{HostDevice{}.told}; }, .open = host_device}});
}

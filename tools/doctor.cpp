#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "autotune/error.h"
#include "device/compiler.h"
#include "device/driver.h"
#include "device/identity.h"
#include "device/nvrtc.h"
#include "tools/format.h"
#include "tools/json_events.h"
#include "tools/session.h"
#include "tools/subcommands.h"
#include "tuner/worker/process.h"

namespace autotune {
namespace {

/// One thing that was looked at. `off` is something that is not needed.
struct Finding {
    std::string level;  ///< ok, warn, fail, off
    std::string subject, words, help;
};

Finding find_driver() {
    try {
        const std::vector<DeviceIdentity> devices = present_devices();
        if (devices.empty())
            return {"fail", "driver", "no usable GPU", "run on a machine with an NVIDIA GPU and driver 525 or newer"};
        const DeviceIdentity& first = devices.front();
        return {"ok", "driver",
                fmt::format("{} (CUDA {}.{})", first.driver.empty() ? "present" : first.driver,
                            first.driver_version / 1000, first.driver_version % 1000 / 10),
                ""};
    } catch (const Error& e) {
        return {"fail", "driver", e.what(), e.help()};
    }
}

std::vector<Finding> find_gpus() {
    std::vector<Finding> findings;
    try {
        const std::vector<DeviceIdentity> devices = present_devices();
        for (std::size_t i = 0; i < devices.size(); ++i) {
            const DeviceIdentity& d = devices[i];
            findings.push_back({d.limits.cc >= 75 ? "ok" : "fail", fmt::format("gpu {}", i),
                                fmt::format("{}, sm_{}, {} SMs, {}", d.name, d.limits.cc, d.limits.sm_count,
                                            format_bytes(static_cast<std::uint64_t>(d.limits.memory_bytes))),
                                d.limits.cc >= 75 ? "" : "a GPU of capability 7.5 or newer is needed"});
        }
    } catch (const Error&) {
        // find_driver says why
    }
    return findings;
}

Finding find_nvrtc() {
    std::string why;
    const Nvrtc* nvrtc = nvrtc_if_present(&why);
    if (!nvrtc) return {"fail", "NVRTC", why, how_to_get_nvrtc};
    return {"ok", "NVRTC", fmt::format("{}.{}, {}", nvrtc->major, nvrtc->minor, nvrtc->path), ""};
}

/// A half header that is not found, or that needs another one, is the commonest fault of run-time compiling.
Finding find_headers() {
    if (!nvrtc_if_present()) return {"fail", "headers", "not tried without NVRTC", ""};
    try {
        Compiler compiler;
        const CompileResult result =
            compiler.compile({.name = "probe.cu",
                              .source = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\nextern \"C\" __global__ void "
                                        "probe(__half* x) { *x = __float2half(1.0f); }\n",
                              .entries = {"probe"},
                              .arch = "sm_80"});
        if (result.ok) return {"ok", "headers", "cuda_fp16.h compiled in a test kernel", ""};
        return {"fail", "headers",
                "a kernel with cuda_fp16.h does not compile: " + result.log.substr(0, result.log.find('\n')),
                "set AUTOTUNE_CUDA_INCLUDE to the folder that holds cuda_fp16.h"};
    } catch (const Error& e) {
        return {"fail", "headers", e.what(), e.help()};
    }
}

Finding find_worker_program() {
    std::filesystem::path worker;
    try {
        worker = find_worker({});
        list_devices({.worker = worker});  // it starts, and answers as a worker does
        return {"ok", "worker", worker.string(), ""};
    } catch (const Error& e) {
        if (worker.empty()) return {"fail", "worker", e.what(), e.help()};
        return {"fail", "worker", fmt::format("'{}' does not answer as a worker does: {}", worker.string(), e.what()),
                "unset AUTOTUNE_WORKER, or set it to the autotune-worker that came with this program"};
    }
}

Finding find_database(const Session& session) {
    try {
        const Store store = session.open_store(Store::Mode::read);
        const std::string state = store.state();
        const bool plain = state.find("memory") == std::string::npos && state.find("spool") == std::string::npos;
        return {plain ? "ok" : "warn", "database", state, plain ? "" : "set AUTOTUNE_DB to a file on a local disk"};
    } catch (const Error& e) {
        return {"fail", "database", e.what(), e.help()};
    }
}

void print(const std::vector<Finding>& findings, Console& console) {
    std::size_t subject = 0;
    for (const Finding& f : findings) subject = std::max(subject, f.subject.size());
    for (const Finding& f : findings)
        console.result(fmt::format("{:<5} {}  {}{}", f.level, pad_right(f.subject, subject), f.words,
                                   f.help.empty() ? "" : "     help: " + f.help));
}

}  // namespace

int run_doctor(const Request& request, Console& console) {
    const Session session{request, console};
    std::vector<Finding> findings{find_driver()};
    std::ranges::move(find_gpus(), std::back_inserter(findings));
    for (Finding finding : {find_nvrtc(), find_headers(), find_worker_program(), find_database(session)})
        findings.push_back(std::move(finding));
    bool compiles = true, runs = true;
    for (const Finding& f : findings) {
        const bool device = f.subject == "driver" || f.subject.starts_with("gpu");
        if (f.level == "fail") (device ? runs : compiles) = false;
        if (console.json())
            console.json_line(json_event(
                "finding", {{"level", f.level}, {"subject", f.subject}, {"words", f.words}, {"help", f.help}}));
    }
    print(findings, console);
    const std::string verdict = compiles && runs ? "ready to tune on gpu 0"
                                : compiles ? "ready to compile, and to check on the emulator; nothing can be timed here"
                                           : "not ready";
    console.result(verdict);
    if (console.json()) console.json_line(json_event("summary", {{"verdict", verdict}, {"ready", compiles && runs}}));
    return compiles && runs ? 0 : exit_code(Error::Kind::device);
}

}  // namespace autotune

#include <sys/resource.h>

#include <chrono>
#include <memory>

#include "autotune/error.h"
#include "device/compiler.h"
#include "tuner/model/compile_request.h"
#include "tuner/worker/json_types.h"
#include "tuner/worker/serve.h"

namespace autotune {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

/// The first compile of a process costs 20 to 40 ms more than the others; this one is nobody's.
void warm_up(Compiler& compiler) {
    try {
        (void)compiler.compile(
            {.name = "warm.cu", .source = "extern \"C\" __global__ void warm() {}", .arch = "sm_80"});
    } catch (const Error&) {  // the real ones will say it
    }
}

}  // namespace

CompileHook nvrtc_compile() {
    (void)setpriority(PRIO_PROCESS, 0, 5);  // the GPU's own host thread goes first, its start not least
    auto compiler = std::make_shared<Compiler>();
    warm_up(*compiler);
    return [compiler](const CompileTask& task) {
        CompileResult result = compiler->compile(compile_request(task.source, task.arch));
        return CompileAnswer{.ok = result.ok, .artefact = std::move(result.artefact), .log = std::move(result.log)};
    };
}

int serve_compile(int socket, const CompileHook& compile) {
    FrameReader reader;
    send_frame(socket, static_cast<std::uint32_t>(Message::ready), Json::object());
    while (true) {
        const Frame frame = reader.wait(socket);
        try {
            const auto start = Clock::now();
            CompileAnswer result = compile(frame.json().get<CompileTask>());
            result.milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
            send_frame(socket, static_cast<std::uint32_t>(Message::compiled), result);
        } catch (const Error& e) {
            send_frame(socket, static_cast<std::uint32_t>(Message::failed),
                       {{"message", e.what()}, {"help", e.help()}, {"kind", static_cast<int>(e.kind())}});
        } catch (const std::bad_alloc&) {
            return 12;  // the pool knows what this means
        }
    }
}

}  // namespace autotune

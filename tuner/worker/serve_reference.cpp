#include "autotune/error.h"
#include "tuner/worker/evaluate.h"
#include "tuner/worker/json_types.h"
#include "tuner/worker/serve.h"

namespace autotune {
namespace {

/// Inputs are as large as the device's memory at most.
constexpr std::uint64_t evaluator_memory = 1ull << 42;

void answer(int socket, const Evaluation& evaluation) {
    std::vector<int> fds;
    for (const Fd& fd : evaluation.values) fds.push_back(fd.get());
    for (const Fd& fd : evaluation.inputs) fds.push_back(fd.get());
    send_frame(
        socket, static_cast<std::uint32_t>(Message::evaluated),
        {{"values", evaluation.values.size()}, {"inputs", evaluation.inputs.size()}, {"sizes", evaluation.sizes}}, fds);
}

}  // namespace

int serve_reference(int socket, const ReferenceTable& table) {
    FrameReader reader;
    send_frame(socket, static_cast<std::uint32_t>(Message::ready), nlohmann::json::object());
    while (true) {
        const Frame frame = reader.wait(socket);
        try {
            std::vector<MappedMemory> contents;
            for (const Fd& fd : frame.fds) contents.emplace_back(fd, evaluator_memory);
            answer(socket, evaluate(frame.json().get<EvaluateTask>(), table, contents));
        } catch (const Error& e) {
            send_frame(socket, static_cast<std::uint32_t>(Message::failed),
                       {{"message", e.what()}, {"help", e.help()}, {"kind", static_cast<int>(e.kind())}});
        } catch (const std::bad_alloc&) {
            send_frame(socket, static_cast<std::uint32_t>(Message::failed),
                       {{"message", "the CPU reference needs more memory than its limit"},
                        {"kind", static_cast<int>(Error::Kind::usage)}});
        }
    }
}

}  // namespace autotune

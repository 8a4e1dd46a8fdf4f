#include <fmt/format.h>

#include <cstdio>
#include <map>

#include "autotune/error.h"
#include "tuner/worker/json_types.h"
#include "tuner/worker/serve.h"

namespace autotune {
namespace {

using Json = nlohmann::json;

/// Inputs and references are as large as the device's memory at most.
constexpr std::uint64_t memory_limit = 1ull << 42;

void answer(int socket, Message type, const Json& body = Json::object()) {
    send_frame(socket, static_cast<std::uint32_t>(type), body);
}

std::vector<MappedMemory> mapped(const Frame& frame) {
    std::vector<MappedMemory> contents;
    for (const Fd& fd : frame.fds) contents.emplace_back(fd, memory_limit);
    return contents;
}

class RunServer {
public:
    RunServer(int socket, const RunHooks& hooks) : socket_{socket}, hooks_{hooks} {}

    /// False: the context is lost, and the process with it.
    bool handle(const Frame& frame) {
        const Json body = frame.json();
        switch (static_cast<Message>(frame.type)) {
            case Message::devices:
                answer(socket_, Message::devices, hooks_.list());
                break;
            case Message::open:
                open(body.at("device").get<std::string>());
                break;
            case Message::bandwidth:
                answer(socket_, Message::bandwidth, {{"gbs", device().copy_bandwidth_gbs()}});
                break;
            case Message::prepare:
                prepare(body, frame);
                break;
            case Message::reference:
                return set_reference(body.get<ReferenceTask>(), frame);
            case Message::anchor:
                answer(socket_, Message::compared, worker().anchor(body.get<ReferenceTask>()));
                break;
            case Message::drop:
                worker().drop(body.at("slot").get<int>());
                answer(socket_, Message::done);
                break;
            case Message::trial:
                trial(body);
                break;
            case Message::load:
                worker().load(body.get<CandidateTask>());
                answer(socket_, Message::done);
                break;
            case Message::round:
                answer(socket_, Message::round_samples, worker().round(body.get<RoundTask>()));
                break;
            case Message::unload:
                worker().unload();
                answer(socket_, Message::done);
                break;
            default:
                throw Error{Error::Kind::internal, "a run worker was sent a message that is none of its"};
        }
        return !worker_ || !worker_->lost();
    }

private:
    void open(const std::string& device) {
        device_ = hooks_.open(device);
        const auto progress = [this](std::string_view phase, double expect_s) {
            answer(socket_, Message::progress, {{"phase", phase}, {"expect_s", expect_s}});
        };
        worker_ = std::make_unique<RunWorker>(*device_, progress,
                                              hooks_.watch ? hooks_.watch(device_->identity()) : RunWorker::Watch{});
        answer(socket_, Message::opened, device_->identity());
    }

    void prepare(const Json& body, const Frame& frame) {
        auto task = body.get<ProblemTask>();
        const int slot = task.slot;
        worker().prepare(std::move(task), mapped(frame));
        answer(socket_, Message::done, {{"warm", worker().warm(slot)}});
    }

    /// A kernel that is taken for right and fails is its author's to mend: that is no trouble of the device.
    bool set_reference(const ReferenceTask& task, const Frame& frame) {
        try {
            worker().set_reference(task, mapped(frame));
        } catch (const DeviceFailure& e) {
            if (task.kind == ReferenceTask::Kind::values || e.fault().kind == DeviceFault::Kind::out_of_memory) throw;
            answer(socket_, Message::failed,
                   {{"message", fmt::format("{} failed: {}", words_of(task), e.what())},
                    {"kind", static_cast<int>(Error::Kind::usage)}});
            return !e.fault().sticky;
        }
        answer(socket_, Message::done);
        return !worker_->lost();
    }

    void trial(const Json& body) {
        const Outcome outcome = worker().trial(body.get<TrialTask>());
        std::fflush(nullptr);  // what the kernel printed belongs to this trial
        answer(socket_, Message::outcome, {{"outcome", outcome}, {"lost", worker().lost()}});
    }

    Device& device() {
        if (!device_) throw Error{Error::Kind::internal, "a run worker has no device yet"};
        return *device_;
    }
    RunWorker& worker() {
        device();
        return *worker_;
    }

    int socket_;
    const RunHooks& hooks_;
    std::unique_ptr<Device> device_;
    std::unique_ptr<RunWorker> worker_;
};

}  // namespace

int serve_run(int socket, const RunHooks& hooks) {
    RunServer server{socket, hooks};
    FrameReader reader;
    if (hooks.warm_up) hooks.warm_up();
    answer(socket, Message::ready);
    while (true) {
        const Frame frame = reader.wait(socket);
        try {
            if (!server.handle(frame)) return 0;
        } catch (const DeviceFailure& e) {
            answer(socket, Message::failed, {{"message", e.what()}, {"kind", static_cast<int>(Error::Kind::device)}});
            if (e.fault().sticky) return 0;
        } catch (const Error& e) {
            answer(socket, Message::failed,
                   {{"message", e.what()}, {"help", e.help()}, {"kind", static_cast<int>(e.kind())}});
        }
    }
}

}  // namespace autotune

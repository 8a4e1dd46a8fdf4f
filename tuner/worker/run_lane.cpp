#include "tuner/worker/run_lane.h"

#include <fmt/format.h>

#include <mutex>
#include <optional>
#include <utility>

#include "autotune/error.h"
#include "device/emulator/parts.h"
#include "tuner/worker/json_types.h"

namespace autotune {
namespace {

/// Contexts, fills and references: slow on a busy machine, and nothing a candidate can stretch.
constexpr Patience steady{.limit_s = 120, .least_s = 120};
constexpr int most_attempts = 3;

/// A worker that listed devices has started its driver, which takes as long as many a compile: it waits here for the
/// lane that follows in most programs. One for the process, since a program asks once.
struct Waiting {
    std::mutex mutex;
    std::filesystem::path program;
    std::unique_ptr<RunClient> client;
};
Waiting& waiting() {
    static Waiting one;
    return one;
}

std::vector<DeviceIdentity> list(RunClient& client) {
    return client.ask(Message::devices, nlohmann::json::object(), {}, steady).json().get<std::vector<DeviceIdentity>>();
}

std::vector<int> numbers_of(const std::vector<Fd>& fds) {
    std::vector<int> numbers;
    for (const Fd& fd : fds) numbers.push_back(fd.get());
    return numbers;
}

}  // namespace

RunLane::RunLane(std::filesystem::path worker, std::string device, StageLog& log)
    : worker_{std::move(worker)}, choice_{std::move(device)}, log_{log}, thread_{std::make_unique<JobThread>()} {
    identified_ = thread_->begin([this] { identify(); }).share();
    thread_->post([this] {
        try {
            ensure();
        } catch (const std::exception&) {  // the first request that needs the device says it
        }
    });
}

RunLane::~RunLane() {
    thread_.reset();
    abandon();
}

std::unique_ptr<RunClient> RunLane::fresh() {
    {
        const std::lock_guard lock{waiting().mutex};
        if (waiting().client && waiting().program == worker_ && waiting().client->alive())
            return std::move(waiting().client);
    }
    return std::make_unique<RunClient>(worker_, "--run");
}

const DeviceIdentity& RunLane::device() {
    identified_.get();
    return identity_;
}

/// Which device it is, before its context is made: that is all the caller needs to load its problem.
void RunLane::identify() {
    const StageLog::Span span{log_, "driver starts"};
    if (std::optional<DeviceIdentity> emulated = emulated_device(choice_)) {
        identity_ = *emulated;
        return;
    }
    try {
        client_ = fresh();
        const std::vector<DeviceIdentity> devices = list(*client_);
        for (std::size_t i = 0; i < devices.size(); ++i)
            if (std::to_string(i) == choice_) {
                identity_ = devices[i];
                return;
            }
        throw Error{Error::Kind::device, fmt::format("there is no GPU {}: {} found here", choice_, devices.size()),
                    "autotune doctor"};
    } catch (const WorkerLost& e) {
        client_.reset();
        throw Error{Error::Kind::device, fmt::format("the GPUs could not be listed: {}", e.what())};
    }
}

void RunLane::start() {
    if (!client_ || !client_->alive()) client_ = spare_ && spare_->alive() ? std::move(spare_) : fresh();
    spare_.reset();
    const StageLog::Span span{log_, "device opens"};
    client_->ask(Message::open, {{"device", choice_}}, {}, steady);
    open_ = true;
    for (const auto& [slot, problem] : held_) {
        client_->ask(Message::prepare, problem->task, numbers_of(problem->contents), steady);
        if (!problem->task.modelled)
            client_->ask(Message::reference, problem->reference, numbers_of(problem->values), steady);
    }
    if (replaced_ > 0) spare_ = std::make_unique<RunClient>(worker_, "--run");
}

void RunLane::ensure() {
    if (abandoned_) throw Error{Error::Kind::interrupted, "the run is ending"};
    for (int attempt = 1; !open_; ++attempt) {
        try {
            start();
        } catch (const WorkerLost& e) {
            retire();
            if (attempt == most_attempts)
                throw Error{Error::Kind::device,
                            fmt::format("the worker for GPU {} does not start: {}{}", choice_, e.what(),
                                        e.log().empty() ? "" : ": " + e.log().substr(0, e.log().find('\n')))};
        }
    }
}

void RunLane::retire() {
    if (std::exchange(open_, false)) ++replaced_;
    client_.reset();
}

void RunLane::abandon() {
    abandoned_ = true;
    for (const auto& client : {&client_, &spare_})
        if (*client) (*client)->kill();
}

Frame RunLane::ask(Message type, const nlohmann::json& body, const Patience& patience, std::span<const int> fds) {
    ensure();
    try {
        return client_->ask(type, body, fds, patience);
    } catch (const WorkerLost&) {
        retire();
        throw;
    }
}

Frame RunLane::ask_surely(Message type, const nlohmann::json& body, std::span<const int> fds) {
    try {
        return ask(type, body, steady, fds);
    } catch (const WorkerLost& e) {
        throw Error{Error::Kind::device, fmt::format("the worker for GPU {} failed: {}", choice_, e.what())};
    }
}

bool RunLane::prepare(const ProblemTask& task, const std::vector<Fd>& contents) {
    ensure();
    const StageLog::Span span{log_, "problem filled"};
    return ask_surely(Message::prepare, task, numbers_of(contents)).json().value("warm", false);
}

void RunLane::set_reference(const ReferenceTask& task, const std::vector<Fd>& values) {
    const StageLog::Span span{log_, "reference on the device"};
    if (task.kind == ReferenceTask::Kind::values) {
        ask_surely(Message::reference, task, numbers_of(values));
        return;
    }
    try {
        ask(Message::reference, task, steady, numbers_of(values));
    } catch (const WorkerLost& e) {
        throw Error{Error::Kind::usage, fmt::format("{} failed: {}", words_of(task), e.what())};
    }
}

bool RunLane::hold(std::shared_ptr<const HeldProblem> problem) {
    held_.erase(problem->task.slot);
    const bool warm = prepare(problem->task, problem->contents);
    try {
        if (!problem->task.modelled) set_reference(problem->reference, problem->values);
    } catch (const Error&) {  // a worker that is still there gives back what it has of the problem
        if (open_) drop(problem->task.slot);
        throw;
    }
    held_[problem->task.slot] = std::move(problem);
    return warm;
}

void RunLane::drop(int slot) {
    held_.erase(slot);
    ask_surely(Message::drop, {{"slot", slot}});
}

std::vector<DeviceIdentity> devices_from_worker(const std::filesystem::path& worker) {
    auto client = std::make_unique<RunClient>(worker, "--run");
    try {
        std::vector<DeviceIdentity> devices = list(*client);
        const std::lock_guard lock{waiting().mutex};
        waiting().program = worker;
        waiting().client = std::move(client);
        return devices;
    } catch (const WorkerLost& e) {
        throw Error{Error::Kind::device, fmt::format("the GPUs could not be listed: {}", e.what())};
    }
}

std::string RunLane::take_text() { return client_ ? client_->take_text() : std::string{}; }

}  // namespace autotune

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>

#include "autotune/error.h"
#include "device/cuda_device.h"
#include "device/driver.h"
#include "device/identity.h"
#include "device/nvml.h"
#include "device/support.h"
#include "tuner/model/cache_root.h"
#include "tuner/model/hashing.h"
#include "tuner/worker/json_types.h"
#include "tuner/worker/serve.h"

namespace autotune {
namespace {

namespace fs = std::filesystem;

/// Where support kernels are kept between runs: a folder of ours alone, or nowhere.
fs::path support_folder() {
    const fs::path root = cache_root();
    if (root.empty()) return {};
    std::error_code error;
    fs::create_directories(root / "support", error);
    struct stat facts {};
    if (error || stat((root / "support").c_str(), &facts) != 0 || facts.st_uid != geteuid()) return {};
    fs::permissions(root / "support", fs::perms::owner_all, error);
    return error ? fs::path{} : root / "support";
}

/// Content-addressed: what would be compiled, for what, by this build.
std::string support_name(const CompileRequest& request) {
    std::string text = request.source + request.arch;
    for (const CompileHeader& header : request.headers) text += header.text;
    for (const std::string& option : request.options) text += option;
    for (const std::string_view option : Compiler::fixed_options()) text += option;
    return sha256_hex(std::as_bytes(std::span{text})) + ".cbor";
}

std::optional<Artefact> read_support(const fs::path& file) {
    std::ifstream in{file, std::ios::binary};
    if (!in) return std::nullopt;
    const std::vector<char> bytes{std::istreambuf_iterator<char>{in}, {}};
    try {
        return decode_cbor(std::as_bytes(std::span{bytes})).get<Artefact>();
    } catch (const std::exception&) {  // torn or old: made anew
        return std::nullopt;
    }
}

void write_support(const fs::path& file, const Artefact& artefact) {
    const std::vector<std::uint8_t> bytes = nlohmann::json::to_cbor(nlohmann::json(artefact));
    const fs::path draft = fmt::format("{}.{}", file.string(), getpid());
    {
        std::ofstream out{draft, std::ios::binary};
        out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        if (!out) return;
    }
    std::error_code ignored;
    fs::rename(draft, file, ignored);
}

/// Makes the context on a thread of its own, while this one compiles: both take some 0.3 s.
class ContextAhead {
public:
    explicit ContextAhead(int ordinal)
        : thread_{[ordinal] {
              CUdevice device = 0;
              CUcontext context = nullptr;
              if (driver().cuDeviceGet(&device, ordinal) == CUDA_SUCCESS)
                  (void)driver().cuDevicePrimaryCtxRetain(&context, device);  // kept for the process's life
          }} {}
    ~ContextAhead() { thread_.join(); }
    ContextAhead(const ContextAhead&) = delete;
    ContextAhead& operator=(const ContextAhead&) = delete;

private:
    std::thread thread_;
};

Artefact support_for(int gpu) {
    const DeviceIdentity identity = identify(gpu);
    const CompileRequest request = support_request(arch_name(identity.limits.cc));
    const fs::path folder = support_folder();
    const fs::path file = folder.empty() ? fs::path{} : folder / support_name(request);
    if (!file.empty())
        if (std::optional<Artefact> kept = read_support(file)) return std::move(*kept);
    const ContextAhead ahead{gpu};
    Compiler compiler;
    CompileResult result = compiler.compile(request);
    if (!result.ok)
        throw Error{Error::Kind::internal, fmt::format("the support kernels do not compile: {}", result.log)};
    if (!file.empty()) write_support(file, result.artefact);
    return std::move(result.artefact);
}

std::unique_ptr<Device> open_cuda(const std::string& device) {
    const int gpu = std::stoi(device);
    return make_cuda_device(gpu, support_for(gpu));
}

RunWorker::Watch watch_cuda(const DeviceIdentity& identity) {
    std::shared_ptr<const GpuMonitor> monitor = GpuMonitor::open(identity.pci_id);
    if (!monitor) return {};
    return [monitor] {
        DeviceState state;
        // Our own context is one of them; inside a container its number may be another, so it is counted, not looked
        // for.
        if (const auto processes = monitor->processes(); processes && processes->size() > 1)
            state.other_processes = static_cast<int>(processes->size()) - 1;
        const std::optional<std::uint64_t> reasons = monitor->throttle_reasons();
        state.throttled = reasons && slowdown(*reasons);
        return state;
    };
}

/// The driver and its monitor start side by side: each takes some 0.1 s.
void start_driver() {
    const std::jthread monitor{[] { (void)nvml_driver_version(); }};
    (void)present_devices();
}

}  // namespace

RunHooks cuda_devices() {
    return {.list = [] { return present_devices(); }, .open = open_cuda, .watch = watch_cuda, .warm_up = start_driver};
}

}  // namespace autotune

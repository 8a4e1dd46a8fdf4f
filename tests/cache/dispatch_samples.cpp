#include "tests/cache/dispatch_samples.h"

#include <fstream>

#include "device/compiler.h"
#include "device/identity.h"
#include "tuner/loader/op_loader.h"

namespace autotune::samples {

namespace {

constexpr std::string_view scale_toml = R"toml(
format = 1
op = "scale"
summary = "y = alpha * x"
[problem]
n = { dim = "near", default = 1024 }
dtype = { one_of = ["f32", "f16"], default = "f32" }
[[scalar]]
name = "alpha"
dtype = "f32"
default = 1.0
[[tensor]]
name = "x"
role = "in"
dtype = "dtype"
shape = ["n"]
[[tensor]]
name = "y"
role = "out"
dtype = "dtype"
shape = ["n"]
[work]
bytes = "2 * n * sizeof(dtype)"
[reference]
kernel = "naive"
[tolerance]
y = { terms = "1", accumulate = "fma" }
[[kernel]]
name = "vector"
source = "scale.cu"
entry = "scale_vector"
define = { T = "dtype" }
[kernel.parameters]
VEC = { values = [1, 2, 4, 8], default = "n % 4 == 0 ? 4 : 1", about = "elements a load" }
THREADS = { values = [64, 128, 256, 512], default = 256, about = "threads a block" }
SPLIT = { values = [1, 2], default = 1, about = "parts" }
[[kernel.constraint]]
claim = "n splits into whole vectors"
holds = "n % VEC == 0"
[[kernel.constraint]]
claim = "each load is aligned"
holds = "min(align(x), align(y)) >= min(16, VEC * sizeof(dtype))"
[[kernel.scratch]]
name = "part"
dtype = "f32"
shape = ["n"]
when = "SPLIT == 2"
start = "zero"
[[kernel.launch]]
grid = ["ceil_div(n, VEC * THREADS)"]
block = ["THREADS"]
args = ["x", "SPLIT == 2 ? part : y", "i32(n)", "alpha"]
[[kernel]]
name = "naive"
source = "scale.cu"
entry = "scale_naive"
define = { T = "dtype" }
[[kernel.launch]]
grid = ["ceil_div(n, 256)"]
block = [256]
args = ["x", "y", "i32(n)", "alpha"]
)toml";
constexpr std::string_view scale_source =
    "extern \"C\" __global__ void scale_naive(const T* x, T* y, int n, float alpha) {}\n"
    "extern \"C\" __global__ void scale_vector(const T* x, T* y, int n, float alpha) {}\n";

}  // namespace

Op scale_op() {
    const MemoryFiles files{{{"scale.cu", std::string{scale_source}}}};
    return load_op(scale_toml, files, "scale.toml");
}

void write_scale_op(const std::filesystem::path& folder) {
    std::filesystem::create_directories(folder);
    std::ofstream{folder / "scale.toml"} << scale_toml;
    std::ofstream{folder / "scale.cu"} << scale_source;
}

Config vector_config(std::int64_t vec, std::int64_t threads, std::int64_t split) {
    return {.variant = "vector", .values = {{"VEC", vec}, {"THREADS", threads}, {"SPLIT", split}}};
}

Config naive_config() { return {.variant = "naive", .values = {}}; }

DispatchSetting::DispatchSetting() { driver.argument_count = 4; }

Instance DispatchSetting::instance(std::int64_t n, const std::string& dtype, int align) const {
    return Instance::make(op(), {{"n", n}, {"dtype", dtype}}, identify(0).limits,
                          {.align = {{"x", align}, {"y", align}}});
}

RunStart DispatchSetting::start(std::int64_t n) const {
    return {.device = identify(0),
            .environment = environment(),
            .templates = templates_of(op()),
            .problem = problem_of(instance(n)),
            .info = {.strategy = "local"}};
}

void DispatchSetting::tuned(std::int64_t n, const std::vector<std::pair<Config, double>>& times, Verified verified) {
    Store store = Store::open({.path = folder / "tune.db"});
    const RunId run = store.begin_run(start(n));
    RunEnd end{.default_us = 100.0, .evaluated = 20, .space_size = 64};
    for (const auto& [config, time_us] : times) {
        end.finalists.push_back(finalist(config, time_us));
        end.finalists.back().verified = verified;
    }
    store.finish_run(run, end);
}

void DispatchSetting::predicted(std::int64_t n, const std::vector<std::pair<Config, double>>& times,
                                const std::string& part, int sm_count, int model) {
    Store store = Store::open({.path = folder / "tune.db"});
    RunStart emulated = start(n);
    emulated.device.emulated = true;
    emulated.device.name = emulated.device.fp = part;
    if (sm_count) emulated.device.limits.sm_count = sm_count;
    emulated.environment.emulator = model;
    const RunId run = store.begin_run(emulated);
    RunEnd end{.evaluated = 20, .space_size = 64, .model_version = std::to_string(model)};
    for (const auto& [config, time_us] : times) end.finalists.push_back(finalist(config, time_us));
    store.finish_run(run, end);
}

void DispatchSetting::put_binary(const Config& config, std::int64_t n, std::pair<int, int> nvrtc,
                                 const std::string& arch) {
    BinaryStore store{folder / "binaries"};
    const std::string text = config.text();
    for (const SourceSpec& source : instance(n).sources(config)) {
        Binary binary{.key = binary_key(source, Compiler::fixed_options(), arch, nvrtc.first, nvrtc.second),
                      .artefact = {},
                      .source = source.source,
                      .nvrtc_major = nvrtc.first,
                      .nvrtc_minor = nvrtc.second};
        binary.artefact.arch = arch;
        for (const char c : text) binary.artefact.cubin.push_back(static_cast<std::byte>(c));
        binary.artefact.cubin.push_back(std::byte{0});
        store.put(binary);
    }
}

Dispatcher::Options DispatchSetting::options() {
    return {.databases = {(folder / "tune.db").string()},
            .user_database = false,
            .system_database = false,
            .ops = &ops,
            .compile = false,
            .log = [this](const std::string& sentence) { logged.push_back(sentence); }};
}

namespace {

struct Arguments {
    std::array<std::int64_t, 1> shape;
    std::array<TensorArgument, 2> tensors;
    Arguments(std::int64_t n, std::uintptr_t shift) : shape{n} {
        tensors[0] = {.data = reinterpret_cast<const void*>(0x100000 + shift), .shape = shape};
        tensors[1] = {.data = reinterpret_cast<const void*>(0x200000 + shift), .shape = shape};
    }
};

}  // namespace

Decision DispatchSetting::launch(Dispatcher& dispatcher, const Handle& handle, std::int64_t n, CUstream stream,
                                 std::uintptr_t shift, double alpha) {
    const Arguments arguments{n, shift};
    const ScalarArgument scalars[] = {alpha};
    return dispatcher.launch(handle, arguments.tensors, scalars, stream);
}

Decision DispatchSetting::ready(Dispatcher& dispatcher, const Handle& handle, std::int64_t n, CUstream stream) {
    const Arguments arguments{n, 0};
    const ScalarArgument scalars[] = {2.0};
    return dispatcher.ready(handle, arguments.tensors, scalars, stream);
}

}  // namespace autotune::samples

#include "tests/cache/samples.h"

#include <stdlib.h>

#include "tuner/model/hashing.h"
#include "tuner/model/problem_key.h"

namespace autotune::samples {

Folder::Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "autotune-store-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
}

Folder::~Folder() {
    std::error_code error;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, error);
    std::filesystem::remove_all(path_, error);
}

DeviceIdentity device(std::string fp) {
    DeviceIdentity device;
    device.fp = std::move(fp);
    device.name = "NVIDIA H200";
    device.bandwidth_gbs = 4890;
    device.limits.cc = 90;
    device.limits.sm_count = 132;
    device.limits.max_shared = 232448;
    device.limits.memory_bytes = std::int64_t{141} << 30;
    return device;
}

Environment environment() {
    return {.nvrtc_major = 13,
            .nvrtc_minor = 0,
            .driver = "580.159.04",
            .runtime = 13000,
            .tool_version = "0.1.0",
            .os = "Linux"};
}

std::vector<TemplateIdentity> templates() {
    return {{.op = "scale", .variant = "vector", .source_hash = "aa", .space_hash = "11", .manifest = "{}"},
            {.op = "scale", .variant = "naive", .source_hash = "bb", .space_hash = "22", .manifest = "{}"}};
}

ProblemIdentity problem(std::int64_t n) {
    ProblemIdentity problem{.op = "scale",
                            .key = {},
                            .json = "{\"dtype\":\"f32\",\"n\":" + std::to_string(n) + "}",
                            .fields = {{"n", n}, {"dtype", std::string{"f32"}}}};
    problem.key = CanonicalBytes{}
                      .add(problem_key_version)
                      .add("scale")
                      .add(std::uint64_t{2})
                      .add("dtype")
                      .add_value(std::string{"f32"})
                      .add("n")
                      .add_value(n)
                      .bytes();
    return problem;
}

Config config(std::int64_t threads, std::int64_t vec, std::string variant) {
    return {.variant = std::move(variant), .values = {{"THREADS", threads}, {"VEC", vec}}};
}

Outcome timed(double time_us) {
    Outcome outcome;
    outcome.samples_us = {time_us * 0.99, time_us, time_us * 1.01};
    outcome.time_us = time_us;
    outcome.method = "graph";
    return outcome;
}

Outcome failed(Ending ending) {
    Outcome outcome;
    outcome.ending = ending;
    outcome.reason = "it failed";
    return outcome;
}

RunStart start(std::int64_t n) {
    return {.device = device(),
            .environment = environment(),
            .templates = templates(),
            .problem = problem(n),
            .info = {.strategy = "local", .seed = 7, .budget = "60s"}};
}

Finalist finalist(Config config, double time_us) {
    return {.config = std::move(config),
            .time_us = time_us,
            .low_us = time_us * 0.99,
            .high_us = time_us * 1.01,
            .samples = 20,
            .max_error = 0.4};
}

RunSummary search(Store& store, const RunStart& start, const std::vector<std::pair<Config, double>>& times) {
    const RunId run = store.begin_run(start);
    RunEnd end{.default_us = 100.0,
               .evaluated = times.size() + 1,
               .space_size = 64,
               .method = "graph",
               .reference = "CPU, fp64"};
    for (const auto& [config, time_us] : times) {
        store.record_trial(run, config, timed(time_us));
        end.finalists.push_back(finalist(config, time_us));
    }
    return store.finish_run(run, end);
}

Today today() { return {.templates = templates(), .nvrtc_major = 13, .nvrtc_minor = 0}; }

std::string uuid_named(std::string_view name) { return sha256_hex(name).substr(0, 32); }

Record record(std::int64_t n, double time_us) {
    Record record{.device = device(),
                  .source = templates().front(),
                  .problem = problem(n),
                  .environment = environment(),
                  .run = start(n).info,
                  .config = config(256, 4)};
    record.run.uuid = uuid_named("run-" + std::to_string(n));
    record.time_us = record.low_us = record.high_us = time_us;
    record.samples = 20;
    record.tuned_at = 1'700'000'000;
    record.evaluated = 10;
    record.space_size = 64;
    return record;
}

}  // namespace autotune::samples

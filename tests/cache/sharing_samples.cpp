#include "tests/cache/sharing_samples.h"

#include "cache/sharing/exports.h"
#include "cache/store/file.h"
#include "cache/store/json.h"
#include "device/identity.h"
#include "tests/support/made_up_op.h"
#include "tuner/model/hashing.h"

namespace autotune::samples {

const OpSet& shared_ops() {
    static const OpSet ops = [] {
        Op op = made_up_op({});
        op.name = "scale";
        op.fields.push_back({.name = "dtype",
                             .kind = Field::Kind::choice,
                             .choices = {std::string{"f32"}, std::string{"bf16"}},
                             .fallback = Expression::constant(std::string{"f32"})});
        const auto parameter = [](const char* name, std::vector<Value> values) {
            return Parameter{.name = name, .values = values, .fallback = Expression::constant(values.front())};
        };
        const Parameter threads =
            parameter("THREADS", {std::int64_t{32}, std::int64_t{64}, std::int64_t{128}, std::int64_t{256}});
        Variant& vector = op.variants.front();
        vector.name = "vector";
        vector.parameters = {threads, parameter("VEC", {std::int64_t{1}, std::int64_t{2}, std::int64_t{4}}),
                             parameter("MODE", {std::string{"plain"}, std::string{"fast"}})};
        Variant naive = vector;
        naive.name = "naive";
        naive.parameters = {threads};
        op.variants.push_back(naive);
        return OpSet::of({op});
    }();
    return ops;
}

DeviceIdentity with_fingerprint(DeviceIdentity device) {
    device.fp = fingerprint(device);
    return device;
}

Config shared_config(std::int64_t threads, std::int64_t vec, const std::string& mode) {
    return {.variant = "vector", .values = {{"THREADS", threads}, {"VEC", vec}, {"MODE", mode}}};
}

Record shared_record(std::int64_t n, double time_us, const std::string& run, int rank) {
    const Op& op = shared_ops().find("scale");
    Record r{.device = with_fingerprint(device()),
             .source = template_of(op, op.variants.front()),
             .problem = problem_of(Instance::make(op, {{"n", n}}, made_up_limits())),
             .environment = environment(),
             .run = {.strategy = "local",
                     .seed = 7,
                     .budget = "60s",
                     .l2_policy = "cold",
                     .method = "graph",
                     .reference = "CPU, fp64",
                     .started = 1'700'000'000,
                     .ended = 1'700'000'060},
             .config = shared_config(64 << (rank % 3), 1 << (rank % 3)),
             .rank = rank};
    r.run.uuid = sha256_hex(run).substr(0, 32);
    r.run.host_hash = sha256_hex("host");
    r.time_us = time_us;
    r.low_us = time_us * 0.99;
    r.high_us = time_us * 1.01;
    r.samples = 20;
    r.default_us = 100.0;
    r.evaluated = 10;
    r.space_size = 64;
    r.verified = Verified::verified;
    r.max_error = 0.5;
    r.tuned_at = r.run.ended;
    return r;
}

std::vector<std::byte> database_bytes(const std::vector<Record>& records) {
    const Folder folder;
    const std::filesystem::path path = folder / "x/tune.db";
    {
        Store store = Store::open({.path = path});
        store.put(records);
    }
    return read_file_whole(path).value();
}

std::vector<std::byte> lines_bytes(const std::vector<Record>& records) {
    std::string text;
    for (const Record& record : records) text += to_line(record) + '\n';
    return bytes_of(text);
}

std::vector<std::byte> bytes_of(const std::string& text) {
    const auto bytes = std::as_bytes(std::span{text});
    return {bytes.begin(), bytes.end()};
}

Record random_record(std::mt19937_64& random, const std::string& run) {
    const auto pick = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
    Record r = shared_record(1024 << pick(3), 10 + pick(3) * 0.05, run, pick(2));
    r.config = shared_config(32 << pick(4), 1 << pick(3));
    r.verified = static_cast<Verified>(pick(3));
    r.tuned_at = 1'700'000'000 + pick(2);
    r.max_error = pick(2) * 0.25;
    r.samples = 20 + pick(2);
    return r;
}

namespace {

Record random_of_a_run(std::mt19937_64& random, std::mt19937_64::result_type run) {
    Record r = random_record(random, "run " + std::to_string(run));
    r.run.clock_policy = run % 2 ? "locked" : "free";
    r.run.effort = static_cast<SearchEffort>(run % 4);
    r.run.origin = run % 3 ? "local" : "import";
    if (run % 5 == 0) r.device.name = "NVIDIA H200 NVL";
    if (run % 7 == 0) {
        r.predicted = true;
        r.model_version = "1";
    }
    return r;
}

}  // namespace

std::vector<std::vector<std::byte>> random_files(std::mt19937_64& random, std::size_t count) {
    std::vector<std::vector<std::byte>> files;
    for (std::size_t i = 0; i < count; ++i) {
        std::vector<Record> records;
        for (int k = 0; k < 12; ++k) records.push_back(random_of_a_run(random, random() % 8));
        files.push_back(random() % 2 ? lines_bytes(records) : database_bytes(records));
    }
    return files;
}

std::string exported(const Store& store) {
    std::string text;
    export_lines(store, {}, [&](const std::string& line) { text += line + '\n'; });
    return text;
}

}  // namespace autotune::samples

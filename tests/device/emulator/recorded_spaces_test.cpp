// Goal: the cost model orders the configs of a kernel much as GPUs do that it was never shown.
// Method: public records of a whole search space on three GPUs, not part of this tree: AUTOTUNE_RECORDED_SPACES names
// their folder, without it these tests are skipped. 400 configs of each are drawn in proportion to their block sizes,
// compiled from a kernel written after the space's description, and predicted. AUTOTUNE_RECORDED_ARTEFACTS names a
// folder that keeps what was compiled; without it, each test takes minutes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <sstream>

#include "autotune/error.h"
#include "device/cubin.h"
#include "tests/device/emulator/kernel.h"
#include "tuner/loader/user_ops.h"
#include "tuner/model/compile_request.h"
#include "tuner/model/instance.h"
#include "tuner/model/op_set.h"
#include "tuner/statistics.h"

namespace autotune {
namespace {

constexpr std::uint64_t seed = 20261128;
constexpr std::size_t drawn = 400;

/// A row of a record: its parameters, and the time that was measured.
struct Recorded {
    std::vector<std::pair<std::string, std::int64_t>> values;
    double time_ms = 0;
    std::int64_t value(const std::string& name) const {
        for (const auto& [known, number] : values)
            if (known == name) return number;
        return 0;
    }
    std::int64_t threads() const { return value("block_size_x") * value("block_size_y"); }
    std::string text() const {
        std::string made;
        for (const auto& [name, number] : values) made += name + "=" + std::to_string(number) + " ";
        return made;
    }
};

std::vector<std::string> split(const std::string& line) {
    std::vector<std::string> parts;
    std::stringstream stream{line};
    for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
    return parts;
}

/// Those that ran, in the record's order.
std::vector<Recorded> read_record(const std::filesystem::path& file) {
    const auto close = [](std::FILE* pipe) { pclose(pipe); };
    const std::unique_ptr<std::FILE, decltype(close)> pipe{popen(("gzip -dc '" + file.string() + "'").c_str(), "r"),
                                                           close};
    std::string text;
    std::array<char, 65536> some;
    while (const std::size_t got = std::fread(some.data(), 1, some.size(), pipe.get())) text.append(some.data(), got);
    std::vector<Recorded> rows;
    std::vector<std::string> names;
    std::stringstream lines{text};
    for (std::string line; std::getline(lines, line);) {
        if (line.empty() || line.front() == '#') continue;
        const std::vector<std::string> parts = split(line);
        if (names.empty()) {
            names = parts;
            continue;
        }
        if (parts.back() != "ok") continue;
        Recorded row;
        for (std::size_t i = 0; i < names.size() && names[i] != "time_ms"; ++i)
            row.values.emplace_back(names[i], std::stoll(parts[i]));
        row.time_ms = std::stod(parts[row.values.size()]);
        rows.push_back(std::move(row));
    }
    return rows;
}

/// Of each block size its share, at random.
std::vector<Recorded> draw(const std::vector<Recorded>& all, std::size_t count) {
    std::map<std::int64_t, std::vector<Recorded>> strata;
    for (const Recorded& one : all) strata[one.threads()].push_back(one);
    std::mt19937_64 random{seed};
    std::vector<Recorded> some;
    double owed = 0;
    for (auto& [threads, rows] : strata) {
        for (std::size_t i = rows.size(); i > 1; --i) std::swap(rows[i - 1], rows[random() % i]);
        owed += static_cast<double>(count * rows.size()) / static_cast<double>(all.size());
        for (std::size_t i = 0; i < rows.size() && owed >= 0.5; ++i, --owed) some.push_back(rows[i]);
    }
    return some;
}

/// The best of the `count` that are predicted fastest, over the best of all.
double regret(const std::vector<double>& predicted, const std::vector<double>& measured, std::size_t count) {
    std::vector<std::size_t> order(predicted.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return predicted[a] < predicted[b]; });
    double best = measured[order[0]];
    for (std::size_t i = 0; i < std::min(count, order.size()); ++i) best = std::min(best, measured[order[i]]);
    return best / *std::min_element(measured.begin(), measured.end());
}

/// The convolution on a part, by default at the record's size, ready for configs.
class Convolution {
public:
    explicit Convolution(const std::string& part, const std::vector<std::pair<std::string, Value>>& problem = {})
        : device_{make_emulated_device(part)} {
        add_op_folder(ops_, std::filesystem::path{AUTOTUNE_SOURCE_DIR} / "tests/device/emulator/convolution");
        instance_ = Instance::make(ops_.find("convolution"), problem, device_->identity().limits);
        for (const BoundTensor& tensor : instance_->tensors()) {
            buffers_.push_back(device_->allocate(tensor.bytes));
            device_->set(buffers_.back(), 0);
        }
    }

    /// Microseconds; nothing where our kernel does not fit the GPU.
    std::optional<double> predicted(const Recorded& row) {
        Config config{.variant = "tiled", .values = {}};
        for (const auto& [name, number] : row.values) config.values.emplace_back(name, Value{number});
        config = instance_->resolve(config);
        const LaunchSequence sequence = instance_->launches(config);
        BoundSequence bound{.sequence = &sequence, .module = {}, .buffers = buffers_};
        try {
            bound.module = device_->load(artefact(config));
            const std::vector<emulator::LaunchWork> works = device_->launch_works(bound);
            device_->unload(bound.module);
            const emulator::Machine machine = emulator::machine_of(device_->identity());
            note(row, works, machine);
            return emulator::predicted_us(works, machine, {});
        } catch (const DeviceFailure&) {
            return std::nullopt;
        }
    }

    /// y of these x and weights, all checked but that threads beyond the image sum what their tile was never given.
    std::vector<float> run(Config config, const std::vector<float>& x, const std::vector<float>& filter) {
        config = instance_->resolve(config);
        const LaunchSequence sequence = instance_->launches(config);
        const BoundSequence bound{
            .sequence = &sequence, .module = device_->load(artefact(config)), .buffers = buffers_};
        device_->write(buffers_[0], 0, std::as_bytes(std::span{x}));
        device_->write(buffers_[1], 0, std::as_bytes(std::span{filter}));
        device_->set(buffers_[2], 0xff);
        device_->options().checks.uninitialised = false;
        device_->run(bound);
        std::vector<float> y(buffers_[2].bytes / sizeof(float));
        device_->read(buffers_[2], 0, std::as_writable_bytes(std::span{y}));
        return y;
    }

private:
    Artefact artefact(const Config& config) {
        const SourceSpec source = instance_->sources(config).front();
        const std::string arch = "sm_" + std::to_string(device_->identity().limits.cc);
        const char* const folder = std::getenv("AUTOTUNE_RECORDED_ARTEFACTS");
        const std::string stem = folder ? std::string{folder} + "/" + source.hash() + "-" + arch : std::string{};
        if (folder && std::filesystem::exists(stem + ".ptx")) return stored(stem, arch);
        CompileResult result = compiler_.compile(compile_request(source, arch));
        if (!result.ok) throw std::runtime_error{result.log};
        if (folder) {
            std::ofstream{stem + ".cubin"}.write(reinterpret_cast<const char*>(result.artefact.cubin.data()),
                                                 static_cast<std::streamsize>(result.artefact.cubin.size()));
            std::ofstream{stem + ".ptx"} << result.artefact.ptx;
        }
        return std::move(result.artefact);
    }

    static Artefact stored(const std::string& stem, const std::string& arch) {
        const auto contents = [](const std::string& file) {
            std::ostringstream text;
            text << std::ifstream{file}.rdbuf();
            return text.str();
        };
        Artefact made;
        made.arch = arch;
        made.ptx = contents(stem + ".ptx");
        const std::string cubin = contents(stem + ".cubin");
        const auto bytes = std::as_bytes(std::span{cubin});
        made.cubin.assign(bytes.begin(), bytes.end());
        for (const CubinKernel& kernel : read_cubin(made.cubin).kernels) made.kernels.push_back(kernel_info(kernel));
        return made;
    }

    /// A line a config in the file that AUTOTUNE_RECORDED_NOTES names, for looking at what the model saw.
    static void note(const Recorded& row, const std::vector<emulator::LaunchWork>& works,
                     const emulator::Machine& machine) {
        const char* const file = std::getenv("AUTOTUNE_RECORDED_NOTES");
        if (!file) return;
        const emulator::LaunchWork& work = works.front();
        const emulator::ModelParts parts = emulator::predict(work, machine, {});
        nlohmann::json line{{"time_us", row.time_ms * 1e3},
                            {"blocks", work.blocks},
                            {"warps", work.warps},
                            {"resident", work.resident},
                            {"slots", work.interior.slots},
                            {"clocks", work.interior.clocks},
                            {"path", work.interior.path_clocks},
                            {"miss", work.interior.l1_miss_bytes},
                            {"written", work.interior.written_bytes},
                            {"dram", work.dram_bytes},
                            {"parts",
                             {parts.issue, parts.arithmetic, parts.tensor, parts.memory, parts.path, parts.l2,
                              parts.dram, parts.total}}};
        for (const auto& [name, number] : row.values) line[name] = number;
        std::ofstream{file, std::ios::app} << line.dump() << "\n";
    }

    std::unique_ptr<EmulatedDevice> device_;
    OpSet ops_;
    std::optional<Instance> instance_;
    std::vector<Buffer> buffers_;
    Compiler compiler_;
};

// The kernel that predictions are made of is a convolution, with tiles that divide the image and with others.
TEST(RecordedConvolution, IsOne) {
    if (!no_compiler().empty()) GTEST_SKIP() << no_compiler();
    constexpr int height = 20, width = 48, size = 15, pitch = width + size - 1;
    Convolution convolution{"a4000", {{"height", Value{std::int64_t{height}}}, {"width", Value{std::int64_t{width}}}}};
    std::vector<float> x(pitch * (height + size - 1)), filter(size * size);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7 % 13);
    for (std::size_t i = 0; i < filter.size(); ++i) filter[i] = static_cast<float>(i * 5 % 11);
    std::vector<float> expected(height * width);
    for (int r = 0; r < height; ++r)
        for (int c = 0; c < width; ++c)
            for (int i = 0; i < size; ++i)
                for (int j = 0; j < size; ++j)
                    expected[r * width + c] += x[(r + i) * pitch + c + j] * filter[i * size + j];
    const auto config = [](std::int64_t x_threads, std::int64_t shared, std::int64_t padding, std::int64_t read_only) {
        return Config{.variant = "tiled",
                      .values = {{"block_size_x", Value{x_threads}},
                                 {"block_size_y", Value{std::int64_t{2}}},
                                 {"tile_size_x", Value{std::int64_t{1}}},
                                 {"tile_size_y", Value{std::int64_t{2}}},
                                 {"read_only", Value{read_only}},
                                 {"use_padding", Value{padding}},
                                 {"use_shmem", Value{shared}}}};
    };
    EXPECT_EQ(convolution.run(config(16, 1, 1, 0), x, filter), expected);
    EXPECT_EQ(convolution.run(config(16, 0, 0, 1), x, filter), expected);
    EXPECT_EQ(convolution.run(config(64, 1, 0, 1), x, filter), expected) << "the image ends inside a tile";
    EXPECT_EQ(convolution.run(config(64, 0, 0, 0), x, filter), expected) << "the image ends inside a tile";
}

struct Space {
    const char* file;
    const char* part;
};

class RecordedSpaces : public testing::TestWithParam<Space> {};

TEST_P(RecordedSpaces, AreOrderedMuchAsTheGpuOrdersThem) {
    const char* const folder = std::getenv("AUTOTUNE_RECORDED_SPACES");
    if (!folder) GTEST_SKIP() << "AUTOTUNE_RECORDED_SPACES names no folder of recorded spaces";
    if (!no_compiler().empty()) GTEST_SKIP() << no_compiler();
    const std::filesystem::path file = std::filesystem::path{folder} / (std::string{GetParam().file} + ".csv.gz");
    if (!std::filesystem::exists(file)) GTEST_SKIP() << "there is no " << file;
    const std::vector<Recorded> sample = draw(read_record(file), drawn);
    ASSERT_GE(sample.size(), drawn - 1);

    Convolution convolution{GetParam().part};
    std::vector<double> predicted, measured;
    for (const Recorded& row : sample) {
        const std::optional<double> time = convolution.predicted(row);
        if (!time) continue;
        predicted.push_back(*time);
        measured.push_back(row.time_ms * 1e3);
    }
    EXPECT_GE(predicted.size(), drawn * 95 / 100);
    double scale = 0;
    for (std::size_t i = 0; i < predicted.size(); ++i) scale += std::log(predicted[i] / measured[i]);
    scale = std::exp(scale / static_cast<double>(predicted.size()));
    const double rank = rank_correlation(predicted, measured).value_or(0), ten = regret(predicted, measured, 10);
    std::cout << GetParam().file << ": " << predicted.size() << " configs, Spearman " << rank
              << ", predicted / measured " << scale << ", best of the first 1 / 5 / 10 over the best "
              << regret(predicted, measured, 1) << " / " << regret(predicted, measured, 5) << " / " << ten << "\n";
    EXPECT_GE(rank, 0.8);
    EXPECT_LE(ten, 1.05);
}

INSTANTIATE_TEST_SUITE_P(All, RecordedSpaces,
                         testing::Values(Space{"convolution_hip__A4000", "a4000"},
                                         Space{"convolution__RTX3090", "rtx3090"},
                                         Space{"convolution__RTX2080Ti", "rtx2080ti"}),
                         [](const auto& of) {
                             const std::string name = of.param.file;
                             return name.substr(name.find("__") + 2);
                         });

}  // namespace
}  // namespace autotune

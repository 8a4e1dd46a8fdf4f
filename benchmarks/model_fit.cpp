// How well the cost model orders configs that a GPU has timed, and which weights would order them better.
//
//   autotune tune gemm m=4096,n=4096,k=4096,dtype=bf16 --strategy random --budget 64 --json > gemm.jsonl
//
//   model_fit h200 gemm.jsonl ...
//
// Each config of a record is compiled for the part and predicted; no GPU is needed, NVRTC is. Every other config fits
// the weights, the rest judges them. best 1, best 10: the fastest of those that are predicted first, over the fastest
// of all.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "autotune/error.h"
#include "device/compiler.h"
#include "device/emulator/emulated_device.h"
#include "tuner/model/builtin_ops.h"
#include "tuner/model/compile_request.h"
#include "tuner/model/instance.h"
#include "tuner/statistics.h"

namespace autotune {
namespace {

using Json = nlohmann::json;

Value value_of(const Json& json) {
    if (json.is_boolean()) return Value{json.get<bool>()};
    if (json.is_number_integer()) return Value{json.get<std::int64_t>()};
    return Value{json.get<std::string>()};
}

std::vector<std::pair<std::string, Value>> values_of(const Json& object) {
    std::vector<std::pair<std::string, Value>> values;
    for (const auto& [name, value] : object.items()) values.emplace_back(name, value_of(value));
    return values;
}

/// One problem on an emulated part, in memory that is filled when touched.
class Predictor {
public:
    Predictor(const std::string& part, const std::string& op, const Json& problem)
        : device_{make_emulated_device(part, {.memory_bytes = std::uint64_t{1} << 37})},
          instance_{Instance::make(op_named(op), values_of(problem), device_->identity().limits)} {
        for (const BoundTensor& tensor : instance_.tensors()) {
            static const FillSpec normal{};
            buffers_.push_back(tensor.present ? device_->reserve(tensor.bytes, 0, tensor.dtype, &normal) : Buffer{});
        }
    }

    std::vector<emulator::LaunchWork> works(const Json& asked) {
        Config config{.variant = asked.at("variant"), .values = values_of(asked.at("values"))};
        config = instance_.resolve(config);
        const LaunchSequence sequence = instance_.launches(config, 1);
        BoundSequence bound{.sequence = &sequence, .module = {}, .buffers = buffers_};
        const Freeing freeing{*device_, bound, buffers_.size()};
        for (const SourceSpec& source : instance_.sources(config)) {
            bound.module = device_->load(compiled(source));
            bound.others.emplace_back(source.source, bound.module);
        }
        for (const ScratchBuffer& scratch : sequence.scratch)
            bound.buffers.push_back(device_->reserve(scratch.bytes, 0, DType::u8, nullptr));
        return device_->launch_works(bound);
    }
    const DeviceIdentity& identity() const { return device_->identity(); }

private:
    /// What a config brought along goes with it, whether it could be modelled or not.
    struct Freeing {
        EmulatedDevice& device;
        const BoundSequence& bound;
        std::size_t own;  ///< buffers that stay
        ~Freeing() {
            for (std::size_t i = own; i < bound.buffers.size(); ++i) device.release(bound.buffers[i]);
            for (const auto& [name, module] : bound.others) device.unload(module);
        }
    };

    static const Op& op_named(const std::string& name) {
        for (const Op& op : builtin_ops())
            if (op.name == name) return op;
        throw Error{Error::Kind::usage, fmt::format("there is no op '{}'", name)};
    }

    Artefact compiled(const SourceSpec& source) {
        CompileResult result = compiler_.compile(compile_request(source, fmt::format("sm_{}", instance_.limits().cc)));
        if (!result.ok) throw Error{Error::Kind::compile, result.log};
        return std::move(result.artefact);
    }

    std::unique_ptr<EmulatedDevice> device_;
    Instance instance_;
    std::vector<Buffer> buffers_;
    Compiler compiler_;
};

/// A config that was timed, and what the model sees of it.
struct Timed {
    std::vector<emulator::LaunchWork> works;
    double time_us = 0;
};

/// One record: a problem.
struct Problem {
    std::string name;
    std::string part;
    emulator::Machine machine;
    int cc = 0;
    std::vector<Timed> configs;
    int not_predicted = 0;

    /// Of every other config, from the first or the second on.
    std::vector<const Timed*> half(std::size_t first) const {
        std::vector<const Timed*> some;
        for (std::size_t i = first; i < configs.size(); i += 2) some.push_back(&configs[i]);
        return some;
    }
};

Problem read(const std::string& part, const std::string& path) {
    std::ifstream file{path};
    if (!file) throw Error{Error::Kind::usage, fmt::format("{} cannot be read", path)};
    Problem problem{.name = path, .part = part};
    std::optional<Predictor> predictor;
    for (std::string line; std::getline(file, line);) {
        const Json event = Json::parse(line);
        if (event.at("event") == "prepared") {
            predictor.emplace(part, event.at("op").get<std::string>(), event.at("problem"));
            problem.machine = emulator::machine_of(predictor->identity());
            problem.cc = predictor->identity().limits.cc;
            problem.name = event.at("op").get<std::string>();
            for (const auto& [name, value] : event.at("problem").items())
                problem.name +=
                    fmt::format(" {}={}", name, value.is_string() ? value.get<std::string>() : value.dump());
        }
        // Slow ones that the search dropped after a sample have a time, too.
        if (event.at("event") != "trial" || !event.contains("time_us")) continue;
        if (!predictor) throw Error{Error::Kind::usage, fmt::format("{} has a trial before its problem", path)};
        try {
            problem.configs.push_back({predictor->works(event.at("config")), event.at("time_us").get<double>()});
        } catch (const DeviceFailure&) {
            ++problem.not_predicted;
        }
    }
    return problem;
}

// ---- The fit.

using Weights = emulator::ModelWeights;
constexpr std::array<double Weights::*, 12> weights{&Weights::issue,     &Weights::arithmetic, &Weights::tensor,
                                                    &Weights::memory,    &Weights::path,       &Weights::l2,
                                                    &Weights::dram,      &Weights::tail,       &Weights::launch_us,
                                                    &Weights::unit_norm, &Weights::path_norm,  &Weights::level_norm};
constexpr std::array<const char*, 12> weight_names{"issue",     "arithmetic", "tensor",    "memory",
                                                   "path",      "l2",         "dram",      "tail",
                                                   "launch_us", "unit_norm",  "path_norm", "level_norm"};

std::vector<double> log_ratios(const Problem& problem, const std::vector<const Timed*>& configs, const Weights& with) {
    std::vector<double> ratios;
    for (const Timed* one : configs)
        ratios.push_back(std::log(emulator::predicted_us(one->works, problem.machine, with) / one->time_us));
    return ratios;
}

/// How far the predictions of a half are off: the variance within a problem, which is what orders configs; less, how
/// all of it is off; least, how far the weights are from neutral, so that what does not matter stays there.
double loss(const std::vector<Problem>& problems, std::size_t first, const Weights& with) {
    constexpr double most = 1.5, of_mean = 0.2, of_weights = 0.01;
    const Weights neutral;
    double sum = 0;
    for (const Problem& problem : problems) {
        std::vector<double> ratios = log_ratios(problem, problem.half(first), with);
        double mean = 0, variance = 0;
        for (double& ratio : ratios) mean += ratio = std::clamp(ratio, -most, most);
        mean /= static_cast<double>(ratios.size());
        for (const double ratio : ratios) variance += (ratio - mean) * (ratio - mean);
        sum += variance / static_cast<double>(ratios.size()) + of_mean * mean * mean;
    }
    double far = 0;
    for (const auto weight : weights) far += std::pow(std::log(with.*weight / neutral.*weight), 2);
    return sum / static_cast<double>(problems.size()) + of_weights * far / static_cast<double>(weights.size());
}

/// One weight after the other is scaled up or down for as long as that helps, in smaller and smaller steps.
Weights fitted(const std::vector<Problem>& problems, std::size_t first) {
    constexpr double first_step = 0.4, last_step = 0.01;
    Weights best;
    double least = loss(problems, first, best);
    for (double step = first_step; step > last_step; step /= 2)
        for (bool better = true; better;) {
            better = false;
            for (const auto weight : weights)
                for (const double factor : {std::exp(step), std::exp(-step)}) {
                    Weights tried = best;
                    tried.*weight *= factor;
                    const double found = loss(problems, first, tried);
                    if (found >= least) continue;
                    least = found;
                    best = tried;
                    better = true;
                }
        }
    return best;
}

// ---- The table.

/// Predictions and times of some configs, held against each other.
struct Judged {
    double spearman = 0, scale = 0, mape = 0, best_of_1 = 0, best_of_10 = 0;
};

Judged judged(const Problem& problem, const std::vector<const Timed*>& configs, const Weights& with) {
    std::vector<double> predicted, timed;
    Judged found;
    for (const Timed* one : configs) {
        predicted.push_back(emulator::predicted_us(one->works, problem.machine, with));
        timed.push_back(one->time_us);
        found.scale += std::log(predicted.back() / timed.back()) / static_cast<double>(configs.size());
        found.mape += std::abs(predicted.back() / timed.back() - 1) / static_cast<double>(configs.size());
    }
    found.scale = std::exp(found.scale);
    found.spearman = rank_correlation(predicted, timed).value_or(0);
    std::vector<std::size_t> order(configs.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return predicted[a] < predicted[b]; });
    const double best = *std::min_element(timed.begin(), timed.end());
    const auto best_of = [&](std::size_t count) {
        double least = timed[order[0]];
        for (std::size_t i = 0; i < std::min(count, order.size()); ++i) least = std::min(least, timed[order[i]]);
        return least / best;
    };
    found.best_of_1 = best_of(1);
    found.best_of_10 = best_of(10);
    return found;
}

void print_table(const std::vector<Problem>& problems, const char* title, std::size_t first, const Weights& with) {
    fmt::print("\n{}\n{:>4} {:>8} {:>6} {:>6} {:>7} {:>7}  problem\n", title, "n", "spearman", "scale", "mape",
               "best 1", "best 10");
    double sum = 0;
    for (const Problem& problem : problems) {
        const std::vector<const Timed*> half = problem.half(first);
        const Judged found = judged(problem, half, with);
        sum += found.spearman;
        fmt::print("{:>4} {:>8.3f} {:>6.2f} {:>6.3f} {:>7.3f} {:>7.3f}  {}{}\n", half.size(), found.spearman,
                   found.scale, found.mape, found.best_of_1, found.best_of_10, problem.name,
                   problem.not_predicted ? fmt::format(", {} not predicted", problem.not_predicted) : "");
    }
    fmt::print("mean {:>8.3f}\n", sum / static_cast<double>(problems.size()));
}

int run(int count, char** arguments) {
    if (count < 3) throw Error{Error::Kind::usage, "usage: model_fit PART RECORD..."};
    std::vector<Problem> problems;
    for (int i = 2; i < count; ++i) {
        problems.push_back(read(arguments[1], arguments[i]));
        if (problems.back().configs.size() < 4)
            throw Error{Error::Kind::usage, fmt::format("{} has fewer than four configs with a time", arguments[i])};
    }
    const Weights found = fitted(problems, 0);
    fmt::print("weights, fitted on every other config\n");
    for (std::size_t i = 0; i < weights.size(); ++i)
        fmt::print("  {:<11} {:.3f}\n", weight_names[i], found.*weights[i]);
    print_table(problems, "the other configs, with neutral weights", 1, {});
    print_table(problems, "the other configs, with the weights that are built in", 1,
                emulator::weights_of(problems.front().cc));
    print_table(problems, "the other configs, with these weights", 1, found);
    print_table(problems, "the configs of the fit, with these weights", 0, found);
    return 0;
}

}  // namespace
}  // namespace autotune

int main(int count, char** arguments) {
    try {
        return autotune::run(count, arguments);
    } catch (const std::exception& e) {
        fmt::print(stderr, "error: {}\n", e.what());
        return 1;
    }
}

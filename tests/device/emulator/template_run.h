#ifndef AUTOTUNE_TESTS_DEVICE_EMULATOR_TEMPLATE_RUN_H
#define AUTOTUNE_TESTS_DEVICE_EMULATOR_TEMPLATE_RUN_H

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "autotune/error.h"
#include "device/support_math.h"
#include "tests/device/emulator/kernel.h"
#include "tuner/model/builtin_ops.h"
#include "tuner/model/compile_request.h"
#include "tuner/references/table.h"
#include "tuner/worker/evaluate.h"
#include "tuner/worker/run_worker.h"

namespace autotune {

inline CompileResult compiled_for(const DeviceLimits& limits, const SourceSpec& source) {
    static Compiler compiler;
    return compiler.compile(compile_request(source, "sm_" + std::to_string(limits.cc)));
}

/// What a run has in memory beside what its problem says.
struct TemplateMemory {
    bool specials = false;  ///< the first input of floats has a NaN and an infinity of each sign in places of its own
    /// An output that lies where an input does; both empty: all tensors lie apart.
    std::string output = {}, over = {};
};

/// One problem of an op on an emulated device, as a run worker holds it: configs are compiled, run on poisoned
/// memory with all checks on, and compared with the CPU reference.
class TemplateRun {
public:
    TemplateRun(const std::string& part, const std::string& op,
                const std::vector<std::pair<std::string, Value>>& problem, const Binding& binding = {})
        : TemplateRun{part, op_named(op), problem, binding, {}} {}

    /// The op must outlive this; its reference is one that is linked in.
    TemplateRun(const std::string& part, const Op& op, const std::vector<std::pair<std::string, Value>>& problem,
                const Binding& binding = {}, const TemplateMemory& memory = {})
        : device_{make_emulated_device(part)},
          instance_{Instance::make(op, problem, device_->identity().limits, binding)},
          worker_{std::make_unique<RunWorker>(*device_)} {
        std::vector<TensorTask> tensors = tensor_tasks(instance_, 1);
        std::vector<Fd> contents;
        if (memory.specials) contents.push_back(specials_of(tensors));
        Evaluation evaluation = evaluate(
            {.op = op.reference.cpp.substr(0, op.reference.cpp.rfind('.')),
             .tensors = tensors,
             .fields = field_tasks(instance_),
             .seed = 1},
            [](std::string_view name) { return builtin_reference(name); }, mapped(contents));
        if (!memory.output.empty()) lay_over(tensors, evaluation.values, memory.output, memory.over);
        worker_->prepare({.slot = 0, .tensors = tensors, .rotate = false}, mapped(contents));
        worker_->set_reference({.slot = 0}, mapped(evaluation.values));
    }

    const Instance& instance() const { return instance_; }
    EmulatedDevice& device() { return *device_; }

    /// `together`: all blocks are resident and go on by turns.
    Outcome trial(const Config& config, bool together = false) {
        CandidateTask candidate;
        if (const std::string log = compile_all(instance_.sources(config), candidate); !log.empty())
            return {.ending = Ending::compile_failed, .reason = log};
        candidate.sequence = instance_.launches(config, 1);
        for (Launch& launch : candidate.sequence.launches) {
            launch.cooperative |= together;
            for (Argument& argument : launch.arguments)
                if (auto* const buffer = std::get_if<BufferArgument>(&argument);
                    buffer && buffer->buffer == over_.first)
                    buffer->buffer = over_.second;
        }
        return worker_->trial({.candidate = std::move(candidate), .twice = false, .measure = false});
    }

    /// The op's reference for devices beside that for the CPU: one a written tensor.
    std::vector<Comparison> anchor() {
        ReferenceTask task{.slot = 0, .kind = ReferenceTask::Kind::device};
        if (const std::string log = compile_all(instance_.reference_sources(), task.candidate); !log.empty())
            throw Error{Error::Kind::compile, log};
        task.candidate.sequence = instance_.reference_launches();
        return worker_->anchor(task);
    }

private:
    static const Op& op_named(const std::string& name) {
        for (const Op& op : builtin_ops())
            if (op.name == name) return op;
        throw Error{Error::Kind::internal, "there is no op " + name};
    }

    static std::vector<MappedMemory> mapped(const std::vector<Fd>& memories) {
        std::vector<MappedMemory> all;
        for (const Fd& fd : memories) all.emplace_back(fd, std::uint64_t{1} << 32);
        return all;
    }

    /// The contents of the first input of floats, which the tasks then name: as it is filled, but for three elements.
    static Fd specials_of(std::vector<TensorTask>& tensors) {
        constexpr double infinity = std::numeric_limits<double>::infinity();
        for (TensorTask& tensor : tensors) {
            if (!is_read(tensor) || !info(tensor.dtype).floating || size_of(tensor.dtype) == 1) continue;
            std::vector<std::byte> bytes = filled_bytes(tensor, 1);
            const std::size_t size = size_of(tensor.dtype), last = bytes.size() / size - 1;
            const std::pair<std::size_t, double> given[] = {
                {last / 7, std::nan("")}, {last * 3 / 7, infinity}, {last * 5 / 7, -infinity}};
            for (const auto& [at, value] : given) {
                const std::uint64_t bits = support::encode(value, static_cast<int>(tensor.dtype));
                std::memcpy(&bytes[at * size], &bits, size);
            }
            tensor.contents = 0;
            tensor.fill.kind = FillSpec::Kind::special;  // what may give a NaN
            return sealed_memory(bytes);
        }
        throw Error{Error::Kind::internal, "no input is of floats"};
    }

    /// The input becomes what is written, and is held against what the output should be.
    void lay_over(std::vector<TensorTask>& tensors, std::vector<Fd>& values, const std::string& output,
                  const std::string& over) {
        std::vector<std::vector<Fd>> of_each(tensors.size());
        std::size_t next = 0, from = 0, to = 0;
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            if (tensors[i].name == output) from = i;
            if (tensors[i].name == over) to = i;
            for (int part = 0; is_written(tensors[i]) && part < 2; ++part)
                of_each[i].push_back(std::move(values[next++]));
        }
        of_each[to] = std::move(of_each[from]);
        of_each[from].clear();
        tensors[to].role = Role::inout;
        tensors[to].bound = tensors[from].bound;
        tensors[from].present = false;
        values.clear();
        for (std::vector<Fd>& pair : of_each)
            for (Fd& fd : pair) values.push_back(std::move(fd));
        over_ = {static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to)};
    }

    /// What a compiler says of the first that fails; empty: none does.
    std::string compile_all(const std::vector<SourceSpec>& sources, CandidateTask& to) {
        for (const SourceSpec& source : sources) {
            CompileResult result = compiled_for(device_->identity().limits, source);
            if (!result.ok) return result.log;
            to.sources.push_back(source.source);
            to.artefacts.push_back(std::move(result.artefact));
        }
        return {};
    }

    std::unique_ptr<EmulatedDevice> device_;
    Instance instance_;
    std::unique_ptr<RunWorker> worker_;
    std::pair<std::uint32_t, std::uint32_t> over_{~0u, ~0u};  ///< the output that is not there, and where it goes
};

}  // namespace autotune
#endif

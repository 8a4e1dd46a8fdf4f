#ifndef AUTOTUNE_TESTS_DEVICE_EMULATOR_TEMPLATE_RUN_H
#define AUTOTUNE_TESTS_DEVICE_EMULATOR_TEMPLATE_RUN_H

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "autotune/error.h"
#include "tests/device/emulator/kernel.h"
#include "tuner/model/builtin_ops.h"
#include "tuner/references/table.h"
#include "tuner/worker/evaluate.h"
#include "tuner/worker/run_worker.h"

namespace autotune {

/// One problem of an op on an emulated device, as a run worker holds it: configs are compiled, run on poisoned
/// memory with all checks on, and compared with the CPU reference.
class TemplateRun {
public:
    TemplateRun(const std::string& part, const std::string& op,
                const std::vector<std::pair<std::string, Value>>& problem, const Binding& binding = {})
        : TemplateRun{part, op_named(op), problem, binding} {}

    /// The op must outlive this; its reference is one that is linked in.
    TemplateRun(const std::string& part, const Op& op, const std::vector<std::pair<std::string, Value>>& problem,
                const Binding& binding = {})
        : device_{make_emulated_device(part)},
          instance_{Instance::make(op, problem, device_->identity().limits, binding)},
          worker_{std::make_unique<RunWorker>(*device_)} {
        const std::vector<TensorTask> tensors = tensor_tasks(instance_, 1);
        worker_->prepare({.slot = 0, .tensors = tensors, .rotate = false});
        Evaluation evaluation = evaluate({.op = op.reference.cpp.substr(0, op.reference.cpp.rfind('.')),
                                          .tensors = tensors,
                                          .fields = field_tasks(instance_),
                                          .seed = 1},
                                         [](std::string_view name) { return builtin_reference(name); });
        std::vector<MappedMemory> values;
        for (const Fd& fd : evaluation.values) values.emplace_back(fd, std::uint64_t{1} << 32);
        worker_->set_reference({.slot = 0}, std::move(values));
    }

    const Instance& instance() const { return instance_; }
    EmulatedDevice& device() { return *device_; }

    Outcome trial(const Config& config) {
        CandidateTask candidate;
        if (const std::string log = compile_all(instance_.sources(config), candidate); !log.empty())
            return {.ending = Ending::compile_failed, .reason = log};
        candidate.sequence = instance_.launches(config, 1);
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

    /// What a compiler says of the first that fails; empty: none does.
    std::string compile_all(const std::vector<SourceSpec>& sources, CandidateTask& to) {
        for (const SourceSpec& source : sources) {
            CompileResult result = compile(source);
            if (!result.ok) return result.log;
            to.sources.push_back(source.source);
            to.artefacts.push_back(std::move(result.artefact));
        }
        return {};
    }

    CompileResult compile(const SourceSpec& source) {
        static Compiler compiler;
        CompileRequest request{
            .name = source.source,
            .source = source.text,
            .headers = {},
            .defines = source.defines,
            .options = source.options,
            .entries = source.entries,
            .arch = source.arch.empty() ? "sm_" + std::to_string(device_->identity().limits.cc) : source.arch};
        for (const auto& [name, text] : source.headers) request.headers.push_back({name, text});
        return compiler.compile(request);
    }

    std::unique_ptr<EmulatedDevice> device_;
    Instance instance_;
    std::unique_ptr<RunWorker> worker_;
};

}  // namespace autotune
#endif

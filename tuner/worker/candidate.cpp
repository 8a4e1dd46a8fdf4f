#include "tuner/worker/candidate.h"

#include <utility>

#include "autotune/error.h"

namespace autotune {
namespace {

constexpr std::size_t most_spare = 1024;
constexpr std::uint64_t most_spare_bytes = 4ull << 30;

}  // namespace

ScratchPool::~ScratchPool() { release_all(); }

void ScratchPool::release_all() {
    for (const auto& [bytes, buffer] : spare_) {
        try {
            device_.release(buffer);
        } catch (const DeviceFailure&) {
        }
    }
    spare_.clear();
    spare_bytes_ = 0;
}

Buffer ScratchPool::take(std::uint64_t bytes) {
    if (const auto found = spare_.find(bytes); found != spare_.end()) {
        const Buffer buffer = found->second;
        spare_.erase(found);
        spare_bytes_ -= bytes;
        return buffer;
    }
    try {
        return device_.allocate(bytes);
    } catch (const DeviceFailure& e) {
        if (e.fault().kind != DeviceFault::Kind::out_of_memory || spare_.empty()) throw;
    }
    release_all();
    return device_.allocate(bytes);
}

void ScratchPool::give_back(Buffer buffer) {
    if (spare_.size() >= most_spare || spare_bytes_ + buffer.bytes > most_spare_bytes) release_all();
    spare_bytes_ += buffer.bytes;
    spare_.emplace(buffer.bytes, buffer);
}

Candidate::Candidate(Device& device, ScratchPool& pool, const ProblemMemory& memory, CandidateTask task,
                     std::size_t sets)
    : device_{device},
      pool_{pool},
      task_{std::move(task)},
      tensor_count_{memory.tensors().size()},
      modelled_{memory.task().modelled} {
    if (task_.artefacts.empty() || task_.sources.size() != task_.artefacts.size())
        throw Error{Error::Kind::internal, "a candidate came without its binaries"};
    try {
        std::vector<std::pair<std::string, Module>> others;
        for (std::size_t i = 0; i < task_.artefacts.size(); ++i) {
            modules_.push_back(device_.load(task_.artefacts[i]));
            if (i > 0) others.emplace_back(task_.sources[i], modules_.back());
        }
        for (std::size_t s = 0; s < sets; ++s) {
            BoundSequence bound{
                .sequence = &task_.sequence, .module = modules_.front(), .buffers = memory.set(s), .others = others};
            for (const ScratchBuffer& scratch : task_.sequence.scratch) {
                scratch_.push_back(modelled_ ? device_.reserve(scratch.bytes, 0, DType::u8, nullptr)
                                             : pool_.take(scratch.bytes));
                bound.buffers.push_back(scratch_.back());
            }
            bound_.push_back(std::move(bound));
        }
    } catch (...) {
        release();
        throw;
    }
}

Candidate::~Candidate() { release(); }

void Candidate::release() noexcept {
    for (const Buffer& buffer : std::exchange(scratch_, {}))
        modelled_ ? device_.release(buffer) : pool_.give_back(buffer);
    for (const Module module : std::exchange(modules_, {})) {
        try {
            device_.unload(module);
        } catch (const DeviceFailure&) {  // the context is lost, and the module with it
        }
    }
}

void Candidate::poison_scratch(std::size_t set, std::uint8_t poison) {
    for (std::size_t i = tensor_count_; i < bound_[set].buffers.size(); ++i)
        device_.set(bound_[set].buffers[i], poison);
}

}  // namespace autotune

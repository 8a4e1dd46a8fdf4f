#include "tuner/worker/predictor.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "autotune/error.h"
#include "device/identity.h"
#include "tuner/worker/candidate_task.h"
#include "tuner/worker/gates.h"

namespace autotune {
namespace {

/// What compilers and lanes hand back. It outlives the call that waits: a compile that nobody waits for still answers.
struct Answers {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::pair<std::size_t, BinariesResult>> compiled;  ///< guarded, as what follows
    std::vector<std::optional<double>> time_us;
    std::vector<std::size_t> waiting;  ///< jobs of each lane
    std::size_t done = 0;
    bool given_up = false;

    void finish(std::size_t config, std::optional<double> time) {
        const std::lock_guard lock{mutex};
        time_us[config] = time;
        ++done;
        changed.notify_one();
    }
};

class Predicting {
public:
    Predicting(const Instance& instance, std::span<const Config> configs, CompiledSources& store,
               std::span<const ModellingLane> lanes)
        : instance_{instance}, configs_{configs}, store_{store}, lanes_{lanes} {
        answers_->time_us.resize(configs.size());
        answers_->waiting.resize(lanes.size());
    }
    /// What waits on the lanes is not begun any more.
    ~Predicting() {
        const std::lock_guard lock{answers_->mutex};
        answers_->given_up = true;
    }
    Predicting(const Predicting&) = delete;
    Predicting& operator=(const Predicting&) = delete;

    std::vector<std::optional<double>> run(const std::function<bool()>& go_on) {
        while (true) {
            feed_compilers();
            std::deque<std::pair<std::size_t, BinariesResult>> compiled;
            {
                std::unique_lock lock{answers_->mutex};
                if (answers_->done == configs_.size()) break;
                answers_->changed.wait_for(lock, std::chrono::milliseconds{100}, [&] {
                    return !answers_->compiled.empty() || answers_->done == configs_.size();
                });
                compiled.swap(answers_->compiled);
            }
            for (auto& [config, result] : compiled) {
                --compiling_;
                take_binaries(config, result);
            }
            if (!go_on()) break;
        }
        const std::lock_guard lock{answers_->mutex};
        return answers_->time_us;
    }

private:
    /// No more than keeps the compilers busy: what is given up must not stand before what is tried.
    void feed_compilers() {
        const std::string arch = arch_name(instance_.limits().cc);
        const std::size_t most = store_.pool().workers() * 2;
        while (compiling_ < most && next_ < configs_.size()) {
            const std::size_t config = next_++;
            ++compiling_;
            try {
                store_.want(instance_.sources(configs_[config]), arch,
                            [answers = answers_, config](BinariesResult result) {
                                const std::lock_guard lock{answers->mutex};
                                answers->compiled.emplace_back(config, std::move(result));
                                answers->changed.notify_one();
                            });
            } catch (const Error&) {  // of its sources; whoever tries it is told
                --compiling_;
                answers_->finish(config, std::nullopt);
            }
        }
    }

    void take_binaries(std::size_t config, const BinariesResult& result) {
        throw_obstacle(result.obstacle);
        if (!result.binaries) return answers_->finish(config, std::nullopt);
        try {
            TrialTask task{.candidate = candidate_task(instance_, configs_[config], *result.binaries, 0, true),
                           .check = false};
            const Variant& variant = *instance_.op().variant(configs_[config].variant);
            if (gate(variant, *result.binaries, task.candidate.sequence, instance_.limits()))
                return answers_->finish(config, std::nullopt);
            model(config, std::move(task));
        } catch (const EvaluationError&) {  // of a launch's geometry
            answers_->finish(config, std::nullopt);
        }
    }

    /// On the lane that has least to do.
    void model(std::size_t config, TrialTask task) {
        std::size_t lane = 0;
        {
            const std::lock_guard lock{answers_->mutex};
            const auto least = std::ranges::min_element(answers_->waiting);
            lane = static_cast<std::size_t>(least - answers_->waiting.begin());
            ++*least;
        }
        lanes_[lane].lane->thread().post(
            [answers = answers_, desk = lanes_[lane].desk, lane, config, task = std::move(task)] {
                {
                    const std::lock_guard lock{answers->mutex};
                    if (answers->given_up) return;
                }
                std::optional<double> time;
                try {
                    const Outcome outcome = desk->ask(task);
                    if (outcome.ok() && outcome.time_us > 0) time = outcome.time_us;
                } catch (const std::exception&) {  // the emulator does not start: there are no predictions then
                }
                {
                    const std::lock_guard lock{answers->mutex};
                    --answers->waiting[lane];
                    if (answers->given_up) return;
                }
                answers->finish(config, time);
            });
    }

    const Instance& instance_;
    const std::span<const Config> configs_;
    CompiledSources& store_;
    const std::span<const ModellingLane> lanes_;
    const std::shared_ptr<Answers> answers_ = std::make_shared<Answers>();
    std::size_t next_ = 0, compiling_ = 0;
};

}  // namespace

std::vector<std::optional<double>> predict_times(const Instance& instance, std::span<const Config> configs,
                                                 CompiledSources& store, std::span<const ModellingLane> lanes,
                                                 const std::function<bool()>& go_on) {
    return Predicting{instance, configs, store, lanes}.run(go_on);
}

}  // namespace autotune

#ifndef AUTOTUNE_REPLAY_RECORDED_SPACE_H
#define AUTOTUNE_REPLAY_RECORDED_SPACE_H

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/model/outcome.h"
#include "tuner/model/space.h"

namespace autotune {

/// A search space that somebody measured as a whole: what each config took, or how it failed. Strategies are judged by
/// searching it again, which needs no device. The text format stands in docs/search.md. Immutable; may be moved.
class RecordedSpace {
public:
    /// Reads a file, gzipped or not. It is taken for hostile: at most 256 MiB of text, 4 million configs, 64 parameters
    /// and 4,096 values each. Throws Error{usage} naming the file, the line and what is wrong with it.
    static RecordedSpace read(const std::filesystem::path& file);
    /// The same of text. name: for messages
    static RecordedSpace parse(std::string_view text, const std::string& name);

    const std::string& kernel() const noexcept { return kernel_; }
    const std::string& device() const noexcept { return device_; }
    /// KERNEL__DEVICE
    std::string name() const { return kernel_ + "__" + device_; }
    const Instance& instance() const noexcept { return *instance_; }
    const Space& space() const noexcept { return *space_; }

    /// What a trial of the config would have told: its time in microseconds, or the failure.
    Outcome outcome(std::size_t number) const;
    /// Host time that the config's trial took then, in milliseconds; nullopt where the record does not say.
    std::optional<double> cost_ms(std::size_t number) const;
    /// Times of the configs that work, in microseconds, fastest first.
    const std::vector<double>& sorted_us() const noexcept { return sorted_us_; }
    /// The fastest; 0 when none works.
    double optimum_us() const noexcept { return sorted_us_.empty() ? 0 : sorted_us_.front(); }

private:
    RecordedSpace() = default;

    struct Row {
        double time_us = 0, sd_us = 0;
        float cost_ms = -1;  ///< negative: not recorded
        Ending ending = Ending::timed;
    };

    std::string kernel_, device_;
    std::unique_ptr<Op> op_;
    std::optional<Instance> instance_;
    std::unique_ptr<Space> space_;
    std::vector<Row> rows_;  ///< by the config's number
    std::vector<double> sorted_us_;
};

}  // namespace autotune
#endif

#ifndef AUTOTUNE_TOOLS_LAUNCH_SCALARS_H
#define AUTOTUNE_TOOLS_LAUNCH_SCALARS_H

#include <string>
#include <vector>

#include "tuner/model/instance.h"

namespace autotune {

/// A scalar that is given anew with each launch: no config depends on its value.
struct ScalarParameter {
    const Scalar* scalar = nullptr;
    Value timed_with;
    std::string fact;  ///< what follows from it and has to stay: "no_c = false"; may be empty
};

/// What the values among the arguments of a config's launches are, in the words of its op file.
class LaunchScalars {
public:
    LaunchScalars(const Instance& instance, const Config& config);

    const std::vector<ScalarParameter>& parameters() const noexcept { return parameters_; }
    /// The parameter that an argument is; nullptr: the config or the problem settles it.
    const ScalarParameter* parameter(std::size_t launch, std::size_t argument) const;
    /// What a settled argument is: "i64(rows)", "f32(1 / base), base = 10000".
    std::string words(std::size_t launch, std::size_t argument) const;

private:
    const ArgumentSpec& spec(std::size_t launch, std::size_t argument) const;

    const Instance& instance_;
    std::vector<const LaunchSpec*> launches_;
    std::vector<ScalarParameter> parameters_;
};

}  // namespace autotune
#endif

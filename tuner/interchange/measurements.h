#ifndef AUTOTUNE_INTERCHANGE_MEASUREMENTS_H
#define AUTOTUNE_INTERCHANGE_MEASUREMENTS_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tuner/model/config.h"
#include "tuner/model/outcome.h"

namespace autotune {

/// One configuration as some tuner measured it.
struct MeasuredConfig {
    std::vector<std::pair<std::string, Value>> values;
    std::string invalidity = "correct";  ///< timeout, compile, runtime, correctness, constraints, correct
    std::optional<double> time_ms;       ///< the objective; nullopt where it failed
    std::vector<double> runtimes_ms;     ///< single runs, where they are told
    double compilation_ms = 0, validation_ms = 0, search_ms = 0, framework_ms = 0;
    double correctness = 1;
    bool predicted = false;      ///< modelled, not measured; in T4 a measurement of that name
    std::int64_t timestamp = 0;  ///< seconds since 1970, UTC; 0: not told

    friend bool operator==(const MeasuredConfig&, const MeasuredConfig&) = default;
};

/// What a file of results holds.
struct Measurements {
    std::string kernel, device;  ///< of a cache file; T4 tells neither
    /// As a cache lists them; of T4, whose objects have no order, all that occur, by name. A configuration lacks those
    /// that its variant does not have.
    std::vector<std::string> parameters;
    std::vector<MeasuredConfig> configs;
    std::vector<std::string> notes;  ///< what was left out, a sentence each
};

/// Reads T4 results, in the spelling of the schema (`compilation_time`) or of Kernel Tuner (`compilation`, `benchmark`,
/// a top-level time unit, also misspelt), or a Kernel Tuner cache file, also one that its tuner did not close.
/// file    its name, for messages
/// throws  Error{usage} naming file and place: no JSON (NaN is none), none of the formats, a configuration without its
///         parameters or one that has others than the first of the same `variant`, an objective that is no time, a
///         time that is negative or no number
Measurements measurements_from_text(std::string_view text, const std::string& file);

/// A trial of ours. The variant stands first, as the parameter `variant`. What was dropped early is "correct" with no
/// time: its runs are a lower bound.
/// ended  seconds since 1970, UTC
MeasuredConfig measured_config(const Config& config, const Outcome& outcome, std::int64_t ended);

/// One table of the trials of several variants: every config gets all parameters, in the order in which they first
/// occur, and 'none' for what its variant lacks. Other tuners know no variants, and expect of each result what the
/// first one has.
void even_out(Measurements& measured);

}  // namespace autotune
#endif

#ifndef AUTOTUNE_MODEL_OUTCOME_H
#define AUTOTUNE_MODEL_OUTCOME_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/emulator/counters.h"

namespace autotune {

/// How a trial ended.
enum class Ending {
    timed, dropped, not_valid, does_not_fit, compile_failed, compile_timeout, spilled, serialised, launch_failed,
    crashed, timed_out, out_of_memory, wrong_result, out_of_bounds, invalid_access, race, barrier_misuse, deadlock,
    no_output, not_deterministic, below_floor, not_emulated
};

struct EndingInfo {
    Ending ending;
    std::string_view name;   ///< in SQL and JSON
    std::string_view words;  ///< in messages
    std::string_view t4;     ///< the community's interchange word for it
    bool remembered;         ///< a resumed run skips the config
    bool dies_with_source;   ///< forgotten when the template changes only; else when the environment changes too
};

/// One row an ending, in enum order.
inline constexpr std::array<EndingInfo, 22> endings{{
    {Ending::timed, "timed", "timed", "correct", true, true},
    {Ending::dropped, "dropped", "dropped early", "correct", true, true},
    {Ending::not_valid, "not_valid", "not valid", "constraints", true, true},
    {Ending::does_not_fit, "does_not_fit", "does not fit", "constraints", true, false},
    {Ending::compile_failed, "compile_failed", "compile failed", "compile", true, false},
    {Ending::compile_timeout, "compile_timeout", "compile timed out", "compile", true, false},
    {Ending::spilled, "spilled", "spilled", "compile", true, false},
    {Ending::serialised, "serialised", "serialised", "compile", true, false},
    {Ending::launch_failed, "launch_failed", "launch failed", "runtime", true, false},
    {Ending::crashed, "crashed", "crashed", "runtime", true, false},
    {Ending::timed_out, "timed_out", "timed out", "timeout", true, false},
    {Ending::out_of_memory, "out_of_memory", "out of memory", "runtime", false, false},
    {Ending::wrong_result, "wrong_result", "wrong result", "correctness", true, true},
    {Ending::out_of_bounds, "out_of_bounds", "out of bounds", "correctness", true, true},
    {Ending::invalid_access, "invalid_access", "invalid access", "runtime", true, true},
    {Ending::race, "race", "race", "correctness", true, true},
    {Ending::barrier_misuse, "barrier_misuse", "barrier misuse", "correctness", true, true},
    {Ending::deadlock, "deadlock", "deadlock", "timeout", true, true},
    {Ending::no_output, "no_output", "no output", "correctness", true, true},
    {Ending::not_deterministic, "not_deterministic", "not deterministic", "correctness", true, true},
    {Ending::below_floor, "below_floor", "below the floor", "correctness", true, true},
    {Ending::not_emulated, "not_emulated", "not emulated", "runtime", true, false},
}};

constexpr const EndingInfo& info(Ending ending) noexcept { return endings[static_cast<std::size_t>(ending)]; }
std::optional<Ending> ending_named(std::string_view name) noexcept;

/// One ending with its facts: what strategies, the store and the progress line all understand.
struct Outcome {
    Ending ending = Ending::timed;
    std::string reason;  ///< one sentence for people; empty when timed, unless tainted
    std::string log;     ///< compiler or kernel output, at most 64 KiB

    std::vector<double> samples_us;  ///< device time of one launch sequence; a lower bound when dropped
    double time_us = 0;              ///< their median; 0 when there are none
    bool predicted = false;          ///< modelled, not measured
    bool tainted = false;            ///< by something else on the machine: never dispatched, and tried again
    std::string method;              ///< "graph" or "events"

    double max_error = 0;      ///< largest error over its bound
    double compile_ms = 0, check_ms = 0, time_ms = 0;  ///< host time spent
    int registers = 0, spill_bytes = 0, shared_bytes = 0, blocks_per_sm = 0;
    double clock_mhz = 0;
    std::vector<emulator::CountedLaunch> counters;  ///< what the emulator counted; empty when measured

    bool ok() const noexcept { return ending == Ending::timed; }
};

}  // namespace autotune
#endif

#include "tuner/worker/trial_desk.h"

#include <fmt/format.h>

#include "autotune/error.h"
#include "tuner/worker/json_types.h"

namespace autotune {

void TrialDesk::hold_main() {
    if (lane_.holds(0)) return;
    try {
        lane_.hold(main_);
    } catch (const Error& e) {
        if (e.kind() != Error::Kind::device || !lane_.holds(recheck_slot)) throw;
        lane_.drop(recheck_slot);  // no room for both; a re-check holds its problem anew for each run
        lane_.hold(main_);
    }
}

void TrialDesk::hold_main_anew() { lane_.hold(main_); }

Outcome TrialDesk::ask(const TrialTask& task, const Patience& patience) {
    try {
        if (task.candidate.slot == 0) hold_main();
        const nlohmann::json body = lane_.ask(Message::trial, task, patience).json();
        auto outcome = body.at("outcome").get<Outcome>();
        if (std::string text = lane_.take_text(); !outcome.ok()) outcome.log = std::move(text);
        if (body.at("lost").get<bool>()) lane_.retire();
        return outcome;
    } catch (const WorkerLost& e) {
        return {.ending = e.ending(), .reason = e.what(), .log = e.log()};
    } catch (const nlohmann::json::exception& e) {
        lane_.retire();
        return {.ending = Ending::crashed, .reason = fmt::format("its process sent nonsense: {}", e.what())};
    } catch (const FrameError& e) {
        lane_.retire();
        return {.ending = Ending::crashed, .reason = e.what()};
    }
}

}  // namespace autotune

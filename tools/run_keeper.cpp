#include "tools/run_keeper.h"

namespace autotune {

RunKeeper::RunKeeper(Store& store, const RunStart& start) : store_{&store}, wanted_{&store} {
    try {
        run_ = store.begin_run(start);
    } catch (const Error& e) {
        if (e.kind() != Error::Kind::store) throw;
        trouble_ = e;
        store_ = &spare_.emplace(Store::in_memory());
        run_ = store_->begin_run(start);
    }
}

void RunKeeper::keep(const Config& config, const Outcome& outcome) {
    try {
        store_->record_trial(run_, config, outcome);
    } catch (const Error& e) {
        if (e.kind() != Error::Kind::store) throw;
        ++lost_;
        lost_why_ = e.what();
    }
}

RunSummary RunKeeper::finish(const RunEnd& end) {
    try {
        RunSummary summary = store_->finish_run(run_, end);
        if (!spare_) return summary;
        // There may be room by now.
        summary.records = wanted_->put(spare_->records({}, {}));
        trouble_.reset();
        return summary;
    } catch (const Error& e) {
        if (e.kind() != Error::Kind::store) throw;
        trouble_ = e;
        return {};
    }
}

}  // namespace autotune

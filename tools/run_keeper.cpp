#include "tools/run_keeper.h"

#include <utility>

namespace autotune {

RunKeeper::RunKeeper(Store& store, RunStart start) : store_{&store}, wanted_{&store}, start_{std::move(start)} {}

RunId RunKeeper::run() {
    if (run_) return *run_;
    try {
        run_ = store_->begin_run(start_);
    } catch (const Error& e) {
        if (e.kind() != Error::Kind::store) throw;
        trouble_ = e;
        store_ = &spare_.emplace(Store::in_memory());
        run_ = store_->begin_run(start_);
    }
    return *run_;
}

void RunKeeper::keep(const Config& config, const Outcome& outcome) {
    const RunId id = run();
    try {
        store_->record_trial(id, config, outcome);
    } catch (const Error& e) {
        if (e.kind() != Error::Kind::store) throw;
        ++lost_;
        lost_why_ = e.what();
    }
}

RunSummary RunKeeper::finish(const RunEnd& end) {
    const RunId id = run();
    try {
        RunSummary summary = store_->finish_run(id, end);
        if (!spare_) return summary;
        // There may be room by now. A run that left nothing is not in the database either.
        std::vector<Record> records = spare_->records({}, {});
        const std::vector<Record> predictions = spare_->records({.predicted = true}, {});
        if (records.empty() && predictions.empty()) return {};
        records.insert(records.end(), predictions.begin(), predictions.end());
        const std::size_t standing = wanted_->put(records);
        summary.records = predictions.empty() ? standing : 0;
        summary.predictions = predictions.empty() ? 0 : standing;
        summary.kept_better = standing == 0;
        trouble_.reset();
        return summary;
    } catch (const Error& e) {
        if (e.kind() != Error::Kind::store) throw;
        trouble_ = e;
        return {};
    }
}

}  // namespace autotune

#ifndef AUTOTUNE_TOOLS_RUN_KEEPER_H
#define AUTOTUNE_TOOLS_RUN_KEEPER_H

#include <optional>

#include "autotune/error.h"
#include "cache/store/store.h"

namespace autotune {

/// Stores one search as it goes. A database that takes nothing, as on a full disk, stops no search: what it refused is
/// told at the end, once.
class RunKeeper {
public:
    /// Nothing is written yet: a problem of which nothing can be tried has no run.
    RunKeeper(Store& store, RunStart start);
    RunKeeper(const RunKeeper&) = delete;
    RunKeeper& operator=(const RunKeeper&) = delete;

    /// Both throw what is no Error{store}.
    void keep(const Config& config, const Outcome& outcome);
    RunSummary finish(const RunEnd& end);

    /// Why the result is not in the database; nullopt: it is.
    const std::optional<Error>& trouble() const noexcept { return trouble_; }
    /// How many outcomes were refused, and why the last one was.
    std::size_t lost() const noexcept { return lost_; }
    const std::string& lost_why() const noexcept { return lost_why_; }

private:
    /// Begins it at first.
    RunId run();

    Store* store_;
    Store* wanted_;
    RunStart start_;
    std::optional<Store> spare_;  ///< in memory, where the run could not even be begun: ranks are derived as ever
    std::optional<RunId> run_;
    std::optional<Error> trouble_;
    std::size_t lost_ = 0;
    std::string lost_why_;
};

}  // namespace autotune
#endif

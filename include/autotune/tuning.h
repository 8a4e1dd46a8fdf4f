/// Tunes what a dispatcher misses.
///
///     autotune::Dispatcher::Options options;
///     options.on_miss = autotune::OnMiss::tune_behind;
///     options.tune = autotune::tuner_for({});
///
/// An application links autotune::tuning beside autotune::dispatcher, and has the program autotune-worker installed.
#ifndef AUTOTUNE_TUNING_H
#define AUTOTUNE_TUNING_H

#include <functional>
#include <string>

#include "autotune/dispatcher.h"

namespace autotune {

struct TunerOptions {
    std::string database{};      ///< takes the records; empty: the user's own, as the dispatcher's
    const OpSet* ops = nullptr;  ///< null: the built-in ops. Must outlive the tuner
    std::string worker{};        ///< the program autotune-worker; empty: where it is installed, or AUTOTUNE_WORKER
    std::function<void(const std::string&)> log{};  ///< one sentence each; empty: nowhere
};

/// What `Dispatcher::Options::tune` takes: a search as `autotune tune` makes it, in processes of its own, that ends
/// when its budget is spent or the dispatcher ends. It throws Error where nothing could be tried, found or stored.
std::function<void(const TuneRequest&)> tuner_for(TunerOptions options);

}  // namespace autotune
#endif

#include "autotune/tuning.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "autotune/error.h"
#include "tools/tuning.h"
#include "tuner/model/op_set.h"
#include "tuner/worker/worker_bench.h"

namespace autotune {

void tune_into(Store& store, Bench& bench, const Instance& instance, const DeviceIdentity& device,
               const TuneRequest& request) {
    TuneOptions options{.budget = {.seconds = std::chrono::duration<double>{request.budget}.count()}};
    const RunStart start = start_of(instance, device, options);
    options.known = store.known_outcomes(start);
    RunKeeper keeper{store, start};
    const auto keep = [&](const Trial& trial) { keeper.keep(trial.config, trial.outcome); };
    const Tuning tuning = tune(bench, instance, options,
                               {.trial =
                                    [&](const Trial& trial) {
                                        if (!trial.resumed) keep(trial);
                                    },
                                .explained = keep,
                                .stop_requested = request.stop});
    keeper.finish(end_of(tuning, device));
    if (keeper.trouble()) throw Error{*keeper.trouble()};
    if (tuning.best)
        static_cast<void>(
            keep_binaries(store, bench, instance, tuning.best->config));  // else it is compiled when needed
    else if (!tuning.interrupted)
        throw Error{Error::Kind::nothing_found,
                    fmt::format("none of the {} configs of '{}' that were tried gave a correct result",
                                tuning.tried + tuning.resumed, instance.op().name)};
}

std::function<void(const TuneRequest&)> tuner_for(TunerOptions options) {
    return [options = std::move(options), builtin = std::make_shared<const OpSet>()](const TuneRequest& request) {
        const Op& op = (options.ops ? *options.ops : *builtin).find(request.op);
        Store store = Store::open({.path = options.database, .warn = options.log});
        const auto bench = make_worker_bench(
            {.worker = options.worker, .device = std::to_string(request.device), .note = options.log});
        const DeviceIdentity& device = bench->device();
        const Instance instance =
            Instance::make(op, request.problem, device.limits, {.strides = request.strides, .align = request.align});
        tune_into(store, *bench, bench->sized(instance), device, request);
    };
}

}  // namespace autotune

// Calls, with a driver whose launches return at once.
#include <fmt/core.h>

#include <array>
#include <memory>
#include <thread>

#include "benchmarks/cache_bench/figure.h"
#include "cache/dispatch/call_site.h"
#include "cache/dispatch/ladder.h"
#include "tests/cache/dispatch_samples.h"

namespace autotune::cache_bench {

namespace {

using namespace samples;

/// A tuned problem whose kernel is loaded, and 63 others that are answered by it or by the default.
struct Ready {
    DispatchSetting setting;
    std::unique_ptr<Dispatcher> dispatcher;
    Handle handle;

    Ready() {
        setting.tuned(1024, {{vector_config(8, 128), 40.0}});
        setting.put_binary(vector_config(8, 128), 1024);
        setting.put_binary(vector_config(4), 1024);
        setting.driver.record = false;
        dispatcher = std::make_unique<Dispatcher>(setting.options());
        handle = dispatcher->prepare("scale");
        for (std::int64_t n = 1024; n <= 64 * 1024; n += 1024) setting.launch(*dispatcher, handle, n);
    }
};

struct Call {
    std::array<std::int64_t, 1> shape{1024};
    std::array<TensorArgument, 2> tensors{{{.data = reinterpret_cast<const void*>(0x100000), .shape = shape},
                                           {.data = reinterpret_cast<const void*>(0x200000), .shape = shape}}};
    std::array<ScalarArgument, 1> scalars{2.0};
};

/// What a repeated call does before it launches: its words compared with the last call's.
Measured prepared_handle() {
    Call call;
    const std::vector<bool> deciding{false};
    Signature last;
    last.write(call.tensors, call.scalars, deciding, 0, nullptr);
    Plan plan;
    plan.signature.assign(last.words().begin(), last.words().end());
    return timed_calls(21, 100'000, 1e9, [&](int calls) {
        for (int i = 0; i < calls; ++i) {
            keep(call);
            keep(is_signature_of(plan.signature, call.tensors, call.scalars, deciding, 0, nullptr));
        }
    });
}

void same_problem(Ready& ready, int calls) {
    Call call;
    for (int i = 0; i < calls; ++i) keep(ready.dispatcher->launch(ready.handle, call.tensors, call.scalars, nullptr));
}

void problems_in_turn(Ready& ready, int calls) {
    Call call;
    std::int64_t n = 0;
    for (int i = 0; i < calls; ++i) {
        n = n % (64 * 1024) + 1024;
        call.shape[0] = n;
        keep(ready.dispatcher->launch(ready.handle, call.tensors, call.scalars, nullptr));
    }
}

using Calls = void (*)(Ready& ready, int calls);

Measured by_one_thread(Calls run) {
    Ready ready;
    return timed_calls(21, 100'000, 1e9, [&](int calls) { run(ready, calls); });
}

/// Where there are fewer cores than threads they take turns, and a call costs the time of a core.
Measured by_threads(Calls run) {
    constexpr unsigned threads = 8;
    const unsigned cores = std::min(threads, std::max(1u, std::thread::hardware_concurrency()));
    Ready ready;
    const auto all = [&](int calls) {
        std::vector<std::jthread> running;
        for (unsigned t = 0; t < threads; ++t) running.emplace_back([&, calls] { run(ready, calls); });
    };
    Measured measured = timed_calls(11, 50'000, 1e9 * cores / threads, all,
                                    cores < threads ? fmt::format("time of a core: {} for 8 threads", cores) : "");
    if (measured.cpu) *measured.cpu /= cores;  // what timed_calls counts once, all threads do
    return measured;
}

Measured new_problem() {
    Ready ready;
    Call call;
    std::int64_t n = 1 << 20;
    return timed_calls(
        9, 500, 1e6,
        [&](int calls) {
            for (int i = 0; i < calls; ++i) {
                call.shape[0] = n += 1024;
                keep(ready.dispatcher->launch(ready.handle, call.tensors, call.scalars, nullptr));
            }
        },
        "its kernel is loaded");
}

/// 50 000 tuned problems, and a shape that is none of them.
Measured nearest() {
    const Op op = scale_op();
    const DeviceIdentity here = device(std::string(64, 'a'));
    const auto asked = [&](std::int64_t n) {
        return Instance::make(op, {{"n", n}}, here.limits, {.align = {{"x", 16}, {"y", 16}}});
    };
    Store store = Store::in_memory();
    std::vector<Record> records = winners(50'000, false);
    for (std::size_t i = 0; i < records.size(); ++i) {
        records[i].device = here;
        records[i].source = template_of(op, *op.variant("vector"));
        records[i].problem = problem_of(asked(1024 + 8 * static_cast<std::int64_t>(i)));
        records[i].config = vector_config(1 << (i % 4), 256);
        records[i].default_us = 100;
    }
    store.put(records);
    const LayeredStore stores[] = {{&store, Layer::user}};
    const OpKnowledge known = read_knowledge(stores, op, here, {});
    std::vector<Instance> instances;
    for (std::int64_t i = 0; i < 512; ++i) instances.push_back(asked(1028 + 808 * i));
    if (ladder(instances[0], known, 4).front().rung != Rung::nearest) return {.state = "the nearest did not answer"};
    std::size_t at = 0;
    return timed_calls(
        9, 512, 1e6,
        [&](int calls) {
            for (int i = 0; i < calls; ++i) keep(ladder(instances[at++ & 511], known, 4));
        },
        "4 configs, each checked against problem and GPU; the index of neighbours is there");
}

}  // namespace

std::vector<Figure> dispatch_figures() {
    return {
        {.name = "prepared",
         .what = "prepared handle, the problem of the last call",
         .unit = "ns",
         .target = 10,
         .measure = prepared_handle},
        {.name = "call-1",
         .what = "whole call, the same problem, 1 thread",
         .unit = "ns",
         .target = 150,
         .measure = [] { return by_one_thread(same_problem); }},
        {.name = "call-8",
         .what = "whole call, the same problem, 8 threads",
         .unit = "ns",
         .target = 150,
         .measure = [] { return by_threads(same_problem); }},
        {.name = "turn-1",
         .what = "whole call, 64 problems in turn, 1 thread",
         .unit = "ns",
         .target = 150,
         .measure = [] { return by_one_thread(problems_in_turn); }},
        {.name = "turn-8",
         .what = "whole call, 64 problems in turn, 8 threads",
         .unit = "ns",
         .target = 150,
         .measure = [] { return by_threads(problems_in_turn); }},
        {.name = "driver",
         .what = "the same beside the real driver",
         .unit = "ns",
         .measure = [] { return Measured{.state = "on a GPU: dispatch_gpu_bench"}; }},
        {.name = "nearest", .what = "nearest of 50 000, a new shape", .unit = "us", .target = 50, .measure = nearest},
        {.name = "first-call",
         .what = "first call of a new problem",
         .unit = "us",
         .target = 50,
         .measure = new_problem},
    };
}

}  // namespace autotune::cache_bench

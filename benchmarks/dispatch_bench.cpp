// What the dispatcher costs, with a driver whose launches return at once: look-ups, a prepared handle, a whole call.
#include <benchmark/benchmark.h>

#include <array>
#include <memory>
#include <random>

#include "cache/dispatch/call_site.h"
#include "cache/dispatch/hashing.h"
#include "cache/dispatch/ladder.h"
#include "cache/dispatch/snapshot.h"
#include "tests/cache/dispatch_samples.h"

namespace autotune {
namespace {

using namespace samples;

/// As many stored problems as asked for, in memory.
std::unique_ptr<Store> store_of(std::int64_t count) {
    auto store = std::make_unique<Store>(Store::in_memory());
    std::vector<Record> records;
    for (std::int64_t n = 0; n < count; ++n) {
        records.push_back(record(n, 50.0 + static_cast<double>(n % 7)));
        records.back().run.uuid = "one run";
        records.back().config = config(32 * (1 + n % 32), 1 << (n % 4));
    }
    store->put(records);
    return store;
}

const Store& store_of_50000() {
    static const std::unique_ptr<Store> store = store_of(50'000);
    return *store;
}

Snapshot read_50000() {
    Store* const stores[] = {const_cast<Store*>(&store_of_50000())};
    return Snapshot::read(stores, "scale", "h200", today());
}

void snapshot_is_read(benchmark::State& state) {
    store_of_50000();
    std::size_t bytes = 0;
    for (auto _ : state) {
        const Snapshot snapshot = read_50000();
        bytes = snapshot.bytes();
    }
    state.counters["MiB"] = static_cast<double>(bytes) / (1 << 20);
}
BENCHMARK(snapshot_is_read)->Unit(benchmark::kMillisecond);

/// Keys in a random order, so that caches hold no more than they would.
void key_is_looked_up(benchmark::State& state) {
    static const Snapshot snapshot = read_50000();
    std::vector<std::vector<std::byte>> keys;
    std::mt19937_64 random{1};
    for (int i = 0; i < 4096; ++i)
        keys.push_back(problem(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(state.range(0)))).key);
    std::size_t at = 0, found = 0;
    for (auto _ : state) found += snapshot.find(keys[at++ & 4095]).size();
    benchmark::DoNotOptimize(found);
}
BENCHMARK(key_is_looked_up)->Arg(64)->Arg(50'000);

/// 50 000 tuned problems of the op, and what is asked that is none of them: of the same alignment, and of a lesser one,
/// for which none of them may lend.
struct Tuned50000 {
    Op op = scale_op();
    DeviceIdentity here = device(std::string(64, 'a'));
    OpKnowledge known;

    Tuned50000() {
        Store store = Store::in_memory();
        std::vector<Record> records;
        for (std::int64_t i = 0; i < 50'000; ++i) {
            records.push_back(record(i, 50.0));
            records.back().run.uuid = "one run";
            records.back().device = here;
            records.back().source = template_of(op, *op.variant("vector"));
            records.back().problem = problem_of(asked(1024 + 8 * i, 16));
            records.back().config = vector_config(1 << (i % 4), 256);
            records.back().default_us = 100;
        }
        store.put(records);
        const LayeredStore stores[] = {{&store, Layer::user}};
        known = read_knowledge(stores, op, here, {});
        ladder(asked(1020, 16), known);  // makes the indices
    }
    Instance asked(std::int64_t n, int align) const {
        return Instance::make(op, {{"n", n}}, here.limits, {.align = {{"x", align}, {"y", align}}});
    }
};

/// What a dispatcher asks for at the first call of a problem: 4 configs, each checked against problem and device.
void neighbours_are_asked(benchmark::State& state) {
    static const Tuned50000 it;
    std::vector<Instance> instances;
    for (std::int64_t i = 0; i < 512; ++i)
        instances.push_back(it.asked(1028 + 808 * i, static_cast<int>(state.range(0))));
    std::size_t at = 0, nearest = 0;
    for (auto _ : state) nearest += ladder(instances[at++ & 511], it.known, 4).front().rung == Rung::nearest;
    state.counters["nearest"] = benchmark::Counter(static_cast<double>(nearest), benchmark::Counter::kAvgIterations);
}
BENCHMARK(neighbours_are_asked)->Arg(16)->Arg(4)->Unit(benchmark::kMicrosecond);

void index_of_neighbours_is_made(benchmark::State& state) {
    static const Tuned50000 it;
    for (auto _ : state) benchmark::DoNotOptimize(Neighbours{it.op, it.known.snapshot, false});
}
BENCHMARK(index_of_neighbours_is_made)->Unit(benchmark::kMillisecond);

/// A tuned problem whose kernel is loaded.
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

Ready& ready() {
    static Ready one;
    return one;
}

struct Call {
    std::array<std::int64_t, 1> shape{1024};
    std::array<TensorArgument, 2> tensors{{{.data = reinterpret_cast<const void*>(0x100000), .shape = shape},
                                           {.data = reinterpret_cast<const void*>(0x200000), .shape = shape}}};
    std::array<ScalarArgument, 1> scalars{2.0};
};

/// What a repeated call does before it launches: its words compared with the last call's.
void prepared_handle_repeats(benchmark::State& state) {
    Call call;
    const std::vector<bool> deciding{false};
    Signature last;
    last.write(call.tensors, call.scalars, deciding, 0, nullptr);
    Plan plan;
    plan.signature.assign(last.words().begin(), last.words().end());
    for (auto _ : state) {
        benchmark::DoNotOptimize(call);
        benchmark::DoNotOptimize(is_signature_of(plan.signature, call.tensors, call.scalars, deciding, 0, nullptr));
    }
}
BENCHMARK(prepared_handle_repeats);

void same_problem_is_dispatched(benchmark::State& state) {
    Ready& it = ready();
    Call call;
    for (auto _ : state)
        benchmark::DoNotOptimize(it.dispatcher->launch(it.handle, call.tensors, call.scalars, nullptr));
}
BENCHMARK(same_problem_is_dispatched)->Threads(1)->Threads(8)->UseRealTime();

void problems_in_turn_are_dispatched(benchmark::State& state) {
    Ready& it = ready();
    Call call;
    std::int64_t n = 0;
    for (auto _ : state) {
        n = n % (64 * 1024) + 1024;
        call.shape[0] = n;
        benchmark::DoNotOptimize(it.dispatcher->launch(it.handle, call.tensors, call.scalars, nullptr));
    }
}
BENCHMARK(problems_in_turn_are_dispatched)->Threads(1)->Threads(8)->UseRealTime();

/// The first call of a problem, its kernel being loaded already: solve, look up, check, plan.
void new_problem_is_resolved(benchmark::State& state) {
    Ready& it = ready();
    Call call;
    std::int64_t n = 1 << 20;
    for (auto _ : state) {
        call.shape[0] = n += 1024;
        benchmark::DoNotOptimize(it.dispatcher->launch(it.handle, call.tensors, call.scalars, nullptr));
    }
}
BENCHMARK(new_problem_is_resolved)->Unit(benchmark::kMicrosecond)->Iterations(5000);

}  // namespace
}  // namespace autotune

BENCHMARK_MAIN();

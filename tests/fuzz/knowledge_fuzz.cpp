// Goal: rows with whatever values in them, checksums included, lead the dispatcher to a config that may run or to the
// default.
// Method: each input chooses records and what to change in them; a problem is then asked for down the whole ladder.
#include "cache/dispatch/ladder.h"
#include "tests/cache/sharing_samples.h"
#include "tests/fuzz/fuzzing.h"

namespace {

using namespace autotune;
using namespace autotune::fuzzing;

void change_key(Choices& choices, std::vector<std::byte>& key) {
    const std::size_t at = key.empty() ? 0 : choices.one_of(key.size());
    switch (choices.one_of(4)) {
        case 0:
            if (!key.empty()) key[at] = static_cast<std::byte>(choices.byte());
            break;
        case 1:
            key.resize(at);
            break;
        case 2:
            for (const char c : choices.text()) key.push_back(static_cast<std::byte>(c));
            break;
        default:
            key =
                problem_of(Instance::make(samples::shared_ops().find("scale"), {{"n", 1 + (choices.number() & 0xffff)}},
                                          samples::shared_record(16, 1).device.limits))
                    .key;
    }
}

void change_config(Choices& choices, Config& config) {
    const std::size_t at = config.values.empty() ? 0 : choices.one_of(config.values.size());
    switch (choices.one_of(6)) {
        case 0:
            if (!config.values.empty()) config.values[at].second = choices.number();
            break;
        case 1:
            if (!config.values.empty()) config.values[at].second = choices.text();
            break;
        case 2:
            if (!config.values.empty()) config.values.erase(config.values.begin() + static_cast<std::ptrdiff_t>(at));
            break;
        case 3:
            config.values.emplace_back(choices.text(), choices.number());
            break;
        case 4:
            config.variant = choices.text();
            break;
        default:
            if (!config.values.empty()) config.values[at].first = choices.text();
    }
}

void change(Choices& choices, Record& r) {
    switch (choices.one_of(18)) {
        case 0:
        case 1:
        case 2:
            return change_key(choices, r.problem.key);
        case 3:
        case 4:
        case 5:
            return change_config(choices, r.config);
        case 6:
            r.time_us = static_cast<double>(choices.number()) / 1000.0;
            break;
        case 7:
            r.default_us = static_cast<double>(choices.number()) / 1000.0;
            break;
        case 8:
            r.device.fp = std::string(64, static_cast<char>('a' + choices.one_of(3)));
            break;
        case 9:
            r.device.limits.cc = static_cast<int>(choices.number());
            break;
        case 10:
            r.device.limits.sm_count = static_cast<int>(choices.number());
            break;
        case 11:
            r.device.limits.max_shared = static_cast<int>(choices.number());
            break;
        case 12:
            r.source.variant = choices.text();
            break;
        case 13:
            r.source.abi = static_cast<int>(choices.number());
            break;
        case 14:
            r.source.source_hash = choices.text();
            break;
        case 15:
            r.environment.nvrtc_major = static_cast<int>(choices.number());
            break;
        case 16:
            r.verified = static_cast<Verified>(choices.one_of(3));
            r.run.origin = "import:1";
            break;
        default:
            r.problem.fields = {{choices.text(), choices.number()}};
    }
}

std::vector<Record> chosen_records(Choices& choices) {
    std::vector<Record> records;
    while (!choices.empty() && records.size() < 12) {
        const std::uint8_t first = choices.byte();
        Record r = samples::shared_record(16 << (first & 7), 10.0 + first,
                                          std::string(1, static_cast<char>('a' + first % 5)), (first >> 3) & 3);
        r.predicted = first >= 0xc0;
        if (r.predicted) r.model_version = "1";
        for (std::size_t left = choices.one_of(4); left > 0; --left) change(choices, r);
        records.push_back(std::move(r));
    }
    return records;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Choices choices{{data, size}};
    const Op& op = samples::shared_ops().find("scale");
    const DeviceIdentity here = samples::shared_record(16, 1).device;
    Store store = Store::in_memory();
    for (const Record& record : chosen_records(choices)) or_error([&] { store.put(std::span{&record, 1}); });
    const LayeredStore stores[] = {{&store, Layer::user}};
    const OpKnowledge known = read_knowledge(stores, op, here, {});
    for (const std::int64_t n : {16, 100, 512, 5000}) {
        const Instance instance = Instance::make(op, {{"n", n}}, here.limits);
        const auto steps = ladder(instance, known);
        bool usable = false;
        for (const LadderStep& step : steps) {
            if (!step.refused.empty()) continue;
            usable = true;
            require(!instance.objection(step.config));
        }
        require(usable);
    }
    explanation_of(Instance::make(op, {{"n", 512}}, here.limits), stores, here);
    return 0;
}

// Goal: an application launches what it carries in itself, without a file.
// Method: records of a search become a table, and a dispatcher that has no database but that table is asked.
#include <gtest/gtest.h>

#include "cache/sharing/embedded.h"
#include "cache/sharing/exports.h"
#include "tests/cache/dispatch_samples.h"

namespace autotune {
namespace {

using namespace samples;

/// The table that an export would write, in memory; the texts belong to the records.
struct Carried {
    std::vector<Record> records;
    std::vector<std::string> configs, keys;
    std::vector<EmbeddedRecord> table;

    explicit Carried(const DispatchSetting& setting) {
        const Store store = Store::open({.path = setting.folder / "tune.db", .mode = Store::Mode::read});
        for_each_record(store, {}, {}, [&](const Record& record) { records.push_back(record); });
        for (const Record& r : records) {
            std::string text;
            for (const auto& [name, value] : r.config.values)
                text += (text.empty() ? "" : " ") + name + "=" + to_text(value);
            configs.push_back(text);
            keys.emplace_back(reinterpret_cast<const char*>(r.problem.key.data()), r.problem.key.size());
        }
        for (std::size_t i = 0; i < records.size(); ++i) {
            const Record& r = records[i];
            table.push_back({.op = r.source.op,
                             .variant = r.source.variant,
                             .config = configs[i],
                             .problem_key = keys[i],
                             .device = {.fp = r.device.fp,
                                        .name = r.device.name,
                                        .cc = r.device.limits.cc,
                                        .sm_count = r.device.limits.sm_count,
                                        .bandwidth_gbs = r.device.bandwidth_gbs,
                                        .max_threads = r.device.limits.max_threads,
                                        .max_shared = r.device.limits.max_shared,
                                        .shared_per_sm = r.device.limits.shared_per_sm,
                                        .registers_per_sm = r.device.limits.registers_per_sm,
                                        .threads_per_sm = r.device.limits.threads_per_sm},
                             .source_hash = r.source.source_hash,
                             .space_hash = r.source.space_hash,
                             .abi = r.source.abi,
                             .nvrtc_major = r.environment.nvrtc_major,
                             .nvrtc_minor = r.environment.nvrtc_minor,
                             .time_ns = nanoseconds(r.time_us),
                             .default_ns = nanoseconds(*r.default_us),
                             .tuned_at = r.tuned_at,
                             .effort = static_cast<int>(r.run.effort),
                             .verified = static_cast<int>(r.verified)});
        }
    }
};

Dispatcher::Options without_files(DispatchSetting& setting, const Carried& carried) {
    Dispatcher::Options options = setting.options();
    options.databases = {};
    options.embedded_records = carried.table;
    return options;
}

TEST(Embedded, AnApplicationIsAnsweredFromWhatItCarries) {
    DispatchSetting setting;
    setting.tuned(1024, {{vector_config(4), 10.0}, {vector_config(2), 10.28}});
    setting.put_binary(vector_config(4), 1024);
    const Carried carried{setting};
    ASSERT_EQ(carried.table.size(), 2u);
    Dispatcher dispatcher{without_files(setting, carried)};
    const Explanation why = dispatcher.explain("scale", {{"n", std::int64_t{1024}}, {"dtype", std::string{"f32"}}});
    EXPECT_EQ(why.rung, Rung::exact) << why.why;
    EXPECT_EQ(why.config, vector_config(4).text());
    const Explanation other =
        dispatcher.explain("scale", {{"n", std::int64_t{999'983}}, {"dtype", std::string{"f16"}}});
    EXPECT_NE(other.rung, Rung::exact);
}

TEST(Embedded, AGpuThatIsLikeTheOneInTheTableIsAnsweredAsASibling) {
    DispatchSetting setting;
    setting.tuned(1024, {{vector_config(2, 64), 10.0}});
    Carried carried{setting};
    carried.table[0].device.name = "NVIDIA H100";
    setting.driver.sm_count = 128;  // another kind of GPU now, but nearly the same
    const FieldValues problem{{"n", std::int64_t{1024}}, {"dtype", std::string{"f32"}}};
    const Explanation sibling = Dispatcher{without_files(setting, carried)}.explain("scale", problem);
    EXPECT_EQ(sibling.rung, Rung::sibling) << sibling.why;
    EXPECT_EQ(sibling.why, "tuned for this problem on NVIDIA H100, a sibling, elsewhere");
    EXPECT_EQ(sibling.layer, Layer::embedded);
    carried.table[0].device.max_shared -= 4096;
    EXPECT_EQ(Dispatcher{without_files(setting, carried)}.explain("scale", problem).rung, Rung::family);
    carried.table[0].device.cc = 80;
    EXPECT_EQ(Dispatcher{without_files(setting, carried)}.explain("scale", problem).rung, Rung::default_config);
    carried.table[0].device = {.fp = carried.table[0].device.fp};
    EXPECT_EQ(Dispatcher{without_files(setting, carried)}.explain("scale", problem).rung, Rung::default_config);
    carried.table[0].device.cc = -90;
    EXPECT_EQ(Dispatcher{without_files(setting, carried)}.explain("scale", problem).rung, Rung::default_config);
    EXPECT_NE(setting.logged.back().find("embedded record 1 is not used: "), std::string::npos)
        << setting.logged.back();
}

TEST(Embedded, WhatTheOpDoesNotDeclareIsNotUsedAndSaid) {
    DispatchSetting setting;
    setting.tuned(1024, {{vector_config(4), 10.0}});
    Carried carried{setting};
    carried.table[0].config = "VEC=4 THREADS=256 SPLIT=1; system(x)";
    Dispatcher dispatcher{without_files(setting, carried)};
    EXPECT_NE(dispatcher.explain("scale", {{"n", std::int64_t{1024}}, {"dtype", std::string{"f32"}}}).rung,
              Rung::exact);
    ASSERT_FALSE(setting.logged.empty());
    EXPECT_NE(setting.logged[0].find("embedded record 1 is not used: "), std::string::npos) << setting.logged[0];
}

TEST(Embedded, TheStoreHoldsWhatTheTableSays) {
    DispatchSetting setting;
    setting.tuned(1024, {{vector_config(4), 10.0}, {naive_config(), 10.2}});
    const Carried carried{setting};
    std::vector<std::string> refused;
    const Store store = embedded_store(carried.table, setting.ops, refused);
    EXPECT_TRUE(refused.empty()) << refused[0];
    std::size_t found = 0;
    for (const Record& record : store.records({.op = "scale"}, {}))
        for (const Record& wanted : carried.records)
            if (record.config == wanted.config) {
                ++found;
                EXPECT_EQ(record.time_us, wanted.time_us);
                EXPECT_EQ(record.verified, wanted.verified);
                EXPECT_EQ(record.problem.key, wanted.problem.key);
                EXPECT_FALSE(record.local());
            }
    EXPECT_EQ(found, 2u);
}

}  // namespace
}  // namespace autotune

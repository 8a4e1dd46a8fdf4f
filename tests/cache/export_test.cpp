#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autotune/error.h"
#include "cache/sharing/anonymise.h"
#include "cache/sharing/embedded.h"
#include "cache/sharing/exports.h"
#include "cache/store/database.h"
#include "cache/store/file.h"
#include "cache/store/foreign_database.h"
#include "tests/cache/golden/sample_records.h"
#include "tests/cache/sharing_samples.h"

namespace autotune {
namespace {

using namespace samples;
using testing::HasSubstr;
using testing::Not;

std::vector<Record> some_records() {
    std::vector<Record> records{shared_record(1024, 10), shared_record(4096, 40, "b"), shared_record(2048, 20, "c")};
    records[1].device.limits.sm_count += 1;
    records[1].device = with_fingerprint(records[1].device);
    records[1].device.name = "NVIDIA A100";
    records[1].device.limits.cc = 80;
    records[0].device.pci_id = records[2].device.pci_id = "0000:65:00.0";
    return records;
}

std::vector<std::string> lines_of(const Store& store, const ExportOptions& options) {
    std::vector<std::string> lines;
    export_lines(store, options, [&](const std::string& line) { lines.push_back(line); });
    return lines;
}

TEST(Export, LinesComeInAnOrderThatNothingElseDecides) {
    std::vector<Record> records = some_records();
    Store forward = Store::in_memory(), backward = Store::in_memory();
    forward.put(records);
    std::ranges::reverse(records);
    backward.put(records);
    EXPECT_EQ(exported(forward), exported(backward));
    EXPECT_EQ(lines_of(forward, {}).size(), 3u);
}

TEST(Export, FiltersNarrow) {
    Store store = Store::in_memory();
    store.put(some_records());
    const auto count = [&](const RecordFilter& filter) { return lines_of(store, {.filter = filter}).size(); };
    EXPECT_EQ(count({.op = "scale"}), 3u);
    EXPECT_EQ(count({.op = "gemm"}), 0u);
    EXPECT_EQ(count({.gpu = "sm_80"}), 1u);
    EXPECT_EQ(count({.gpu = "a100"}), 1u);
    EXPECT_EQ(count({.gpu = shared_record(1024, 10).device.fp.substr(0, 12)}), 2u);
    EXPECT_EQ(count({.where = Expression::parse("n >= 2048")}), 2u);
    EXPECT_EQ(count({.problem = {{"n", std::int64_t{2048}}}}), 1u);
    EXPECT_EQ(count({.problem = {{"n", std::int64_t{3}}}}), 0u);
}

TEST(Export, AnonymisedNothingNamesAMachine) {
    Store store = Store::in_memory();
    store.put(some_records());
    std::string text;
    for (const std::string& line : lines_of(store, {.anonymise = true})) text += line;
    const Folder folder;
    export_database(store, {.anonymise = true}, folder / "a.db");
    const auto bytes = read_file_whole(folder / "a.db").value();
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    for (const std::string& name :
         {some_records()[0].run.host_hash, std::string{"0000:65:00.0"}, std::string{"NVIDIA"}})
        EXPECT_THAT(text, Not(HasSubstr(name)));
    EXPECT_THAT(text, HasSubstr("sm_90, 132 SMs"));
}

// Goal: what others have written where autotune's own words belong does not pass. Method: a word of theirs in each
// text.
TEST(Export, AnonymisedTextsAreMadeOfKnownWordsAndNumbers) {
    Record record = shared_record(1024, 10);
    const Record plain = record;
    for (std::string* text : {&record.run.strategy, &record.run.budget, &record.run.clock_policy, &record.run.l2_policy,
                              &record.run.method, &record.run.reference, &record.run.tolerance,
                              &record.environment.driver, &record.environment.os, &record.source.manifest})
        *text = "of somebody, 60s";
    Store store = Store::in_memory();
    store.put(std::vector{record});
    record.environment.os = "somebody else's";
    record.problem = shared_record(2048, 10).problem;
    store.put(std::vector{record, plain});
    const Folder folder;
    export_database(store, {.anonymise = true}, folder / "a.db");
    std::string text;
    for (const std::string& line : lines_of(store, {.anonymise = true})) text += line;
    const auto bytes = read_file_whole(folder / "a.db").value();
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    EXPECT_EQ(text.find("somebody"), std::string::npos);
    Store other = Store::in_memory();
    const TakenIn taken = take_in(other, {folder / "a.db"}, {.ops = &shared_ops()}).at(0);
    EXPECT_EQ(taken.added, 2u) << "its parts fit each other no longer";
}

TEST(Export, AnonymisedOwnWordsStay) {
    Record record = shared_record(1024, 10);
    record.run.strategy = "model, then guided";
    record.run.budget = "1.5s,200";
    record.environment.os = "Linux x86_64";
    record.environment.driver = record.device.driver = "580.95.05";
    Record same = record;
    anonymise(same);
    EXPECT_EQ(same.run.strategy, record.run.strategy);
    EXPECT_EQ(same.run.budget, record.run.budget);
    EXPECT_EQ(same.run.reference, "CPU, fp64");
    EXPECT_EQ(same.environment, record.environment);
    EXPECT_EQ(same.device.driver, record.device.driver);
}

TEST(Export, AnonymisedADriverIsAVersionOrNothing) {
    for (const std::string driver : {"local model 580", "free", "580 s", "580e3"}) {
        Record record = shared_record(1024, 10);
        record.environment.driver = record.device.driver = driver;
        anonymise(record);
        EXPECT_EQ(record.device.driver, "") << driver;
        EXPECT_EQ(record.environment.driver, "") << driver;
    }
}

TEST(Export, AnonymisedTablesNameNoMachineEither) {
    Store store = Store::in_memory();
    store.put(some_records());
    const RunId run = store.begin_run(start(1024));
    Outcome outcome = failed(Ending::compile_failed);
    outcome.reason = "/home/somebody/scale.cu:3: an identifier is undefined";
    store.record_trial(run, config(64), outcome);
    const Folder folder;
    export_flat(store, {.anonymise = true}, folder / "flat.db");
    const auto bytes = read_file_whole(folder / "flat.db").value();
    const std::string text = std::string{reinterpret_cast<const char*>(bytes.data()), bytes.size()} +
                             export_cpp(store, {.anonymise = true}, "records");
    const auto holds = [&](const char* part) { return text.find(part) != std::string::npos; };  // it is long to print
    EXPECT_TRUE(holds("compile_failed") && holds("sm_90, 132 SMs"));
    for (const char* name : {"NVIDIA", "H200", "somebody", "0000:65:00.0"}) EXPECT_FALSE(holds(name)) << name;
}

TEST(Export, ADatabaseHoldsTheFilteredRowsAndIsOneForImport) {
    Store store = Store::in_memory(), other = Store::in_memory();
    store.put(some_records());
    const Folder folder;
    EXPECT_EQ(export_database(store, {.filter = {.gpu = "sm_90"}}, folder / "a.db"), 2u);
    const Store copy = Store::open({.path = folder / "a.db", .mode = Store::Mode::read, .allow_shared_folder = true});
    EXPECT_EQ(exported(copy), [&] {
        std::string text;
        for (const std::string& line : lines_of(store, {.filter = {.gpu = "sm_90"}})) text += line + '\n';
        return text;
    }());
    EXPECT_TRUE(copy.check().empty());
    const auto counts = copy.row_counts();
    EXPECT_EQ(counts.at("device"), 1);
    EXPECT_EQ(counts.at("form"), 1);
    EXPECT_EQ(counts.at("run"), 2);
    EXPECT_EQ(take_in(other, {folder / "a.db"}, {.ops = &shared_ops()}).at(0).added, 2u);
}

TEST(Export, AFileThatIsThereIsNotReplaced) {
    Store store = Store::in_memory();
    store.put(some_records());
    const Folder folder;
    write_file_whole(folder / "a.db", bytes_of("precious"));
    EXPECT_THROW(export_database(store, {}, folder / "a.db"), Error);
    EXPECT_THROW(export_flat(store, {}, folder / "a.db"), Error);
    EXPECT_EQ(read_file_whole(folder / "a.db").value(), bytes_of("precious"));
    EXPECT_THROW(export_database(store, {}, folder / "absent/a.db"), Error);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator{folder.path()}, {}), 1);
}

TEST(Export, AFolderThatTakesNoFileIsTheCauseThatIsTold) {
    Store store = Store::in_memory();
    store.put(some_records());
    const Folder folder;
    for (const auto& write : {export_database, export_flat}) {
        try {
            write(store, {}, folder / "absent/a.db");
            ADD_FAILURE() << "it was written";
        } catch (const Error& error) {
            EXPECT_THAT(error.what(), HasSubstr("absent/a.db' could not be written: No such file or directory"));
            EXPECT_THAT(error.what(), Not(HasSubstr(".new-"))) << "a name that nobody gave";
            EXPECT_THAT(error.help(), HasSubstr("name a file in a folder that you may write to"));
        }
    }
}

TEST(Export, WhatAKilledExportLeftGoesOnceItIsOld) {
    Store store = Store::in_memory();
    store.put(some_records());
    const Folder folder;
    const auto before = std::filesystem::file_time_type::clock::now() - std::chrono::hours{48};
    for (const char* name : {"a.db.new-7-0123abcd", "a.db.new-7-0123abcd-journal", "b.db.new-7-0123abcd"}) {
        write_file_whole(folder / name, bytes_of("half"));
        std::filesystem::last_write_time(folder / name, before);
    }
    export_database(store, {}, folder / "a.db");
    EXPECT_FALSE(std::filesystem::exists(folder / "a.db.new-7-0123abcd"));
    EXPECT_FALSE(std::filesystem::exists(folder / "a.db.new-7-0123abcd-journal"));
    EXPECT_TRUE(std::filesystem::exists(folder / "b.db.new-7-0123abcd")) << "of another file";
}

TEST(Export, FlatTablesHaveAColumnForEachFieldAndParameterAndAreNoDatabaseForImport) {
    Store store = Store::in_memory();
    store.put(some_records());
    search(store, start(1024), {{config(64), 5.0}});
    const Folder folder;
    export_flat(store, {}, folder / "flat.db");
    Database flat = Database::open(folder / "flat.db", Database::Access::read, {});
    EXPECT_EQ(flat.integer_of("SELECT count(*) FROM record WHERE gpu = 'NVIDIA H200'"), 3);
    EXPECT_EQ(flat.integer_of("SELECT n FROM record_scale WHERE time_us = 40.0 AND THREADS = 64 AND MODE = 'plain'"),
              4096);
    EXPECT_EQ(flat.integer_of("SELECT count(*) FROM trial WHERE outcome = 'timed'"), 1);
    EXPECT_EQ(flat.integer_of("SELECT trials FROM outcome WHERE name = 'timed'"), 1);
    EXPECT_EQ(flat.text_of("PRAGMA journal_mode"), "delete");
    EXPECT_THROW(take_in(store, {folder / "flat.db"}, {.ops = &shared_ops()}), Error);
}

TEST(Export, CsvQuotesWhatNeedsIt) {
    Store store = Store::in_memory();
    Record record = shared_record(1024, 10);
    record.device.name = "a \"quoted\", GPU";
    store.put({&record, 1});
    std::vector<std::string> lines;
    EXPECT_EQ(export_csv(store, {}, [&](const std::string& line) { lines.push_back(line); }), 1u);
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(std::ranges::count(lines[0], ','), 21);
    EXPECT_THAT(lines[1], HasSubstr("\"a \"\"quoted\"\", GPU\""));
}

TEST(Export, AHeaderForAnApplicationIsTheOneThatIsCompiledHere) {
    Store store = Store::in_memory();
    store.put(std::vector{shared_record(1024, 10), shared_record(1024, 10.1, "a", 1)});
    const std::string text = export_cpp(store, {}, "sample_records");
    const auto golden = read_file_whole(AUTOTUNE_SOURCE_DIR "/tests/cache/golden/sample_records.h").value();
    EXPECT_EQ(text, (std::string{reinterpret_cast<const char*>(golden.data()), golden.size()}));
    ASSERT_EQ(std::size(sample_records), 2u);
    EXPECT_EQ(sample_records[1].time_ns, 10'100);
    const std::vector<std::byte> key = shared_record(1024, 10).problem.key;
    EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span{sample_records[0].problem_key}), key));
    std::vector<std::string> refused;
    EXPECT_EQ(embedded_store(sample_records, shared_ops(), refused).records({.op = "scale"}, {}).size(), 2u);
    for (const std::string name : {"no name", "int", "std", "main", "autotune", "_Table", "a__b", "co_await"})
        EXPECT_THROW(export_cpp(store, {}, name), Error) << name;
}

}  // namespace
}  // namespace autotune

// Goal: the order of records is total, so that merging is a maximum, and no change of a record keeps its checksum.
#include "cache/store/record.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <random>
#include <set>
#include <string>

#include "autotune/error.h"
#include "cache/store/crc32.h"
#include "cache/store/json.h"
#include "tests/cache/samples.h"

namespace autotune {
namespace {

/// Records that differ in everything the order looks at, with many ties.
std::vector<Record> many_records(unsigned seed, int count) {
    std::mt19937 random{seed};
    const auto pick = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    std::vector<Record> records;
    for (int i = 0; i < count; ++i) {
        Record r = samples::record(1024, 50.0 * (1.0 + 0.011 * pick(4)));
        r.verified = static_cast<Verified>(pick(3));
        r.stale = pick(3) ? "" : "old";
        r.run.clock_policy = pick(2) ? "locked" : "free";
        r.run.effort = static_cast<SearchEffort>(1 + pick(2));
        r.run.origin = pick(2) ? "local" : "import:1";
        r.tuned_at += pick(2);
        r.config = samples::config(32 * (1 + pick(3)));
        r.run.uuid = std::to_string(pick(3));
        records.push_back(r);
    }
    return records;
}

TEST(RecordOrder, IsTotalAndTransitive) {
    const auto records = many_records(1, 60);
    const std::size_t n = records.size();
    std::vector<std::vector<std::strong_ordering>> order(n);
    for (std::size_t a = 0; a < n; ++a)
        for (std::size_t b = 0; b < n; ++b) order[a].push_back(compare(records[a], records[b]));
    for (std::size_t a = 0; a < n; ++a) {
        EXPECT_EQ(order[a][a], std::strong_ordering::equal);
        for (std::size_t b = 0; b < n; ++b) {
            EXPECT_EQ(order[a][b]<0, order[b][a]> 0);
            EXPECT_TRUE(order[a][b] != 0 || crc_of(records[a]) == crc_of(records[b])) << "equal though different";
            for (std::size_t c = 0; c < n; ++c) EXPECT_TRUE(order[a][b] > 0 || order[b][c] > 0 || order[a][c] <= 0);
        }
    }
}

TEST(RecordOrder, TheMaximumDoesNotDependOnTheOrderOfMerging) {
    auto records = many_records(2, 40);
    const auto best = *std::min_element(records.begin(), records.end(), better);
    std::mt19937 random{3};
    for (int round = 0; round < 30; ++round) {
        std::shuffle(records.begin(), records.end(), random);
        EXPECT_EQ(compare(*std::min_element(records.begin(), records.end(), better), best),
                  std::strong_ordering::equal);
    }
}

TEST(RecordOrder, RanksByTrustBeforeTime) {
    Record slow = samples::record(1024, 90.0), fast = samples::record(1024, 50.0);
    EXPECT_TRUE(better(fast, slow));
    slow.verified = Verified::verified;
    EXPECT_TRUE(better(slow, fast)) << "checked after timing goes first";
    slow.verified = fast.verified;
    fast.stale = "measured with NVRTC 12.9";
    EXPECT_TRUE(better(slow, fast)) << "fresh goes before stale";
    fast.stale.clear();
    fast.run.origin = "import:3";
    EXPECT_TRUE(better(slow, fast)) << "local goes before imported";
}

TEST(RecordOrder, TimesWithinACellOfTwoPercentAreEqualSoTheNewerWins) {
    Record older = samples::record(1024, 50.00), newer = samples::record(1024, 50.01);
    newer.tuned_at += 60;
    EXPECT_TRUE(better(newer, older));
    newer.time_us = 55.0;
    EXPECT_TRUE(better(older, newer));
}

TEST(RecordChecksum, ChangesWithEveryPartOfARecord) {
    const Record base = samples::record(1024, 50.0);
    const std::vector<std::function<void(Record&)>> changes{
        [](Record& r) { r.device.fp = "h20O"; },
        [](Record& r) { r.source.source_hash = "ab"; },
        [](Record& r) { r.source.variant = "naive"; },
        [](Record& r) { r.problem.key[0] ^= std::byte{1}; },
        [](Record& r) { r.config.values[0].second = std::int64_t{928}; },
        [](Record& r) { r.config.variant = "naive"; },
        [](Record& r) { r.environment.nvrtc_minor = 1; },
        [](Record& r) { r.rank = 1; },
        [](Record& r) { r.time_us += 0.001; },
        [](Record& r) { r.low_us += 0.001; },
        [](Record& r) { r.high_us += 0.001; },
        [](Record& r) { r.samples += 1; },
        [](Record& r) { r.default_us = 60.0; },
        [](Record& r) { r.evaluated += 1; },
        [](Record& r) { r.space_size += 1; },
        [](Record& r) { r.run.effort = SearchEffort::full; },
        [](Record& r) { r.verified = Verified::elsewhere; },
        [](Record& r) { r.max_error += 1e-9; },
        [](Record& r) { r.tuned_at += 1; },
        [](Record& r) { r.run.uuid += "x"; }};
    for (std::size_t i = 0; i < changes.size(); ++i) {
        Record changed = base;
        changes[i](changed);
        EXPECT_NE(crc_of(changed), crc_of(base)) << "change " << i;
    }
}

TEST(Crc32, GivesTheStandardsCheckValueWhateverTheAlignment) {
    EXPECT_EQ(crc32("123456789"), 0xcbf43926u);
    std::string text;
    Crc32 bytewise;
    for (int length = 0; length < 300; ++length) {
        ASSERT_EQ(crc32(text), bytewise.value()) << length;
        const std::string_view first = std::string_view{text}.substr(0, text.size() / 3);
        Crc32 in_two;
        in_two.add(std::as_bytes(std::span{first})).add(std::as_bytes(std::span{text}.subspan(first.size())));
        ASSERT_EQ(in_two.value(), bytewise.value()) << length;
        const auto next = static_cast<char>(length * 37);
        bytewise.add(std::as_bytes(std::span{&next, 1}));
        text += next;
    }
}

TEST(Record, OfAnOpThatIsNotLoadedIsNotSaidToLackAVariant) {
    const Record record = samples::record(1024, 50.0);
    TemplateIdentity other = record.source;
    other.variant = "another";
    EXPECT_EQ(stale_reason(record.source, record.environment, {.templates = {other}}),
              "variant '" + record.source.variant + "' is gone");
    EXPECT_EQ(stale_reason(record.source, record.environment, {}), "the op '" + record.source.op + "' is not loaded");
}

TEST(RecordLine, ReadsBackAsItWas) {
    Record record = samples::record(1024, 50.123);
    record.default_us = 77.5;
    record.config.values.emplace_back("FAST", true);
    record.config.values.emplace_back("SCALE", 0.1);
    record.config.values.emplace_back("KIND", std::string{"ns::row"});
    const Record back = record_from_line(to_line(record));
    EXPECT_EQ(back.config, record.config);
    EXPECT_EQ(back.problem.fields, record.problem.fields);
    EXPECT_EQ(back.device.limits, record.device.limits);
    EXPECT_EQ(compare(back, record), std::strong_ordering::equal);
    EXPECT_EQ(to_line(back), to_line(record));
}

// Goal: no line ends the program. Method: brackets by the hundred thousand, which a printer that calls itself for each
// would run out of stack for.
TEST(RecordLine, RefusesWhatIsNestedDeep) {
    const std::string deep = std::string(500'000, '[') + std::string(500'000, ']');
    const std::string line = to_line(samples::record(1024, 50.0));
    const auto with = [&](const std::string& part, const std::string& other) {
        std::string changed = line;
        const std::size_t at = changed.find(part);
        EXPECT_NE(at, std::string::npos);
        return changed.replace(at, part.size(), other);
    };
    EXPECT_THROW(record_from_line(with("\"v\":1", "\"v\":" + deep)), Error);
    EXPECT_THROW(record_from_line(with("\"key\":{\"dtype\":\"f32\",\"n\":1024}", "\"key\":" + deep)), Error);
    EXPECT_THROW(record_from_line(std::string(1 << 20, '[')), Error);
}

TEST(RecordLine, RefusesNumbersThatTheirFieldsCannotHold) {
    const std::string line = to_line(record(1024, 10));
    for (const auto& [from, to] : {std::pair{"\"cc\":90", "\"cc\":4294967386"},
                                   {"\"rank\":0", "\"rank\":4294967296"},
                                   {"\"rank\":0", "\"rank\":0.5"},
                                   {"\"seed\":7", "\"seed\":-1"},
                                   {"\"VEC\",4", "\"VEC\",18446744073709551615"}}) {
        std::string changed = line;
        const std::size_t at = changed.find(from);
        ASSERT_NE(at, std::string::npos) << from << " in " << line;
        EXPECT_THROW(record_from_line(changed.replace(at, std::string_view{from}.size(), to)), Error) << to;
    }
}

TEST(RecordLine, RefusesAMemberThatStandsTwice) {
    const std::string line = to_line(record(1024, 10));
    for (const std::string_view object : {"{", "\"device\":{", "\"run\":{"}) {
        std::string changed = line;
        changed.insert(changed.find(object) + object.size(), "\"name\":\"one\",\"name\":\"other\",");
        EXPECT_THROW(record_from_line(changed), Error) << object;
    }
    Record named = record(1024, 10);
    named.run.reference = "a: \"b\": c";
    EXPECT_EQ(record_from_line(to_line(named)).run.reference, named.run.reference) << "a colon in a text is no member";
}

TEST(RecordLine, BracketsInATextNestNothing) {
    Record record = samples::record(1024, 50.0);
    record.run.reference = std::string(100, '[') + "\\\"" + std::string(100, '{');
    EXPECT_EQ(record_from_line(to_line(record)).run.reference, record.run.reference);
}

TEST(RecordLine, RefusesWhatWasChangedByHand) {
    std::string line = to_line(samples::record(1024, 50.0));
    line.replace(line.find("[\"THREADS\",256]"), 15, "[\"THREADS\",928]");
    EXPECT_THROW(record_from_line(line), Error);
    EXPECT_THROW(record_from_line("{}"), Error);
    EXPECT_THROW(record_from_line(""), Error);
}

TEST(Json, AProblemsTextIsThatOfItsJson) {
    ProblemIdentity odd = problem(7);
    odd.fields.emplace_back("ratio", 0.5);
    ProblemIdentity words = problem(8);
    ProblemIdentity aligned = problem(12);
    aligned.json = "{\"causal\":true,\"n\":-7,\"x.align\":16,\"x.layout\":\"a b, {c}\"}";
    ProblemIdentity exponent = problem(13);
    exponent.json = "{\"x\":1e5}";
    words.fields = {{"causal", true}, {"name", std::string{"a \"quoted\" \xff word"}}, {"none", std::string{}}};
    ProblemIdentity bare = problem(9);
    bare.json.clear();
    ProblemIdentity fraction = problem(10);
    fraction.json = "{\"x\":1.50}";
    ProblemIdentity flags = problem(11);
    flags.fields = {{"causal", true}, {"n", std::int64_t{-3}}};
    for (const ProblemIdentity& one :
         {problem(), odd, words, bare, fraction, flags, aligned, exponent, ProblemIdentity{}})
        EXPECT_EQ(problem_json_text(one), to_json(one).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

// Goal: runs are told apart, and most of what is the same in their names is at the front, where a file packs it away.
TEST(RunUuid, NewOnesBeginWithTheirDaysAndDifferInTheRest) {
    std::set<std::string> seen, ends;
    for (int i = 0; i < 10'000; ++i) {
        const std::string uuid = new_run_uuid(1'764'000'000 + i);
        EXPECT_EQ(text_of(run_uuid(uuid)), uuid);
        EXPECT_EQ(uuid.substr(0, 12), "0000000001a4") << uuid;
        seen.insert(uuid);
        ends.insert(uuid.substr(12, 10));
    }
    EXPECT_EQ(seen.size(), 10'000u);
    EXPECT_EQ(ends.size(), 10'000u) << "40 random bits tell so few apart, but for once in 20,000 tests";
    EXPECT_LT(new_run_uuid(0), new_run_uuid(1'764'000'000));
    EXPECT_EQ(new_run_uuid(-5).substr(0, 12), "000000000000");
}

TEST(RunUuid, ThatOfAnImportedRunIsAnotherAndAlwaysTheSame) {
    const std::string uuid = new_run_uuid(1'764'000'000), other = new_run_uuid(1'764'000'000);
    const RunUuid imported = uuid_of_imported(uuid);
    EXPECT_EQ(uuid_of_imported(uuid), imported);
    EXPECT_NE(text_of(imported), uuid);
    EXPECT_NE(uuid_of_imported(other), imported);
    EXPECT_EQ(text_of(imported).substr(0, 12), uuid.substr(0, 12));
    for (const std::string earlier : {"00000100000000000000000000000000", "a run"})
        EXPECT_EQ(uuid_of_imported(earlier), run_uuid("import " + earlier)) << "as earlier imports named it";
}

}  // namespace
}  // namespace autotune

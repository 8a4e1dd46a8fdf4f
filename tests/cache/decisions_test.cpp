// Goal: processes that decide alike can tell, and what one hands to another is no way to run code or to break it.
// Method: decisions written and read back, then with every byte cut off or changed.
#include "cache/dispatch/decisions.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "autotune/error.h"
#include "tests/cache/dispatch_samples.h"
#include "tuner/model/hashing.h"

namespace autotune {
namespace {

using samples::naive_config;
using samples::vector_config;

DecidedConfig decided(int problem, Config config, std::string device = "h200") {
    return {.op = "scale",
            .device_fp = std::move(device),
            .problem_key = {std::byte{7}, static_cast<std::byte>(problem)},
            .problem = "n=1024",
            .config = std::move(config),
            .rung = Rung::exact,
            .verified = true};
}

Decisions two() {
    Decisions decisions;
    decisions.put(decided(1, vector_config(8, 128)));
    decisions.put(decided(2, naive_config()));
    return decisions;
}

std::string text_of(const Decisions& decisions) {
    const auto bytes = decisions.bytes();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string refusal(std::string_view text) {
    try {
        Decisions::read(std::as_bytes(std::span{text}));
        return {};
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Error::Kind::usage);
        return error.what();
    }
}

/// One decision's line in a sound frame.
std::string framed(const std::string& line) {
    return "{\"autotune_decisions\":1,\"count\":1,\"sha256\":\"" + sha256_hex(line) + "\"}\n" + line;
}

TEST(Decisions, AreReadBackAsTheyWereWritten) {
    const Decisions decisions = two();
    const auto bytes = decisions.bytes();
    const Decisions back = Decisions::read(bytes);
    EXPECT_EQ(back.size(), 2u);
    EXPECT_EQ(back.bytes(), bytes);
    const std::vector<std::byte> key{std::byte{7}, std::byte{1}};
    const DecidedConfig* found = back.find("scale", key, "h200");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->config, vector_config(8, 128));
    EXPECT_EQ(found->rung, Rung::exact);
    EXPECT_TRUE(found->verified);
    EXPECT_FALSE(found->stale);
    EXPECT_EQ(back.find("scael", key, "h200"), nullptr);
    EXPECT_EQ(Decisions::read(Decisions{}.bytes()).size(), 0u);
}

TEST(Decisions, OfTheDeviceComeBeforeThoseOfOthers) {
    Decisions decisions;
    decisions.put(decided(1, vector_config(8, 128), "a100"));
    decisions.put(decided(1, vector_config(4, 128), "h100"));
    decisions.put(decided(1, vector_config(2, 128), "h200"));
    const std::vector<std::byte> key{std::byte{7}, std::byte{1}};
    EXPECT_EQ(decisions.find("scale", key, "h100")->config, vector_config(4, 128));
    EXPECT_EQ(decisions.find("scale", key, "b200")->config, vector_config(8, 128));
}

TEST(Decisions, TheHashTellsWhatRunsAndNotWhereOrWhy) {
    const std::uint64_t hash = two().hash();
    Decisions reversed;
    reversed.put(decided(2, naive_config()));
    reversed.put(decided(1, vector_config(8, 128)));
    EXPECT_EQ(reversed.hash(), hash) << "the order of calls counts";
    Decisions again = two();
    DecidedConfig elsewhere = decided(1, vector_config(8, 128), "h100");
    elsewhere.rung = Rung::exact_stale;
    again.put(elsewhere);
    EXPECT_EQ(again.hash(), hash) << "the same config on another GPU is no other decision";
    Decisions other = two();
    other.put(decided(1, vector_config(8, 256)));
    EXPECT_NE(other.hash(), hash) << "a value differs";
    Decisions more = two();
    more.put(decided(3, naive_config()));
    EXPECT_NE(more.hash(), hash) << "a problem more";
    EXPECT_NE(Decisions{}.hash(), hash);
}

TEST(Decisions, CutOffAnywhereTheyAreRefused) {
    const std::string text = text_of(two());
    for (std::size_t size = 0; size < text.size(); ++size)
        EXPECT_NE(refusal(text.substr(0, size)), "") << "after " << size << " bytes";
    EXPECT_NE(refusal(text + "{}\n"), "");
}

TEST(Decisions, AnyChangedByteIsFound) {
    const std::string text = text_of(two());
    std::mt19937 random{7};
    for (std::size_t at = 0; at < text.size(); ++at) {
        std::string changed = text;
        changed[at] = static_cast<char>(changed[at] ^ (1u << random() % 8));
        EXPECT_NE(refusal(changed), "") << "byte " << at << " of " << text;
    }
}

TEST(Decisions, SayWhichFormatTheyHave) {
    std::string text = text_of(two());
    text.replace(text.find("\"autotune_decisions\":1"), 22, "\"autotune_decisions\":2");
    EXPECT_EQ(refusal(text), "the decisions cannot be taken over: they are of format 2, and this program reads 1");
}

TEST(Decisions, AreRefusedInWordsOfOurOwn) {
    for (const std::string text : {"{\"v\":1}\n", "no JSON\n", "[]\n"})
        EXPECT_EQ(refusal(text), "the decisions cannot be taken over: they are not as export_decisions() writes them");
}

TEST(Decisions, HostileOnesInASoundFrameAreRefused) {
    const std::string start =
        "{\"op\":\"scale\",\"device\":\"h200\",\"problem\":\"\",\"verified\":true,\"stale\":false,";
    EXPECT_NE(refusal(framed(start + "\"key\":\"07\",\"variant\":\"naive\",\"rung\":\"none\",\"config\":[]}\n")), "");
    EXPECT_NE(refusal(framed(start + "\"key\":\"0g\",\"variant\":\"naive\",\"rung\":\"exact\",\"config\":[]}\n")), "");
    EXPECT_NE(refusal(framed(start + "\"key\":7,\"variant\":\"naive\",\"rung\":\"exact\",\"config\":[]}\n")), "");
    const std::string values = start + "\"key\":\"07\",\"variant\":\"naive\",\"rung\":\"exact\",\"config\":";
    EXPECT_NE(refusal(framed(values + "7}\n")), "");
    EXPECT_NE(refusal(framed(values + "[[\"VEC\"]]}\n")), "");
    EXPECT_NE(refusal(framed(values + "[[\"VEC\",null]]}\n")), "");
    const std::string deep = std::string(30'000, '[') + std::string(30'000, ']');
    EXPECT_NE(refusal(framed(values + "[[\"VEC\"," + deep + "]]}\n")), "") << "the stack is a limit too";
    std::string many = "[[\"VEC\",1]";
    for (int i = 0; i < 300; ++i) many += ",[\"VEC\",1]";
    EXPECT_NE(refusal(framed(values + many + "]}\n")), "");
    EXPECT_NE(refusal(framed(values + "[[\"VEC\",\"" + std::string(70'000, 'x') + "\"]]}\n")), "");
    EXPECT_NE(refusal("{\"autotune_decisions\":1,\"count\":1000000000,\"sha256\":\"" + sha256_hex("") + "\"}\n"), "");
}

TEST(Decisions, WhatTodaysOpsDoNotDeclareIsTakenOut) {
    const OpSet ops = OpSet::of({samples::scale_op()});
    Decisions decisions = two();
    DecidedConfig foreign = decided(3, naive_config());
    foreign.op = "gone";
    decisions.put(foreign);
    decisions.put(decided(4, vector_config(928, 128)));
    decisions.put(decided(5, {.variant = "vector", .values = {{"VEC", std::int64_t{4}}}}));
    decisions.put(decided(6, {.variant = "old", .values = {}}));
    decisions.put(decided(7, {.variant = "vector",
                              .values = {{"VEC", std::int64_t{4}},
                                         {"THREADS", std::string{"256\n#include </etc/passwd>"}},
                                         {"SPLIT", std::int64_t{1}}}}));
    std::vector<std::string> why;
    EXPECT_EQ(decisions.refuse_unknown(ops, why), 5u);
    EXPECT_EQ(decisions.hash(), two().hash());
    ASSERT_EQ(why.size(), 5u);
    EXPECT_TRUE(why[0].starts_with("'gone' n=1024: there is no op 'gone'")) << why[0];
    EXPECT_EQ(why[1], "'scale' n=1024: 928 is no value of VEC of op 'scale'");
    EXPECT_EQ(why[2], "'scale' n=1024: the parameters of 'vector' of op 'scale' are others");
    EXPECT_EQ(why[3], "'scale' n=1024: op 'scale' has no variant 'old'");
}

}  // namespace
}  // namespace autotune

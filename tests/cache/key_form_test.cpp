// Goal: a key comes back to the byte from its form and numbers, whatever it is, and no two ways to write lead to one.
#include "cache/store/key_form.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "tuner/model/hashing.h"
#include "tuner/model/problem_key.h"

namespace autotune {
namespace {

std::vector<std::byte> key_of(const std::vector<std::pair<std::string, Value>>& fields) {
    CanonicalBytes bytes;
    bytes.add(problem_key_version).add("op").add(static_cast<std::uint64_t>(fields.size()));
    for (const auto& [name, value] : fields) bytes.add(name).add_value(value);
    return bytes.bytes();
}

std::string numbers_of(std::int64_t value) {
    std::string layout, numbers;
    KeyForm::split(key_of({{"n", value}}), layout, numbers);
    return numbers;
}

const std::vector<std::int64_t> edges{0,
                                      1,
                                      240,
                                      241,
                                      2287,
                                      2288,
                                      67823,
                                      67824,
                                      65535,
                                      1 << 24,
                                      std::int64_t{1} << 40,
                                      std::numeric_limits<std::int64_t>::max()};

TEST(KeyForm, PutsEveryKeyTogetherAgain) {
    std::mt19937_64 random{1};
    for (int round = 0; round < 2000; ++round) {
        std::vector<std::pair<std::string, Value>> fields;
        for (int i = 0; i < static_cast<int>(random() % 7); ++i) {
            const std::string name(random() % 12, static_cast<char>('a' + i));
            switch (random() % 4) {
                case 0:
                    fields.emplace_back(name, random() % 2 == 0);
                    break;
                case 1:
                    fields.emplace_back(name, static_cast<std::int64_t>(random() >> (random() % 64)));
                    break;
                case 2:
                    fields.emplace_back(name, static_cast<double>(random()) / 3);
                    break;
                default:
                    fields.emplace_back(name, std::string(random() % 20, static_cast<char>(random())));
            }
        }
        std::vector<std::byte> key = key_of(fields);
        // Some of them are none.
        if (round % 5 == 1) key.resize(random() % (key.size() + 9));
        if (round % 5 == 2) key[random() % key.size()] = static_cast<std::byte>(random());
        std::string layout, numbers, again;
        KeyForm::split(key, layout, numbers);
        const KeyForm form{layout};
        ASSERT_TRUE(form.sound());
        std::vector<std::byte> put{std::byte{9}};
        ASSERT_TRUE(form.put_together(numbers, put));
        ASSERT_EQ(put, key);
        if (layout.empty()) continue;
        ASSERT_TRUE(form.take_numbers(key, again));
        EXPECT_EQ(again, numbers);
        std::vector<std::int64_t> values;
        ASSERT_TRUE(form.read_numbers(numbers, values));
        EXPECT_EQ(values.size(), form.holes().size());
    }
}

TEST(KeyForm, NumbersOrderAsTheirBytesDo) {
    std::vector<std::int64_t> sorted = edges;
    std::ranges::sort(sorted);
    for (std::size_t i = 1; i < sorted.size(); ++i) EXPECT_LT(numbers_of(sorted[i - 1]), numbers_of(sorted[i])) << i;
    EXPECT_EQ(numbers_of(240).size(), 1u);
    EXPECT_EQ(numbers_of(2287).size(), 2u);
    EXPECT_EQ(numbers_of(67823).size(), 3u);
    EXPECT_EQ(numbers_of(-1).size(), 9u);
}

TEST(KeyForm, ANumberThatCouldBeWrittenShorterIsNone) {
    std::string layout, numbers;
    KeyForm::split(key_of({{"n", std::int64_t{5}}}), layout, numbers);
    const KeyForm form{layout};
    std::vector<std::byte> key;
    const auto refused = [&](std::initializer_list<int> bytes) {
        std::string text;
        for (const int byte : bytes) text += static_cast<char>(byte);
        std::vector<std::int64_t> values;
        return !form.put_together(text, key) && !form.read_numbers(text, values);
    };
    EXPECT_FALSE(refused({5}));
    EXPECT_TRUE(refused({241, 0})) << "240";
    EXPECT_TRUE(refused({250, 0, 1, 0})) << "256";
    EXPECT_TRUE(refused({250, 1, 8, 239})) << "67823";
    EXPECT_FALSE(refused({250, 1, 8, 240}));
    EXPECT_TRUE(refused({251, 0, 255, 255, 255}));
    EXPECT_TRUE(refused({}));
    EXPECT_TRUE(refused({5, 5}));
    EXPECT_TRUE(refused({249, 1}));
}

TEST(KeyForm, ALayoutOfAnyBytesIsReadOrNone) {
    std::string layout, numbers;
    KeyForm::split(key_of({{"dtype", std::string{"f32"}}, {"m", std::int64_t{7}}, {"n", std::int64_t{9}}}), layout,
                   numbers);
    std::mt19937_64 random{3};
    int sound = 0;
    for (int round = 0; round < 4000; ++round) {
        std::string bytes = layout;
        for (std::uint64_t left = random() % 4; left > 0; --left)
            bytes[random() % bytes.size()] = static_cast<char>(random());
        if (round % 7 == 0) bytes.resize(random() % bytes.size());
        const KeyForm form{bytes};
        std::vector<std::byte> key;
        if (!form.sound()) {
            EXPECT_TRUE(form.holes().empty());
            EXPECT_FALSE(form.put_together(numbers, key));
            continue;
        }
        ++sound;
        if (bytes.empty() || !form.put_together(numbers, key)) continue;
        std::string again, same;
        KeyForm::split(key, again, same);
        EXPECT_EQ(again, bytes);
        EXPECT_EQ(same, numbers);
    }
    EXPECT_GT(sound, 500);
}

}  // namespace
}  // namespace autotune

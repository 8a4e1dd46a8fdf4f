#include "cache/dispatch/row_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace autotune {
namespace {

using Key = std::vector<std::byte>;

/// Keys of that size, most bytes of them alike and some of them the same.
std::vector<Key> alike_keys(std::size_t size, std::size_t count, std::mt19937_64& random) {
    std::vector<Key> keys(count, Key(size, std::byte{7}));
    for (Key& key : keys)
        for (std::byte& byte : key)
            if (random() % 40 == 0) byte = static_cast<std::byte>(random() % 3);
    return keys;
}

SnapshotRows find(const RowTable& table, const Key& key) {
    PackedKeys::FilledUp filled_up;
    return table.find(PackedKeys::like_packed(key, filled_up));
}

/// A table of the keys, each leading to one to three rows that hold its number. slots: of the keys that repeat none.
RowTable table_of(std::size_t size, std::span<const Key> keys, std::map<std::uint32_t, std::uint32_t>* slots = {}) {
    PackedKeys packed{size};
    for (const Key& key : keys) packed.add(key);
    RowTable table{packed};
    std::set<std::uint32_t> repeated;
    for (const RowTable::Repeat& repeat : table.repeats()) repeated.insert(repeat.number);
    for (std::uint32_t i = 0; i < keys.size(); ++i) {
        const SnapshotRow rows[] = {{.config = i}, {.config = i, .time_ns = 1}, {.config = i, .time_ns = 2}};
        if (repeated.contains(i)) continue;
        const std::uint32_t slot = table.put(i, std::span{rows}.first(1 + i % 3));
        if (slots) slots->emplace(i, slot);
    }
    table.done();
    return table;
}

// Goal: a look-up answers for its very key, wherever keys differ and however short they are.
// Method: keys at random of all sizes up to 70 bytes; each is asked for, and so is each with any one byte changed.
TEST(RowTable, FindsEveryKeyAndNoneThatDiffersInAnyByte) {
    std::mt19937_64 random{3};
    for (std::size_t size = 0; size < 70; ++size)
        for (const std::size_t count : {1u, 2u, 40u, 300u}) {
            const std::vector<Key> keys = alike_keys(size, count, random);
            const RowTable table = table_of(size, keys);
            std::map<Key, std::uint32_t> first;
            for (std::uint32_t i = 0; i < keys.size(); ++i) first.try_emplace(keys[i], i);
            for (const Key& key : keys) {
                std::uint32_t met = 0;
                for (const SnapshotRow& row : find(table, key)) {
                    ASSERT_EQ(row.config, first.at(key)) << "of keys of " << size << " bytes";
                    ASSERT_EQ(row.time_ns, met++);
                }
                ASSERT_EQ(met, 1 + first.at(key) % 3) << "of keys of " << size << " bytes";
                for (std::size_t i = 0; i < size; ++i) {
                    Key other = key;
                    other[i] ^= std::byte{0x80};
                    ASSERT_TRUE(find(table, other).empty()) << "byte " << i << " of " << size;
                }
            }
        }
}

TEST(RowTable, TellsWhichKeysRepeatWhich) {
    PackedKeys keys{2};
    for (const int key : {1, 2, 1, 3, 2, 1}) keys.add(Key{std::byte{5}, static_cast<std::byte>(key)});
    const RowTable table{keys};
    std::vector<std::pair<std::uint32_t, std::uint32_t>> repeats;
    for (const RowTable::Repeat& repeat : table.repeats()) repeats.emplace_back(repeat.first, repeat.number);
    EXPECT_EQ(repeats, (std::vector<std::pair<std::uint32_t, std::uint32_t>>{{0, 2}, {0, 5}, {1, 4}}));
}

/// What a table makes of its slots' keys, and of which comes first, is what the keys are.
void expect_made_again(std::size_t size, std::span<const Key> keys) {
    std::map<std::uint32_t, std::uint32_t> slots;
    const RowTable table = table_of(size, keys, &slots);
    std::vector<std::byte> whole;
    std::pair<std::uint32_t, std::uint32_t> last = *slots.begin();
    for (const auto& [number, slot] : slots) {
        ASSERT_TRUE(std::ranges::equal(table.key(slot, whole), keys[number])) << "of " << size << " bytes";
        ASSERT_EQ(&table.rows(slot).front(), &find(table, keys[number]).front());
        ASSERT_EQ(table.before(last.second, slot), keys[last.first] < keys[number]) << "of " << size << " bytes";
        ASSERT_EQ(table.before(slot, last.second), keys[number] < keys[last.first]) << "of " << size << " bytes";
        last = {number, slot};
    }
}

// Goal: no key needs to be kept, since its slot is enough to make it again.
// Method: keys of every length that are one only, the same, alike in most bytes or different in all.
TEST(RowTable, MakesEveryKeyAgainFromItsSlot) {
    std::mt19937_64 random{5};
    for (std::size_t size = 0; size <= 300; ++size) {
        const Key one = alike_keys(size, 1, random).front();
        expect_made_again(size, {&one, 1});
        expect_made_again(size, std::vector<Key>(5, one));
        expect_made_again(size, alike_keys(size, 20, random));
        std::vector<Key> different(20, Key(size));
        for (Key& key : different)
            for (std::byte& byte : key) byte = static_cast<std::byte>(random());
        expect_made_again(size, different);
    }
}

TEST(RowTable, FitsOnlyAsManyKeysAsItCanNumber) {
    PackedKeys keys{4096};
    const Key key(4096, std::byte{7});
    for (int i = 0; i < 600'000; ++i) keys.add(key);
    EXPECT_TRUE(RowTable::fits(keys, 600'000));
    EXPECT_FALSE(RowTable::fits(keys, std::size_t{1} << 32)) << "rows";
    for (int i = 0; i < 100'000; ++i) keys.add(key);
    EXPECT_FALSE(RowTable::fits(keys, 700'000)) << "keys, if they differed everywhere";
}

// A snapshot stays as long as its process; its whole keys are needed only while it is made.
TEST(RowTable, TakesNoMoreMemoryWhereWhatKeysShareIsLong) {
    std::size_t bytes[2];
    for (const std::size_t is_long : {0u, 1u}) {
        const std::size_t size = is_long ? 300 : 16;
        std::vector<Key> keys(2000, Key(size, std::byte{9}));
        for (std::size_t i = 0; i < keys.size(); ++i) {
            keys[i][3] = static_cast<std::byte>(i);
            keys[i][4] = static_cast<std::byte>(i >> 8);
        }
        bytes[is_long] = table_of(size, keys).bytes();
    }
    EXPECT_EQ(bytes[0], bytes[1]);
}

}  // namespace
}  // namespace autotune

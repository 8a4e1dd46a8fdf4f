#include "cache/dispatch/packed_keys.h"

#include <gtest/gtest.h>

#include <random>

namespace autotune {
namespace {

using Key = std::vector<std::byte>;

/// Whether those keys come back from `packed`, with what they are filled up with.
void expect_kept(const PackedKeys& packed, std::span<const Key> keys) {
    ASSERT_EQ(packed.count(), keys.size());
    Key filled_up(packed.filled_size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
        packed.copy(i, filled_up.data());
        Key expected = keys[i];
        expected.resize(packed.filled_size());
        ASSERT_EQ(filled_up, expected) << "key " << i << " of " << keys[i].size() << " bytes";
    }
}

// Goal: keys come back whichever of their bytes differ, and whenever a place where they do is found.
// Method: keys of every length whose bytes begin to vary one after the other, in an order at random; after each, all
// keys so far are asked for.
TEST(PackedKeys, GivesBackEveryKeyWhateverComesAfterIt) {
    std::mt19937_64 random{11};
    for (std::size_t size = 1; size <= 300; size += size < 40 ? 1 : 13) {
        PackedKeys packed{size};
        std::vector<Key> keys;
        Key key(size, std::byte{7});
        for (int i = 0; i < 25; ++i) {
            keys.push_back(key);
            packed.add(key);
            if (i % 5 == 4) expect_kept(packed, keys);
            key[random() % size] = static_cast<std::byte>(random());
        }
    }
}

TEST(PackedKeys, TellsWhichBytesAllKeysShare) {
    PackedKeys packed{100};
    Key key(100, std::byte{7});
    packed.add(key);
    for (const std::size_t differs : {97u, 30u, 0u}) {
        Key other = key;
        other[differs] = std::byte{8};
        packed.add(other);
    }
    for (std::size_t at = 0; at < key.size(); ++at)
        EXPECT_EQ(packed.common().counts(at), at != 97 && at != 30 && at != 0) << at;
}

}  // namespace
}  // namespace autotune

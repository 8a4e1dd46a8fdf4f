#include "tuner/model/hashing.h"

#include <gtest/gtest.h>
#include <sodium.h>

#include "tuner/model/sha256.h"

namespace autotune {
namespace {

TEST(Hashing, GivesThePublishedDigests) {
    EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Hashing, GivesTheDigestOfTheLibraryAtEveryLength) {
    std::vector<std::byte> bytes(1000);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 131 + i / 7);
    for (std::size_t length = 0; length <= bytes.size(); ++length) {
        const std::span<const std::byte> some{bytes.data() + (bytes.size() - length) / 2, length};
        Sha256Digest expected{};
        crypto_hash_sha256(expected.data(), reinterpret_cast<const unsigned char*>(some.data()), some.size());
        ASSERT_EQ(sha256(some), expected) << length << " bytes; instructions: " << has_sha256_instructions();
    }
}

TEST(Hashing, KeepsTheBordersBetweenTexts) {
    EXPECT_NE(CanonicalBytes{}.add("ab").add("c").bytes(), CanonicalBytes{}.add("a").add("bc").bytes());
    EXPECT_EQ(CanonicalBytes{}.add(std::uint64_t{0x0102}).bytes().front(), std::byte{0x02});
}

}  // namespace
}  // namespace autotune

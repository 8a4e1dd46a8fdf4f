#include "tuner/model/hashing.h"

#include <gtest/gtest.h>

namespace autotune {
namespace {

TEST(Hashing, GivesThePublishedDigests) {
    EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Hashing, KeepsTheBordersBetweenTexts) {
    EXPECT_NE(CanonicalBytes{}.add("ab").add("c").bytes(), CanonicalBytes{}.add("a").add("bc").bytes());
    EXPECT_EQ(CanonicalBytes{}.add(std::uint64_t{0x0102}).bytes().front(), std::byte{0x02});
}

}  // namespace
}  // namespace autotune

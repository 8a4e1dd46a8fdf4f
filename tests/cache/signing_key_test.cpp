#include "cache/sharing/signing_key.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "autotune/error.h"
#include "tests/cache/samples.h"

namespace autotune {
namespace {

namespace fs = std::filesystem;

std::span<const std::byte> bytes_of_text(std::string_view text) { return std::as_bytes(std::span{text}); }

TEST(SigningKey, SignsSoThatItsOtherHalfKnowsIt) {
    const SigningKey key = SigningKey::generate();
    const KeySignature signature = key.sign(bytes_of_text("records"));
    EXPECT_TRUE(is_signed_by(key.public_key(), bytes_of_text("records"), signature));
    EXPECT_FALSE(is_signed_by(key.public_key(), bytes_of_text("record5"), signature));
    EXPECT_FALSE(is_signed_by(SigningKey::generate().public_key(), bytes_of_text("records"), signature));
}

TEST(SigningKey, IsKeptForItsOwnerAlone) {
    samples::Folder folder;
    const SigningKey key = SigningKey::generate();
    key.write(folder / "release");
    struct stat status {};
    ASSERT_EQ(::stat((folder / "release").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    EXPECT_EQ(SigningKey::read(folder / "release").public_key(), key.public_key());
    EXPECT_EQ(read_public_key(folder / "release.pub"), key.public_key());
    EXPECT_THROW(key.write(folder / "release"), Error) << "a key was overwritten";
    ::chmod((folder / "release").c_str(), 0640);
    EXPECT_THROW(SigningKey::read(folder / "release"), Error) << "others may read it";
}

TEST(SigningKey, ThatCannotBeKeptSaysWhyAndLeavesNoHalf) {
    samples::Folder folder;
    const auto said = [](const fs::path& path) -> std::string {
        try {
            SigningKey::generate().write(path);
        } catch (const Error& error) {
            return error.what();
        }
        return "nothing";
    };
    EXPECT_NE(said(folder / "absent/release").find("absent/release' could not be written: No such file or directory"),
              std::string::npos);
    const std::string longest(251 - std::string_view{".new-4194304-"}.size() - 32, 'a');  // with ".pub" it is too long
    const std::string name = longest + std::string(8, 'b');
    for (std::size_t more = 0; more < 16; ++more) {  // of the process's number, some digits
        const fs::path path = folder / name.substr(0, longest.size() - 8 + more);
        const bool made = said(path) == "nothing";
        EXPECT_EQ(fs::exists(path), made) << more;
        EXPECT_EQ(fs::exists(path.string() + ".pub"), made) << more;
    }
}

TEST(SigningKey, AFileThatIsNoneIsRefused) {
    samples::Folder folder;
    SigningKey::generate().write(folder / "good");
    std::string text;
    std::getline(std::ifstream{folder / "good"}, text);
    const std::string public_line = "autotune public key 1: " + std::string(64, '0');
    std::string flipped = text;
    flipped[30] = flipped[30] == '0' ? '1' : '0';
    for (const std::string& bad :
         {std::string{}, text.substr(0, text.size() - 2), text + "00", flipped, public_line, std::string(5000, 'a')}) {
        std::ofstream{folder / "bad"} << bad << '\n';
        ::chmod((folder / "bad").c_str(), 0600);
        EXPECT_THROW(SigningKey::read(folder / "bad"), Error) << bad;
    }
    EXPECT_THROW(SigningKey::read(folder / "none"), Error);
    EXPECT_THROW(read_public_key(folder / "good"), Error) << "a secret key was taken for a public one";
}

TEST(TrustList, KnowsTheKeysThatWereAdded) {
    samples::Folder folder;
    const TrustList trusted{folder / "tune.db"};
    const PublicKey key = SigningKey::generate().public_key();
    EXPECT_FALSE(trusted.name_of(key)) << "there is no list yet";
    trusted.add(key, "release-team");
    EXPECT_EQ(trusted.name_of(key), "release-team");
    EXPECT_FALSE(trusted.name_of(SigningKey::generate().public_key()));
    EXPECT_THROW(trusted.add(key, "release-team"), Error) << "a name means one key";
    for (const char* name : {"", "../x", "a/b", ".hidden", "a b"}) EXPECT_THROW(trusted.add(key, name), Error) << name;
}

TEST(TrustList, AKeyThatOthersCouldHavePutThereDoesNotCount) {
    samples::Folder folder;
    const TrustList trusted{folder / "tune.db"};
    const PublicKey key = SigningKey::generate().public_key();
    trusted.add(key, "team");
    ::chmod((trusted.folder() / "team.pub").c_str(), 0666);
    std::vector<std::string> warnings;
    EXPECT_FALSE(trusted.name_of(key, [&](const std::string& what) { warnings.push_back(what); }));
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_NE(warnings[0].find("may be written to by others"), std::string::npos) << warnings[0];
    ::chmod((trusted.folder() / "team.pub").c_str(), 0600);
    ::chmod(trusted.folder().c_str(), 0777);
    EXPECT_FALSE(trusted.name_of(key));
    EXPECT_THROW(trusted.add(key, "again"), Error);
}

}  // namespace
}  // namespace autotune

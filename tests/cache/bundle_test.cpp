#include "cache/sharing/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "autotune/error.h"
#include "cache/store/file.h"
#include "cache/store/json.h"
#include "tests/cache/samples.h"
#include "tuner/model/hashing.h"

namespace autotune {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Binary sample_binary(char digit) {
    Binary binary{.key = std::string(64, digit) + "-13.0", .artefact = {}, .source = "scale.cu", .nvrtc_major = 13};
    binary.artefact.arch = "sm_90a";
    binary.artefact.cubin.assign(64, static_cast<std::byte>(digit));
    return binary;
}

BundleContents sample_contents() {
    return {.records = {samples::record(2048, 20.0), samples::record(1024, 10.0)},
            .binaries = {sample_binary('b'), sample_binary('a')},
            .db_uuid = "0123",
            .created = 1'700'000'000};
}

/// What refused it; empty: nothing did.
std::string refusal(std::span<const std::byte> bytes) {
    try {
        Bundle::view(bytes, "x.bundle");
        return {};
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Error::Kind::usage);
        EXPECT_THAT(error.what(), HasSubstr("x.bundle"));
        return error.what();
    }
}

// A bundle in its pieces, for tests that forge one.
struct Pieces {
    json manifest;
    std::vector<std::byte> parts;

    explicit Pieces(std::span<const std::byte> unsigned_bundle) {
        std::uint64_t size = 0;
        std::memcpy(&size, unsigned_bundle.data() + 12, sizeof size);
        const auto* text = reinterpret_cast<const char*>(unsigned_bundle.data()) + 52;
        manifest = json::parse(text, text + size);
        parts.assign(unsigned_bundle.begin() + 52 + static_cast<std::ptrdiff_t>(size), unsigned_bundle.end());
    }

    std::vector<std::byte> sealed(const std::string& text, const SigningKey* key = nullptr) const {
        std::vector<std::byte> out(52);
        std::memcpy(out.data(), "ATBUNDL1", 8);
        const std::uint32_t signature_size = key ? 64 : 0;
        const std::uint64_t size = text.size();
        std::memcpy(out.data() + 8, &signature_size, 4);
        std::memcpy(out.data() + 12, &size, 8);
        const auto digest = from_hex(sha256_hex(text));
        std::ranges::copy(digest, out.begin() + 20);
        const auto bytes = std::as_bytes(std::span{text});
        out.insert(out.end(), bytes.begin(), bytes.end());
        if (key) {
            const KeySignature signature = key->sign(bytes);
            out.insert(out.end(), signature.begin(), signature.end());
        }
        out.insert(out.end(), parts.begin(), parts.end());
        return out;
    }
    std::vector<std::byte> sealed() const { return sealed(manifest.dump()); }
};

TEST(Bundle, GivesBackWhatWentIn) {
    const std::vector<std::byte> bytes = make_bundle(sample_contents());
    const Bundle bundle = Bundle::view(bytes, "x.bundle");
    EXPECT_EQ(bundle.created(), 1'700'000'000);
    EXPECT_EQ(bundle.db_uuid(), "0123");
    EXPECT_FALSE(bundle.signer());
    const std::vector<Record> records = bundle.records();
    ASSERT_EQ(records.size(), 2u);
    EXPECT_EQ(bundle.record_count(), 2u);
    std::vector<std::string> lines;
    for (const Record& record : sample_contents().records) lines.push_back(to_line(record));
    for (const Record& record : records) EXPECT_THAT(lines, testing::Contains(to_line(record)));
    EXPECT_THAT(bundle.binary_keys(), testing::ElementsAre(sample_binary('a').key, sample_binary('b').key));
    const auto binary = bundle.binary(sample_binary('b').key);
    ASSERT_TRUE(binary);
    EXPECT_EQ(binary->artefact.cubin, sample_binary('b').artefact.cubin);
    EXPECT_FALSE(bundle.binary(sample_binary('c').key));
}

TEST(Bundle, IsTheSameBytesWhateverTheOrder) {
    BundleContents turned = sample_contents();
    std::ranges::reverse(turned.records);
    std::ranges::reverse(turned.binaries);
    turned.binaries.push_back(turned.binaries.front());
    EXPECT_EQ(make_bundle(turned), make_bundle(sample_contents()));
}

TEST(Bundle, TellsWhoSignedIt) {
    const SigningKey key = SigningKey::generate();
    samples::Folder folder;
    ASSERT_TRUE(write_file_whole(folder / "x.bundle", make_bundle(sample_contents(), &key)));
    const Bundle bundle = Bundle::read(folder / "x.bundle");
    EXPECT_EQ(bundle.signer(), key.public_key());
    EXPECT_EQ(bundle.records().size(), 2u);
    EXPECT_THROW(Bundle::read(folder / "none"), Error);
    EXPECT_THROW(Bundle::read(folder.path()), Error);
}

// Goal: no byte of a bundle can change unnoticed, signed or not.
TEST(Bundle, AFlippedByteAnywhereIsRefused) {
    const SigningKey key = SigningKey::generate();
    for (const SigningKey* signer : {static_cast<const SigningKey*>(nullptr), &key}) {
        std::vector<std::byte> bytes = make_bundle(sample_contents(), signer);
        ASSERT_EQ(refusal(bytes), "");
        for (std::size_t at = 0; at < bytes.size(); at += at < 1500 ? 1 : 11) {  // head, manifest and signature whole
            bytes[at] ^= std::byte{4};
            EXPECT_NE(refusal(bytes), "") << "byte " << at << " of " << bytes.size();
            bytes[at] ^= std::byte{4};
        }
    }
}

TEST(Bundle, ACutOrLengthenedFileIsRefused) {
    const SigningKey key = SigningKey::generate();
    std::vector<std::byte> bytes = make_bundle(sample_contents(), &key);
    for (std::size_t size = 0; size < bytes.size(); size += size < 1500 ? 1 : 11)
        EXPECT_NE(refusal(std::span{bytes}.first(size)), "") << size << " of " << bytes.size();
    bytes.push_back(std::byte{0});
    EXPECT_THAT(refusal(bytes), HasSubstr("1 bytes follow its last part"));
}

TEST(Bundle, AReasonNamesWhatIsWrong) {
    const SigningKey key = SigningKey::generate(), other = SigningKey::generate();
    std::vector<std::byte> bytes = make_bundle(sample_contents(), &key);
    bytes.back() ^= std::byte{1};
    EXPECT_THAT(refusal(bytes), HasSubstr("part 'binary/" + std::string(64, 'b') + "-13.0' is damaged"));
    Pieces pieces{make_bundle(sample_contents())};
    pieces.manifest["key"] = key.public_key().hex();
    EXPECT_THAT(refusal(pieces.sealed()), HasSubstr("its signature is missing"));
    EXPECT_THAT(refusal(pieces.sealed(pieces.manifest.dump(), &other)), HasSubstr("not that of the key"));
    EXPECT_EQ(refusal(pieces.sealed(pieces.manifest.dump(), &key)), "");
    pieces.manifest.erase("key");
    EXPECT_THAT(refusal(pieces.sealed(pieces.manifest.dump(), &key)), HasSubstr("a signature of nobody's"));
}

// Goal: a manifest that whoever made it has signed is still read as an enemy's.
TEST(Bundle, AManifestThatLiesIsRefused) {
    const Pieces good{make_bundle(sample_contents())};
    ASSERT_EQ(refusal(good.sealed()), "");
    const auto lying = [&](const std::function<void(json&)>& lie) {
        Pieces pieces = good;
        lie(pieces.manifest);
        return refusal(pieces.sealed());
    };
    EXPECT_THAT(lying([](json& m) { m["format"] = 2; }), HasSubstr("format 2, and this program knows 1"));
    EXPECT_THAT(lying([](json& m) { m["records"] = 3; }), HasSubstr("the 3 records"));
    EXPECT_THAT(lying([](json& m) { m["binaries"] = 3; }), HasSubstr("number of parts"));
    EXPECT_THAT(lying([](json& m) { m["records"] = -1; }), HasSubstr("'records' is no count"));
    EXPECT_THAT(lying([](json& m) { m["records"] = 1e300; }), HasSubstr("'records' is no count"));
    EXPECT_THAT(lying([](json& m) { m["created"] = 1e300; }), HasSubstr("no time"));
    EXPECT_THAT(lying([](json& m) { m["parts"] = json::array(); }), HasSubstr("number of parts"));
    EXPECT_THAT(lying([](json& m) { m["key"] = "00"; }), HasSubstr("the key that its manifest names"));
    EXPECT_THAT(lying([](json& m) { m["tool"] = "a\nb"; }), HasSubstr("'tool' is no short text"));
    EXPECT_THAT(lying([](json& m) { m["parts"][1]["offset"] = 0; }), HasSubstr("does not lie where"));
    EXPECT_THAT(lying([](json& m) { m["parts"][1]["size"] = UINT64_MAX; }), HasSubstr("does not lie where"));
    EXPECT_THAT(lying([](json& m) { m["parts"][1]["name"] = "binary/../../x"; }), HasSubstr("no name of a part"));
    EXPECT_THAT(lying([](json& m) { m["parts"][0]["name"] = "binary/x"; }), HasSubstr("not its records"));
    EXPECT_THAT(lying([](json& m) { m.erase("parts"); }), HasSubstr("not as a manifest is"));
    EXPECT_THAT(lying([](json& m) { m = json::array(); }), HasSubstr("not as a manifest is"));
    EXPECT_THAT(refusal(good.sealed(std::string(100'000, '['))), HasSubstr("in its manifest it is nested deeper"));
    std::string twice = good.manifest.dump();
    EXPECT_THAT(refusal(good.sealed(twice.replace(0, 1, "{\"records\":9,"))), HasSubstr("it has a member twice"));
    twice = good.manifest.dump();
    twice.insert(twice.find("\"parts\":[{") + std::string_view{"\"parts\":[{"}.size(), "\"size\":1,");
    EXPECT_THAT(refusal(good.sealed(twice)), HasSubstr("it has a member twice"));

    std::vector<std::byte> huge = good.sealed();
    const std::uint64_t size = UINT64_MAX - 10;
    std::memcpy(huge.data() + 12, &size, sizeof size);
    EXPECT_THAT(refusal(huge), HasSubstr("a manifest of"));
}

TEST(Bundle, APartThatIsNoBinaryOfItsNameIsNone) {
    BundleContents contents = sample_contents();
    contents.binaries = {sample_binary('a')};
    Pieces pieces{make_bundle(contents)};
    pieces.manifest["parts"][1]["name"] = "binary/" + sample_binary('c').key;
    const std::vector<std::byte> bytes = pieces.sealed();
    EXPECT_FALSE(Bundle::view(bytes, "x.bundle").binary(sample_binary('c').key));
}

TEST(Bundle, ARecordThatIsNoneIsLeftOutAndNamed) {
    Pieces pieces{make_bundle({.records = {samples::record(1024, 10.0)}})};
    const std::string line = "{\"v\":1}\n";
    pieces.manifest["records"] = 2;
    pieces.manifest["parts"][0]["size"] = pieces.parts.size() + line.size();
    for (const char c : line) pieces.parts.push_back(static_cast<std::byte>(c));
    pieces.manifest["parts"][0]["sha256"] = sha256_hex(std::span<const std::byte>{pieces.parts});
    const std::vector<std::byte> bytes = pieces.sealed();
    std::vector<std::string> warnings;
    const Bundle bundle = Bundle::view(bytes, "x.bundle");
    EXPECT_EQ(bundle.records([&](const std::string& what) { warnings.push_back(what); }).size(), 1u);
    EXPECT_THAT(warnings, testing::ElementsAre(HasSubstr("record 2 of the bundle 'x.bundle' is left out")));
}

}  // namespace
}  // namespace autotune

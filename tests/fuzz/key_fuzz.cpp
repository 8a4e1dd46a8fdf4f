// Goal: a file is a key, or it is not; what is one is told the same way everywhere.
// Method: each input as a public key, as one among those that are trusted, and as a key that signs.
#include <algorithm>
#include <filesystem>

#include "cache/sharing/signing_key.h"
#include "tests/cache/samples.h"
#include "tests/fuzz/fuzzing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    namespace fs = std::filesystem;
    using namespace autotune;
    using namespace autotune::fuzzing;
    static const samples::Folder folder;
    static const TrustList trusted{folder / "tune.db"};
    fs::create_directories(trusted.folder());
    fs::permissions(trusted.folder(), fs::perms::owner_all);
    const fs::path listed = trusted.folder() / "one.pub", secret = folder / "secret";
    write_input(listed, {data, size});
    write_input(secret, {data, size});
    fs::permissions(secret, fs::perms::owner_read | fs::perms::owner_write);

    PublicKey key;
    const bool is_key = or_error([&] { key = read_public_key(listed); });
    const auto keys = trusted.keys();
    require(keys.size() == (is_key ? 1u : 0u));
    if (is_key) {
        require(keys.at("one") == key && trusted.name_of(key) == "one");
        require(PublicKey::parse(key.hex()) == key);
        KeySignature signature{};
        std::copy_n(key.bytes.begin(), key.bytes.size(), signature.begin());
        is_signed_by(key, std::as_bytes(std::span{data, size}), signature);
    }
    or_error([&] {
        const SigningKey signs = SigningKey::read(secret);
        const auto message = std::as_bytes(std::span{data, size});
        require(is_signed_by(signs.public_key(), message, signs.sign(message)));
    });
    const std::string_view text = text_of({data, size});
    if (const auto parsed = PublicKey::parse(text)) require(parsed->hex() == text);
    return 0;
}

#include "tuner/worker/frame.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "autotune/error.h"

namespace autotune {
namespace {

using Json = nlohmann::json;

std::vector<std::byte> header(std::uint32_t magic, std::uint32_t type, std::uint32_t length, std::uint32_t flags) {
    const std::array<std::uint32_t, 4> words{magic, type, length, flags};
    std::vector<std::byte> bytes(sizeof words);
    std::memcpy(bytes.data(), words.data(), sizeof words);
    return bytes;
}

std::vector<std::byte> bytes_of(std::string_view text) {
    const auto bytes = std::as_bytes(std::span{text.data(), text.size()});
    return {bytes.begin(), bytes.end()};
}

TEST(Frame, ArrivesAsItWasSentWithItsMemory) {
    const auto [here, there] = socket_pair();
    const Fd memory = sealed_memory(bytes_of("reference"));
    const std::array<int, 1> fds{memory.get()};
    send_frame(here.get(), 7, {{"x", 1}, {"y", "two"}}, fds);
    FrameReader reader;
    const Frame frame = reader.wait(there.get());
    EXPECT_EQ(frame.type, 7u);
    EXPECT_EQ(frame.json(), (Json{{"x", 1}, {"y", "two"}}));
    ASSERT_EQ(frame.fds.size(), 1u);
    const MappedMemory mapped{frame.fds[0], 100};
    EXPECT_EQ(std::memcmp(mapped.bytes().data(), "reference", 9), 0);
}

TEST(Frame, ALargeBodyTravelsAsMemoryAndNeedsNoReader) {
    const auto [here, there] = socket_pair();
    const std::string large(5'000'000, 'x');
    send_frame(here.get(), 1, {{"cubin", large}});  // more than a socket holds: a send inline would wait here for ever
    FrameReader reader;
    EXPECT_EQ(reader.wait(there.get()).json()["cubin"], large);
}

TEST(Frame, FramesReadTogetherKeepTheirOwnDescriptors) {
    const auto [here, there] = socket_pair();
    const Fd a = sealed_memory(bytes_of("a")), b = sealed_memory(bytes_of("bb"));
    send_frame(here.get(), 1, Json::object(), std::array{a.get()});
    send_frame(here.get(), 2, Json::object());
    send_frame(here.get(), 3, Json::object(), std::array{b.get()});
    FrameReader reader;
    EXPECT_EQ((MappedMemory{reader.wait(there.get()).fds.at(0), 9}.bytes().size()), 1u);
    EXPECT_TRUE(reader.wait(there.get()).fds.empty());
    EXPECT_EQ((MappedMemory{reader.wait(there.get()).fds.at(0), 9}.bytes().size()), 2u);
}

TEST(Frame, ArrivesWhateverThePiecesAre) {
    std::vector<std::byte> whole = header(frame_magic, 4, 1, 0);
    whole.push_back(std::byte{0x05});
    FrameReader reader;
    for (const std::byte piece : whole) {
        EXPECT_FALSE(reader.next());
        reader.take({&piece, 1});
    }
    const std::optional<Frame> frame = reader.next();
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->json(), 5);
}

TEST(Frame, WhatIsNoFrameIsRefused) {
    EXPECT_THROW(FrameReader{}.take(header(0x12345678, 1, 0, 0)), FrameError);
    EXPECT_THROW(FrameReader{}.take(header(frame_magic, 1, frame_body_limit + 1, 0)), FrameError);
    EXPECT_THROW(FrameReader{}.take(header(frame_magic, 1, 0, 0xffffff00)), FrameError);
    FrameReader lacks_fds;
    lacks_fds.take(header(frame_magic, 1, 0, 1u << 8));
    EXPECT_THROW(lacks_fds.next(), FrameError);
    FrameReader lacks_body;
    lacks_body.take(header(frame_magic, 1, 0, frame_body_in_memory));
    EXPECT_THROW(lacks_body.next(), FrameError);
}

TEST(Frame, DeepNestingDoesNotOverflowTheStack) {
    const std::vector<std::byte> nested(1'000'000, std::byte{0x81});
    EXPECT_THROW(decode_cbor(nested), FrameError);
}

TEST(Frame, AClaimOfManyElementsAllocatesNothing) {
    // An array of 2^62 elements, a text of 2^62 bytes, a binary of 2^62 bytes: none of them follows.
    for (const int kind : {0x9b, 0x7b, 0x5b, 0xbb}) {
        std::vector<std::byte> claim{static_cast<std::byte>(kind), std::byte{0x40}};
        claim.resize(9);
        EXPECT_THROW(decode_cbor(claim), FrameError) << kind;
    }
}

TEST(Frame, WhatOurSideNeverWritesIsRefused) {
    const auto decode = [](std::vector<int> raw) {
        std::vector<std::byte> bytes;
        for (const int byte : raw) bytes.push_back(static_cast<std::byte>(byte));
        return decode_cbor(bytes);
    };
    EXPECT_THROW(decode({0x9f, 0x01, 0xff}), FrameError);  // indefinite length
    EXPECT_THROW(decode({0xc1, 0x01}), FrameError);        // tag
    EXPECT_THROW(decode({0x01, 0x01}), FrameError);        // more than one item
    EXPECT_THROW(decode({}), FrameError);
    EXPECT_THROW(decode({0xa1, 0x01, 0x01}), FrameError);  // a key that is no text
    EXPECT_EQ(decode({0x82, 0x01, 0xf6}), (Json{1, nullptr}));
}

TEST(Frame, TheEndOfThePeerIsToldApartFromSilence) {
    auto [here, there] = socket_pair();
    FrameReader reader;
    EXPECT_FALSE(reader.read_from(there.get()));
    here.reset();
    EXPECT_THROW(reader.read_from(there.get()), FrameError);
    EXPECT_THROW(send_frame(there.get(), 1, Json::object()), FrameError);
}

TEST(SealedMemory, MemoryThatCouldShrinkIsRefused) {
    const Fd open{memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    ASSERT_EQ(ftruncate(open.get(), 100), 0);
    EXPECT_THROW((MappedMemory{open, 1000}), Error);
}

TEST(SealedMemory, MoreThanTheLimitIsRefused) {
    const Fd memory = sealed_memory(bytes_of("0123456789"));
    EXPECT_THROW((MappedMemory{memory, 9}), Error);
    EXPECT_EQ((MappedMemory{memory, 10}.bytes().size()), 10u);
}

TEST(SealedMemory, IsWrittenInPlaceAndThenFixed) {
    WritableMemory memory{16};
    std::memset(memory.bytes().data(), 'z', 16);
    const Fd sealed = std::move(memory).seal();
    EXPECT_LT(write(sealed.get(), "a", 1), 0);
    EXPECT_EQ((MappedMemory{sealed, 16}.bytes()[15]), std::byte{'z'});
}

}  // namespace
}  // namespace autotune

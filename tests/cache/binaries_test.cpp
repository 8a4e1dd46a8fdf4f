#include "cache/store/binaries.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "cache/store/identity.h"
#include "cache/store/key_lock.h"
#include "tests/cache/samples.h"

namespace autotune {
namespace {

namespace fs = std::filesystem;

std::string key_of(char digit, const std::string& version = "13.0") { return std::string(64, digit) + '-' + version; }

Binary binary(char digit, std::size_t bytes = 1000) {
    Binary binary{.key = key_of(digit), .artefact = {}, .source = "scale.cu", .nvrtc_major = 13};
    binary.artefact.arch = "sm_90a";
    binary.artefact.cubin.assign(bytes, static_cast<std::byte>(digit));
    binary.artefact.kernels = {
        {.name = "scale<4>", .symbol = "_Z5scale", .registers = 40, .static_shared_bytes = 1024}};
    return binary;
}

TEST(BinaryStore, GivesBackWhatWasPutWithItsKernels) {
    samples::Folder folder;
    const samples::Folder& at = folder;
    BinaryStore store{at / "binaries"};
    EXPECT_FALSE(store.get(key_of('a')));
    ASSERT_TRUE(store.put(binary('a')));
    const auto got = store.get(key_of('a'));
    ASSERT_TRUE(got);
    EXPECT_EQ(got->artefact.cubin, binary('a').artefact.cubin);
    EXPECT_EQ(got->artefact.kernels, binary('a').artefact.kernels);
    EXPECT_EQ(got->artefact.arch, "sm_90a");
    EXPECT_EQ(store.keys(), std::vector<std::string>{key_of('a')});
}

TEST(BinaryStore, ADamagedFileIsAMissWhereverTheByteIs) {
    samples::Folder folder;
    BinaryStore store{folder.path()};
    store.put(binary('a', 64));
    const fs::path path = folder / (key_of('a') + ".cubin");
    const auto size = static_cast<std::streamoff>(fs::file_size(path));
    for (std::streamoff at = 0; at < size; at += 13) {
        store.put(binary('a', 64));
        std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
        file.seekg(at);
        const char byte = static_cast<char>(file.get() ^ 4);
        file.seekp(at);
        file.put(byte);
        file.close();
        EXPECT_FALSE(store.get(key_of('a'))) << at;
        EXPECT_FALSE(fs::exists(path)) << "a damaged file stays in the way";
    }
}

TEST(BinaryStore, AFileUnderAnotherKeyIsAMiss) {
    samples::Folder folder;
    BinaryStore store{folder.path()};
    store.put(binary('a'));
    fs::copy_file(folder / (key_of('a') + ".cubin"), folder / (key_of('b') + ".cubin"));
    EXPECT_FALSE(store.get(key_of('b')));
    EXPECT_FALSE(store.get("../../etc/passwd"));
    EXPECT_FALSE(store.put({.key = "short"}));
}

TEST(BinaryStore, WhatWasUsedLongestAgoGoesWhenTheCapIsReached) {
    samples::Folder folder;
    BinaryStore store{folder.path(), 9000};
    for (const char digit : {'a', 'b', 'c'}) store.put(binary(digit, 2000));
    const auto now = fs::file_time_type::clock::now();
    fs::last_write_time(folder / (key_of('a') + ".cubin"), now - std::chrono::hours{3});
    fs::last_write_time(folder / (key_of('b') + ".cubin"), now - std::chrono::hours{2});
    ASSERT_TRUE(store.get(key_of('a'))) << "used just now";
    store.put(binary('d', 2000));
    EXPECT_FALSE(store.get(key_of('b')));
    EXPECT_TRUE(store.get(key_of('a')));
    EXPECT_LE(store.bytes(), 9000u);
}

TEST(BinaryStore, TellsWhichCompilersThereAreOfASourceNewestFirst) {
    samples::Folder folder;
    BinaryStore store{folder.path()};
    for (const char* version : {"12.9", "13.0", "12.10"}) {
        Binary one = binary('a');
        one.key = key_of('a', version);
        ASSERT_TRUE(store.put(one));
    }
    store.put(binary('b'));
    EXPECT_EQ(store.keys_of(std::string(64, 'a')),
              (std::vector<std::string>{key_of('a'), key_of('a', "12.10"), key_of('a', "12.9")}));
    EXPECT_TRUE(store.keys_of(std::string(64, 'c')).empty());
}

TEST(BinaryStore, SeveralWritersOfOneKeyLeaveOneWholeFile) {
    samples::Folder folder;
    std::vector<std::thread> writers;
    for (int i = 0; i < 4; ++i)
        writers.emplace_back([&] {
            BinaryStore store{folder.path()};
            for (int n = 0; n < 10; ++n) store.put(binary('a', 5000));
        });
    BinaryStore reader{folder.path()};
    for (int n = 0; n < 50; ++n) {
        const auto got = reader.get(key_of('a'));
        EXPECT_TRUE(!got || got->artefact.cubin.size() == 5000u);
    }
    for (std::thread& writer : writers) writer.join();
    EXPECT_TRUE(reader.get(key_of('a')));
    EXPECT_EQ(std::distance(fs::directory_iterator{folder.path()}, {}), 1) << "files in the making were left behind";
}

// Goal: a clock that was in the year 2100 for a while, or is set back now, does not keep what nobody uses.
TEST(BinaryStore, FilesOfATimeToComeGoFirst) {
    samples::Folder folder;
    BinaryStore store{folder.path(), 9000};
    for (const char digit : {'a', 'b'}) ASSERT_TRUE(store.put(binary(digit, 2000)));
    const timespec to_come[] = {{.tv_sec = 4'102'444'800, .tv_nsec = 0}, {.tv_sec = 4'102'444'800, .tv_nsec = 0}};
    for (const char digit : {'a', 'b'})
        ASSERT_EQ(::utimensat(AT_FDCWD, (folder / (key_of(digit) + ".cubin")).c_str(), to_come, 0), 0);
    for (const char digit : {'c', 'd', 'e'}) ASSERT_TRUE((BinaryStore{folder.path(), 9000}.put(binary(digit, 2000))));
    for (const char digit : {'a', 'b'}) EXPECT_FALSE(store.get(key_of(digit))) << digit;
    for (const char digit : {'c', 'd', 'e'}) EXPECT_TRUE(store.get(key_of(digit))) << digit;
}

// Goal: a file that is evicted while others read is a miss and nothing else.
// Method: one thread puts twice of what the cap holds, over and over; two read all keys meanwhile.
TEST(BinaryStore, AFileThatIsEvictedUnderAReaderIsAMiss) {
    samples::Folder folder;
    const std::string digits = "abcdef01";
    std::atomic<bool> done{false};
    std::atomic<int> found{0};
    std::vector<std::thread> readers;
    for (int i = 0; i < 2; ++i)
        readers.emplace_back([&] {
            const BinaryStore reader{folder.path(), 9000};
            while (!done)
                for (const char digit : digits) {
                    const auto got = reader.get(key_of(digit));
                    if (!got) continue;
                    ++found;
                    EXPECT_EQ(got->artefact.cubin, binary(digit, 2000).artefact.cubin);
                }
        });
    BinaryStore writer{folder.path(), 9000};
    for (int n = 0; n < 20 || (found == 0 && n < 2000); ++n)
        for (const char digit : digits) EXPECT_TRUE(writer.put(binary(digit, 2000)));
    done = true;
    for (std::thread& reader : readers) reader.join();
    EXPECT_GT(found, 0);
    EXPECT_LE(writer.bytes(), 9000u);
}

TEST(BinaryStore, AFileLargerThanAllMayTakeIsNotRead) {
    samples::Folder folder;
    BinaryStore{folder.path()}.put(binary('a', 20'000));
    EXPECT_FALSE((BinaryStore{folder.path(), 9000}.get(key_of('a'))));
    EXPECT_TRUE(BinaryStore{folder.path()}.get(key_of('a'))) << "it was removed";
}

// Goal: what a killed process left in the folder goes in the end, and keeps no later process from writing.
TEST(BinaryStore, WhatAKilledProcessLeftIsSweptOnceItIsOld) {
    const samples::Folder folder;
    const Binary one = binary('a');
    const auto path = [&](const std::string& suffix) { return folder / (one.key + ".cubin" + suffix); };
    const std::string mine = ".new-" + std::to_string(::getpid()) + "-";
    const std::vector<std::string> ours{mine + "1", mine + "2", ".new-1-0123456789abcdef0123456789abcdef"};
    const std::vector<std::string> others{".new-1-x", ".new-", ".new-1", ".new"};
    for (const auto* suffixes : {&ours, &others})
        for (const std::string& suffix : *suffixes) {
            std::ofstream{path(suffix)} << "half a binary";
            fs::last_write_time(path(suffix), fs::file_time_type::clock::now() - std::chrono::hours{48});
        }
    std::ofstream{path(".new-7-3")} << "one that is being written";
    BinaryStore store{folder.path()};
    EXPECT_TRUE(store.put(one));
    EXPECT_TRUE(store.get(one.key).has_value());
    for (const std::string& suffix : ours) EXPECT_FALSE(fs::exists(path(suffix))) << suffix;
    for (const std::string& suffix : others) EXPECT_TRUE(fs::exists(path(suffix))) << suffix;
    EXPECT_TRUE(fs::exists(path(".new-7-3")));
}

TEST(BinaryStore, AFileThatOthersMayHaveWrittenIsAMiss) {
    const samples::Folder folder;
    BinaryStore store{folder.path()};
    const Binary one = binary('a');
    ASSERT_TRUE(store.put(one));
    const fs::path path = folder / (one.key + ".cubin");
    for (const fs::path& shared : {path, folder.path()}) {
        const fs::perms before = fs::status(shared).permissions();
        fs::permissions(shared, fs::perms::all);
        EXPECT_FALSE(store.get(one.key).has_value()) << shared;
        fs::permissions(shared, before);
        EXPECT_TRUE(store.get(one.key).has_value());
    }
}

TEST(KeyLock, IsHeldByOneAtATime) {
    samples::Folder folder;
    using std::chrono::milliseconds;
    {
        const KeyLock first{folder.path(), "a", milliseconds{0}};
        EXPECT_EQ(first.got(), KeyLock::Got::held);
        EXPECT_EQ((KeyLock{folder.path(), "a", milliseconds{30}}.got()), KeyLock::Got::timed_out);
        EXPECT_EQ((KeyLock{folder.path(), "b", milliseconds{0}}.got()), KeyLock::Got::held) << "another key";
    }
    EXPECT_EQ((KeyLock{folder.path(), "a", milliseconds{0}}.got()), KeyLock::Got::held);
    EXPECT_EQ((KeyLock{"/proc/none", "a", milliseconds{0}}.got()), KeyLock::Got::no_locks);
    EXPECT_TRUE(fs::exists(folder / "compiling.lock")) << "a lock on a removed file excludes nobody";
}

TEST(BinaryKey, ChangesWithEverythingThatDecidesTheBytes) {
    const SourceSpec spec{.source = "scale.cu",
                          .text = "kernel",
                          .headers = {{"a.cuh", "x"}},
                          .defines = {{"VEC", "4"}},
                          .options = {"-lineinfo"},
                          .entries = {"scale"},
                          .arch = ""};
    const std::vector<std::string_view> options{"-std=c++17"};
    const std::string base = binary_key(spec, options, "sm_90", 13, 0);
    EXPECT_TRUE(base.ends_with("-13.0")) << base;
    EXPECT_EQ(base, binary_key(spec, options, "sm_90", 13, 0));
    EXPECT_NE(base, binary_key(spec, options, "sm_90a", 13, 0));
    EXPECT_NE(base, binary_key(spec, options, "sm_90", 13, 1));
    EXPECT_NE(base, binary_key(spec, {}, "sm_90", 13, 0));
    for (const auto& change : std::vector<std::function<void(SourceSpec&)>>{
             [](SourceSpec& s) { s.text += ' '; }, [](SourceSpec& s) { s.headers[0].second = "y"; },
             [](SourceSpec& s) { s.defines[0].second = "8"; }, [](SourceSpec& s) { s.defines[0].first = "VECS"; },
             [](SourceSpec& s) { s.defines.emplace_back("W", ""); }, [](SourceSpec& s) { s.options.clear(); },
             [](SourceSpec& s) { s.headers[0].first = "b.cuh"; }, [](SourceSpec& s) { s.headers.clear(); },
             [](SourceSpec& s) { s.entries[0] = "scale<4>"; }, [](SourceSpec& s) { s.arch = "sm_90a"; },
             [](SourceSpec& s) { s.source = "other.cu"; }}) {
        SourceSpec other = spec;
        change(other);
        EXPECT_NE(base, binary_key(other, options, "sm_90", 13, 0));
    }
}

}  // namespace
}  // namespace autotune

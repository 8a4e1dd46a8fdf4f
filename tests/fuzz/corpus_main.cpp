// Feeds a fuzz target every file of the folders named on the command line, then each file cut short and changed here
// and there, until the time is over: a stand-in for libFuzzer where the compiler has none. Each run makes the same
// inputs in the same order; only how far it gets depends on the machine. Crashes and sanitizers speak.
//
//     NAME_fuzz [--seconds N] FOLDER...
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

std::size_t fed = 0;

Bytes read(const std::filesystem::path& path) {
    std::ifstream file{path, std::ios::binary};
    return Bytes{std::istreambuf_iterator<char>{file}, {}};
}

void feed(const Bytes& input) {
    ++fed;
    LLVMFuzzerTestOneInput(input.data(), input.size());
}

auto place(std::mt19937_64& random, const Bytes& bytes) {
    return bytes.begin() + static_cast<std::ptrdiff_t>(random() % (bytes.size() + 1));
}

void change_byte_in(Bytes& bytes, std::mt19937_64& random) {
    if (bytes.empty()) return;
    const std::size_t at = random() % bytes.size();
    if (random() % 4 == 0)
        bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at));
    else
        bytes[at] = static_cast<std::uint8_t>(random() % 256);
}

/// A piece of another input in the place of a piece of this one, so that what belongs to one comes into another.
void splice(Bytes& bytes, const Bytes& other, std::mt19937_64& random) {
    auto from = place(random, other), to = place(random, other);
    if (to < from) std::swap(from, to);
    const Bytes piece{from, std::min(to, from + 512)};
    const auto at = place(random, bytes);
    const auto end = at + std::min<std::ptrdiff_t>(bytes.end() - at, static_cast<std::ptrdiff_t>(random() % 64));
    bytes.insert(bytes.erase(at, end), piece.begin(), piece.end());
}

void feed_cut(const Bytes& input) {
    feed(input);
    const std::size_t step = std::max<std::size_t>(1, input.size() / 32);
    for (std::size_t size = 0; size < input.size(); size += step)
        feed(Bytes{input.begin(), input.begin() + static_cast<std::ptrdiff_t>(size)});
}

}  // namespace

int main(int argc, char** argv) {
    const bool timed = argc > 2 && std::strcmp(argv[1], "--seconds") == 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{timed ? std::atoi(argv[2]) : 0};
    std::vector<std::filesystem::path> files;
    for (int i = timed ? 3 : 1; i < argc; ++i)
        for (const auto& entry : std::filesystem::directory_iterator{argv[i]}) files.push_back(entry.path());
    if (files.empty()) {
        std::fputs("usage: NAME_fuzz [--seconds N] FOLDER...: no file of inputs was found\n", stderr);
        return 1;
    }
    std::ranges::sort(files);  // the folder's own order differs between machines
    std::vector<Bytes> inputs;
    for (const auto& file : files) inputs.push_back(read(file));
    for (const Bytes& input : inputs) feed_cut(input);
    std::mt19937_64 random{20240601};
    const auto goes_on = [&](int round) { return timed ? std::chrono::steady_clock::now() < end : round < 64; };
    for (int round = 0; goes_on(round); ++round) {
        for (const Bytes& input : inputs) {
            if (!goes_on(round)) break;
            Bytes changed = input;
            for (int change = 0; change <= round % 3; ++change) change_byte_in(changed, random);
            if (round % 4 == 3) splice(changed, inputs[random() % inputs.size()], random);
            feed(changed);
        }
    }
    std::printf("%zu inputs of %zu files\n", fed, inputs.size());
    return 0;
}

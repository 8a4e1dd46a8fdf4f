// Feeds a fuzz target every file of the folders named on the command line, then each file cut short and with single
// bytes changed: a small, repeatable stand-in for libFuzzer where the compiler has none. Crashes and sanitizers speak.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes read(const std::filesystem::path& path) {
    std::ifstream file{path, std::ios::binary};
    return Bytes{std::istreambuf_iterator<char>{file}, {}};
}

void feed(const Bytes& input) { LLVMFuzzerTestOneInput(input.data(), input.size()); }

void feed_with_mutations(const Bytes& input, std::mt19937_64& random) {
    feed(input);
    const std::size_t step = std::max<std::size_t>(1, input.size() / 64);
    for (std::size_t size = 0; size < input.size(); size += step)
        feed(Bytes{input.begin(), input.begin() + static_cast<std::ptrdiff_t>(size)});
    for (int round = 0; round < 64 && !input.empty(); ++round) {
        Bytes changed = input;
        for (int change = 0; change <= round % 3; ++change) {
            const std::size_t at = random() % changed.size();
            if (random() % 4 == 0)
                changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(at));
            else
                changed[at] = static_cast<std::uint8_t>(random() % 256);
            if (changed.empty()) break;
        }
        feed(changed);
    }
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::filesystem::path> files;
    for (int i = 1; i < argc; ++i)
        for (const auto& entry : std::filesystem::directory_iterator{argv[i]}) files.push_back(entry.path());
    if (files.empty()) {
        std::fputs("usage: NAME_fuzz FOLDER...: no file of inputs was found\n", stderr);
        return 1;
    }
    std::ranges::sort(files);  // the folder's own order differs between machines
    std::mt19937_64 random{20240601};
    for (const auto& file : files) feed_with_mutations(read(file), random);
    std::printf("%zu inputs and their mutations\n", files.size());
    return 0;
}

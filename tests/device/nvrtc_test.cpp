#include "device/nvrtc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "device/temporary_folder.h"

namespace autotune {
namespace {

namespace fs = std::filesystem;

void put(const fs::path& file) {
    fs::create_directories(file.parent_path());
    std::ofstream{file} << "";
}

// An installed program stands in no build folder; what pip installed is found all the same, after any toolkit.
TEST(Nvrtc, IsLookedForAmongThePackagesOfPip) {
    const TemporaryFolder folder{"nvrtc"};
    const fs::path of_13 = folder.path() / "env/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
                   of_12 =
                       folder.path() / "home/.local/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12";
    put(of_13);
    put(of_12);
    ::setenv("VIRTUAL_ENV", (folder.path() / "env").c_str(), 1);
    ::setenv("HOME", (folder.path() / "home").c_str(), 1);
    const std::vector<std::string> candidates = nvrtc_candidates();
    const auto place = [&](const std::string& file) {
        return std::ranges::find(candidates, file) - candidates.begin();
    };
    EXPECT_LT(place("libnvrtc.so.12"), place(of_13.string()));
    EXPECT_LT(place(of_13.string()), place(of_12.string()));
    EXPECT_LT(place(of_12.string()), std::ssize(candidates));
}

}  // namespace
}  // namespace autotune

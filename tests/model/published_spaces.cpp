#include "tests/model/published_spaces.h"

#include <algorithm>
#include <map>

#include "tuner/replay/recorded_space.h"

namespace autotune::test {
namespace {

/// As the folder's README publishes them.
std::vector<std::string> published(const std::string& kernel) {
    const std::string threads = "block_size_x * block_size_y";
    if (kernel == "convolution") return {threads + " >= 64", threads + " <= 1024", "tile_size_x * tile_size_y < 30"};
    if (kernel == "convolution_old") return {threads + " >= 64", "tile_size_x * tile_size_y < 30"};
    const std::string tile = "(block_size_x * tile_size_x + 14) * (block_size_y * tile_size_y + 14) < 12288";
    if (kernel == "convolution_hip")
        return {"use_padding == 0 or block_size_x % 32 != 0", threads + " <= 1024",
                "use_padding == 0 or use_shmem != 0", "use_shmem == 0 or " + tile};
    if (kernel == "convolution_hip_small")
        return {"use_padding == 0 or block_size_x % 32 != 0", threads + " <= 1024", tile};
    if (kernel == "gemm")
        return {"MWG % (MDIMC * VWM) == 0",
                "NWG % (NDIMC * VWN) == 0",
                "MWG % (MDIMA * VWM) == 0",
                "NWG % (NDIMB * VWN) == 0",
                "32 % ((MDIMC * NDIMC) / MDIMA) == 0",
                "32 % ((MDIMC * NDIMC) / NDIMB) == 0"};
    return {};
}

/// More valid configs than the record lists, where it lists working ones only; as the README counts them.
const std::map<std::string, std::size_t> more_than_recorded{
    {"convolution_old", 9400}, {"gemm__MI50", 17956}, {"pnpoly_host", 8184}};

}  // namespace

std::vector<PublishedSpace> published_spaces(const std::filesystem::path& folder) {
    constexpr std::string_view suffix = ".csv.gz";
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator{folder})
        if (entry.path().filename().string().ends_with(suffix)) files.push_back(entry.path());
    std::ranges::sort(files);
    std::vector<PublishedSpace> out;
    for (const std::filesystem::path& file : files) {
        const std::string name = file.filename().string(), kernel = name.substr(0, name.find("__"));
        if (kernel == "coulomb3d") continue;  // its constraints are not published
        const RecordedSpace record = RecordedSpace::read(file);
        PublishedSpace space{.name = name.substr(0, name.size() - suffix.size()), .op = {}, .recorded = {}};
        for (std::size_t i = 0; i < record.space().size(); ++i) space.recorded.push_back(record.space().row(i));
        space.valid = space.recorded.size();
        for (const auto& [more, count] : more_than_recorded)
            if (more == kernel || more == space.name) space.valid = count;
        space.op.name = kernel;
        Variant variant;
        variant.name = "only";
        variant.parameters = record.instance().op().variants.front().parameters;
        for (const std::string& constraint : published(kernel))
            variant.constraints.push_back({constraint, Expression::parse(constraint)});
        space.op.variants.push_back(std::move(variant));
        out.push_back(std::move(space));
    }
    return out;
}

}  // namespace autotune::test

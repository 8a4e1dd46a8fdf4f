#include "tests/model/published_spaces.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>

namespace autotune::test {
namespace {

/// A recorded space: its parameters, its rows as value indices.
struct Recorded {
    std::vector<Parameter> parameters;
    std::vector<Space::Row> rows;
};

Recorded recorded(const std::filesystem::path& file) {
    Recorded out;
    const std::string command = fmt::format("gzip -dc '{}'", file.string());
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe{popen(command.c_str(), "r"), pclose};
    std::array<char, 4096> buffer{};
    bool header = false;
    std::vector<std::map<std::string, std::uint16_t>> index;
    while (std::fgets(buffer.data(), buffer.size(), pipe.get())) {
        std::string line{buffer.data()};
        while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
        constexpr std::string_view values = "# values ";
        if (line.starts_with(values)) {
            const std::size_t colon = line.find(": ");
            out.parameters.push_back(
                {.name = line.substr(values.size(), colon - values.size()), .values = {}, .fallback = {}, .about = {}});
            index.emplace_back();
            for (std::size_t at = colon + 2; at < line.size();) {
                const std::size_t end = std::min(line.find(' ', at), line.size());
                const std::string text = line.substr(at, end - at);
                index.back().emplace(text, static_cast<std::uint16_t>(out.parameters.back().values.size()));
                out.parameters.back().values.push_back(value_from_text(text));
                at = end + 1;
            }
        } else if (line[0] != '#' && !header) {
            header = true;
        } else if (line[0] != '#') {
            Space::Row row{index.size()};
            for (std::size_t p = 0, at = 0; p < index.size(); ++p) {
                const std::size_t end = line.find(',', at);
                row[p] = index[p].at(line.substr(at, end - at));
                at = end + 1;
            }
            out.rows.push_back(row);
        }
    }
    return out;
}

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
        Recorded record = recorded(file);
        PublishedSpace space{
            .name = name.substr(0, name.size() - suffix.size()), .op = {}, .recorded = std::move(record.rows)};
        space.valid = space.recorded.size();
        for (const auto& [more, count] : more_than_recorded)
            if (more == kernel || more == space.name) space.valid = count;
        space.op.name = kernel;
        Variant variant;
        variant.name = "only";
        variant.parameters = std::move(record.parameters);
        for (Parameter& parameter : variant.parameters)
            parameter.fallback = Expression::constant(parameter.values.front());
        for (const std::string& constraint : published(kernel))
            variant.constraints.push_back({constraint, Expression::parse(constraint)});
        space.op.variants.push_back(std::move(variant));
        out.push_back(std::move(space));
    }
    return out;
}

}  // namespace autotune::test

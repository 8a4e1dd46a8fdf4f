#include "cache/store/spool.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <ctime>
#include <string_view>

#include "autotune/error.h"
#include "cache/store/crc32.h"
#include "cache/store/file.h"
#include "cache/store/json.h"
#include "cache/store/location.h"
#include "cache/store/opening.h"
#include "tuner/model/hashing.h"

namespace autotune {

namespace fs = std::filesystem;

fs::path write_spool(const fs::path& folder, std::span<const Record> records) {
    if (records.empty() || !make_private_folder(folder)) return {};
    static std::atomic<int> number{0};
    // Time and process id come again where a clock is set back or processes are numbered anew: a name is for ever.
    const fs::path path = folder / fmt::format("{}-{}-{}-{}-{}.jsonl", host_hash().substr(0, 8), ::getpid(),
                                               std::time(nullptr), ++number, random_uuid().substr(0, 8));
    std::string text;
    for (const Record& record : records) text += to_line(record) + '\n';
    return write_file_whole(path, std::as_bytes(std::span{text})) ? path : fs::path{};
}

std::vector<fs::path> spool_files(const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator{folder, error})
        if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

std::int64_t spool_mark(const fs::path& folder) {
    const std::size_t count = spool_files(folder).size();
    struct stat status {};
    if (count == 0 || ::stat(folder.c_str(), &status) != 0) return 0;
    // Files come and go by their names only, so the folder's time is that of the newest. It ticks with the system's
    // timer, hence the count.
    const std::string text = fmt::format("{} {} {}", count, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
    return std::int64_t{crc32(text) >> 2 | 0x4000'0000} << 32;
}

std::optional<SpoolContents> read_spool(const fs::path& file, Writers writers) {
    const auto bytes = read_file_whole(file, most_spool_bytes, writers);
    if (!bytes) return std::nullopt;
    SpoolContents contents;
    for (std::string_view rest{reinterpret_cast<const char*>(bytes->data()), bytes->size()}; !rest.empty();) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        const std::string_view line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        try {
            if (line.size() > longest_spool_line)
                ++contents.refused;
            else if (!line.empty())
                contents.records.push_back(record_from_line(line));
        } catch (const Error&) {
            ++contents.refused;
        }
    }
    return contents;
}

fs::path set_spool_aside(const fs::path& file) {
    const fs::path to = file.string() + ".refused";
    std::error_code error;
    fs::rename(file, to, error);
    return error ? fs::path{} : to;
}

std::string host_hash() {
    std::array<char, 256> name{};
    ::gethostname(name.data(), name.size() - 1);
    return sha256_hex(std::string_view{name.data()});
}

}  // namespace autotune

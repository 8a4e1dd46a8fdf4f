#ifndef AUTOTUNE_CACHE_STORE_MISS_LIST_H
#define AUTOTUNE_CACHE_STORE_MISS_LIST_H

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tuner/model/instance.h"

namespace autotune {

/// A problem that an application asked for and nobody has tuned, with all that its key is made of.
struct StoredMiss {
    std::string op{};
    std::vector<std::pair<std::string, Value>> fields{};          ///< every field of the problem
    std::vector<std::pair<std::string, std::int64_t>> strides{};  ///< free ones, in elements
    std::vector<std::pair<std::string, int>> align{};             ///< tensors aligned to less than 16 bytes
    std::string device_fp{}, device{};                            ///< the fingerprint, and the name for people
    std::int64_t processes = 1;                                   ///< that asked for it
    std::int64_t last = 0;                                        ///< seconds since 1970, UTC

    /// What makes two of them one: all but the counts and the device's name.
    std::string name() const;
};

StoredMiss miss_of(const Instance& instance, std::string device_fp, std::string device_name);

/// The misses of all processes that learn into one database: a file of JSON lines beside it, at most `most` of them,
/// replaced as a whole under a lock. The file is not trusted: what is no miss is left out, a file that is too large
/// counts as empty.
class MissList {
public:
    static constexpr std::size_t most = 4096;
    static constexpr std::size_t most_bytes = 4 << 20;
    static constexpr std::size_t most_line_bytes = 1 << 14;

    /// PATH/tune.db has PATH/misses.jsonl, PATH/x.db has PATH/x.misses.jsonl.
    explicit MissList(const std::filesystem::path& database);
    const std::filesystem::path& path() const noexcept { return path_; }

    struct Contents {
        std::vector<StoredMiss> misses;  ///< those that most processes asked for first
        std::size_t left_out = 0;        ///< lines that are no misses; a file that is too large counts as one
    };
    Contents contents() const;
    std::vector<StoredMiss> read() const { return contents().misses; }
    /// Counts those that are there already. Beyond `most` those asked for longest ago go. False when the file could
    /// not be written, or others held it all the time.
    bool add(std::span<const StoredMiss> misses, std::chrono::milliseconds patience = std::chrono::seconds{10});
    /// Drops those it says so of; false as above.
    bool drop(const std::function<bool(const StoredMiss&)>& done,
              std::chrono::milliseconds patience = std::chrono::seconds{10});

private:
    bool change(const std::function<bool(std::vector<StoredMiss>&)>& change, std::chrono::milliseconds patience);

    std::filesystem::path path_;
};

}  // namespace autotune
#endif

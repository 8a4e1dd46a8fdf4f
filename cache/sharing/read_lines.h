#ifndef AUTOTUNE_CACHE_SHARING_READ_LINES_H
#define AUTOTUNE_CACHE_SHARING_READ_LINES_H

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "cache/sharing/intake.h"

namespace autotune {

/// A file of JSON lines of elsewhere, in memory: a record a line, as to_line() writes it.
class ForeignLines {
public:
    /// Throws Error{usage} where its first line is no object with a format of ours.
    static ForeignLines of(std::vector<std::byte> bytes, const std::string& name);

    /// Every line, numbered from 1; the parts of each are judged and stay until `all_read` has been called. What is no
    /// record goes to `refuse` with its reason.
    void read(const Judge& judge, const RowSink& sink,
              const std::function<void(std::size_t number, const std::string& reason)>& refuse,
              const std::function<void()>& all_read) const;
    const std::string& sha256() const noexcept { return sha256_; }  ///< of the file

private:
    std::vector<std::byte> bytes_;
    std::string sha256_;
};

}  // namespace autotune
#endif

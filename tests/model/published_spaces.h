#ifndef AUTOTUNE_TESTS_MODEL_PUBLISHED_SPACES_H
#define AUTOTUNE_TESTS_MODEL_PUBLISHED_SPACES_H

#include <filesystem>
#include <string>
#include <vector>

#include "tuner/model/op.h"
#include "tuner/model/space.h"

namespace autotune::test {

/// A search space that somebody else measured as a whole, with the constraints published beside it.
struct PublishedSpace {
    std::string name;                  ///< KERNEL__DEVICE
    Op op;                             ///< one variant with the parameters and constraints, and nothing to launch
    std::vector<Space::Row> recorded;  ///< the configs of the file
    std::size_t valid = 0;             ///< as published; more than recorded where the file lists working ones only
};

/// Reads the files KERNEL__DEVICE.csv.gz of a folder, by name, but those whose constraints are not published.
std::vector<PublishedSpace> published_spaces(const std::filesystem::path& folder);

}  // namespace autotune::test
#endif

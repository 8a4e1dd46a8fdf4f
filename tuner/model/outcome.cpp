#include "tuner/model/outcome.h"

namespace autotune {

std::optional<Ending> ending_named(std::string_view name) noexcept {
    for (const EndingInfo& row : endings)
        if (row.name == name) return row.ending;
    return std::nullopt;
}

}  // namespace autotune

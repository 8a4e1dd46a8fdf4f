#include "tuner/model/free_stride.h"

#include <algorithm>

namespace autotune {

std::optional<std::string> free_stride(const Op& op, const Expression& stride) {
    auto name = stride.bare_name();
    if (!name || op.field(*name) || std::ranges::find(op.scalars, *name, &Scalar::name) != op.scalars.end() ||
        std::ranges::find(op.lets, *name, &std::pair<std::string, Expression>::first) != op.lets.end())
        return std::nullopt;
    return name;
}

}  // namespace autotune

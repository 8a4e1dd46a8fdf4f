#include "tuner/model/op.h"

#include <algorithm>

namespace autotune {
namespace {

template <class T>
const T* named(const std::vector<T>& list, std::string_view name) noexcept {
    const auto found = std::ranges::find(list, name, &T::name);
    return found == list.end() ? nullptr : &*found;
}

}  // namespace

const Field* Op::field(std::string_view name_) const noexcept { return named(fields, name_); }
const Tensor* Op::tensor(std::string_view name_) const noexcept { return named(tensors, name_); }
const Variant* Op::variant(std::string_view name_) const noexcept { return named(variants, name_); }

}  // namespace autotune

#include "tuner/model/op_set.h"

#include <fmt/format.h>

#include <algorithm>

#include "autotune/error.h"
#include "tuner/model/builtin_ops.h"
#include "tuner/model/suggest.h"

namespace autotune {

OpSet::OpSet() {
    for (const Op& op : builtin_ops()) ops_[op.name] = &op;
}

OpSet OpSet::of(std::vector<Op> ops) {
    OpSet set{None{}};
    set.add(std::move(ops));
    return set;
}

std::vector<std::string> OpSet::add(std::vector<Op> ops) {
    std::vector<std::string> notes;
    for (Op& op : ops) {
        const Op*& place = ops_[op.name];
        // An op that was extended keeps the home of the one it extends.
        const bool replaced = place && (place->builtin != op.builtin || place->folder != op.folder);
        if (replaced)
            notes.push_back(
                fmt::format("op '{}' of '{}' replaces {}", op.name, op.folder,
                            place->builtin ? "the built-in one" : fmt::format("that of '{}'", place->folder)));
        place = owned_.emplace_back(std::make_unique<const Op>(std::move(op))).get();
    }
    return notes;
}

const Op& OpSet::find(std::string_view name) const {
    if (const Op* op = find_or_null(name)) return *op;
    std::vector<std::string> known;
    for (const auto& [one, op] : ops_) known.push_back(one);
    std::string meant = did_you_mean(name, known);
    if (meant.empty()) meant = known.empty() ? "" : fmt::format("; the ops are {}", enumerated(known));
    throw Error{Error::Kind::usage, fmt::format("there is no op '{}'{}", name, meant), "autotune ops"};
}

const Op* OpSet::find_or_null(std::string_view name) const noexcept {
    const auto found = ops_.find(name);
    return found == ops_.end() ? nullptr : found->second;
}

std::vector<const Op*> OpSet::all() const {
    std::vector<const Op*> all;
    for (const auto& [name, op] : ops_) all.push_back(op);
    return all;
}

std::vector<const Op*> OpSet::added() const {
    std::vector<const Op*> ops = all();
    std::erase_if(ops, [&](const Op* op) {
        return std::ranges::find(owned_, op, &std::unique_ptr<const Op>::get) == owned_.end();
    });
    return ops;
}

}  // namespace autotune

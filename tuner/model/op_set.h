#ifndef AUTOTUNE_MODEL_OP_SET_H
#define AUTOTUNE_MODEL_OP_SET_H

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/model/op.h"

namespace autotune {

/// The ops of a run: the built-in ones and a user's. An op that was given out stays valid for the set's life, also when
/// another one takes its name.
class OpSet {
public:
    /// The built-in ops.
    OpSet();
    /// These and no others, for tests.
    static OpSet of(std::vector<Op> ops);

    /// Adds a user's ops, each in the place of one of the same name. Returns a note for each op that replaced another;
    /// one that was extended is no news.
    std::vector<std::string> add(std::vector<Op> ops);

    /// Throws Error{usage}: `there is no op 'softmx'; did you mean 'softmax'?`
    const Op& find(std::string_view name) const;
    const Op* find_or_null(std::string_view name) const noexcept;
    /// By name.
    std::vector<const Op*> all() const;
    /// Those that were added and still stand, by name.
    std::vector<const Op*> added() const;

private:
    struct None {};
    explicit OpSet(None) {}
    std::map<std::string, const Op*, std::less<>> ops_;
    std::vector<std::unique_ptr<const Op>> owned_;
};

}  // namespace autotune
#endif

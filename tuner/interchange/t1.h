#ifndef AUTOTUNE_INTERCHANGE_T1_H
#define AUTOTUNE_INTERCHANGE_T1_H

#include <string>
#include <string_view>
#include <vector>

#include "tuner/model/op.h"

namespace autotune {

/// What a T1 file says of a search space: the format in which other tuners describe what is to be tuned.
struct T1 {
    std::string kernel, source, language;
    std::vector<Parameter> parameters;   ///< in the file's order; a default only where the file gives one
    std::vector<Constraint> conditions;  ///< the claim is the condition as the file writes it
    std::vector<std::string> notes;      ///< what was read with a grain of salt, a sentence each
};

/// Reads either edition: Values as Python in a string, or as a JSON list; with `Conditions` missing, empty, or naming
/// parameters that their own list leaves out. What the schema does not know is passed over.
/// file    its name, for messages
/// throws  Error{usage} naming file and place: no JSON, no parameter, one twice, a list or condition that is not
///         understood, a name that is no parameter
T1 t1_from_text(std::string_view text, const std::string& file);

/// An op with the space and nothing else, one variant named as the kernel: to count, draw and search over, with no
/// launch to compile.
Op op_of_t1(const T1& t1);

}  // namespace autotune
#endif

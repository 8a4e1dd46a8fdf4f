#ifndef AUTOTUNE_C_API_GIVEN_OPTIONS_H
#define AUTOTUNE_C_API_GIVEN_OPTIONS_H

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/autotune.h"
#include "autotune/dispatcher.h"

namespace autotune::c_api {

// What callers in C give, in the form of the C++ API. Each throws Error{usage}.

void require(bool given, std::string_view what);
std::vector<std::string> words_of(const char* const* words, std::size_t count, std::string_view what);

/// A caller's options in the form of this library: what an older caller lacks is zero; what a newer one asks for beyond
/// what is known is refused rather than left undone.
autotune_options options_of(const autotune_options* given);
/// `ops`: nullptr means the built-in ones; they outlive the dispatcher.
Dispatcher::Options dispatcher_options(const autotune_options& options, const OpSet* ops);

}  // namespace autotune::c_api
#endif
